#include "passes/codegen/WindowPlaces.h"

using namespace mlir;
using namespace dlc;

bool dlc::isGathered(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto grad = dyn_cast<nn::MaxPoolGradOp>(op))
    return !nn::windowsTile(grad);
  bool isConvolution =
      isa<nn::ConvOp, nn::ConvTransposeOp, nn::ConvGradDataOp, nn::ConvGradFilterOp>(op);
  return isConvolution && operand.getOperandNumber() == 0;
}

Coordinates WindowPlaces::tap(int64_t number, unsigned loops) const {
  Coordinates tap(kernel.size());
  for (size_t dim = kernel.size(); dim-- > 0; number /= kernel[dim])
    tap[dim] = LinearForm::constant(loops, number % kernel[dim]);
  return tap;
}

int64_t WindowPlaces::windowsOfElement() const {
  int64_t count = 1;
  for (auto [extent, stride] : llvm::zip(kernel, strides))
    count *= llvm::divideCeil(extent, stride);
  return count;
}

LinearForm WindowPlaces::distance(const LinearForm &tap, size_t dim) const {
  LinearForm distance = LinearForm::constant(tap.weights.size(), -padding[dim]);
  distance.add(tap, dilations.empty() ? 1 : dilations[dim]);
  return distance;
}

GatheredPlaces WindowPlaces::elementsAt(const Coordinates &tap, const Coordinates &window) const {
  GatheredPlaces places;
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    places.push_back({distance(tap[dim], dim), 1});
    places.back().form.add(window[dim + 2], stride);
  }
  return places;
}

GatheredPlaces WindowPlaces::windowsWith(const Coordinates &tap, const Coordinates &element) const {
  GatheredPlaces places;
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    places.push_back({element[dim + 2], stride});
    places.back().form.add(distance(tap[dim], dim), -1);
  }
  return places;
}

GatheredPlaces WindowPlaces::windowsAround(int64_t number, const Coordinates &element) const {
  GatheredPlaces places(strides.size());
  for (size_t dim = strides.size(); dim-- > 0;) {
    int64_t stride = strides[dim], count = llvm::divideCeil(kernel[dim], stride);
    int64_t earlier = number % count * stride; // than the last window, in elements
    number /= count;
    places[dim] = {element[dim + 2], stride, std::min(stride, kernel[dim] - earlier)};
    places[dim].form.offset += padding[dim] - earlier;
  }
  return places;
}

std::pair<LinearForm, SmallVector<Quotient>>
WindowPlaces::tapOf(const Coordinates &element, const GatheredPlaces &window) const {
  LinearForm tap = LinearForm::constant(element.front().weights.size(), 0);
  SmallVector<Quotient> quotients;
  int64_t weight = 1;
  for (size_t dim = strides.size(); dim-- > 0; weight *= kernel[dim]) {
    auto [form, stride, rest] = window[dim];
    tap.add(element[dim + 2], weight);
    tap.offset += weight * (padding[dim] - stride * form.takeWhole(stride));
    if (stride == 1)
      tap.add(form, -weight);
    else
      quotients.push_back({form, stride, -weight * stride});
  }
  return {tap, quotients};
}
