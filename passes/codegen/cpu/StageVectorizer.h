// A stage's nest as it becomes loops over vectors: what the emission of loops and that of the body
// share.
//
// Invariant: `levels` are the loops that are open, outermost first, and every known value was
// computed in one of them.
#pragma once

#include "passes/codegen/EmitLinalg.h"
#include "passes/codegen/EmitRandom.h"
#include "passes/codegen/EmitScalars.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace dlc {

/// A value of the body in one vector's iterations.
struct Lanes {
  mlir::Value scalar; // of all lanes, or of lane 0 if `stride` is not 0
  mlir::Value vector;
  int64_t stride = 0; // of an index over lanes
  unsigned level = 0; // loop it is computed in
  bool isUniform() const { return scalar && stride == 0; }
};

class StageVectorizer {
public:
  StageVectorizer(LinalgStage &stage, const StagePlan &plan, unsigned lanes);
  mlir::func::FuncOp run();

private:
  // Loops.
  void openItems();
  void nestItem();
  void nest(size_t position);
  void vectorLoop(size_t position);
  void openNeighbours(int64_t count, int64_t step);
  void vectorBlock(size_t position, int64_t vectors, int64_t left);
  void openRaggedEnd(int64_t whole);
  void closeRaggedEnd();
  mlir::scf::ForOp openLoop(unsigned loop, mlir::OpFoldResult from, mlir::OpFoldResult to,
                            int64_t step, mlir::ValueRange carried = {});
  void fixIndex(unsigned loop, int64_t index);
  void enterLevel(mlir::Block *block);
  void leaveLevel();
  void forget(unsigned level);

  // Reductions.
  using Accumulators = llvm::SmallVector<mlir::Value>; // by side, neighbour, write
  using Iteration = llvm::function_ref<Accumulators(Accumulators)>;
  void planTerms();
  void planCopies();
  void planRandom();
  void planBody();
  bool sharesCounters(unsigned loop) const;
  Accumulators reduce(size_t position, Accumulators accumulators);
  Accumulators reduceInnermost(unsigned loop, Accumulators accumulators);
  Accumulators reduceStrips(unsigned loop, Accumulators accumulators);
  Accumulators reduceSides(unsigned loop, mlir::OpFoldResult from, mlir::OpFoldResult to,
                           Accumulators accumulators);
  Accumulators reduceRest(unsigned loop, Accumulators accumulators);
  Accumulators reduceLoop(unsigned loop, mlir::OpFoldResult from, mlir::OpFoldResult to,
                          int64_t step, Accumulators accumulators, Iteration body);
  Accumulators reduceRun(Accumulators sums, Iteration body);
  void reduceSide(int64_t side, Accumulators &accumulators);
  int64_t stepOf(unsigned loop) const { return loop == vectorDim ? lanes : 1; }
  int64_t evenExtent(unsigned loop) const;
  int64_t iterationsFrom(size_t position) const;
  bool isOneRun(size_t position) const;
  void enterNeighbour(size_t next);
  mlir::Value constant(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, value); }
  mlir::Value valueOf(mlir::OpFoldResult bound);

  // Body.
  llvm::SmallVector<mlir::Value> emitBody(llvm::ArrayRef<mlir::Value> accumulators);
  mlir::Value addTerm(size_t reduction, mlir::Value accumulator);
  void emitOp(mlir::Operation &op);
  Lanes emitApply(mlir::affine::AffineApplyOp op);
  Lanes emitElementwise(mlir::Operation &op);
  Lanes emitRandom(mlir::func::CallOp op);
  Lanes load(mlir::Value memory, llvm::ArrayRef<Lanes> indices, const Lanes *inside);
  void store(mlir::Value value, mlir::Value memory, llvm::ArrayRef<Lanes> indices,
             bool streams = false);
  Lanes evaluate(mlir::AffineExpr expression, llvm::ArrayRef<Lanes> operands);
  llvm::SmallVector<Lanes> evaluate(mlir::AffineMap map);
  mlir::Value vectorOf(const Lanes &lanes);
  mlir::Value offsetsOf(mlir::MemRefType type, llvm::ArrayRef<Lanes> indices);
  unsigned levelOf(mlir::Operation &op);
  void moveTo(unsigned level);
  mlir::VectorType vectorType(mlir::Type element) {
    return mlir::VectorType::get({lanes}, element);
  }
  mlir::Value passThrough(mlir::Type element);
  mlir::Value memoryOf(mlir::Value operand);

  // Results.
  void storeAccumulators(llvm::ArrayRef<mlir::Value> accumulators);
  void storeAccumulator(const ClusterWrite &write, mlir::OpOperand *out, mlir::Value value);
  mlir::Value combine(const ClusterWrite &write, mlir::Value a, mlir::Value b);
  mlir::Value combineLanes(const ClusterWrite &write, mlir::Value value);
  Accumulators combineSides(Accumulators accumulators);
  Accumulators identities();

  LinalgStage &stage;
  StagePlan plan; // of items of one kind at a time
  mlir::ImplicitLocOpBuilder b;
  mlir::linalg::GenericOp nestOp;
  mlir::func::FuncOp function;
  mlir::IRMapping arguments;
  int64_t lanes;
  unsigned vectorDim;
  llvm::SmallVector<unsigned> order; // inner loops
  size_t firstReduced;
  llvm::SmallVector<Lanes> loopIndices;
  mlir::Value mask; // of the ragged end, or null
  /// Iterations of a kept loop that are open at once: vectors of a reduction; four that share the
  /// counters of random numbers.
  struct Neighbour {
    Lanes index;
    mlir::Value mask;
  };
  llvm::SmallVector<Neighbour> neighbours;
  llvm::SmallVector<const ClusterWrite *> reductions;
  size_t neighbour = 0; // the current one
  unsigned neighbourLoop;
  int64_t mostNeighbours = 1, sides = 1;
  bool sharesRandom = false;
  /// What a sum adds in an iteration, in f32: `value`, or its product with `factor`; nothing where
  /// `inside` is false.
  struct Term {
    mlir::Value value, factor, inside;
  };
  llvm::SmallVector<Term> terms;                    // by reduction; empty if all is added in f64
  llvm::SmallPtrSet<mlir::Operation *, 8> replaced; // the body's own additions of the terms
  bool inRun = false;                               // accumulators are of f32
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> randomBits; // by neighbour
  struct Level {
    mlir::Block *block;
    mlir::Operation *before; // the loop inside, or null for the block's end
  };
  llvm::SmallVector<Level> levels;
  llvm::DenseMap<mlir::Value, Lanes> values;
};

/// True if a write's vectors fill whole lines of memory one after the other and begin at multiples
/// of their bytes; buffers begin at multiples of a line.
bool fillsLines(const StagePlan &plan, const ClusterWrite &write, int64_t lanes);

/// Replaces the function by loops over vectors with two more arguments, begin and end of the items.
/// `lanes` is a power of two.
void vectorizeStage(LinalgStage &stage, const StagePlan &plan, unsigned lanes);

} // namespace dlc
