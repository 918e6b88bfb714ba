// A cluster as generated kernels: the view of its plan that other passes build on.
//
// A cluster is planned once, by dlc-plan-kernels with the limits of the target, and carries its
// plan (nn.plan, nn.tiles, nn.sums) from there to the emission, which writes that plan's loops and
// refuses a cluster with none, or with one that its body cannot have.
#pragma once

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "runtime/core/LoopLimits.h"

#include <optional>

namespace dlc {

/// The attributes that hold a cluster's plan.
inline constexpr llvm::StringLiteral planName = "nn.plan", tilesName = "nn.tiles",
                                     sumsName = "nn.sums";

/// Operands that planners give a kernel at most: a device takes no more than 4,352 bytes of them.
inline constexpr size_t mostOperands = 256;

/// One kernel of a cluster, run on its buffers for consecutive chunks of [0, extent). Bits depend
/// on the chunk, which is fixed here from the shape alone, never on the number of threads.
struct GeneratedStage {
  int64_t extent = 1;
  int64_t chunk = 1;
  /// What decides the loops: an item's iterations of each loop of the nest, once those that are
  /// contiguous are one; of a product, its columns.
  llvm::SmallVector<int64_t> tile;
  /// Buffers in the kernel's order: indices into operands, then results, then scratch of the
  /// cluster.
  llvm::SmallVector<unsigned> buffers;
  llvm::SmallVector<exec::Access> access; // reads first
  uint64_t bytes = 0;                     // read + written
  uint64_t flops = 0;
  uint64_t part = 0; // elements written of a result that other stages write, too; 0: all

  /// As exec.kernel has them.
  llvm::SmallVector<int32_t> accessNumbers() const;

  bool operator==(const GeneratedStage &) const = default;
};

/// A cluster as a sequence of stages. Reductions have two: partials per chunk, then their sum in
/// chunk order.
struct GeneratedKernel {
  llvm::SmallVector<GeneratedStage> stages;
  llvm::SmallVector<mlir::RankedTensorType> scratch;
  /// In which reductions add up f32 and narrower floats; null if none does.
  mlir::Type sums;
  /// Operands and results that may lie in their memory: every element is read before it is written.
  llvm::SmallVector<std::pair<unsigned, unsigned>> shares;

  /// What `writeTo` has written on an nn.fused or exec.cluster; nothing for one without a plan.
  static std::optional<GeneratedKernel> of(mlir::Operation *cluster);
  void writeTo(mlir::Operation *cluster) const;

  /// The types of a stage's buffers in the kernel's order, for the cluster with this body.
  llvm::SmallVector<mlir::Type> typesOf(const GeneratedStage &stage, mlir::Block &body) const;

  bool operator==(const GeneratedKernel &) const = default;
};

/// True if a planned cluster may write result `result` to the memory of operand `operand`.
bool canShare(mlir::Operation *cluster, unsigned operand, unsigned result);

/// Plans a cluster: the block's arguments are the operands, its nn.yield names the results. Fails
/// with a diagnostic if no kernel can be generated for it.
mlir::FailureOr<GeneratedKernel> planGeneratedKernel(mlir::Block &cluster,
                                                     const rt::LoopLimits &limits);

/// Reports that a cluster carries a plan which its body cannot have; failure.
llvm::LogicalResult refusePlan(mlir::Operation *cluster);

/// Fails with a diagnostic if a cluster has no plan or one whose buffers are not those of its body.
llvm::LogicalResult verifyPlan(mlir::Operation *cluster);

} // namespace dlc
