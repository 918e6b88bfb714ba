// Random bits of elements: Philox with the logical index in the global batch as counter.
#pragma once

#include "dialects/NN/NN.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <array>

namespace dlc {

/// Stands for the random bits of an element in a stage's body: (seed, step, stream, the row's first
/// element, index) -> i32. The vectorizer replaces it, since jammed iterations may share the work.
inline constexpr llvm::StringLiteral randomBitsName = "random_bits";
void declareRandomBits(mlir::ModuleOp module);

/// Apart from the element, the random numbers of an op depend on these; i64 scalars.
struct RandomStream {
  mlir::Value seed, step, stream;
};

/// Logical elements of one row of the batch.
int64_t elementsOfRow(nn::RandomOpInterface op);

/// The four words of a group of elements, each in 64 bits. Scalars or vectors.
std::array<mlir::Value, 4> emitPhilox(mlir::ImplicitLocOpBuilder &builder,
                                      const RandomStream &random, mlir::Value group);

/// 32 random bits of an element.
mlir::Value emitRandomBits(mlir::ImplicitLocOpBuilder &builder, const RandomStream &random,
                           mlir::Value element);

/// The bits of 4 vectors of elements that follow `element`, a multiple of 4.
llvm::SmallVector<mlir::Value> emitRandomRun(mlir::ImplicitLocOpBuilder &builder,
                                             const RandomStream &random, mlir::Value element,
                                             int64_t lanes);

/// i64 to i32.
mlir::Value emitLowHalf(mlir::ImplicitLocOpBuilder &builder, mlir::Value x);

} // namespace dlc
