#include "passes/planning/BucketLayout.h"

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "passes/planning/KernelRequests.h"

using namespace mlir;
using namespace dlc;

BucketLayout BucketLayout::of(ValueRange tensors) {
  BucketLayout layout(nn::tensorType(tensors.front()).getElementType());
  for (Value tensor : tensors)
    layout.add(nn::tensorType(tensor));
  return layout;
}

int64_t BucketLayout::place(int64_t count) {
  int64_t offset = elements * nn::elementBytes(element);
  elements += count;
  return offset;
}

int64_t BucketLayout::sliceBytes(int64_t tensorBytes) { return exec::alignUp(tensorBytes); }

int64_t BucketLayout::add(RankedTensorType tensor) {
  return place(sliceBytes(nn::physicalBytes(tensor)) / nn::elementBytes(element));
}

int64_t BucketLayout::addToRange(RankedTensorType tensor) {
  return place(exec::rangeElements(tensor));
}

uint64_t BucketLayout::messageBytes(Type wire) const {
  return static_cast<uint64_t>(elements * nn::elementBytes(wire));
}

bool dlc::isOwnResult(Value value) { return isKernelResult(value) && value.hasOneUse(); }
