// Which elements the windows of a pooling or a convolution meet, over the loops of a nest.
#pragma once

#include "passes/codegen/LoopSpace.h"

namespace dlc {

/// True of an operand that generated code reads where it lies in memory, slices of it included:
/// several elements for each that it computes.
bool isGathered(mlir::OpOperand &operand);

/// Along a spatial dimension, where something is read: at form / divisor, rounded down, if that
/// exists and the remainder is less than `rest`.
struct GatheredPlace {
  LinearForm form;
  int64_t divisor, rest = 1;
};
using GatheredPlaces = llvm::SmallVector<GatheredPlace, 3>;

/// Spatial dimensions are those of [N, C, S...] from the third on. A tap is a place in a window, a
/// form for each of them.
struct WindowPlaces {
  llvm::ArrayRef<int64_t> kernel, strides, padding;
  llvm::ArrayRef<int64_t> dilations = {}; // none: 1

  static WindowPlaces of(nn::MaxPoolGradOp op) {
    return {op.getKernel(), op.getStrides(), op.getPaddingLow()};
  }
  /// Of a convolution or of a gradient of one, whose weight or gradient of it is `weight`.
  template <typename Conv> static WindowPlaces of(Conv op, mlir::Value weight) {
    return {nn::tensorType(weight).getShape().drop_front(2), op.getStrides(), op.getPaddingLow(),
            op.getDilations()};
  }

  int64_t count() const { return llvm::product_of(kernel); }
  /// Windows that an element is in, at most, where taps are not dilated.
  int64_t windowsOfElement() const;
  /// The tap of a number, row-major.
  Coordinates tap(int64_t number, unsigned loops) const;
  /// Where the window at these coordinates has a tap.
  GatheredPlaces elementsAt(const Coordinates &tap, const Coordinates &window) const;
  /// Which windows have the element at these coordinates at a tap.
  GatheredPlaces windowsWith(const Coordinates &tap, const Coordinates &element) const;
  /// Those that the element at these coordinates is in, by number: row-major, and along each
  /// dimension the one first in which the element's tap is.
  GatheredPlaces windowsAround(int64_t number, const Coordinates &element) const;
  /// The number of the tap at which one of these has the element: the sum of a form and quotients.
  std::pair<LinearForm, llvm::SmallVector<Quotient>> tapOf(const Coordinates &element,
                                                           const GatheredPlaces &window) const;

private:
  /// From the beginning of a window to a tap, in elements of dimension `dim`.
  LinearForm distance(const LinearForm &tap, size_t dim) const;
};

} // namespace dlc
