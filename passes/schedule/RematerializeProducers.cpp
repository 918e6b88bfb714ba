// dlc-rematerialize-producers: a cluster reads a tensor that another cluster, the producer,
// computes from what the first one reads anyway. Then the first one gets the producer's ops and
// computes the tensor, too. A tensor that nobody reads any more is not written.
//
// Producers are visited in program order, so a recipe that a producer took over from its own
// producers travels on. One price decides: bytes of memory saved against bytes read in addition
// and arithmetic, which is counted as the bytes that could be moved in its time.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/codegen/WindowPlaces.h"
#include "passes/planning/PlanningTarget.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_REMATERIALIZEPRODUCERS
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
/// The ops of a producer that compute one result, in order, and its operands that they read.
struct Recipe {
  SmallVector<Operation *> ops;
  llvm::SmallSetVector<unsigned, 4> leaves;
  double operations = 0;     // in bytes per element
  DenseI64ArrayAttr windows; // of the pooling whose gradient is part of it

  /// Fails if something but pointwise ops is needed.
  static std::optional<Recipe> of(nn::FusedOp producer, unsigned result,
                                  const rt::LoopLimits &limits);

private:
  bool add(Value value, const rt::LoopLimits &limits, llvm::SmallDenseSet<Value> &seen);
};
} // namespace

static nn::YieldOp yieldOf(nn::FusedOp op) {
  return cast<nn::YieldOp>(op.getBody().front().getTerminator());
}

std::optional<Recipe> Recipe::of(nn::FusedOp producer, unsigned result,
                                 const rt::LoopLimits &limits) {
  Recipe recipe;
  llvm::SmallDenseSet<Value> seen;
  Value value = yieldOf(producer).getValues()[result];
  // An operand handed through is no computation.
  if (isa<BlockArgument>(value) || !recipe.add(value, limits, seen))
    return std::nullopt;
  return recipe;
}

bool Recipe::add(Value value, const rt::LoopLimits &limits, llvm::SmallDenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    leaves.insert(argument.getArgNumber());
    return true;
  }
  Operation *op = value.getDefiningOp();
  bool pointwise = op->hasTrait<nn::Elementwise>();
  auto grad = dyn_cast<nn::MaxPoolGradOp>(op);
  // A padded element is not free: its bounds are tested.
  bool free = op->hasTrait<nn::CopiedToReaders>() && !isa<nn::PadOp>(op);
  if ((!pointwise && !grad && !free) || llvm::any_of(op->getOpOperands(), isGathered))
    return false;
  if (grad)
    windows = grad.getKernelAttr();
  if (pointwise || grad)
    operations +=
        op->hasTrait<nn::FunctionPerElement>() ? limits.bytesPerFunction : limits.bytesPerOperation;
  if (!llvm::all_of(op->getOperands(), [&](Value operand) { return add(operand, limits, seen); }))
    return false;
  ops.push_back(op);
  return true;
}

/// True if what is computed from a value has its elements where the value has them.
static bool staysInPlace(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (user->hasTrait<nn::Elementwise>())
      return staysInPlace(user->getResult(0));
    return isa<nn::ReductionOpInterface, nn::YieldOp>(user);
  });
}

/// True if an operand, or a slice of one, is.
static bool isGatheredFrom(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    auto slice = dyn_cast<nn::SliceOp>(use.getOwner());
    return slice ? isGatheredFrom(slice) : isGathered(use);
  });
}

/// True if a consumer's loops can hold the recipe of operand `index`: windows of pooling must tile
/// them alike, and what shifts an element by less than a window cannot have the gradient inside.
/// What is gathered from stays in memory.
static bool canHold(nn::FusedOp consumer, unsigned index, const Recipe &recipe) {
  Block &body = consumer.getBody().front();
  if (isGatheredFrom(body.getArgument(index)))
    return false;
  if (!recipe.windows)
    return true;
  for (auto grad : body.getOps<nn::MaxPoolGradOp>())
    if (grad.getKernelAttr() != recipe.windows)
      return false;
  return staysInPlace(body.getArgument(index));
}

//===- Prices ---------------------------------------------------------------------------------===//

/// Bytes of a value that a block reads through an argument of its own.
static double bytesRead(BlockArgument argument) {
  double slices = 0;
  for (Operation *user : argument.getUsers()) {
    if (!isa<nn::SliceOp>(user))
      return static_cast<double>(nn::physicalBytes(nn::tensorType(argument)));
    slices += static_cast<double>(nn::physicalBytes(nn::tensorType(user->getResult(0))));
  }
  return slices;
}

static bool writesVariables(nn::FusedOp op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<nn::AssignOp>(user); });
}

/// What a consumer gains by a recipe for its operand `index`, in bytes; negative for a loss.
static double gainOf(nn::FusedOp consumer, unsigned index, nn::FusedOp producer,
                     const Recipe &recipe) {
  auto type = nn::tensorType(consumer.getInputs()[index]);
  double gain = bytesRead(consumer.getBody().getArgument(index));
  gain -= recipe.operations * static_cast<double>(type.getNumElements());
  for (unsigned leaf : recipe.leaves) {
    Value value = producer.getInputs()[leaf];
    if (!llvm::is_contained(consumer.getInputs(), value))
      gain -= bytesRead(producer.getBody().getArgument(leaf));
  }
  return gain;
}

//===- Rewriting ------------------------------------------------------------------------------===//

static void rematerialize(nn::FusedOp consumer, unsigned index, nn::FusedOp producer,
                          const Recipe &recipe, unsigned result) {
  Block &body = consumer.getBody().front();
  IRMapping mapping;
  for (unsigned leaf : recipe.leaves) {
    Value value = producer.getInputs()[leaf];
    auto known = llvm::find(consumer.getInputs(), value);
    unsigned position = known - consumer.getInputs().begin();
    if (known == consumer.getInputs().end()) {
      consumer->insertOperands(position, value);
      body.addArgument(value.getType(), value.getLoc());
    }
    mapping.map(producer.getBody().getArgument(leaf), body.getArgument(position));
  }
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (Operation *op : recipe.ops)
    builder.clone(*op, mapping);
  nn::Role role = nn::roleOf(consumer);
  role.kind = std::max(role.kind, nn::roleOf(producer).kind);
  nn::setRole(consumer, role);
  Value again = mapping.lookup(yieldOf(producer).getValues()[result]);
  body.getArgument(index).replaceAllUsesWith(again);
  consumer->eraseOperand(index);
  body.eraseArgument(index);
}

/// Drops results that nobody reads, and the ops that only they needed.
static void prune(nn::FusedOp op) {
  if (llvm::none_of(op.getResults(), [](Value result) { return result.use_empty(); }))
    return;
  SmallVector<Value> kept, yielded;
  for (auto [result, value] : llvm::zip(op.getResults(), yieldOf(op).getValues()))
    if (!result.use_empty()) {
      kept.push_back(result);
      yielded.push_back(value);
    }
  if (kept.empty())
    return op.erase();
  Block &body = op.getBody().front();
  yieldOf(op)->setOperands(yielded);
  auto inside = llvm::map_to_vector(body.without_terminator(), [](Operation &op) { return &op; });
  for (Operation *inner : llvm::reverse(inside))
    if (inner->use_empty())
      inner->erase();
  for (unsigned i = body.getNumArguments(); i-- > 0;)
    if (body.getArgument(i).use_empty()) {
      body.eraseArgument(i);
      op->eraseOperand(i);
    }
  OpBuilder builder(op);
  auto now = nn::FusedOp::create(builder, kept.back().getLoc(), TypeRange(ValueRange(kept)),
                                 op.getInputs());
  now.getBody().takeBody(op.getBody());
  nn::setRole(now, nn::roleOf(op));
  for (auto [old, result] : llvm::zip(kept, now.getResults()))
    old.replaceAllUsesWith(result);
  op.erase();
}

//===- Pass -----------------------------------------------------------------------------------===//

namespace {
class RematerializeProducersPass
    : public dlc::impl::RematerializeProducersBase<RematerializeProducersPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Schedule)))
      return signalPassFailure();
    std::shared_ptr<rt::KernelPlanner> planner = openPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    limits = planner->target().loops;
    for (auto program : getOperation().getBody().getOps<nn::ProgramOp>())
      for (auto producer : llvm::make_early_inc_range(program.getBody().getOps<nn::FusedOp>()))
        visit(producer);
  }

private:
  struct Use {
    nn::FusedOp consumer;
    double gain;
  };

  /// Repeats until nothing changes: operands that a consumer reads for one result are there for the
  /// others, too.
  void visit(nn::FusedOp producer) {
    for (bool changed = true; changed;) {
      changed = false;
      for (OpResult result : producer.getResults()) {
        if (result.use_empty() ||
            nn::physicalBytes(nn::tensorType(result)) < limits.leastSavedBytes)
          continue;
        if (auto recipe = Recipe::of(producer, result.getResultNumber(), limits))
          changed |= visit(producer, result, *recipe);
      }
    }
    postpone(producer);
    prune(producer);
  }

  /// If the forward pass does not need the op any more, its phase becomes that of its first reader.
  static void postpone(nn::FusedOp op) {
    nn::Role role = nn::roleOf(op);
    auto phases = llvm::map_range(op->getUsers(), nn::phaseOf);
    if (!op->use_empty())
      role.phase = std::max(role.phase, *llvm::min_element(phases));
    nn::setRole(op, role);
  }

  /// True if a consumer computes the result itself from now on.
  bool visit(nn::FusedOp producer, OpResult result, const Recipe &recipe) {
    SmallVector<Use> uses;
    auto together = static_cast<double>(nn::physicalBytes(nn::tensorType(result)));
    bool onlyClusters = true;
    for (OpOperand &use : result.getUses()) {
      auto consumer = dyn_cast<nn::FusedOp>(use.getOwner());
      // An optimizer writes variables in place, in the memory that it reads.
      if (!consumer || writesVariables(consumer) || llvm::count(consumer.getInputs(), result) > 1 ||
          !canHold(consumer, use.getOperandNumber(), recipe)) {
        onlyClusters = false;
        continue;
      }
      double gain = gainOf(consumer, use.getOperandNumber(), producer, recipe);
      uses.push_back({consumer, gain});
      together += gain;
    }
    bool unwritten = onlyClusters && together > 0, changed = false;
    for (Use &use : uses)
      if (unwritten || use.gain > 0) {
        unsigned index =
            llvm::find(use.consumer.getInputs(), result) - use.consumer.getInputs().begin();
        rematerialize(use.consumer, index, producer, recipe, result.getResultNumber());
        changed = true;
        remark::passed(
            use.consumer.getLoc(),
            remark::RemarkOpts::name("rematerialized").category("dlc-rematerialize-producers"))
            << "rematerializes a tensor of '" + nn::layerName(result.getLoc()).str() +
                   "' instead of reading it";
      }
    return changed;
  }

  rt::LoopLimits limits = {};
};
} // namespace
