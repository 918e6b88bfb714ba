// One walk over a program that fixes the layout of each value where it is defined, in one family.
// After a change it visits again only the ops that the change can reach.
#pragma once

#include "passes/planning/LayoutSolver.h"

#include "llvm/ADT/BitVector.h"

namespace dlc {

/// What a walk needs.
struct FamilyWalkContext {
  TargetKernels &kernels;
  LayoutFamily family;
  const LayoutFlips &flips;
  const llvm::DenseMap<mlir::Value, llvm::StringRef> &filterGradients;
  /// Parameters by their copies, which lie as they do.
  const llvm::StringMap<llvm::StringRef> &copies;
  /// Layouts of the variables; null in the first round, in which weights are free and their users'
  /// wishes are collected.
  const llvm::StringMap<rt::Layout> *variables = nullptr;
};

class FamilyWalk {
public:
  FamilyWalk(const FamilyWalkContext &context, nn::ProgramOp program, LayoutPlan &plan);

  /// Visits all ops. False if one has no kernel whatever the layouts.
  bool run();
  /// Brings the plan to what `run` would make of it since the family of an op has changed, and the
  /// layouts of variables from `former`.
  void update(mlir::Operation *flipped, const llvm::StringMap<rt::Layout> &former);

  double nanoseconds() const;
  /// Layout that each variable's filter gradient, else its first user, would like.
  llvm::StringMap<rt::Layout> wishes() const;

  mlir::Operation *refused = nullptr;
  std::string reason;

private:
  /// A value that is brought into a layout, from the op at a position on.
  struct Reorder {
    rt::Layout to;
    size_t payer;
  };

  bool visit(size_t position);
  llvm::SmallVector<rt::Layout> layoutsAt(mlir::Operation *op) const;
  void forget(mlir::Operation *op);
  void takeBack(mlir::Value value);
  void markReaders(mlir::Value value);
  llvm::StringRef variableOf(mlir::Operation *op) const;
  void visitRead(nn::ReadOp op);
  bool visitKernel(mlir::Operation *op);
  void visitElementwise(mlir::Operation *op);
  void visitMovement(nn::BlocksOpInterface op);
  void visitCollective(mlir::Operation *op);
  void requireRowMajor(mlir::Operation *op);

  std::vector<rt::KernelRequest> queries(mlir::Operation *op, const rt::KernelRequest &request);
  double adaptationCost(mlir::Operation *op, const std::vector<rt::Layout> &layouts);
  double resultPenalty(mlir::Value result, const rt::Layout &layout);
  double reorderCost(mlir::Value value, const rt::Layout &to);
  void pay(mlir::Value value, const rt::Layout &to);
  double passCost(mlir::Value value, const rt::Layout &layout, size_t tensors);
  rt::Layout commonLayout(mlir::Operation *op, mlir::ValueRange operands,
                          llvm::function_ref<bool(const rt::Layout &)> allowed);
  void use(mlir::OpOperand &operand, const rt::Layout &layout);
  void define(mlir::Value value, rt::Layout layout);
  rt::Layout preferred(size_t rank) const;
  bool isFree(mlir::Value value) const;
  llvm::StringRef parameterOf(nn::ReadOp read) const;

  FamilyWalkContext context;
  LayoutPlan &plan;
  std::vector<mlir::Operation *> ops; // in their order
  llvm::DenseMap<mlir::Operation *, size_t> positions;
  std::vector<double> costs; // by position
  /// The operands that are weights of convolutions, and the layouts that these want for them.
  llvm::DenseMap<mlir::Operation *, std::pair<size_t, rt::Layout>> weights;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Reorder, 1>> paid;
  llvm::BitVector changed; // ops to visit again
  size_t current = 0;      // position of the op being visited
  LayoutFamily family;     // of that op
};

} // namespace dlc
