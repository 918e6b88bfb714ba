#include "test/reference/Promote.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

static bool isNarrow(Type element) { return isa<BFloat16Type, Float16Type>(element); }

static RankedTensorType promoted(RankedTensorType type) {
  if (!isa<FloatType>(type.getElementType()) || isNarrow(type.getElementType()))
    return type;
  return type.clone(Float64Type::get(type.getContext()));
}

static void promoteConstant(ConstantOp op) {
  auto value = dyn_cast<DenseFPElementsAttr>(op.getValue());
  if (!value || isNarrow(value.getElementType()))
    return;
  SmallVector<double> elements = llvm::map_to_vector(
      value.getValues<APFloat>(), [](const APFloat &element) { return element.convertToDouble(); });
  RankedTensorType type = promoted(tensorType(op.getResult()));
  op.setValueAttr(value.isSplat() ? DenseElementsAttr::get(type, elements.front())
                                  : DenseElementsAttr::get(type, ArrayRef<double>(elements)));
}

void reference::promoteToF64(ModelOp model) {
  model.walk([](Operation *op) {
    for (OpResult result : op->getResults())
      result.setType(promoted(tensorType(result)));
    if (auto constant = dyn_cast<ConstantOp>(op))
      promoteConstant(constant);
    if (auto variable = dyn_cast<VariableOp>(op))
      variable.setType(promoted(cast<RankedTensorType>(variable.getType())));
    if (auto program = dyn_cast<ProgramOp>(op)) {
      for (BlockArgument argument : program.getBody().getArguments())
        argument.setType(promoted(tensorType(argument)));
      program.updateFunctionType();
    }
  });
}
