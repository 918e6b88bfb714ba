// The exec dialect: the scheduled program, one-to-one with the artifact.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dlc::exec {
template <typename ConcreteType>
class Instruction : public mlir::OpTrait::TraitBase<ConcreteType, Instruction> {};
} // namespace dlc::exec

#include "dialects/Exec/ExecDialect.h.inc"
#include "dialects/Exec/ExecEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Exec/ExecAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Exec/ExecTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Exec/ExecOps.h.inc"

namespace dlc::exec {

/// Alignment of every buffer that is no view, and of bucket slices, in bytes.
constexpr int64_t bufferAlignment = 64;
inline int64_t alignUp(int64_t bytes) {
  return (bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment;
}

/// What a variable takes in a buffer of several, and its slice in the bucket beside them: a
/// multiple of 32 elements, so that those of 16 bits are aligned, too.
int64_t rangeElements(mlir::RankedTensorType type);
int64_t rangeBytes(mlir::RankedTensorType type);

/// The exec.buffer that a buffer value lies in, and its byte offset there.
struct Root {
  BufferOp buffer;
  int64_t offset;
};
Root rootOf(mlir::Value buffer);

} // namespace dlc::exec
