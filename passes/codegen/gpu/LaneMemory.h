// Accesses of a thread's lanes to global memory.
#pragma once

#include "passes/codegen/gpu/LoopIndices.h"

namespace dlc {

/// The values of one node, or of what a write stores, lane by lane.
using LaneValues = llvm::SmallVector<mlir::Value, 8>;
/// What was loaded for some lanes, as it lies in memory: vectors of them, or one value each; one
/// value alone is that of all.
using PackedLanes = llvm::SmallVector<mlir::Value, 8>;

class LaneMemory {
public:
  LaneMemory(mlir::ImplicitLocOpBuilder &builder, int64_t lanes) : b(builder), lanes(lanes) {}

  int64_t laneCount() const { return lanes; }
  /// What a Read or Table has in memory from `base` on; zero where its bounds do not hold.
  PackedLanes load(const ClusterNode &node, mlir::Value base, LoopIndices &at);
  /// The same as nodes compute with it.
  LaneValues unpack(const ClusterNode &node, const PackedLanes &loaded);
  /// Stores values of memory's type at the form, one for each lane; if it is one value, at the form
  /// of the first lane.
  void store(const LinearForm &form, mlir::Value base, llvm::ArrayRef<mlir::Value> values,
             LoopIndices &at);

private:
  bool isAligned(const LinearForm &form) const;
  bool isAligned(const ClusterNode &node) const;
  mlir::Value place(mlir::Value base, mlir::Type element, mlir::Value index);
  PackedLanes loadInside(const ClusterNode &node, mlir::Value base, LoopIndices &at,
                         int64_t firstLane, int64_t count);
  PackedLanes loadBounded(const ClusterNode &node, mlir::Value base, LoopIndices &at,
                          int64_t firstLane, int64_t count);

  mlir::ImplicitLocOpBuilder &b;
  int64_t lanes;
};

} // namespace dlc
