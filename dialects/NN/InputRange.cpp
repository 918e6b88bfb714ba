#include "dialects/NN/InputRange.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dlc::nn {

bool isRange(Attribute attribute) {
  auto range = dyn_cast<DenseF64ArrayAttr>(attribute);
  return range && range.size() >= 2 && range[0] <= range[1];
}

static bool holds(ArrayRef<double> range, double value) {
  return (value >= range[0] && value <= range[1]) || llvm::is_contained(range.drop_front(2), value);
}

DenseF64ArrayAttr intersect(DenseF64ArrayAttr a, DenseF64ArrayAttr b) {
  if (!a || !b)
    return a ? a : b;
  SmallVector<double> both = {std::max(a[0], b[0]), std::min(a[1], b[1])};
  for (ArrayRef<double> range : {a.asArrayRef(), b.asArrayRef()})
    for (double other : range.drop_front(2))
      if (holds(a, other) && holds(b, other) && !holds(both, other))
        both.push_back(other);
  return DenseF64ArrayAttr::get(a.getContext(), both);
}

/// Each element of the result is an element of an operand, perhaps in another type that holds it.
static bool keepsValues(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op)) {
    Type from = tensorType(cast.getX()).getElementType();
    bool truncates = isa<FloatType>(from) && !isa<FloatType>(tensorType(cast).getElementType());
    return !truncates;
  }
  return op->hasTrait<MovesElements>();
}

static void narrow(BlockArgument input, DenseF64ArrayAttr range) {
  auto program = cast<ProgramOp>(input.getOwner()->getParentOp());
  unsigned index = input.getArgNumber();
  auto known = program.getArgAttrOfType<DenseF64ArrayAttr>(index, inputRange);
  program.setArgAttr(index, inputRange, intersect(known, range));
}

void expectRange(Value value, double low, double high, ArrayRef<double> others) {
  SmallVector<double> values = {low, high};
  values.append(others.begin(), others.end());
  auto range = DenseF64ArrayAttr::get(value.getContext(), values);
  llvm::SetVector<Value> sources;
  sources.insert(value);
  for (size_t i = 0; i < sources.size(); ++i) // grows
    if (auto input = dyn_cast<BlockArgument>(sources[i]))
      narrow(input, range);
    else if (Operation *op = sources[i].getDefiningOp(); keepsValues(op))
      sources.insert_range(op->getOperands());
}

void expectSumOfOne(Value value) {
  if (auto input = dyn_cast<BlockArgument>(value)) {
    auto program = cast<ProgramOp>(input.getOwner()->getParentOp());
    program.setArgAttr(input.getArgNumber(), inputSumsToOne, UnitAttr::get(value.getContext()));
  }
}

} // namespace dlc::nn
