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

/// Of a program's outputs; nothing, and the obstacle, if the inputs or outputs are no images of one
/// size, or an output element depends on the whole input or on where in the image it lies.
std::variant<Tiling, TilingObstacle> tilingOf(nn::ProgramOp program);

} // namespace dlc
