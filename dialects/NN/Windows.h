// Which part of a program's input each element of a value depends on, axis by axis: what tiling and
// receptive fields are computed of.
#pragma once

#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

namespace dlc::nn {

/// Exact; a network's strides keep both parts small.
struct Fraction {
  int64_t top = 0, bottom = 1;

  Fraction() = default;
  Fraction(int64_t top, int64_t bottom = 1) : top(top), bottom(bottom) {
    int64_t divisor = std::gcd(top, bottom);
    this->top /= divisor;
    this->bottom /= divisor;
  }
  Fraction operator+(Fraction o) const {
    return {top * o.bottom + o.top * bottom, bottom * o.bottom};
  }
  Fraction operator-(Fraction o) const { return *this + Fraction(-o.top, o.bottom); }
  Fraction operator*(Fraction o) const { return {top * o.top, bottom * o.bottom}; }
  Fraction operator/(int64_t divisor) const { return {top, bottom * divisor}; }
  bool operator==(const Fraction &) const = default;
  bool operator<(Fraction o) const { return top * o.bottom < o.top * bottom; }
};

/// A dimension of a value is uniform, follows a spatial dimension of the input, or is neither.
/// Element i of one that follows depends on the input from step * i + low to step * i + high; steps
/// are fractions after upsampling.
struct Axis {
  enum Kind { Uniform, Follows, Other } kind = Other;
  unsigned spatial = 0; // of the input that it follows
  Fraction step = 1, low, high;

  bool follows() const { return kind == Follows; }
};
using Axes = llvm::SmallVector<Axis>;

/// The axes of an op's operands, and why its result has none.
class WindowQuery {
public:
  using Lookup = llvm::function_ref<llvm::ArrayRef<Axis>(mlir::Value)>;
  explicit WindowQuery(Lookup lookup) : lookup(lookup) {}

  llvm::ArrayRef<Axis> operator()(mlir::Value operand) const { return lookup(operand); }
  /// No axes: elements of the result depend on all of the image, or on where they lie in it.
  std::optional<Axes> refuse(const llvm::Twine &text) {
    reason = text.str();
    return std::nullopt;
  }

  std::string reason;

private:
  Lookup lookup;
};

/// The axes of what is computed element by element; along dimension `joined`, if there is one,
/// operands lie side by side.
std::optional<Axes> mergeAxes(mlir::ValueRange operands, WindowQuery &windows, int64_t joined = -1);

} // namespace dlc::nn
