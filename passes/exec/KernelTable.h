// Collects the kernels of an exec model: equal library plans and equal clusters are one symbol.
#pragma once

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "passes/planning/TargetKernels.h"

#include "llvm/ADT/StringMap.h"

namespace dlc {

/// What a dispatch of an op needs: kernel symbols in order, each with the positions of its buffers
/// among operands, results, scratch.
struct KernelUse {
  struct Stage {
    mlir::FlatSymbolRefAttr kernel;
    llvm::SmallVector<unsigned> buffers;
  };
  llvm::SmallVector<Stage> stages;
  llvm::SmallVector<mlir::RankedTensorType>
      scratch; // workspace of a library kernel, scratch of a generated one
};

class KernelTable {
public:
  /// New kernels are inserted at the end of the model's body.
  KernelTable(nn::ModelOp model, mlir::SymbolTable &symbols, TargetKernels &kernels)
      : model(model), symbols(symbols), kernels(kernels) {}

  /// The kernel of a library op (planned by dlc-plan-kernels); emits a diagnostic at the op if the
  /// planner refuses.
  mlir::FailureOr<KernelUse> library(mlir::Operation *op);
  /// The kernels of a cluster; emits a diagnostic if none can be generated.
  mlir::FailureOr<KernelUse> generated(nn::FusedOp op);

private:
  mlir::FlatSymbolRefAttr
  insert(llvm::StringRef key, llvm::StringRef base,
         llvm::function_ref<mlir::Operation *(mlir::OpBuilder &, llvm::StringRef)> create);

  nn::ModelOp model;
  mlir::SymbolTable &symbols; // of the model: variables may have any name
  TargetKernels &kernels;
  llvm::StringMap<mlir::FlatSymbolRefAttr> known; // by content
  llvm::StringMap<unsigned> names;                // next number by base name
};

/// Plans a cluster and makes its stages kernels of a category of its own; none after a diagnostic.
llvm::SmallVector<exec::KernelOp> createKernels(exec::ClusterOp cluster, llvm::StringRef name,
                                                llvm::StringRef category,
                                                mlir::SymbolTable &symbols,
                                                const rt::KernelPlanner &planner);

/// Plans an elementwise cluster, which fits one stage, and makes it a kernel of a category of its
/// own; null after a diagnostic.
exec::KernelOp createKernel(exec::ClusterOp cluster, llvm::StringRef name, llvm::StringRef category,
                            mlir::SymbolTable &symbols, const rt::KernelPlanner &planner);

/// For profiles: conv.forward, conv.grad_data, conv.grad_filter, dense, pooling,
/// reorder; of clusters norm, loss, optimizer or pointwise.
llvm::StringRef categoryOf(mlir::Operation *op);

} // namespace dlc
