// The steps from a planned cluster to machine code: scalar bodies, linalg, loops over vectors,
// LLVM, a shared object.
#pragma once

#include "passes/codegen/ClusterPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"

#include <array>

namespace dlc {

/// The type that elements of a type have outside of memory: f32 for bf16 and f16.
mlir::Type computeType(mlir::Type element);

/// Computes an elementwise nn op on scalars of the compute types with arith and math. `index` is
/// the logical index of the element, which dropout needs.
mlir::Value emitScalar(mlir::ImplicitLocOpBuilder &builder, const ClusterNode &node,
                       mlir::ValueRange operands, mlir::Value index);

/// Converts between float types, scalars or vectors. What no target rounds to in one instruction
/// goes through f32.
mlir::Value emitResize(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Type type);

/// The value of the compute type that is nearest to x among those of an element type.
mlir::Value emitRounded(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Type element);

/// A constant of a scalar type: i1, integer or float.
mlir::Value emitConstant(mlir::ImplicitLocOpBuilder &builder, mlir::Type type, double value);

//===- Random numbers -------------------------------------------------------------------------===//

/// Stands for the random bits of an element in a stage's body: (seed, step, stream, the row's first
/// element, index) -> i32. The vectorizer replaces it, since neighbours may share the work.
inline constexpr llvm::StringLiteral randomBitsName = "random_bits";
void declareRandomBits(mlir::ModuleOp module);

/// What the random numbers of an op depend on but for the element; i64 scalars.
struct RandomStream {
  mlir::Value seed, step, stream;
};

/// Logical elements of one row of the batch.
int64_t elementsOfRow(nn::DropoutOp op);

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

//===- Stages ---------------------------------------------------------------------------------===//

/// A stage as linalg on memrefs: `function` holds fills of the accumulators, `nest` and, where sums
/// are rounded, one more op that rounds them.
struct LinalgStage {
  mlir::func::FuncOp function;
  mlir::linalg::GenericOp nest;
};
LinalgStage buildLinalgStage(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                             const ClusterPlan &plan, const StagePlan &stage);

/// Replaces the function by loops over vectors with two more arguments, begin and end of the items.
/// `lanes` is a power of two.
void vectorizeStage(LinalgStage &stage, const StagePlan &plan, unsigned lanes);

/// A kernel's name, the function that computes it, and the values of the function's last arguments.
struct KernelEntry {
  std::string name, body;
  llvm::SmallVector<int64_t> sizes = {};
};

/// Leaves of functions that differ only in sizes one, which takes these as arguments. All functions
/// get the names of bodies; returns the kernels that they are of, those of a body together.
std::vector<KernelEntry> mergeKernels(mlir::ModuleOp module);

/// Moves the functions of a module, in their order, to modules within it of about the same number
/// of operations. Functions know nothing of each other, so these shares are lowered and compiled
/// side by side.
void splitIntoShares(mlir::ModuleOp module);

/// What kernels may be called for, by their names (runtime/artifact/Contract.h).
using Contracts = llvm::StringMap<int64_t>;

/// Lowers the functions of the shares to LLVM's dialect and adds the kernels' records (runtime/cpu/
/// GeneratedCode.h). Roundings that the target has no instruction for become integer code.
llvm::LogicalResult lowerToLlvm(mlir::ModuleOp shares, llvm::ArrayRef<KernelEntry> entries,
                                const Contracts &contracts, const CodeTarget &target);

/// Object files, one a share.
using Objects = std::vector<llvm::SmallVector<char, 0>>;

/// Compiles lowered shares. `text` receives the optimised LLVM IR.
mlir::FailureOr<Objects> emitObjects(mlir::ModuleOp shares, const CodeTarget &target,
                                     llvm::raw_ostream *text);

/// Links objects to a shared object by the linker beside LLVM; `reason` says why it failed.
llvm::LogicalResult linkSharedObject(const Objects &objects, std::string &sharedObject,
                                     std::string &reason);

} // namespace dlc
