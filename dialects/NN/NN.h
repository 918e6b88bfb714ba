// The nn dialect: ops, attributes, interfaces, and the few helpers that every user of it needs.
#pragma once

#include "dialects/NN/Windows.h"
#include "runtime/artifact/Layout.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dlc::nn {

/// One shape and layout for all operands and results.
llvm::LogicalResult verifyElementwise(mlir::Operation *op);
template <typename ConcreteType>
class Elementwise : public mlir::OpTrait::TraitBase<ConcreteType, Elementwise> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) { return verifyElementwise(op); }
};

/// Implementers, as a library's kernels, are asked what they offer for the op.
template <typename ConcreteType>
class HasKernelRequest : public mlir::OpTrait::TraitBase<ConcreteType, HasKernelRequest> {};

/// Each element of the result is an element of an operand.
template <typename ConcreteType>
class MovesElements : public mlir::OpTrait::TraitBase<ConcreteType, MovesElements> {};

/// Generated code computes an element of the result where it is read, at no cost: each cluster that
/// reads the result has a copy of the op, and memory need not hold the result.
template <typename ConcreteType>
class CopiedToReaders : public mlir::OpTrait::TraitBase<ConcreteType, CopiedToReaders> {};

/// Generated code moves the elements in a cluster of their own.
template <typename ConcreteType>
class StaysAlone : public mlir::OpTrait::TraitBase<ConcreteType, StaysAlone> {};

/// An element costs a function, as e^x, and not only some instructions of arithmetic.
template <typename ConcreteType>
class FunctionPerElement : public mlir::OpTrait::TraitBase<ConcreteType, FunctionPerElement> {};

/// The result is zero or an element of an operand, perhaps negated, so nothing is rounded.
template <typename ConcreteType>
class Exact : public mlir::OpTrait::TraitBase<ConcreteType, Exact> {};

/// Sums up products of the elements of the first two operands in f32, also where these are of 16
/// bits.
template <typename ConcreteType>
class SumsInF32 : public mlir::OpTrait::TraitBase<ConcreteType, SumsInF32> {};

/// Differentiation takes the results for constants.
template <typename ConcreteType>
class ConstantToGradient : public mlir::OpTrait::TraitBase<ConcreteType, ConstantToGradient> {};

/// A layer of the network, as reports list them.
template <typename ConcreteType>
class Layer : public mlir::OpTrait::TraitBase<ConcreteType, Layer> {};

/// The host reads the operands when the program has run.
template <typename ConcreteType>
class ReadByHost : public mlir::OpTrait::TraitBase<ConcreteType, ReadByHost> {};

/// Limits of all tensors: letters name five dimensions, and bytes of any sum of tensors fit 63
/// bits.
inline constexpr int64_t maxRank = 5;
inline constexpr int64_t maxElements = int64_t{1} << 40;
/// Places at most that nn.repeat has for an element in generated code: each is a store.
inline constexpr int64_t mostRepeats = 32;
/// True if there are no more.
bool areFewRepeats(llvm::ArrayRef<int64_t> times);

/// True for a ranked tensor of static shape within the limits, padding lanes included, with a
/// #nn.layout or no encoding.
bool isBounded(mlir::Type type, int64_t maxRank = nn::maxRank);
/// True if such a tensor has elements of the dialect, too.
bool isTensor(mlir::Type type);

/// Behind the name of an input that comes as files hold it: inputs of [rows, channels] that bring
/// what normalize subtracts from it, and what it multiplies the difference with.
inline constexpr char shiftSuffix[] = ".shift", scaleSuffix[] = ".scale";
/// The type in which a model has an input that may come as files hold it: f32 for unsigned
/// integers.
mlir::RankedTensorType inputType(mlir::RankedTensorType type);

/// True if shapes and element types agree pairwise; layouts may differ.
bool haveSameLogicalTypes(mlir::TypeRange a, mlir::TypeRange b);
/// True if `sums` are the types in which tensors of `types` are summed; layouts may differ.
bool isSumOf(mlir::TypeRange types, mlir::TypeRange sums);

} // namespace dlc::nn

#include "dialects/NN/NNDialect.h.inc"
#include "dialects/NN/NNEnums.h.inc"
#include "dialects/NN/NNInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NN/NNAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/NN/NNOps.h.inc"

namespace dlc::nn {

/// Layout of a tensor type; row-major if it has no encoding.
rt::Layout layoutOf(mlir::RankedTensorType type);
/// The type with another layout (none for row-major).
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, const rt::Layout &layout);
/// The type without layout.
mlir::RankedTensorType logicalType(mlir::RankedTensorType type);
/// The logical type in which such tensors are summed: f32 for bf16 and f16, else as they are.
mlir::RankedTensorType sumType(mlir::RankedTensorType type);
/// True if tensors have one shape and one layout: loops over one are loops over the other.
inline bool haveOneSpace(mlir::RankedTensorType a, mlir::RankedTensorType b) {
  return a.getShape() == b.getShape() && a.getEncoding() == b.getEncoding();
}
inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
/// Bytes of one element as stored; i1 takes one byte.
int64_t elementBytes(mlir::Type element);
/// Bytes of a tensor as stored, padding lanes included.
int64_t physicalBytes(mlir::RankedTensorType type);
/// The same if the tensor had another layout.
int64_t physicalBytes(mlir::RankedTensorType type, const rt::Layout &layout);
/// Where in the memory of `whole` its rows from `row` on begin, in bytes, if as many as `part` has
/// lie there as a tensor of type `part` does; nothing if they do not.
std::optional<int64_t> rowOffset(mlir::RankedTensorType whole, int64_t row,
                                 mlir::RankedTensorType part);

/// A constant with every element `value`.
mlir::Value splat(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                  double value);
/// The splat value if the value is such a constant (or a broadcast of one).
std::optional<double> splatValue(mlir::Value value);

/// True if the windows of a max pooling, or of its gradient, neither overlap nor leave anything of
/// the pooled tensor out.
bool windowsTile(MaxPoolOp op);
bool windowsTile(MaxPoolGradOp op);

/// True of a convolution, a transposed one or a gradient of one in which each channel has a filter
/// of its own.
bool isDepthwise(mlir::Operation *op);

/// The program @train, or null.
ProgramOp trainProgram(ModelOp model);

/// Layer name of a location (the innermost NameLoc), or empty.
llvm::StringRef layerName(mlir::Location loc);

} // namespace dlc::nn
