// Linear forms over the loops of a nest. Coordinates, addresses and bounds of generated kernels are
// such forms, so that collapsing and splitting loops is arithmetic on weights.
#pragma once

#include "mlir/IR/AffineExpr.h"

#include <optional>
#include <tuple>

namespace dlc {

/// sum(weights[i] * index of loop i) + offset.
struct LinearForm {
  llvm::SmallVector<int64_t, 6> weights;
  int64_t offset = 0;

  static LinearForm constant(unsigned loops, int64_t offset) {
    return {llvm::SmallVector<int64_t, 6>(loops, 0), offset};
  }
  bool operator==(const LinearForm &) const = default;
  /// An order, of no meaning, for maps.
  bool operator<(const LinearForm &other) const {
    return std::tie(offset, weights) < std::tie(other.offset, other.weights);
  }
  void add(const LinearForm &other, int64_t factor = 1);
  /// Takes multiples of a divisor off the offset until that is at least 0 and less: how many.
  int64_t takeWhole(int64_t divisor);
  /// Smallest and largest value over loops of these extents.
  std::pair<int64_t, int64_t> range(llvm::ArrayRef<int64_t> extents) const;
  mlir::AffineExpr expression(mlir::MLIRContext *context) const;
  /// Quotient and remainder by a block size over loops of these extents, if both are linear.
  std::optional<std::pair<LinearForm, LinearForm>> divide(int64_t block,
                                                          llvm::ArrayRef<int64_t> extents) const;
};

/// 0 <= form < extent, and the form's remainder by a divisor is less than `rest`.
struct Bound {
  LinearForm form;
  int64_t extent;
  int64_t divisor = 1, rest = 1;
};

/// weight * (form / divisor), rounded down, of a form that is not negative.
struct Quotient {
  LinearForm form;
  int64_t divisor;
  int64_t weight;
};

} // namespace dlc
