// Container, variables, programs and sinks: syntax and verification.

#include "dialects/NN/InputRange.h"
#include "dialects/NN/Stage.h"

#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

LogicalResult ModelOp::verify() {
  if (!stageNamed(getStage()))
    return emitOpError("stage is '") << getStage() << "', expected nn, train, schedule or exec";
  return success();
}

LogicalResult VariableOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (getKind() == VariableKind::Scalar && type.getRank() != 0)
    return emitOpError("is of kind scalar and has rank ") << type.getRank();
  bool isSlot = getKind() == VariableKind::Slot, isCopy = getKind() == VariableKind::Copy;
  bool isOwned = getOwner().has_value(), mayBeOwned = isSlot || isCopy;
  if ((isCopy && !isOwned) || (isOwned && !mayBeOwned) || getSlot().has_value() != isSlot)
    return emitOpError("a slot belongs to all variables of kind slot and to no others, an owner to "
                       "all of kind copy, and to those of kind slot that are of one parameter");
  return success();
}

//===- Program --------------------------------------------------------------------------------===//

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag,
                      std::string &) { return builder.getFunctionType(inputs, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void ProgramOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false,
                                           getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

static LogicalResult verifyAssignedOnce(ProgramOp program) {
  llvm::StringMap<SmallVector<AssignOp>> assigned;
  auto overlap = [](AssignOp a, AssignOp b) {
    if (!a.getRow() || !b.getRow())
      return true;
    auto begin = [](AssignOp op) { return static_cast<int64_t>(*op.getRow()); };
    auto end = [&](AssignOp op) { return begin(op) + tensorType(op.getValue()).getDimSize(0); };
    return begin(a) < end(b) && begin(b) < end(a);
  };
  for (auto assign : program.getBody().getOps<AssignOp>()) {
    SmallVector<AssignOp> &others = assigned[assign.getVariable()];
    if (llvm::any_of(others, [&](AssignOp other) { return overlap(assign, other); }))
      return assign.emitOpError("is the second one of @") << assign.getVariable();
    others.push_back(assign);
  }
  return success();
}

LogicalResult ProgramOp::verify() {
  if (!llvm::is_contained({"train", "eval", "predict"}, getSymName()))
    return emitOpError("is named '") << getSymName() << "', expected train, eval or predict";
  if (!getFunctionType().getResults().empty())
    return emitOpError(
        "has results; they leave through nn.loss, nn.metric, nn.output and nn.assign");
  for (auto [i, type] : llvm::enumerate(getArgumentTypes())) {
    if (getInputName(i).empty())
      return emitOpError("argument ") << i << " lacks nn.input, the name of an input";
    if (!isTensor(type))
      return emitOpError("has input '")
             << getInputName(i) << "' of type " << type
             << ", expected a tensor of static shape, at most 5 dimensions of at least 1 and at "
                "most 2^40 elements of a type such as f32 or i32";
    if (Attribute range = getArgAttr(i, inputRange); range && !isRange(range))
      return emitOpError("has input '") << getInputName(i) << "' with nn.range = " << range
                                        << ", expected array<f64: low, high> with low <= high";
  }
  return verifyAssignedOnce(*this);
}

StringRef ProgramOp::getInputName(unsigned index) {
  auto name = getArgAttrOfType<StringAttr>(index, "nn.input");
  return name ? name.getValue() : StringRef();
}

void ProgramOp::updateFunctionType() {
  setFunctionType(FunctionType::get(getContext(), getBody().front().getArgumentTypes(), {}));
}

//===- Uses of variables ----------------------------------------------------------------------===//

/// The rows of the variable exist and lie in its memory as the value does.
static LogicalResult verifyRows(Operation *op, VariableOp variable, Type type, int64_t row) {
  auto whole = dyn_cast<RankedTensorType>(variable.getType());
  auto part = dyn_cast<RankedTensorType>(type);
  if (!whole || !part || !rowOffset(whole, row, part))
    return op->emitOpError("has type ")
           << type << ", which is not that of rows from " << row << " on of variable @"
           << variable.getSymName() << ", " << variable.getType();
  return success();
}

/// The variable exists and its type is the value's; `layoutToo` includes the layout.
static LogicalResult verifyVariableUse(Operation *op, SymbolTableCollection &symbols,
                                       FlatSymbolRefAttr name, Type type, bool layoutToo,
                                       std::optional<uint64_t> row = std::nullopt) {
  auto variable = symbols.lookupNearestSymbolFrom<VariableOp>(op, name);
  if (!variable)
    return op->emitOpError("names ") << name << ", which is no variable of the model";
  if (row)
    return verifyRows(op, variable, type, static_cast<int64_t>(*row));
  bool same = layoutToo ? variable.getType() == type
                        : haveSameLogicalTypes(TypeRange(variable.getType()), TypeRange(type));
  if (!same)
    return op->emitOpError("has type ")
           << type << ", variable " << name << " has " << variable.getType();
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVariableUse(*this, symbols, getVariableAttr(), getValue().getType(), true, getRow());
}

LogicalResult AssignOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVariableUse(*this, symbols, getVariableAttr(), getValue().getType(), true, getRow());
}

LogicalResult GradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVariableUse(*this, symbols, getVariableAttr(), getValue().getType(), false);
}

//===- Sinks ----------------------------------------------------------------------------------===//

static LogicalResult verifyPair(Operation *op, Value sum, Value count) {
  if (tensorType(sum).getRank() != 0 || tensorType(count).getRank() != 0)
    return op->emitOpError("takes scalars, got ") << sum.getType() << " and " << count.getType();
  return success();
}

LogicalResult LossOp::verify() { return verifyPair(*this, getSum(), getCount()); }
LogicalResult MetricOp::verify() { return verifyPair(*this, getSum(), getCount()); }
