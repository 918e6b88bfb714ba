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

/// A tensor of nn, a library's workspace (bytes), or parts of reductions, which have one dimension
/// more.
static bool hasPlace(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && nn::isBounded(tensor, nn::maxRank + 1) &&
         nn::isTensor(RankedTensorType::get({}, tensor.getElementType()));
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 RankedTensorType tensor) {
  if (!hasPlace(tensor))
    return emitError() << "no buffer holds a " << tensor;
  return success();
}

int64_t exec::rangeElements(RankedTensorType type) {
  int64_t elements = nn::physicalBytes(type) / nn::elementBytes(type.getElementType());
  return llvm::alignTo(elements, 32);
}

int64_t exec::rangeBytes(RankedTensorType type) {
  return rangeElements(type) * nn::elementBytes(type.getElementType());
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
  for (Type type : getTypes().getAsValueRange<TypeAttr>()) // 3.
    if (!hasPlace(type))
      return emitOpError("takes a ") << type << ", which no buffer holds";
  if (getAccess().size() != getTypes().size()) // 2.
    return emitOpError("has ") << getTypes().size() << " operands and " << getAccess().size()
                               << " accesses";
  for (int32_t access : getAccess())
    if (access < 1 || access > 3)
      return emitOpError("access ") << access << " is none of 1 (read), 2 (write), 3 (both)";
  auto isRead = [](int32_t access) { return access == static_cast<int32_t>(exec::Access::Read); };
  auto isWrite = [](int32_t access) { return access == static_cast<int32_t>(exec::Access::Write); };
  bool writesOne = llvm::count_if(getAccess(), isWrite) == 1 &&
                   llvm::count_if(getAccess(), isRead) + 1 == std::ssize(getAccess());
  if (getPart() != 0 && (getPlan() || !writesOne))
    return emitOpError("writes a part, but not of one buffer");
  if (static_cast<int64_t>(getExtent()) < 1 || static_cast<int64_t>(getChunk()) < 1)
    return emitOpError("extent and chunk must be at least 1");
  return success();
}

LogicalResult ViewOp::verify() {
  auto begin = static_cast<int64_t>(getOffset());
  int64_t bytes = nn::physicalBytes(getType().getTensor());
  int64_t size = nn::physicalBytes(getSource().getType().getTensor());
  if (begin < 0 || begin > size || bytes > size - begin)
    return emitOpError("of ") << bytes << " bytes from byte " << begin << " is outside of "
                              << getSource().getType();
  return success();
}

LogicalResult exec::StartOp::verify() {
  if (!getBucket().getType().getTensor().getElementType().isF32())
    return emitOpError("adds up f32, got ") << getBucket().getType();
  if (!getWire().isF32() && !getWire().isBF16())
    return emitOpError("wire type is ") << getWire() << ", expected f32 or bf16";
  for (Attribute member : getMembers())
    if (!isa<FlatSymbolRefAttr, StringAttr>(member))
      return emitOpError("names the member ") << member << ", expected a symbol or a string";
  return success();
}

/// All of the symbols among the names are variables.
static LogicalResult verifyVariables(Operation *op, ArrayAttr names,
                                     SymbolTableCollection &symbols) {
  for (auto name : names.getAsRange<Attribute>())
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(name);
        symbol && !symbols.lookupNearestSymbolFrom<nn::VariableOp>(op, symbol))
      return op->emitOpError("names ") << symbol << ", which is no variable";
  return success();
}

LogicalResult exec::StartOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVariables(*this, getMembers(), symbols);
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getVariables() && failed(verifyVariables(*this, *getVariables(), symbols)))
    return failure();
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

LogicalResult CheckOp::verify() {
  auto tensorOf = [](Value buffer) { return cast<BufferType>(buffer.getType()).getTensor(); };
  auto isF32 = [&](Value buffer) { return tensorOf(buffer).getElementType().isF32(); };
  auto isInBucket = [](Value slice) {
    BufferOp root = rootOf(slice).buffer;
    return root && root.getArena() == ArenaKind::Gradients;
  };
  if (getSlices().empty() || !llvm::all_of(getOperands(), isF32) ||
      !llvm::all_of(getSlices(), isInBucket))
    return emitOpError("counts in slices of buckets, all of f32");
  for (Value scalar : {getScale(), getCount()})
    if (tensorOf(scalar).getRank() != 0)
      return emitOpError("has the scale and the count in scalars, got ") << scalar.getType();
  return success();
}

LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  RankedTensorType type = getBucket().getType().getTensor();
  auto takesIt = [&](KernelOp adding) {
    return llvm::all_of(adding.getTypes().getAsValueRange<TypeAttr>(),
                        [&](Type operand) { return operand == type; });
  };
  constexpr std::array<int32_t, 3> access = {1, 1, 2};
  if (!kernel || kernel.getAccess() != ArrayRef(access) || !takesIt(kernel))
    return emitOpError("adds by ") << getKernelAttr() << ", which is no kernel of two " << type
                                   << " that are read and one that is written";
  return success();
}

LogicalResult DownloadOp::verify() {
  size_t wanted = getKind() == ResultKind::Output ? 1 : 2;
  if (getBuffers().size() != wanted)
    return emitOpError("takes ") << getBuffers().size() << " buffers, a "
                                 << stringifyResultKind(getKind()) << " has " << wanted;
  return success();
}
