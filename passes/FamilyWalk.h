// One walk over a program that fixes the layout of each value where it is defined, in one family.
#pragma once

#include "passes/LayoutSolver.h"

namespace dlc {

/// What a walk needs and leaves behind.
struct FamilyWalkContext {
  rt::KernelPlanner &planner;
  rt::Math math;
  unsigned threads;
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
  FamilyWalk(const FamilyWalkContext &context, LayoutPlan &plan)
      : context(context), family(context.family), plan(plan) {}

  /// False if the library refuses an op whatever the layouts.
  bool run(nn::ProgramOp program);

  mlir::Operation *refused = nullptr;
  std::string reason;
  /// Layout that each variable's filter gradient, else its first user, would like (first round).
  llvm::StringMap<rt::Layout> wishes;

private:
  bool visit(mlir::Operation *op);
  void visitRead(nn::ReadOp op);
  bool visitLibrary(mlir::Operation *op);
  void visitElementwise(mlir::Operation *op);
  void visitMovement(mlir::Operation *op);
  void visitCollective(mlir::Operation *op);
  void requireRowMajor(mlir::Operation *op);

  std::vector<rt::KernelRequest> queries(mlir::Operation *op);
  double adaptationCost(mlir::Operation *op, const std::vector<rt::Layout> &layouts);
  double resultPenalty(mlir::Value result, const rt::Layout &layout);
  double reorderCost(mlir::Value value, const rt::Layout &to);
  void pay(mlir::Value value, const rt::Layout &to);
  double passCost(mlir::Value value, const rt::Layout &layout, size_t tensors);
  double kernelCost(mlir::Operation *op, const rt::KernelCandidate &candidate);
  rt::Layout commonLayout(mlir::Operation *op, mlir::ValueRange operands,
                          llvm::function_ref<bool(const rt::Layout &)> allowed);
  void use(mlir::OpOperand &operand, const rt::Layout &layout);
  void define(mlir::Value value, rt::Layout layout);
  rt::Layout preferred(size_t rank) const;
  bool isFree(mlir::Value value) const;
  llvm::StringRef parameterOf(nn::ReadOp read) const;

  FamilyWalkContext context;
  LayoutFamily family; // of the op being visited
  LayoutPlan &plan;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<rt::Layout, 1>> paid; // reorders made already
};

} // namespace dlc
