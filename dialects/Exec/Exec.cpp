// The exec dialect: registration and verification of single ops. dlc-verify-exec checks whole
// programs.

#include "dialects/Exec/Exec.h"

#include "dialects/NN/NN.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

#include "dialects/Exec/ExecDialect.cpp.inc"
#include "dialects/Exec/ExecEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Exec/ExecAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Exec/ExecTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Exec/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Exec/ExecOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Exec/ExecAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Exec/ExecTypes.cpp.inc"
      >();
}

bool exec::isInstruction(Operation *op) {
  return isa<DispatchOp, StartOp, WaitOp, RecordOp, WaitEventOp, CopyOp, FillOp, HostReadOp>(op);
}

Root exec::rootOf(Value buffer) {
  int64_t offset = 0;
  while (auto view = buffer.getDefiningOp<ViewOp>()) {
    offset += static_cast<int64_t>(view.getOffset());
    buffer = view.getSource();
  }
  return {buffer.getDefiningOp<BufferOp>(), offset};
}

LogicalResult KernelOp::verify() {
  if (getPlan().has_value() == getCluster().has_value()) // 1.
    return emitOpError("needs either a plan or a cluster");
  if (getAccess().size() != getTypes().size()) // 2.
    return emitOpError("has ") << getTypes().size() << " operands and " << getAccess().size()
                               << " accesses";
  for (int32_t access : getAccess())
    if (access < 1 || access > 3)
      return emitOpError("access ") << access << " is none of 1 (read), 2 (write), 3 (both)";
  if (static_cast<int64_t>(getExtent()) < 1 || static_cast<int64_t>(getChunk()) < 1)
    return emitOpError("extent and chunk must be at least 1");
  return success();
}

LogicalResult ViewOp::verify() {
  int64_t end = static_cast<int64_t>(getOffset()) + nn::physicalBytes(getType().getTensor());
  if (static_cast<int64_t>(getOffset()) < 0 ||
      end > nn::physicalBytes(getSource().getType().getTensor()))
    return emitOpError("ends at byte ") << end << ", outside of " << getSource().getType();
  return success();
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("runs ") << getKernelAttr() << ", which is no kernel";
  if (kernel.getTypes().size() != getBuffers().size())
    return emitOpError("gives ") << getBuffers().size() << " buffers to " << getKernelAttr()
                                 << ", which takes " << kernel.getTypes().size();
  for (auto [i, pair] :
       llvm::enumerate(llvm::zip(kernel.getTypes().getAsValueRange<TypeAttr>(), getBuffers())))
    if (std::get<0>(pair) != cast<BufferType>(std::get<1>(pair).getType()).getTensor())
      return emitOpError("buffer ") << i << " is " << std::get<1>(pair).getType() << ", "
                                    << getKernelAttr() << " takes " << std::get<0>(pair);
  return success();
}

LogicalResult HostReadOp::verify() {
  size_t wanted = getKind() == ResultKind::Output ? 1 : 2;
  if (getBuffers().size() != wanted)
    return emitOpError("reads ") << getBuffers().size() << " buffers, a "
                                 << stringifyResultKind(getKind()) << " has " << wanted;
  return success();
}
