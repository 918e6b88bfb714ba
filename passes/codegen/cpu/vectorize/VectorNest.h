// Loops over vectors while they are built, and the values that are known in them.
//
// A level is the block of an open loop. A value is computed in the outermost level that has all it
// depends on, once for all iterations inside.
//
// Invariant: levels are those of the open loops, outermost first, and every known value was
// computed in one of them.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dlc {

/// A value of the body in one vector's iterations.
struct Lanes {
  mlir::Value scalar; // of all lanes, or of lane 0 if `stride` is not 0
  mlir::Value vector;
  int64_t stride = 0; // of an index over lanes
  unsigned level = 0; // loop it is computed in
  bool isUniform() const { return scalar && stride == 0; }
};

class VectorNest {
public:
  /// The function's body is the outermost level. The last one of its `loops` runs in vectors.
  VectorNest(mlir::func::FuncOp function, size_t loops, int64_t lanes);

  mlir::ImplicitLocOpBuilder &builder() { return b; }
  unsigned vectorLoop() const { return loopIndices.size() - 1; }
  int64_t lanes() const { return laneCount; }
  /// Iterations of a loop that one copy of the body does.
  int64_t stepOf(unsigned loop) const { return loop == vectorLoop() ? laneCount : 1; }

  // Levels.
  unsigned innermost() const { return levels.size() - 1; }
  void enter(mlir::Block *block) { levels.push_back({block, nullptr}); }
  void leave();
  /// The next ops are built in a level.
  void moveTo(unsigned level);
  void moveToInnermost() { moveTo(innermost()); }
  /// From now on, ops of the innermost level are built before `op`, or at its end.
  void buildBefore(mlir::Operation *op) { levels.back().before = op; }
  void buildAtEnd() { levels.back().before = nullptr; }

  // Loops.
  mlir::scf::ForOp openLoop(unsigned loop, mlir::OpFoldResult from, mlir::OpFoldResult to,
                            int64_t step, mlir::ValueRange carried = {});
  /// In place of a loop of one iteration.
  void fixIndex(unsigned loop, int64_t index);
  /// A level for one more copy of the vector loop's body, from iteration `whole` on.
  void openRemainder(int64_t whole);
  void closeRemainder();
  llvm::ArrayRef<Lanes> indices() const { return loopIndices; }
  const Lanes &index(unsigned loop) const { return loopIndices[loop]; }
  void setIndex(unsigned loop, const Lanes &index) { loopIndices[loop] = index; }

  /// The lanes that exist in a remainder, or null for all.
  mlir::Value mask() const { return laneMask; }
  void setMask(mlir::Value mask) { laneMask = mask; }
  /// Masks all lanes but the first ones.
  void keepLanes(int64_t count);

  // Known values.
  bool isKnown(mlir::Value value) const { return values.contains(value); }
  Lanes lookup(mlir::Value value) const { return values.lookup(value); }
  void remember(mlir::Value value, const Lanes &lanes) { values[value] = lanes; }
  void forget(mlir::Value value) { values.erase(value); }
  /// Drops what was computed in a level and inside of it.
  void forgetFrom(unsigned level);

  // Values in the current level.
  mlir::Value constant(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, value); }
  mlir::Value vectorOf(const Lanes &lanes);
  mlir::VectorType vectorType(mlir::Type element) const {
    return mlir::VectorType::get({laneCount}, element);
  }

private:
  struct Level {
    mlir::Block *block;
    mlir::Operation *before; // the loop inside, or null for the block's end
  };
  mlir::ImplicitLocOpBuilder b;
  int64_t laneCount;
  llvm::SmallVector<Level> levels;
  llvm::SmallVector<Lanes> loopIndices;
  mlir::Value laneMask;
  llvm::DenseMap<mlir::Value, Lanes> values;
};

} // namespace dlc
