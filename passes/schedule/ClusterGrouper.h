// Decides which ops of a program form one cluster.
//
// Groups are grown from consumers to producers: an op joins the groups of its users, nearest first,
// if they share its iteration space and nothing outside lies between them. What only changes how an
// operand is addressed (broadcast, slice, pad) or costs nothing (constant, iota, a cast that makes
// elements larger) belongs to no group: every cluster that uses it gets its own copy. Elementwise
// ops on what reductions keep may follow them in their group: its epilogue.
#pragma once

#include "passes/planning/CountingOps.h"
#include "passes/schedule/ClusterRules.h"
#include "passes/schedule/JoinedGraph.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace dlc {

/// Ops of one future nn.fused, in program order.
using ClusterGroup = llvm::SmallVector<mlir::Operation *>;

class ClusterGrouper {
public:
  ClusterGrouper(mlir::Block &block, const ClusterRules &rules);

  /// The groups, in the order of their last ops.
  std::vector<ClusterGroup> groups() const;
  /// Calls `report` for each op whose result another cluster reads, with that reader and why they
  /// are not one cluster.
  void explain(
      llvm::function_ref<void(mlir::Operation *op, mlir::Operation *user, llvm::StringRef reason)>
          report);

private:
  /// What runs at different times in a step of several micro-batches.
  enum class StepPart : uint8_t { Count, Pass, Update };
  /// What a group must agree on with others; of what is no group, nothing is known.
  struct Group {
    unsigned lead = 0;                      // position of the op that counts for stretches
    mlir::RankedTensorType space;           // shape and layout of the iteration space
    mlir::RankedTensorType kept;            // of the reductions' results; null if there are none
    llvm::SmallVector<int64_t> reducedDims; // common to all reductions
    mlir::DenseI64ArrayAttr windows;        // of the pooling whose gradient is inside
    llvm::SmallVector<unsigned> reductions; // positions
    llvm::SmallVector<unsigned> gathered;   // positions of ops whose results are gathered from
    bool closed = false;                    // stays alone
    bool elementwise = true;                // all ops but the reductions
    StepPart part = StepPart::Pass;
  };

  bool isGroup(unsigned node) const { return static_cast<bool>(all[node].space); }
  void addOp(unsigned position);
  void joinUsers(unsigned position);
  void joinSiblings(mlir::Block &block);
  void joinReaders(mlir::Value value, llvm::ArrayRef<unsigned> stretches);
  bool tryJoin(unsigned a, unsigned b);
  /// Why two groups cannot be one; empty if they can.
  llvm::StringRef refusal(unsigned a, unsigned b);
  llvm::StringRef disagreement(const Group &a, const Group &b) const;
  bool mayFollow(const Group &group, const Group &reducing) const;
  bool gathersFromItself(unsigned a, unsigned b);
  bool readsReduction(unsigned a, unsigned b) const;
  /// Positions of the ops of a group, in program order.
  llvm::SmallVector<unsigned> membersOf(unsigned group) const;

  const ClusterRules &rules;
  const CountingOps counting;
  llvm::SmallVector<mlir::Operation *> ops; // of the block
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  std::optional<JoinedGraph> graph; // of positions; copied casts are no nodes' users
  std::vector<Group> all;           // by node of the graph
};

} // namespace dlc
