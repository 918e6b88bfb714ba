// A cluster as loop nests over physical memory: what planning and emission of generated kernels
// share.
//
// Everything a loop touches - addresses, coordinates, bounds - is a linear form over the loops.
// Invariant: a plan depends on the cluster's body and the target's limits alone. What it takes from
// the limits is stored on the cluster (GeneratedKernel); the rest is the body, written out.
#pragma once

#include "passes/codegen/GeneratedKernel.h"
#include "passes/codegen/LinearForm.h"

#include <optional>
#include <vector>

namespace dlc {

/// A value at one point of the iteration space.
struct ClusterNode {
  enum class Kind {
    Read,     // element of a buffer
    Index,    // a coordinate as a number
    Inside,   // all bounds hold
    Select,   // operands: condition, a, b
    Constant, // splat of an nn.constant
    Table,    // element of an nn.constant that is none
    Fill,     // the value that nn.pad adds
    Zero,     // of the node's type
    Equal,    // two integers
    Wins,     // a takes the place of b as a window's maximum
    Sum,      // of all operands, rounded once
    Products, // the sum of products of two operands each, and of the last one if it is alone,
              // rounded once; then what `op` applies
    Reduced,  // the result of a reduction
    Op        // an elementwise nn op
  };
  Kind kind = Kind::Op;
  mlir::Operation *op = nullptr;
  llvm::SmallVector<unsigned> operands = {};
  mlir::Type element = {};
  unsigned buffer = 0;
  /// Reduced: the number of the write.
  unsigned write = 0;
  /// Read, Table: the address if it is linear; Index: the coordinate; what is
  /// drawn: the logical index.
  std::optional<LinearForm> form = std::nullopt;
  /// Read, Index: what is added to the form.
  llvm::SmallVector<Quotient> quotients = {};
  /// Read, Table: the address where it is not linear, over the loops.
  mlir::AffineExpr address = {};
  /// Read, Table: where the element exists (zero elsewhere); Inside: the condition.
  llvm::SmallVector<Bound> bounds = {};
};

/// One result of a stage, or one accumulator of a reduction.
struct ClusterWrite {
  unsigned node = 0;
  unsigned buffer = 0;
  LinearForm address;
  mlir::Type element;
  /// nn.reduce_sum, nn.reduce_max or nn.conv_grad_filter, null for a plain result.
  mlir::Operation *reduction = nullptr;
  /// In which the reduction accumulates.
  mlir::Type accumulator = {};
  /// False of a reduction that the epilogue alone reads: it has no buffer.
  bool isStored = true;
  /// Coordinates of real elements; a plain write is zero and a reduction skips elsewhere.
  llvm::SmallVector<Bound> valid;
  /// Stores are non-temporal: they go past the caches. Set by the emission, not by the plan.
  bool nonTemporal = false;
};

/// One perfect loop nest.
struct StagePlan {
  struct Loop {
    int64_t extent = 1;
    bool reduced = false;
    /// Decoded from the iteration number (in order); the others run inside.
    bool item = false;
    /// Where the extent has no good divisor: the extent in the last iteration of the loop before,
    /// which is an item's. 0: the same as in all others.
    int64_t last = 0;
  };
  /// The innermost loop runs in vectors.
  llvm::SmallVector<Loop> loops;
  std::vector<ClusterNode> nodes;
  std::vector<ClusterWrite> writes;
  /// Nodes from here on are the epilogue: they follow the reductions, once for what these keep.
  std::optional<unsigned> epilogue;
  int64_t items = 1;
  int64_t chunk = 1;
  /// Iterations that an item has of each loop, as the loops were before they were split.
  llvm::SmallVector<int64_t> tile;

  llvm::SmallVector<int64_t> extents() const;
  /// The kept or the reduced loops inside an item, outermost first.
  llvm::SmallVector<unsigned> innerLoops(bool reduced) const;
  /// The loop with a shorter last item, if there is one.
  std::optional<unsigned> raggedLoop() const;
  int64_t iterations() const;
  /// Those of the loops that are kept.
  int64_t keptIterations() const;
  bool hasReduction() const;
  /// True if what is computed for each term of a reduction is stored as well.
  bool storesTerms() const;
  bool isEpilogue(unsigned node) const { return epilogue && node >= *epilogue; }
  /// Drops the epilogue.
  void dropEpilogue();
};

struct ClusterPlan {
  std::vector<StagePlan> stages;
  llvm::SmallVector<mlir::RankedTensorType> scratch;
  /// In which reductions add up f32 and narrower floats; null if none does.
  mlir::Type sums;
  /// Types of all buffers: operands, results, scratch.
  llvm::SmallVector<mlir::RankedTensorType> buffers;
};

/// Plans a cluster. Fails with a diagnostic at an op that no kernel can be generated for.
mlir::FailureOr<ClusterPlan> planCluster(mlir::Block &cluster, const rt::LoopLimits &limits);

/// The plan that an nn.fused or exec.cluster carries, whose loop nests are written out. Fails with
/// a diagnostic at one that carries none, or another than one of its body.
mlir::FailureOr<ClusterPlan> restoreCluster(mlir::Operation *cluster);

/// What other passes see of a plan.
GeneratedKernel describe(const ClusterPlan &plan, mlir::Block &cluster);

/// Decides the loops of a stage whose nodes and writes are over one loop per raw dimension:
/// collapses what is contiguous everywhere, splits and marks items, sets the chunk.
/// `wholeResults`: reductions end inside an item, since there is no stage behind to combine parts.
void planLoops(StagePlan &stage, const rt::LoopLimits &limits, bool wholeResults = false);

/// The loops that a stored plan has for such a stage. Fails if they cannot be that stage's.
llvm::LogicalResult restoreLoops(StagePlan &stage, const GeneratedStage &planned,
                                 bool wholeResults = false);

/// Buffers of a stage in its function's order: what it reads, then what it writes.
llvm::SmallVector<unsigned> stageBuffers(const StagePlan &stage,
                                         llvm::SmallVector<exec::Access> *access = nullptr);

/// True of a read at a place that its linear form alone says, and that exists.
bool isPlainRead(const ClusterNode &node);

/// The loop over which what a read has lies side by side in memory, where that is another than the
/// innermost one, over which it does not: both have at least a sector of it. Nothing for reads
/// whose elements need not exist.
std::optional<unsigned> loopAcross(const StagePlan &stage, const ClusterNode &node);

/// True of a read along which a reduction adds up what lies side by side, a sector or more, for
/// each of the elements that the loops keep: threads that take such an element each would read far
/// from each other.
bool isReadInRows(const StagePlan &stage, const ClusterNode &node);
/// Likewise of what is stored beside the sum.
bool isWrittenInRows(const StagePlan &stage, const ClusterWrite &write);

/// True of a reduction that adds up; others take the maximum.
bool addsUp(mlir::Operation *reduction);

/// The result of a reduction over no element.
double identityOf(mlir::Operation *reduction);

} // namespace dlc
