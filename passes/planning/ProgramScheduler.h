// Orders of a program whose collectives are split into start and wait.
#pragma once

#include "dialects/Comm/Comm.h"
#include "passes/planning/BlockOrder.h"
#include "passes/planning/OverlapSimulator.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"

namespace dlc {

/// Where a layer's weight gradient stands: as written, directly before the data gradient of its
/// layer, or directly behind it.
enum class GradientOrder { AsWritten, FilterFirst, DataFirst };

/// Bytes that a started collective sends, padding between its tensors included.
uint64_t messageBytes(comm::StartOp start);

/// Computes orders of one program. A start follows its last producer; the update of a bucket is
/// what depends on its wait and on which no start depends, and what is computed for it alone.
class ProgramScheduler {
public:
  /// Without overlap, each wait stands behind its start.
  ProgramScheduler(mlir::Block &block, bool overlap);

  /// Waits precede their first users; updates come last, bucket by bucket.
  std::vector<mlir::Operation *> order(GradientOrder kind) const;

  /// An order as the simulator sees it.
  std::vector<ScheduleItem> itemsOf(llvm::ArrayRef<mlir::Operation *> order) const;

  unsigned bucketCount() const { return static_cast<unsigned>(waits.size()); }
  size_t largeGradientCount() const { return largeGradients; }
  /// The most that buckets take at a time, each from its first kernel to its last reader.
  uint64_t gradientBytes(llvm::ArrayRef<mlir::Operation *> order) const;

  /// What is asked of an op again and again.
  struct Facts {
    mlir::Operation *op = nullptr;
    size_t position = 0;
    uint64_t cost = 0;               // forecast of its kernel in nanoseconds
    uint64_t message = 0;            // of a start: bytes
    mlir::Operation *wait = nullptr; // of a start
    unsigned update = 0;             // the bucket whose update it belongs to, plus 1; 0 if to none
    bool isLargeGradient = false;
    llvm::SmallVector<const Facts *, 4> producers; // of the operands
    llvm::SmallVector<const Facts *, 2> readers;   // of the variable that it assigns
  };
  const Facts &of(mlir::Operation *op) const { return facts.find(op)->second; }

private:
  /// What is in memory from the first of some ops to the last.
  struct Bucket {
    uint64_t bytes = 0;
    llvm::SmallVector<size_t> positions;
  };

  void findNeighbours();
  void findTail();
  void findBuckets();
  void findPairs();
  unsigned findUpdate(mlir::Operation *op) const;
  bool findLargeGradient(mlir::Operation *op) const;
  OrderKey keyOf(mlir::Operation *op, GradientOrder kind) const;

  mlir::Block &block;
  bool overlap;
  llvm::DenseMap<mlir::Operation *, Facts> facts;
  llvm::SmallVector<comm::WaitOp> waits;
  std::vector<Bucket> buckets; // by wait
  size_t largeGradients = 0;
  llvm::DenseMap<mlir::Operation *, unsigned> tail;           // bucket of an update, plus 1
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> pairs; // weight -> data gradient
};

} // namespace dlc
