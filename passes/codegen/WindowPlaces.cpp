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
