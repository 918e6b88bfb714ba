// Decides which ops of a program form one cluster.
//
// Groups are grown from consumers to producers: an op joins the groups of its users, nearest first,
// if they share its iteration space and nothing outside lies between them. What only changes how an
// operand is addressed (broadcast, slice, pad) or costs nothing (constant, iota, a cast that makes
// elements larger) belongs to no group: every cluster that uses it gets its own copy.
#pragma once

#include "dialects/NN/NN.h"

#include "llvm/ADT/DenseMap.h"

namespace dlc {

/// True if generated code runs the op.
bool isClusterOp(mlir::Operation *op);
/// True if a cluster copies the op instead of reading its result.
bool isCopiedIntoClusters(mlir::Operation *op);
/// Users of a value or of an op's results, those of copied casts in place of the casts.
llvm::SmallVector<mlir::Operation *> usersThroughCasts(mlir::Value value);
llvm::SmallVector<mlir::Operation *> usersThroughCasts(mlir::Operation *op);

/// Ops of one future nn.fused, in program order.
struct ClusterGroup {
  llvm::SmallVector<mlir::Operation *> ops;
  unsigned first = 0, last = 0;           // positions in the program
  mlir::RankedTensorType space;           // shape and layout of the iteration space
  llvm::SmallVector<int64_t> reducedDims; // common to all reductions
  mlir::DenseI64ArrayAttr windows;        // of the pooling whose gradient is inside
  bool reduces = false;
  bool closed = false; // stays alone
};

class ClusterGrouper {
public:
  explicit ClusterGrouper(mlir::Block &block);

  /// The groups, in the order of their last ops.
  std::vector<ClusterGroup> groups() const;
  /// Calls `report` for each op whose result another cluster reads, with that reader and why they
  /// are not one cluster.
  void explain(
      llvm::function_ref<void(mlir::Operation *op, mlir::Operation *user, llvm::StringRef reason)>
          report) const;

private:
  unsigned groupOf(mlir::Operation *op) const;
  void addOp(mlir::Operation *op);
  void sortByPosition(llvm::SmallVectorImpl<mlir::Operation *> &ops) const;
  void joinUsers(mlir::Operation *op);
  void joinSiblings(mlir::Block &block);
  bool tryJoin(unsigned a, unsigned b);
  /// Why two groups cannot be one; empty if they can.
  llvm::StringRef refusal(unsigned a, unsigned b) const;
  llvm::StringRef disagreement(const ClusterGroup &a, const ClusterGroup &b) const;
  bool readsReduction(unsigned a, unsigned b) const;
  bool isSeparated(unsigned a, unsigned b) const;
  bool isInside(mlir::Operation *op, unsigned a, unsigned b) const {
    unsigned group = groupOf(op);
    return group == a || group == b;
  }

  std::vector<ClusterGroup> all;                       // joined groups are left empty
  llvm::DenseMap<mlir::Operation *, unsigned> members; // op -> index in `all`
  llvm::DenseMap<mlir::Operation *, unsigned> position;
};

} // namespace dlc
