// Operands that threads side by side would read far apart. Between row-major and channels last,
// what is side by side in one is far apart in the other; and where each thread adds up a row, rows
// are. The block brings its part of such an operand through shared memory: it reads in the
// operand's order and computes in its own, so that either is whole sectors of global memory.
#pragma once

#include "passes/codegen/ClusterPlan.h"

namespace dlc {

struct SharedTiles {
  /// Each copies one tile, from what is read or to what is stored: a stage of one read and one
  /// write, over the loops of the item with those inside of it in the operand's order.
  std::vector<StagePlan> reads, stores;
  /// Where each tile begins in shared memory, and where all end.
  llvm::SmallVector<int64_t> offsets;
  int64_t bytes = 0;
  /// The tiles are buffers from this number on.
  unsigned firstBuffer = 0;
  /// The stage, on the tiles.
  StagePlan stage;

  /// A pure function of the stage. Nothing if there is no such operand, or not room for all.
  static std::optional<SharedTiles> of(const StagePlan &stage);

private:
  /// Elements of a buffer.
  struct Place {
    unsigned buffer;
    LinearForm form;
  };
  /// A tile of such elements of the item.
  Place addTile(const StagePlan &whole, mlir::Type element);
  static StagePlan copyOf(const StagePlan &whole, llvm::ArrayRef<unsigned> order,
                          mlir::Type element, const Place &from, const Place &to);
};

} // namespace dlc
