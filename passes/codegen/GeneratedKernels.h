// Generated kernels: how a cluster becomes functions, and the emission of all clusters into one
// shared object.
//
// Planning is a pure function of the cluster's body, so convert-nn-to-exec, the planner and the
// emitter agree without talking.
#pragma once

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"

#include <memory>
#include <string>

namespace dlc {

/// One kernel of a cluster, run on its buffers for consecutive chunks of [0, extent). Bits depend
/// on the chunk, which is fixed here from the shape alone, never on the number of threads.
struct GeneratedStage {
  int64_t extent = 1;
  int64_t chunk = 1;
  /// Buffers in the kernel's order: indices into operands, then results, then scratch of the
  /// cluster.
  llvm::SmallVector<unsigned> buffers;
  llvm::SmallVector<exec::Access> access;
  uint64_t bytes = 0; // read + written
  uint64_t flops = 0;
};

/// A cluster as a sequence of stages. Reductions have two: partials per chunk, then their sum in
/// chunk order.
struct GeneratedKernel {
  llvm::SmallVector<GeneratedStage> stages;
  llvm::SmallVector<mlir::RankedTensorType> scratch;
};

/// Plans a cluster: the block's arguments are the operands, its nn.yield names the results. Fails
/// with a diagnostic if no kernel can be generated for it.
mlir::FailureOr<GeneratedKernel> planGeneratedKernel(mlir::Block &cluster);

/// Which results of a cluster may be written over an operand.
class ClusterSharing {
public:
  explicit ClusterSharing(mlir::Block &cluster);
  ~ClusterSharing();

  /// True if result `result` may be written to the memory of operand `operand`: every element is
  /// read before it is written.
  bool canShare(unsigned operand, unsigned result) const;
  /// The same, given by the places of both among the buffers of a stage.
  bool canShareInStage(uint64_t stage, unsigned read, unsigned written) const;

private:
  unsigned operands;
  std::unique_ptr<struct ClusterPlan> plan; // null if nothing can be shared
};

/// What to emit code for.
struct CodeTarget {
  std::string cpu;      // LLVM's name of the CPU, or x86-64-v2/3/4
  std::string features; // LLVM's feature string
  unsigned vectorBytes = 64;

  /// True if the features name one, e.g. "avx512bf16".
  bool has(llvm::StringRef feature) const;
};

/// Emits every exec.cluster of the model, one kernel `CLUSTER_STAGE` per stage, into one shared
/// object. `text` of the stages linalg and llvm is printed to the streams that are given.
/// Diagnostics go to the context.
llvm::LogicalResult emitClusters(nn::ModelOp model, const CodeTarget &target,
                                 std::string &sharedObject, llvm::raw_ostream *linalgText = nullptr,
                                 llvm::raw_ostream *llvmText = nullptr);

} // namespace dlc
