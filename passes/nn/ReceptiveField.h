// What part of the input an output element depends on, per spatial dimension.
//
// The network is a function of positions: as long as every element depends on a window of the input
// that moves along with it, an image can be computed tile by tile. Where a value depends on all of
// the input (a global pooling, a dense layer), there is no such window.
#pragma once

#include "dialects/NN/NN.h"

#include <string>
#include <variant>

namespace dlc {

/// Per spatial dimension. Tiles that start at multiples of `alignment` see the same windows of
/// strided layers as the whole image does; results `overlap` (a multiple of it) or more off an edge
/// of a tile do not depend on what lies beyond the edge.
struct Tiling {
  llvm::SmallVector<int64_t> overlap, alignment;
};

/// What keeps a program from being computed tile by tile.
struct TilingObstacle {
  mlir::Location loc; // of the op, or of the input or output that is no image
  std::string text;   // says of it what it does
};

/// Of a program whose losses and metrics count what lies inside of a tile.
struct EvaluationTiling {
  Tiling tiling;
  llvm::SmallVector<int64_t> extents;          // of a tile
  llvm::SmallVector<nn::ReduceSumOp> sums;     // over the pixels; the image's dimensions are last
  llvm::SmallVector<mlir::OpOperand *> counts; // of losses and metrics, which no pixel enters
};

/// Of a program's losses and metrics; the obstacle if one of them is not linear in sums over all
/// pixels, of which every summand depends on a window of the input.
std::variant<EvaluationTiling, TilingObstacle> evaluationTilingOf(nn::ProgramOp program);

/// Of a program's outputs; nothing, and the obstacle, if the inputs or outputs are no images of one
/// size, or an output element depends on the whole input or on where in the image it lies.
std::variant<Tiling, TilingObstacle> tilingOf(nn::ProgramOp program);

} // namespace dlc
