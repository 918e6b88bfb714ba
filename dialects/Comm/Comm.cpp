// The comm dialect: registration and verification.

#include "dialects/Comm/Comm.h"

#include "dialects/NN/NN.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc::comm;

#include "dialects/Comm/CommDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Comm/CommTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Comm/CommOps.cpp.inc"

void CommDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Comm/CommOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Comm/CommTypes.cpp.inc"
      >();
}

static LogicalResult verifyWire(Operation *op, std::optional<Type> wire) {
  if (wire && !wire->isF32() && !wire->isBF16())
    return op->emitOpError("wire type is ") << *wire << ", expected f32 or bf16";
  return success();
}

static LogicalResult verifyMembers(Operation *op, std::optional<ArrayAttr> members) {
  if (!members)
    return success();
  if (members->size() != op->getNumOperands())
    return op->emitOpError("names ")
           << members->size() << " members for " << op->getNumOperands() << " operands";
  for (Attribute member : *members)
    if (!isa<FlatSymbolRefAttr, StringAttr>(member))
      return op->emitOpError("names the member ") << member << ", expected a symbol or a string";
  return success();
}

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                            ValueRange operands, DictionaryAttr, OpaqueProperties,
                                            RegionRange, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (getInputs().empty())
    return emitOpError("needs an operand");
  if (failed(verifyMembers(*this, getMembers())))
    return failure();
  return verifyWire(*this, getWire());
}

LogicalResult StartOp::verify() {
  if (getInputs().empty())
    return emitOpError("needs an operand");
  if (!llvm::equal(getFuture().getType().getTypes(), getInputs().getTypes()))
    return emitOpError("future's types differ from the operands'");
  if (!getFuture().hasOneUse() || !isa<WaitOp>(*getFuture().getUsers().begin()))
    return emitOpError("needs exactly one comm.wait");
  Operation *wait = *getFuture().getUsers().begin();
  for (Value input : getInputs())
    for (Operation *user : input.getUsers())
      if (user != getOperation() && user->getBlock() == wait->getBlock() &&
          getOperation()->isBeforeInBlock(user) && user->isBeforeInBlock(wait))
        return emitOpError("has an operand that is used while it is in flight")
                   .attachNote(user->getLoc())
               << "used here";
  if (failed(verifyMembers(*this, getMembers())))
    return failure();
  return verifyWire(*this, getWire());
}

LogicalResult WaitOp::verify() {
  if (!getFuture().getDefiningOp<StartOp>())
    return emitOpError("waits for something that comm.start did not make");
  if (!llvm::equal(getFuture().getType().getTypes(), getOutputs().getTypes()))
    return emitOpError("results differ from the future's types");
  return success();
}
