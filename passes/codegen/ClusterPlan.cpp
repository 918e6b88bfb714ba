// The stages of a cluster: one nest over the type that is reduced or yielded, a second one that
// combines the partial results of a reduction, or one per run of inputs of a concatenation. The one
// that has whole results of reductions has their epilogue, too: what is computed with them. Which
// nodes a stage has is decided in StageBuilder, how its loops run in LoopPlan: by the limits of the
// target, or as a stored plan has it.

#include "passes/codegen/ClusterPlan.h"

#include "passes/codegen/StageBuilder.h"

using namespace mlir;
using namespace dlc;

bool dlc::addsUp(Operation *reduction) { return !isa<nn::ReduceMaxOp>(reduction); }

double dlc::identityOf(Operation *reduction) {
  return addsUp(reduction) ? 0.0 : -std::numeric_limits<double>::infinity();
}

/// In which a reduction accumulates. Sums of what f32 may not hold are f64 on every machine.
static Type accumulatorType(Operation *reduction, Type sums) {
  Type element = nn::tensorType(reduction->getOperand(0)).getElementType();
  bool fitsNarrow = isa<BFloat16Type, Float16Type, Float32Type>(element);
  if (addsUp(reduction))
    return fitsNarrow ? sums : Type(Float64Type::get(element.getContext()));
  // 16-bit floats are f32 outside of memory.
  return fitsNarrow ? Type(Float32Type::get(element.getContext())) : element;
}

namespace {
class ClusterPlanner {
public:
  /// Plans by `limits`, or again as `stored`: one of them is given.
  ClusterPlanner(Block &cluster, const rt::LoopLimits *limits, const GeneratedKernel *stored)
      : cluster(cluster), limits(limits), stored(stored),
        yield(cast<nn::YieldOp>(cluster.getTerminator())) {
    Builder builder(yield.getContext());
    bool isWide =
        limits ? limits->sums == artifact::DType::F64 : !(stored->sums && stored->sums.isF32());
    sums = isWide ? Type(builder.getF64Type()) : Type(builder.getF32Type());
    for (BlockArgument argument : cluster.getArguments())
      plan.buffers.push_back(nn::tensorType(argument));
    for (Value value : yield.getValues())
      plan.buffers.push_back(nn::tensorType(value));
    // Those that are yielded come first.
    for (Value value : yield.getValues())
      if (auto reduction = value.getDefiningOp<nn::ReductionOpInterface>())
        reductions.insert(reduction);
    for (auto reduction : cluster.getOps<nn::ReductionOpInterface>())
      if (!reduction->use_empty())
        reductions.insert(reduction);
  }
  FailureOr<ClusterPlan> run();
  /// Of a stored plan: whether it has such loops as the body can have.
  bool fits() const { return !isOther; }

private:
  unsigned resultBuffer(unsigned result) const { return cluster.getNumArguments() + result; }
  LogicalResult planConcat(nn::ConcatOp concat);
  LogicalResult planRepeat(nn::RepeatOp repeat);
  LogicalResult planFilterGradient(nn::ConvGradFilterOp grad);
  LogicalResult planNest(RankedTensorType type);
  bool isEpilogue(Value value) const;
  LogicalResult addReduction(StageBuilder &builder, const LoopSpace &space, Operation *op,
                             ArrayRef<Bound> valid);
  LogicalResult addEpilogue(StageBuilder &builder, const Coordinates &kept);
  LogicalResult addWrite(StageBuilder &builder, unsigned result, const Coordinates &at);
  bool writesDirectly(const StagePlan &stage);
  LogicalResult planPartials(StagePlan &stage);
  void setLoops(StagePlan &stage, size_t index, bool wholeResults = false);

  Block &cluster;
  const rt::LoopLimits *limits;
  const GeneratedKernel *stored;
  bool isOther = false; // the stored plan is not the body's
  Type sums;
  nn::YieldOp yield;
  llvm::SmallSetVector<Operation *, 4> reductions;
  ClusterPlan plan;
};

bool isReduction(Value value) {
  return isa_and_present<nn::ReductionOpInterface, nn::ConvGradFilterOp>(value.getDefiningOp());
}

ArrayRef<int64_t> reducedDims(Operation *op) {
  return cast<nn::ReductionOpInterface>(op).getDims();
}
} // namespace

FailureOr<ClusterPlan> ClusterPlanner::run() {
  if (yield.getValues().empty())
    return plan;
  if (auto grad = yield.getValues().front().getDefiningOp<nn::ConvGradFilterOp>())
    return failed(planFilterGradient(grad)) ? FailureOr<ClusterPlan>(failure()) : plan;
  // The iteration space: what is reduced, else what is yielded.
  SmallVector<Value> spaces;
  for (Operation *reduction : reductions)
    spaces.push_back(reduction->getOperand(0));
  for (Value value : yield.getValues())
    if (!isReduction(value) && !isEpilogue(value))
      spaces.push_back(value);
  auto type = nn::tensorType(spaces.front());
  for (Value value : spaces)
    if (!nn::haveOneSpace(nn::tensorType(value), type))
      return yield.emitOpError("mixes iteration spaces ") << type << " and " << value.getType();
  auto concat = yield.getValues().front().getDefiningOp<nn::ConcatOp>();
  if (concat && yield.getValues().size() == 1 && succeeded(planConcat(concat)))
    return plan;
  isOther = false;
  if (auto repeat = yield.getValues().front().getDefiningOp<nn::RepeatOp>())
    return failed(planRepeat(repeat)) ? FailureOr<ClusterPlan>(failure()) : plan;
  if (failed(planNest(type)))
    return failure();
  return plan;
}

/// Decides the loops of the plan's stage `index`.
void ClusterPlanner::setLoops(StagePlan &stage, size_t index, bool wholeResults) {
  if (limits)
    planLoops(stage, *limits, wholeResults);
  else if (index >= stored->stages.size() ||
           failed(restoreLoops(stage, stored->stages[index], wholeResults)))
    isOther = true;
}

/// One stage per run of inputs of one type. Inputs that share a stage are written beside each
/// other, so that no line of memory is written twice. Fails silently if one cannot be written
/// densely at its place.
LogicalResult ClusterPlanner::planConcat(nn::ConcatOp concat) {
  auto type = nn::tensorType(concat.getResult());
  int64_t dim = concat.getDim(), offset = 0, block = nn::layoutOf(type).blockOf(dim);
  for (Value input : concat.getInputs()) {
    if (nn::tensorType(input).getEncoding() != type.getEncoding() || offset % block != 0)
      return failure();
    offset += nn::tensorType(input).getDimSize(dim);
  }
  offset = 0;
  for (ValueRange rest = concat.getInputs(); !rest.empty();) {
    auto part = nn::tensorType(rest.front());
    LoopSpace space = spaceOf(part);
    SmallVector<Bound> valid =
        boundsOf(space.coordinates, space.extents, [&](int64_t d) { return part.getDimSize(d); });
    StagePlan stage;
    StageBuilder builder(stage, space);
    for (size_t parts = 0; parts < mostOperands && !rest.empty() && rest.front().getType() == part;
         ++parts, rest = rest.drop_front()) {
      FailureOr<unsigned> node = builder.evaluate(rest.front(), space.coordinates);
      if (failed(node)) {
        plan.stages.clear();
        return failure();
      }
      Coordinates at = space.coordinates;
      at[dim].offset += offset;
      offset += part.getDimSize(dim);
      std::optional<LinearForm> place = addressOf(type, at, space.extents);
      if (!place) {
        plan.stages.clear();
        return failure();
      }
      builder.write(resultBuffer(0), type.getElementType(), *node, *place, valid);
    }
    setLoops(stage, plan.stages.size());
    plan.stages.push_back(std::move(stage));
  }
  return success();
}

/// One stage over the operand, which writes each element to all of its places.
LogicalResult ClusterPlanner::planRepeat(nn::RepeatOp repeat) {
  auto from = nn::tensorType(repeat.getX()), type = nn::tensorType(repeat.getY());
  LoopSpace space = spaceOf(from);
  StagePlan stage;
  StageBuilder builder(stage, space);
  FailureOr<unsigned> node = builder.evaluate(repeat.getX(), space.coordinates);
  if (failed(node))
    return failure();
  SmallVector<Bound> valid =
      boundsOf(space.coordinates, space.extents, [&](int64_t dim) { return from.getDimSize(dim); });
  ArrayRef<int64_t> times = repeat.getTimes();
  for (int64_t number = 0; number < llvm::product_of(times); ++number) {
    Coordinates at;
    int64_t left = number;
    for (auto [form, count] : llvm::reverse(llvm::zip_equal(space.coordinates, times))) {
      at.insert(at.begin(), LinearForm::constant(space.extents.size(), left % count));
      at.front().add(form, count);
      left /= count;
    }
    std::optional<LinearForm> place = addressOf(type, at, space.extents);
    if (!place)
      return repeat.emitOpError("repeats within blocks of ") << type;
    builder.write(resultBuffer(0), type.getElementType(), *node, *place, valid);
  }
  setLoops(stage, /*index=*/0);
  plan.stages.push_back(std::move(stage));
  return success();
}

/// One stage of sums over all elements of dy, and what combines its parts. The taps along the
/// kernel's last dimension are reductions of their own, so that an element of dy is read once for
/// all of them; those along the others are loops around the channels.
LogicalResult ClusterPlanner::planFilterGradient(nn::ConvGradFilterOp grad) {
  auto dw = nn::tensorType(grad.getDw());
  ArrayRef<int64_t> kernel = dw.getShape().drop_front(2);
  LoopSpace space = spaceOf(nn::tensorType(grad.getDy()));
  size_t channels = space.extents.size() - 1, taps = kernel.size() - 1;
  space.extents.insert(space.extents.begin() + channels, kernel.begin(), kernel.end() - 1);
  for (LinearForm &form : space.coordinates)
    form.weights.insert(form.weights.begin() + channels, taps, 0);
  const LinearForm zero = LinearForm::constant(space.extents.size(), 0);
  Coordinates tap(kernel.size(), zero);
  for (size_t dim = 0; dim < taps; ++dim)
    tap[dim].weights[channels + dim] = 1;
  StagePlan stage;
  StageBuilder builder(stage, space);
  for (StagePlan::Loop &loop : MutableArrayRef(stage.loops).take_front(channels))
    loop.reduced = true;
  reductions.insert(grad);
  plan.sums = sums;
  for (; tap.back().offset < kernel.back(); ++tap.back().offset) {
    FailureOr<unsigned> term = builder.evaluateTerm(grad, tap, space.coordinates);
    if (failed(term))
      return failure();
    Coordinates filter{space.coordinates[1], zero};
    filter.append(tap);
    builder.write(resultBuffer(0), dw.getElementType(), *term,
                  *addressOf(dw, filter, space.extents), /*valid=*/{}, grad,
                  accumulatorType(grad, sums));
  }
  setLoops(stage, /*index=*/0);
  if (!writesDirectly(stage) && failed(planPartials(stage)))
    return failure();
  plan.stages.insert(plan.stages.begin(), std::move(stage));
  return success();
}

/// Splits the loops over dimensions that are pooled, so that a window and the place in it are
/// linear forms.
static LoopSpace tiledSpaceOf(RankedTensorType type, Block &cluster) {
  LoopSpace space = spaceOf(type);
  auto grads = cluster.getOps<nn::MaxPoolGradOp>();
  if (grads.empty())
    return space;
  nn::MaxPoolGradOp grad = *grads.begin();
  if (!nn::windowsTile(grad))
    return space;
  rt::Layout layout = nn::layoutOf(type);
  ArrayRef<int64_t> kernel = grad.getKernel();
  for (size_t loop = layout.order.size(); loop-- > 0;) {
    auto dim = static_cast<int64_t>(layout.order[loop]);
    if (dim < 2 || nn::tensorType(grad.getDx()).getShape() != type.getShape())
      continue;
    int64_t window = kernel[dim - 2];
    space.extents[loop] /= window;
    space.extents.insert(space.extents.begin() + loop + 1, window);
    for (auto [other, form] : llvm::enumerate(space.coordinates)) {
      form.weights.insert(form.weights.begin() + loop + 1, form.weights[loop]);
      form.weights[loop] *= window;
    }
  }
  return space;
}

LogicalResult ClusterPlanner::planNest(RankedTensorType type) {
  LoopSpace space = tiledSpaceOf(type, cluster);
  StagePlan stage;
  StageBuilder builder(stage, space);
  for (auto [result, value] : llvm::enumerate(yield.getValues()))
    if (!isReduction(value) && !isEpilogue(value) &&
        failed(addWrite(builder, result, space.coordinates)))
      return failure();
  SmallVector<Bound> valid =
      boundsOf(space.coordinates, space.extents, [&](int64_t dim) { return type.getDimSize(dim); });
  for (Operation *reduction : reductions)
    if (failed(addReduction(builder, space, reduction, valid)))
      return failure();
  Coordinates kept;
  if (!reductions.empty())
    for (auto [dim, form] : llvm::enumerate(space.coordinates))
      if (!llvm::is_contained(reducedDims(reductions.front()), static_cast<int64_t>(dim)))
        kept.push_back(form);
  if (failed(addEpilogue(builder, kept)))
    return failure();
  setLoops(stage, /*index=*/0);
  if (!reductions.empty() && !writesDirectly(stage) && failed(planPartials(stage)))
    return failure();
  plan.stages.insert(plan.stages.begin(), std::move(stage));
  return success();
}

/// True of what is as large as reductions' results: it is computed behind them.
bool ClusterPlanner::isEpilogue(Value value) const {
  bool isPossible = !limits || limits->epilogues;
  return isPossible && !reductions.empty() && !isReduction(value) &&
         !reducedDims(reductions.front()).empty() &&
         nn::haveOneSpace(nn::tensorType(value), nn::tensorType(reductions.front()->getResult(0)));
}

/// A plain result, at its own coordinates.
LogicalResult ClusterPlanner::addWrite(StageBuilder &builder, unsigned result,
                                       const Coordinates &at) {
  Value value = yield.getValues()[result];
  FailureOr<unsigned> node = builder.evaluate(value, at);
  if (failed(node))
    return failure();
  auto type = nn::tensorType(value);
  std::optional<LinearForm> place = addressOf(type, at, builder.loopExtents());
  if (!place)
    return yield.emitOpError("writes ") << type << " in an order in which its blocks do not lie";
  builder.write(
      resultBuffer(result), type.getElementType(), *node, *place,
      boundsOf(at, builder.loopExtents(), [&](int64_t dim) { return type.getDimSize(dim); }));
  return success();
}

/// What follows the reductions, at the coordinates that these keep.
LogicalResult ClusterPlanner::addEpilogue(StageBuilder &builder, const Coordinates &kept) {
  SmallVector<unsigned> results;
  for (auto [result, value] : llvm::enumerate(yield.getValues()))
    if (isEpilogue(value))
      results.push_back(result);
  if (results.empty())
    return success();
  builder.beginEpilogue(kept);
  for (unsigned result : results)
    if (failed(addWrite(builder, result, kept)))
      return failure();
  return success();
}

/// The kept coordinates' shape in memory: partial sums of padding lanes have their place too.
static SmallVector<int64_t> keptShape(Operation *reduction) {
  auto from = nn::tensorType(reduction->getOperand(0));
  rt::Layout layout = nn::layoutOf(from);
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < from.getRank(); ++dim)
    if (!llvm::is_contained(reducedDims(reduction), dim))
      shape.push_back(paddedExtent(from, layout, dim));
  return shape;
}

/// An accumulator at the row-major position of its kept coordinates.
LogicalResult ClusterPlanner::addReduction(StageBuilder &builder, const LoopSpace &space,
                                           Operation *op, ArrayRef<Bound> valid) {
  Operation *last = reductions.back();
  if (reducedDims(op) != reducedDims(last))
    return op->emitOpError("reduces other dimensions than the cluster's last reduction");
  // Parts of all reductions are combined in one loop nest.
  if (!nn::haveOneSpace(nn::tensorType(op->getResult(0)), nn::tensorType(last->getResult(0))))
    return op->emitOpError("has another layout than the cluster's last reduction");
  FailureOr<unsigned> node = builder.evaluate(op->getOperand(0), space.coordinates);
  if (failed(node))
    return failure();
  LinearForm address = LinearForm::constant(space.extents.size(), 0);
  SmallVector<int64_t> shape = keptShape(op);
  int64_t stride = 1;
  for (int64_t dim = space.coordinates.size() - 1; dim >= 0; --dim) {
    if (llvm::is_contained(reducedDims(op), dim)) {
      for (auto [loop, weight] : llvm::zip(builder.stage.loops, space.coordinates[dim].weights))
        loop.reduced |= weight != 0;
      continue;
    }
    address.add(space.coordinates[dim], stride);
    stride *= shape.pop_back_val();
  }
  Type element = nn::tensorType(op->getResult(0)).getElementType();
  if (isa<nn::ReduceSumOp>(op))
    plan.sums = sums;
  auto yielded = llvm::find(yield.getValues(), op->getResult(0));
  bool isStored = yielded != yield.getValues().end();
  unsigned buffer = isStored ? resultBuffer(yielded - yield.getValues().begin()) : 0;
  builder.write(buffer, element, *node, address, valid, op, accumulatorType(op, sums));
  builder.stage.writes.back().isStored = isStored;
  return success();
}

/// True if each item has whole results, and their places are those in the result.
bool ClusterPlanner::writesDirectly(const StagePlan &stage) {
  for (const StagePlan::Loop &loop : stage.loops)
    if (loop.item && loop.reduced)
      return false;
  // Padding that is kept has no place in the result.
  for (const ClusterWrite &write : stage.writes)
    for (const Bound &bound : write.valid)
      for (auto [loop, weight] : llvm::zip(stage.loops, bound.form.weights))
        if (weight != 0 && !loop.reduced)
          return false;
  return isa<nn::ConvGradFilterOp>(reductions.front()) ||
         nn::layoutOf(nn::tensorType(reductions.front()->getResult(0))).isRowMajor();
}

/// A part of a reduction's result, as it lies in scratch memory: its shape, and where the element
/// at some coordinates of the result is.
static std::pair<SmallVector<int64_t>, Coordinates> partOf(Operation *reduction,
                                                           const LoopSpace &result) {
  if (!isa<nn::ConvGradFilterOp>(reduction))
    return {keptShape(reduction), result.coordinates};
  auto type = nn::tensorType(reduction->getResult(0));
  return {{type.getNumElements()}, {*addressOf(type, result.coordinates, result.extents)}};
}

/// Lets the stage write one partial result per item to scratch, and adds the stage that combines
/// them in order and has the epilogue.
LogicalResult ClusterPlanner::planPartials(StagePlan &stage) {
  stage.dropEpilogue();
  int64_t partials = 1;
  LinearForm position = LinearForm::constant(stage.loops.size(), 0);
  for (size_t i = stage.loops.size(); i-- > 0;)
    if (stage.loops[i].item && stage.loops[i].reduced) {
      position.weights[i] = partials;
      partials *= stage.loops[i].extent;
      stage.loops[i].reduced = false; // each iteration has a partial result of its own
    }
  auto first = nn::tensorType(reductions.front()->getResult(0));
  LoopSpace kept = spaceOf(first), space;
  space.extents = kept.extents;
  space.extents.insert(space.extents.begin(), partials);
  for (LinearForm form : kept.coordinates) {
    form.weights.insert(form.weights.begin(), 0);
    space.coordinates.push_back(form);
  }
  StagePlan combine;
  StageBuilder builder(combine, space);
  combine.loops.front().reduced = true;
  SmallVector<Bound> valid = boundsOf(space.coordinates, space.extents,
                                      [&](int64_t dim) { return first.getDimSize(dim); });
  LinearForm partial = LinearForm::constant(space.extents.size(), 0);
  partial.weights.front() = 1;
  llvm::SmallDenseMap<Operation *, unsigned> buffers;
  for (ClusterWrite &write : stage.writes) {
    if (!write.reduction)
      continue;
    auto [known, isNew] = buffers.try_emplace(write.reduction, plan.buffers.size());
    if (isNew) {
      auto [shape, at] = partOf(write.reduction, space);
      shape.insert(shape.begin(), partials);
      at.insert(at.begin(), partial);
      auto scratch = RankedTensorType::get(shape, write.accumulator);
      builder.write(write.buffer, write.element, builder.read(known->second, scratch, at),
                    *addressOf(first, space.coordinates, space.extents), valid, write.reduction,
                    write.accumulator);
      combine.writes.back().isStored = std::exchange(write.isStored, true);
      plan.buffers.push_back(scratch);
      plan.scratch.push_back(scratch);
    }
    write.buffer = known->second;
    write.element = write.accumulator;
    write.address.add(position, plan.buffers[write.buffer].getNumElements() / partials);
  }
  if (failed(addEpilogue(builder, space.coordinates)))
    return failure();
  setLoops(combine, /*index=*/1, /*wholeResults=*/true);
  plan.stages.push_back(std::move(combine));
  return success();
}

//===- Preconditions --------------------------------------------------------------------------===//

/// True of an operand of the cluster, and of a slice of one.
static bool isInMemory(Value value) {
  while (auto slice = value.getDefiningOp<nn::SliceOp>())
    value = slice.getX();
  return isa<BlockArgument>(value);
}

/// No block of an image's layout lies across windows. What is gathered is in memory.
static LogicalResult verifyWindows(Operation *op, Value image) {
  auto type = nn::tensorType(image);
  rt::Layout layout = nn::layoutOf(type);
  for (int64_t dim = 2; dim < type.getRank(); ++dim)
    if (layout.blockOf(dim) != 1)
      return op->emitOpError("has windows across the blocks of ") << type;
  for (OpOperand &operand : op->getOpOperands())
    if (isGathered(operand) && !isInMemory(operand.get()))
      return op->emitOpError("has windows that do not tile ")
             << type << " and operands that are computed in its cluster";
  return success();
}

static LogicalResult verifyOnlyResult(Operation *op) {
  auto yield = dyn_cast<nn::YieldOp>(op->getBlock()->back());
  if (!yield || yield.getValues() != op->getResults() || !op->hasOneUse())
    return op->emitOpError("is not the only result of its cluster");
  return success();
}

/// A filter for each channel. Sums over images have channels that follow each other in memory.
static LogicalResult verifyDepthwise(Operation *op) {
  if (!nn::isDepthwise(op))
    return op->emitOpError("cannot be inside of a generated kernel, unless each channel has a "
                           "filter of its own");
  auto grad = dyn_cast<nn::ConvGradFilterOp>(op);
  if (!grad)
    return failed(verifyWindows(op, op->getOperand(0))) ? failure()
                                                        : verifyWindows(op, op->getResult(0));
  rt::Layout layout = nn::layoutOf(nn::tensorType(grad.getDy()));
  if (!layout.blocks.empty() || layout.order.back() != 1)
    return op->emitOpError("adds up along other dimensions than the innermost of ")
           << grad.getDy().getType();
  return failed(verifyOnlyResult(op)) ? failure() : verifyWindows(op, grad.getX());
}

/// An element is written to its places as it is read, so nothing else is computed with it there.
static LogicalResult verifyRepeat(nn::RepeatOp repeat) {
  if (failed(verifyOnlyResult(repeat)))
    return failure();
  if (!nn::areFewRepeats(repeat.getTimes()))
    return repeat.emitOpError("writes each element to more than ") << nn::mostRepeats << " places";
  return success();
}

static LogicalResult verifyOp(Operation &op) {
  if (isa<nn::ReductionOpInterface>(op))
    return success();
  if (auto pool = dyn_cast<nn::MaxPoolOp>(op))
    return verifyWindows(pool, pool.getX());
  if (auto grad = dyn_cast<nn::MaxPoolGradOp>(op))
    return verifyWindows(grad, grad.getDx());
  if (isa<nn::ConvOp, nn::ConvTransposeOp, nn::ConvGradDataOp, nn::ConvGradFilterOp>(op))
    return verifyDepthwise(&op);
  if (auto repeat = dyn_cast<nn::RepeatOp>(op))
    return verifyRepeat(repeat);
  if (!op.hasTrait<nn::Elementwise>() && !op.hasTrait<nn::CopiedToReaders>() &&
      !op.hasTrait<nn::StaysAlone>())
    return op.emitOpError("cannot be inside of a generated kernel");
  return success();
}

/// What follows a reduction is elementwise, and as large as its result.
static LogicalResult verifyEpilogue(Block &cluster, bool isPossible) {
  llvm::SmallDenseMap<Value, Operation *> behind; // of such values, the reduction
  for (Operation &op : cluster.without_terminator()) {
    Operation *reduction = nullptr;
    for (Value operand : op.getOperands())
      if (Operation *before = behind.lookup(operand))
        reduction = before;
    if (reduction && (!isPossible || reducedDims(reduction).empty()))
      return reduction->emitOpError("is read in its own cluster, but reductions end one");
    if (reduction && (!op.hasTrait<nn::Elementwise>() ||
                      !nn::haveOneSpace(nn::tensorType(op.getResult(0)),
                                        nn::tensorType(reduction->getResult(0)))))
      return op.emitOpError("reads a reduction of its cluster, which only what is elementwise and "
                            "as large as its result may do");
    if (isa<nn::ReductionOpInterface>(op))
      behind[op.getResult(0)] = &op;
    else if (reduction)
      behind[op.getResult(0)] = reduction;
  }
  return success();
}

/// Checks what planning relies on, since clusters may come from text.
static LogicalResult verifyCluster(Block &cluster, bool knowsEpilogues) {
  auto fail = [&](const Twine &message) { return cluster.getParentOp()->emitOpError(message); };
  if (cluster.empty() || !isa<nn::YieldOp>(cluster.back()))
    return fail("needs nn.yield as its last op");
  if (!llvm::all_of(cluster.getArgumentTypes(), nn::isTensor))
    return fail("has an argument that is no tensor of nn");
  llvm::SmallPtrSet<Operation *, 4> yielded;
  for (Value value : cluster.back().getOperands())
    if (isReduction(value) && !yielded.insert(value.getDefiningOp()).second)
      return fail("yields a reduction twice");
  for (Operation &op : cluster.without_terminator())
    if (failed(verifyOp(op)))
      return failure();
  return verifyEpilogue(cluster, knowsEpilogues);
}

FailureOr<ClusterPlan> dlc::planCluster(Block &cluster, const rt::LoopLimits &limits) {
  if (failed(verifyCluster(cluster, limits.epilogues)))
    return failure();
  return ClusterPlanner(cluster, &limits, nullptr).run();
}

FailureOr<ClusterPlan> dlc::restoreCluster(Operation *cluster) {
  Block &body = cluster->getRegion(0).front();
  if (failed(verifyPlan(cluster)) || failed(verifyCluster(body, /*knowsEpilogues=*/true)))
    return failure();
  GeneratedKernel stored = *GeneratedKernel::of(cluster);
  ClusterPlanner planner(body, nullptr, &stored);
  FailureOr<ClusterPlan> plan = planner.run();
  if (failed(plan))
    return failure();
  if (!planner.fits() || describe(*plan, body) != stored)
    return refusePlan(cluster);
  return plan;
}
