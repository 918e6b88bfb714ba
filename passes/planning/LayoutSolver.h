// Chooses the physical layout of every tensor of a model.
//
// Three families of activation layouts (plain, channels last, blocked channels) are each carried
// through the training program; the cheapest in all, planned kernels and reorders together, wins.
// Within a family each library op takes its cheapest candidate given what its operands have, so an
// op that refuses the family gets explicit reorders. Then single ops beside reorders are tried in
// another family, and those that lower the sum stay there. Read-only: the pass writes the plan into
// the IR. Invariants: arguments and sinks are row-major; every variable has one layout in all
// programs.
#pragma once

#include "dialects/NN/NN.h"
#include "runtime/core/KernelPlanner.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace dlc {

enum class LayoutFamily { Plain, ChannelsLast, Blocked };
llvm::StringRef nameOf(LayoutFamily family);

/// Layout of an activation [N, C, S...] in a family; `lanes` channels make a block.
rt::Layout familyLayout(LayoutFamily family, size_t rank, unsigned lanes);

/// True if a value is computed again from reordered operands, not reordered itself: casts, which
/// only make it larger, and f64, in which no library reorders.
bool isRecomputed(mlir::Value value);

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
  /// Kernels and reorders of a training step in each family alone.
  std::array<double, 3> nanoseconds{};
};

struct FamilyWalkContext;

class LayoutSolver {
public:
  LayoutSolver(nn::ModelOp model, rt::KernelPlanner &planner, rt::Math math, unsigned threads)
      : model(model), planner(planner), math(math), threads(threads) {}

  /// Emits a diagnostic at the first op that the library cannot run in any layout.
  llvm::FailureOr<LayoutSolution> solve();

private:
  FamilyWalkContext contextOf(const LayoutSolution &solution) const;
  void findFilterGradients(nn::ProgramOp program);

  nn::ModelOp model;
  rt::KernelPlanner &planner;
  rt::Math math;
  unsigned threads;
  llvm::DenseMap<mlir::Value, llvm::StringRef> filterGradients; // value -> its parameter
  llvm::StringMap<llvm::StringRef> copies;                      // copy -> its parameter
};

} // namespace dlc
