// Chooses the physical layout of every tensor of a model.
//
// A family is one way to lay out activations. The solver plans the training program once for each
// of the target's families and takes the family with the lowest sum of kernels and reorders. Within
// a family, each op takes the kernel that is cheapest for the layouts of its operands. An op
// without a kernel for the family gets reorders. Then the solver tries single ops beside reorders
// in another family, and leaves them there if the sum falls.
//
// The solver does not change the IR: the pass writes the plan. Arguments and sinks are row-major. A
// variable has the same layout in all programs.
#pragma once

#include "passes/planning/TargetKernels.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace dlc {

using rt::LayoutFamily;
llvm::StringRef nameOf(LayoutFamily family);

/// True if a value in another layout is made from reordered operands, not reordered itself: casts,
/// which only make it larger, and f64, in which no library reorders.
bool isMadeFromReordered(mlir::Value value);

struct LayoutPlan {
  llvm::DenseMap<mlir::Value, rt::Layout> values; // row-major if absent
  llvm::DenseMap<mlir::OpOperand *, rt::Layout>
      operands;                          // uses that need another than their value's
  llvm::DenseSet<mlir::Value> flexible;  // made anew in any layout for nothing
  llvm::StringMap<rt::Layout> variables; // row-major if absent
  double nanoseconds = 0;

  const rt::Layout &layoutOf(mlir::Value value) const;
};

/// Ops that prefer another family than the program.
using LayoutFlips = llvm::DenseMap<mlir::Operation *, LayoutFamily>;

struct LayoutSolution {
  LayoutFamily family = LayoutFamily::Plain;
  LayoutPlan plan;
  LayoutFlips flips;
  /// Kernels and reorders of a training step in each of the target's families alone.
  std::vector<double> nanoseconds;
};

struct FamilyWalkContext;

class LayoutSolver {
public:
  LayoutSolver(nn::ModelOp model, TargetKernels &kernels) : model(model), kernels(kernels) {}

  /// Emits a diagnostic at the first op that has no kernel in any layout.
  llvm::FailureOr<LayoutSolution> solve();

private:
  FamilyWalkContext contextOf(const LayoutSolution &solution) const;
  void findFilterGradients(nn::ProgramOp program);

  nn::ModelOp model;
  TargetKernels &kernels;
  llvm::DenseMap<mlir::Value, llvm::StringRef> filterGradients; // value -> its parameter
  llvm::StringMap<llvm::StringRef> copies;                      // copy -> its parameter
};

} // namespace dlc
