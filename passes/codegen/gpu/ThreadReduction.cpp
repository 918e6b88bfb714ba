#include "passes/codegen/gpu/ThreadReduction.h"

#include "passes/codegen/EmitNode.h"
#include "passes/codegen/EmitScalars.h"
#include "passes/codegen/gpu/LowerKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace dlc;

// Additions of one f32 accumulator in a run.
static constexpr int64_t runLength = 32;

ThreadReduction::ThreadReduction(ImplicitLocOpBuilder &builder, const StagePlan &stage,
                                 const ThreadPlan &plan, Value shared)
    : b(builder), stage(stage), plan(plan), shared(shared) {
  for (const ClusterWrite &write : stage.writes)
    if (write.reduction)
      writes.push_back(&write);
}

/// Of an accumulator in shared memory, the same for all reductions, so that a thread's slots are
/// its own whatever lies in them.
static int64_t slotBytes(const StagePlan &stage) {
  int64_t most = 0;
  for (const ClusterWrite &write : stage.writes)
    if (write.reduction)
      most = std::max<int64_t>(most, nn::elementBytes(write.accumulator));
  return most;
}

int64_t ThreadReduction::sharedBytes(const StagePlan &stage, const ThreadPlan &plan) {
  if (plan.reducedThreads == 1)
    return 0;
  return slotBytes(stage) * plan.threads() * (plan.reducesLanes ? 1 : plan.lanes);
}

Value ThreadReduction::constant(int64_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

/// The value that a node has before it is converted to wider floats.
static const ClusterNode &narrowest(const StagePlan &stage, unsigned number) {
  const ClusterNode *node = &stage.nodes[number];
  while (node->kind == ClusterNode::Kind::Op && isa<nn::CastOp>(node->op)) {
    const ClusterNode &from = stage.nodes[node->operands.front()];
    if (!isa<FloatType>(from.element) ||
        nn::elementBytes(from.element) > nn::elementBytes(node->element))
      break;
    node = &from;
  }
  return *node;
}

/// True of an element of f32 or an integer, as it is in memory.
static bool isStored(const ClusterNode &node) {
  using Kind = ClusterNode::Kind;
  bool isComputed =
      node.kind == Kind::Products || (node.kind == Kind::Op && !isa<nn::CastOp>(node.op));
  return !isComputed && node.element.isF32();
}

/// True if f32 is good enough for the terms of a sum: they are rounded to f32 anyway, or exact, or
/// a convolution's. Elements of f32 are left to f64, and so are products that are not rounded,
/// other than of bf16: a variance is the difference of a sum of squares and a mean's, both of which
/// may be millions of times as large. So are integers, whose sums are exact.
static bool fitsF32(const StagePlan &stage, const ClusterWrite &write) {
  const ClusterNode &term = narrowest(stage, write.node);
  if (!isa<FloatType>(term.element))
    return false;
  bool isProduct = term.kind == ClusterNode::Kind::Op && isa<nn::MulOp>(term.op);
  auto factor = [&](unsigned i) -> const ClusterNode & {
    return narrowest(stage, term.operands[i]);
  };
  if (term.element.isF64())
    return isProduct && factor(0).element.isBF16() && factor(1).element.isBF16();
  if (isProduct && isStored(factor(0)) && isStored(factor(1)))
    return false;
  return !isStored(term);
}

static bool isSum(const ClusterWrite &write) { return write.reduction && addsUp(write.reduction); }

/// In which a run adds up: all sums of a stage or none of them, since they may be parts of one
/// figure.
Type ThreadReduction::runType(const ClusterWrite &write) const {
  bool inF32 = isSum(write) && llvm::all_of(stage.writes, [&](const ClusterWrite &other) {
                 return !isSum(other) || fitsF32(stage, other);
               });
  return inF32 ? Type(b.getF32Type()) : write.accumulator;
}

ThreadSums ThreadReduction::identities(bool ofRun) {
  ThreadSums sums;
  for (const ClusterWrite *write : writes)
    sums.append(plan.lanes, emitConstant(b, ofRun ? runType(*write) : write->accumulator,
                                         identityOf(write->reduction)));
  return sums;
}

//===- Of one thread --------------------------------------------------------------------------===//

/// Adds what a run adds up to sums.
ThreadSums ThreadReduction::addRun(ThreadSums sums,
                                   llvm::function_ref<ThreadSums(ThreadSums)> run) {
  ThreadSums parts = run(identities(/*ofRun=*/true));
  for (auto [i, part] : llvm::enumerate(parts)) {
    const ClusterWrite &write = *writes[i / plan.lanes];
    sums[i] = emitCombined(b, write, sums[i], emitResize(b, part, write.accumulator));
  }
  return sums;
}

/// The thread's iterations from one to another, some at a time, of which there is a whole number.
ThreadSums ThreadReduction::addIterations(Value from, Value to, Value reducedThread, ThreadSums run,
                                          int64_t together, Terms terms) {
  auto loop =
      scf::ForOp::create(b, from, to, constant(together), run,
                         [&](OpBuilder &, Location, Value step, ValueRange sums) {
                           SmallVector<Value> iterations;
                           for (int64_t i = 0; i < together; ++i) {
                             Value own = arith::AddIOp::create(b, step, constant(i));
                             Value number =
                                 arith::MulIOp::create(b, own, constant(plan.reducedThreads));
                             iterations.push_back(arith::AddIOp::create(b, number, reducedThread));
                           }
                           scf::YieldOp::create(b, terms(iterations, llvm::to_vector(sums)));
                         });
  if (stage.storesTerms())
    keepRolled(loop);
  return llvm::to_vector_of<Value>(loop.getResults());
}

ThreadSums ThreadReduction::addAll(Value reducedThread, int64_t together, Terms terms) {
  int64_t whole = plan.reduced / plan.reducedThreads;
  auto strip = [&](Value from, Value to, int64_t length, ThreadSums sums) {
    return addRun(std::move(sums), [&](ThreadSums run) {
      return addIterations(from, to, reducedThread, std::move(run), std::gcd(length, together),
                           terms);
    });
  };
  ThreadSums sums = identities(/*ofRun=*/false);
  if (int64_t even = whole / runLength * runLength; even > 0) {
    auto strips = scf::ForOp::create(
        b, constant(0), constant(even), constant(runLength), sums,
        [&](OpBuilder &, Location, Value from, ValueRange own) {
          Value to = arith::AddIOp::create(b, from, constant(runLength));
          scf::YieldOp::create(b, strip(from, to, runLength, llvm::to_vector(own)));
        });
    sums = llvm::to_vector_of<Value>(strips.getResults());
  }
  if (int64_t left = whole % runLength; left > 0)
    sums = strip(constant(whole - left), constant(whole), left, std::move(sums));
  if (plan.reduced % plan.reducedThreads == 0)
    return sums;
  // What is left is one iteration of some threads.
  Value last = arith::AddIOp::create(b, reducedThread, constant(whole * plan.reducedThreads));
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, last, constant(plan.reduced));
  return addRun(std::move(sums), [&](ThreadSums run) {
    auto some = scf::IfOp::create(
        b, exists, [&](OpBuilder &, Location) { scf::YieldOp::create(b, terms(last, run)); },
        [&](OpBuilder &, Location) { scf::YieldOp::create(b, run); });
    return llvm::to_vector_of<Value>(some.getResults());
  });
}

ThreadSums ThreadReduction::combineLanes(ThreadSums sums) {
  if (!plan.reducesLanes)
    return sums;
  ThreadSums combined;
  for (auto [i, write] : llvm::enumerate(writes)) {
    ArrayRef<Value> lanes = ArrayRef(sums).slice(i * plan.lanes, plan.lanes);
    Value sum = lanes.front();
    for (Value lane : lanes.drop_front())
      sum = emitCombined(b, *write, sum, lane);
    combined.push_back(sum);
  }
  return combined;
}

//===- Of the block ---------------------------------------------------------------------------===//

/// The place in shared memory of a thread's lane, next to that lane of other threads: no two of
/// them need one bank.
Value ThreadReduction::slot(Value thread, Value lane) {
  Value row = arith::MulIOp::create(b, lane, constant(plan.threads()));
  Value number = arith::AddIOp::create(b, row, thread);
  Value byte = arith::MulIOp::create(b, number, constant(slotBytes(stage)));
  return LLVM::GEPOp::create(b, shared.getType(), b.getI8Type(), shared,
                             ArrayRef<LLVM::GEPArg>{byte});
}

/// A tree in shared memory: in each round the first half of the threads adds what the other has.
SmallVector<Value> ThreadReduction::combineThreads(const ClusterWrite &write, Value keptThread,
                                                   Value reducedThread, ArrayRef<Value> sums) {
  Value row = arith::MulIOp::create(b, reducedThread, constant(plan.keptThreads));
  Value thread = arith::AddIOp::create(b, row, keptThread);
  auto place = [&](size_t lane, int64_t threadsOn) {
    return slot(arith::AddIOp::create(b, thread, constant(threadsOn)),
                constant(static_cast<int64_t>(lane)));
  };
  auto load = [&](Value from) -> Value { return LLVM::LoadOp::create(b, write.accumulator, from); };
  for (auto [lane, sum] : llvm::enumerate(sums))
    LLVM::StoreOp::create(b, sum, place(lane, 0));
  NVVM::Barrier0Op::create(b);
  for (int64_t half = plan.reducedThreads / 2; half > 0; half /= 2) {
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, reducedThread, constant(half));
    scf::IfOp::create(b, isFirst, [&](OpBuilder &, Location) {
      for (size_t lane = 0; lane < sums.size(); ++lane) {
        Value both = emitCombined(b, write, load(place(lane, 0)),
                                  load(place(lane, half * plan.keptThreads)));
        LLVM::StoreOp::create(b, both, place(lane, 0));
      }
      scf::YieldOp::create(b);
    });
    NVVM::Barrier0Op::create(b);
  }
  if (!plan.spreadsResults())
    return llvm::map_to_vector(llvm::seq(sums.size()),
                               [&](size_t lane) { return load(place(lane, 0)); });
  // Threads behind the last result take what is there.
  Value result = load(slot(arith::DivUIOp::create(b, thread, constant(plan.lanes)),
                           arith::RemUIOp::create(b, thread, constant(plan.lanes))));
  if (&write != writes.back() || stage.chunk > 1)
    NVVM::Barrier0Op::create(b); // before other threads write there again
  return {result};
}

ThreadSums ThreadReduction::reduce(Value keptThread, Value reducedThread, int64_t together,
                                   Terms terms) {
  ThreadSums sums = combineLanes(addAll(reducedThread, together, terms));
  if (plan.reducedThreads == 1)
    return sums;
  ThreadSums all;
  size_t each = sums.size() / writes.size();
  for (auto [i, write] : llvm::enumerate(writes))
    llvm::append_range(all, combineThreads(*write, keptThread, reducedThread,
                                           ArrayRef(sums).slice(i * each, each)));
  return all;
}
