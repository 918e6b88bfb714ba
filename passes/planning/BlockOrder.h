// Orders the ops of a program.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <tuple>

namespace dlc {

/// Where an op would like to be; smaller comes first.
struct OrderKey {
  unsigned phase = 0;
  double position = 0;
  auto operator<=>(const OrderKey &) const = default;
};

/// The block's ops so that operands come before users: of the ops whose operands have been placed,
/// the one with the smallest key is next, and in a tie the one that comes first in the block.
std::vector<mlir::Operation *> orderBlock(mlir::Block &block,
                                          llvm::function_ref<OrderKey(mlir::Operation *)> keyOf);

/// Moves the block's ops into this order.
void applyOrder(mlir::Block &block, llvm::ArrayRef<mlir::Operation *> order);

} // namespace dlc
