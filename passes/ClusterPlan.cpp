// A cluster's values are followed from what it yields back to its operands, as elements at a point
// of the iteration space: each value has coordinates, linear forms over the physical loops.
// Broadcasts, slices, pads and transposes change coordinates and leave no code. The result is a
// list of nodes per stage, operands first.

#include "passes/ClusterPlan.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;

using Kind = ClusterNode::Kind;
using Coordinates = SmallVector<LinearForm>;

Type dlc::accumulatorType(Operation *reduction) {
  Type element = nn::tensorType(reduction->getOperand(0)).getElementType();
  if (isa<nn::ReduceSumOp>(reduction))
    return Float64Type::get(element.getContext());
  // 16-bit floats are f32 outside of memory.
  return isa<BFloat16Type, Float16Type>(element) ? Type(Float32Type::get(element.getContext()))
                                                 : element;
}

namespace {
/// The physical loops of a tensor type, and its coordinates over them.
struct Space {
  SmallVector<int64_t> extents;
  Coordinates coordinates;
};

/// Extent of a dimension in memory.
int64_t paddedExtent(RankedTensorType type, const rt::Layout &layout, int64_t dim) {
  return llvm::alignTo(type.getDimSize(dim), layout.blockOf(dim));
}

Space spaceOf(RankedTensorType type) {
  rt::Layout layout = nn::layoutOf(type);
  Space space;
  for (int64_t extent : layout.physicalShape(type.getShape().vec()))
    space.extents.push_back(extent);
  // A scalar is a loop of one iteration.
  if (space.extents.empty())
    space.extents.push_back(1);
  unsigned loops = space.extents.size();
  space.coordinates.assign(type.getRank(), LinearForm::constant(loops, 0));
  for (auto [loop, dim] : llvm::enumerate(layout.order))
    space.coordinates[dim].weights[loop] = layout.blockOf(dim);
  SmallVector<int64_t> finer(type.getRank(), 1);
  for (size_t i = layout.blocks.size(); i-- > 0;) {
    rt::Layout::Block block = layout.blocks[i];
    space.coordinates[block.dim].weights[layout.order.size() + i] = finer[block.dim];
    finer[block.dim] *= block.size;
  }
  return space;
}

/// Parts (quotient, remainder) of a form by a block size, if both are linear.
std::optional<std::pair<LinearForm, LinearForm>> divide(const LinearForm &form, int64_t block,
                                                        ArrayRef<int64_t> extents) {
  LinearForm quotient = LinearForm::constant(form.weights.size(), 0), rest = quotient;
  for (auto [i, weight] : llvm::enumerate(form.weights)) {
    if (weight % block == 0)
      quotient.weights[i] = weight / block;
    else
      rest.weights[i] = weight;
  }
  rest.offset = form.offset - llvm::divideFloorSigned(form.offset, block) * block;
  quotient.offset = llvm::divideFloorSigned(form.offset, block);
  auto [low, high] = rest.range(extents);
  if (low < 0 || high >= block)
    return std::nullopt;
  return std::make_pair(quotient, rest);
}

/// Address of a tensor's element; `linear` is unset where blocks make it nonlinear.
struct Address {
  std::optional<LinearForm> linear;
  AffineExpr expression;
};

Address addressOf(RankedTensorType type, const Coordinates &coordinates,
                  ArrayRef<int64_t> extents) {
  MLIRContext *context = type.getContext();
  rt::Layout layout = nn::layoutOf(type);
  std::vector<int64_t> physical = layout.physicalShape(type.getShape().vec());
  SmallVector<int64_t> strides(physical.size(), 1);
  for (size_t i = physical.size(); i-- > 1;)
    strides[i - 1] = strides[i] * physical[i];
  Address address{LinearForm::constant(extents.size(), 0), getAffineConstantExpr(0, context)};
  std::vector<std::optional<LinearForm>> rest(coordinates.begin(), coordinates.end());
  SmallVector<AffineExpr> restExpressions;
  for (const LinearForm &form : coordinates)
    restExpressions.push_back(form.expression(context));
  auto addPart = [&](const std::optional<LinearForm> &part, AffineExpr expression, int64_t stride) {
    if (part && address.linear)
      address.linear->add(*part, stride);
    else
      address.linear.reset();
    address.expression = address.expression + expression * stride;
  };
  for (size_t i = layout.blocks.size(); i-- > 0;) {
    auto [dim, size] = layout.blocks[i];
    std::optional<std::pair<LinearForm, LinearForm>> parts;
    if (rest[dim])
      parts = divide(*rest[dim], size, extents);
    addPart(parts ? std::optional(parts->second) : std::nullopt, restExpressions[dim] % size,
            strides[layout.order.size() + i]);
    rest[dim] = parts ? std::optional(parts->first) : std::nullopt;
    restExpressions[dim] = restExpressions[dim].floorDiv(size);
  }
  for (auto [i, dim] : llvm::enumerate(layout.order))
    addPart(rest[dim], restExpressions[dim], strides[i]);
  return address;
}

/// Bounds that coordinates may violate, on the extents that `extentOf` gives.
template <typename ExtentOf>
SmallVector<Bound> boundsOf(const Coordinates &coordinates, ArrayRef<int64_t> extents,
                            ExtentOf &&extentOf) {
  SmallVector<Bound> bounds;
  for (auto [dim, form] : llvm::enumerate(coordinates)) {
    auto [low, high] = form.range(extents);
    if (low < 0 || high >= extentOf(dim))
      bounds.push_back({form, extentOf(dim)});
  }
  return bounds;
}

/// Builds the nodes of one stage.
class StageBuilder {
public:
  StageBuilder(StagePlan &stage, const Space &space) : stage(stage), extents(space.extents) {
    for (int64_t extent : space.extents)
      stage.loops.push_back({extent});
  }

  /// The value's element at coordinates, or failure with a diagnostic.
  FailureOr<unsigned> evaluate(Value value, const Coordinates &at);
  unsigned read(unsigned buffer, RankedTensorType type, const Coordinates &at);
  void write(unsigned buffer, Type element, unsigned node, LinearForm address,
             ArrayRef<Bound> valid, Operation *reduction = nullptr) {
    stage.writes.push_back(
        {node, buffer, std::move(address), element, reduction, SmallVector<Bound>(valid)});
  }

  StagePlan &stage;
  SmallVector<int64_t> extents;

private:
  unsigned add(ClusterNode node) {
    stage.nodes.push_back(std::move(node));
    return stage.nodes.size() - 1;
  }
  ClusterNode elementOf(RankedTensorType type, const Coordinates &at) const;
  unsigned inside(MLIRContext *context, SmallVector<Bound> bounds) {
    ClusterNode node{Kind::Inside};
    node.element = IntegerType::get(context, 1);
    node.bounds = std::move(bounds);
    return add(std::move(node));
  }
  unsigned compare(Kind kind, unsigned a, unsigned b) {
    ClusterNode node{kind};
    node.operands = {a, b};
    node.element = IntegerType::get(stage.nodes[a].element.getContext(), 1);
    return add(std::move(node));
  }
  unsigned coordinate(Type element, LinearForm form) {
    ClusterNode node{Kind::Index};
    node.element = element;
    node.form = std::move(form);
    return add(std::move(node));
  }
  unsigned select(unsigned condition, unsigned a, unsigned b) {
    ClusterNode node{Kind::Select};
    node.operands = {condition, a, b};
    node.element = stage.nodes[a].element;
    return add(std::move(node));
  }
  FailureOr<unsigned> evaluateNew(Value value, const Coordinates &at);
  FailureOr<unsigned> evaluatePad(nn::PadOp op, const Coordinates &at);
  FailureOr<unsigned> evaluatePool(nn::MaxPoolOp op, bool index, const Coordinates &at);
  FailureOr<unsigned> evaluatePoolGrad(nn::MaxPoolGradOp op, const Coordinates &at);
  FailureOr<unsigned> evaluateConcat(nn::ConcatOp op, const Coordinates &at);
  FailureOr<unsigned> evaluateElementwise(Operation *op, const Coordinates &at);

  struct Known {
    Value value;
    Coordinates at;
    unsigned node;
  };
  std::vector<Known> known;
};
} // namespace

//===- Values ---------------------------------------------------------------------------------===//

/// The element of a tensor in memory.
ClusterNode StageBuilder::elementOf(RankedTensorType type, const Coordinates &at) const {
  rt::Layout layout = nn::layoutOf(type);
  ClusterNode node{Kind::Read};
  node.element = type.getElementType();
  node.bounds = boundsOf(at, extents, [&](int64_t dim) { return paddedExtent(type, layout, dim); });
  Address address = addressOf(type, at, extents);
  node.form = address.linear;
  if (!address.linear)
    node.address = address.expression;
  return node;
}

unsigned StageBuilder::read(unsigned buffer, RankedTensorType type, const Coordinates &at) {
  ClusterNode node = elementOf(type, at);
  node.buffer = buffer;
  return add(std::move(node));
}

FailureOr<unsigned> StageBuilder::evaluate(Value value, const Coordinates &at) {
  for (const Known &other : known)
    if (other.value == value && other.at == at)
      return other.node;
  FailureOr<unsigned> node = evaluateNew(value, at);
  if (succeeded(node))
    known.push_back({value, at, *node});
  return node;
}

FailureOr<unsigned> StageBuilder::evaluateNew(Value value, const Coordinates &at) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return read(argument.getArgNumber(), nn::tensorType(value), at);
  Operation *op = value.getDefiningOp();
  return TypeSwitch<Operation *, FailureOr<unsigned>>(op)
      .Case([&](nn::BroadcastOp broadcast) {
        Coordinates inner;
        for (int64_t dim : broadcast.getDims())
          inner.push_back(at[dim]);
        return evaluate(broadcast.getX(), inner);
      })
      .Case([&](nn::TransposeOp transpose) {
        Coordinates inner(at.size());
        for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
          inner[dim] = at[i];
        return evaluate(transpose.getX(), inner);
      })
      .Case([&](nn::SliceOp slice) {
        Coordinates inner = at;
        for (auto [form, start] : llvm::zip(inner, slice.getStart()))
          form.offset += start;
        return evaluate(slice.getX(), inner);
      })
      .Case([&](nn::ReorderOp reorder) { return evaluate(reorder.getX(), at); })
      .Case([&](nn::PadOp pad) { return evaluatePad(pad, at); })
      .Case([&](nn::ConcatOp concat) { return evaluateConcat(concat, at); })
      .Case([&](nn::MaxPoolOp pool) { return evaluatePool(pool, value == pool.getIndex(), at); })
      .Case([&](nn::MaxPoolGradOp grad) { return evaluatePoolGrad(grad, at); })
      .Case([&](nn::IotaOp iota) {
        return FailureOr<unsigned>(
            coordinate(nn::tensorType(iota).getElementType(), at[iota.getDim()]));
      })
      .Case([&](nn::ConstantOp constant) {
        bool splat = nn::splatValue(constant).has_value();
        ClusterNode node = splat ? ClusterNode() : elementOf(nn::tensorType(value), at);
        node.kind = splat ? Kind::Constant : Kind::Table;
        node.op = constant;
        node.element = nn::tensorType(value).getElementType();
        return FailureOr<unsigned>(add(std::move(node)));
      })
      .Default([&](Operation *other) -> FailureOr<unsigned> {
        if (!other->hasTrait<nn::Elementwise>())
          return other->emitOpError("cannot be inside of a generated kernel");
        return evaluateElementwise(other, at);
      });
}

FailureOr<unsigned> StageBuilder::evaluateElementwise(Operation *op, const Coordinates &at) {
  auto type = nn::tensorType(op->getResult(0));
  ClusterNode node{Kind::Op, op};
  node.element = type.getElementType();
  for (Value operand : op->getOperands()) {
    bool scalar = nn::tensorType(operand).getRank() == 0;
    FailureOr<unsigned> inner = evaluate(operand, scalar ? Coordinates() : at);
    if (failed(inner))
      return failure();
    node.operands.push_back(*inner);
  }
  if (isa<nn::DropoutOp>(op)) {
    node.form = LinearForm::constant(extents.size(), 0);
    int64_t stride = 1;
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      node.form->add(at[dim], stride);
      stride *= type.getDimSize(dim);
    }
  }
  return add(std::move(node));
}

FailureOr<unsigned> StageBuilder::evaluatePad(nn::PadOp op, const Coordinates &at) {
  Coordinates inner = at;
  for (auto [form, low] : llvm::zip(inner, op.getLow()))
    form.offset -= low;
  FailureOr<unsigned> value = evaluate(op.getX(), inner);
  if (failed(value))
    return failure();
  auto from = nn::tensorType(op.getX());
  SmallVector<Bound> bounds =
      boundsOf(inner, extents, [&](int64_t dim) { return from.getDimSize(dim); });
  if (bounds.empty())
    return value;
  ClusterNode fill{Kind::Fill, op};
  fill.element = from.getElementType();
  unsigned outer = add(std::move(fill));
  return select(inside(op.getContext(), std::move(bounds)), *value, outer);
}

/// General form: the inputs one after the other, chosen by the coordinate.
FailureOr<unsigned> StageBuilder::evaluateConcat(nn::ConcatOp op, const Coordinates &at) {
  Coordinates inner = at;
  FailureOr<unsigned> result = failure();
  int64_t dim = op.getDim();
  for (Value input : op.getInputs()) {
    FailureOr<unsigned> value = evaluate(input, inner);
    if (failed(value))
      return failure();
    int64_t extent = nn::tensorType(input).getDimSize(dim);
    result = succeeded(result)
                 ? select(inside(op.getContext(), {{inner[dim], extent}}), *value, *result)
                 : value;
    inner[dim].offset -= extent;
  }
  return result;
}

/// The first maximum of a window, or its position. Windows tile the operand.
FailureOr<unsigned> StageBuilder::evaluatePool(nn::MaxPoolOp op, bool index,
                                               const Coordinates &at) {
  ArrayRef<int64_t> kernel = op.getKernel();
  Type indexType = nn::tensorType(op.getIndex()).getElementType();
  unsigned maximum = 0, position = 0;
  int64_t window = llvm::product_of(kernel);
  for (int64_t i = 0; i < window; ++i) {
    Coordinates inner = at;
    int64_t rest = i;
    for (size_t dim = kernel.size(); dim-- > 0; rest /= kernel[dim]) {
      LinearForm &form = inner[dim + 2];
      form = LinearForm::constant(extents.size(), rest % kernel[dim]);
      form.add(at[dim + 2], kernel[dim]);
    }
    FailureOr<unsigned> element = evaluate(op.getX(), inner);
    if (failed(element))
      return failure();
    unsigned here = coordinate(indexType, LinearForm::constant(extents.size(), i));
    unsigned wins = i == 0 ? 0 : compare(Kind::Wins, *element, maximum);
    maximum = i == 0 ? *element : select(wins, *element, maximum);
    position = i == 0 ? here : select(wins, here, position);
  }
  known.push_back({op.getY(), at, maximum});
  known.push_back({op.getIndex(), at, position});
  return index ? position : maximum;
}

/// The gradient of a window goes to the element at its index.
FailureOr<unsigned> StageBuilder::evaluatePoolGrad(nn::MaxPoolGradOp op, const Coordinates &at) {
  ArrayRef<int64_t> kernel = op.getKernel();
  Coordinates window = at;
  LinearForm position = LinearForm::constant(extents.size(), 0);
  int64_t stride = 1;
  for (size_t dim = kernel.size(); dim-- > 0; stride *= kernel[dim]) {
    auto parts = divide(at[dim + 2], kernel[dim], extents);
    if (!parts)
      return op.emitOpError("has windows across the loops of its cluster");
    window[dim + 2] = parts->first;
    position.add(parts->second, stride);
  }
  FailureOr<unsigned> index = evaluate(op.getIndex(), window), dy = evaluate(op.getDy(), window);
  if (failed(index) || failed(dy))
    return failure();
  unsigned here = coordinate(stage.nodes[*index].element, position);
  ClusterNode zero{Kind::Zero};
  zero.element = stage.nodes[*dy].element;
  unsigned hit = compare(Kind::Equal, *index, here);
  return select(hit, *dy, add(std::move(zero)));
}

//===- Stages ---------------------------------------------------------------------------------===//

namespace {
class ClusterPlanner {
public:
  explicit ClusterPlanner(Block &cluster)
      : cluster(cluster), yield(cast<nn::YieldOp>(cluster.getTerminator())) {
    for (BlockArgument argument : cluster.getArguments())
      plan.buffers.push_back(nn::tensorType(argument));
    for (Value value : yield.getValues())
      plan.buffers.push_back(nn::tensorType(value));
  }
  FailureOr<ClusterPlan> run();

private:
  unsigned resultBuffer(unsigned result) const { return cluster.getNumArguments() + result; }
  LogicalResult planConcat(nn::ConcatOp concat);
  LogicalResult planNest(RankedTensorType type);
  LogicalResult addReduction(StageBuilder &builder, const Space &space, unsigned result,
                             unsigned last, ArrayRef<Bound> valid);
  bool writesDirectly(const StagePlan &stage, ArrayRef<unsigned> reductions);
  void planPartials(StagePlan &stage, ArrayRef<unsigned> reductions);

  Block &cluster;
  nn::YieldOp yield;
  ClusterPlan plan;
};

bool isReduction(Value value) {
  return value.getDefiningOp<nn::ReduceSumOp>() || value.getDefiningOp<nn::ReduceMaxOp>();
}

ArrayRef<int64_t> reducedDims(Operation *op) {
  if (auto sum = dyn_cast<nn::ReduceSumOp>(op))
    return sum.getDims();
  return cast<nn::ReduceMaxOp>(op).getDims();
}
} // namespace

FailureOr<ClusterPlan> ClusterPlanner::run() {
  if (yield.getValues().empty())
    return plan;
  // The iteration space: what is reduced, else what is yielded.
  RankedTensorType type;
  for (Value value : yield.getValues()) {
    auto own = nn::tensorType(isReduction(value) ? value.getDefiningOp()->getOperand(0) : value);
    if (type && (own.getShape() != type.getShape() || own.getEncoding() != type.getEncoding()))
      return yield.emitOpError("mixes iteration spaces ") << type << " and " << own;
    type = own;
  }
  auto concat = yield.getValues().front().getDefiningOp<nn::ConcatOp>();
  if (concat && yield.getValues().size() == 1 && succeeded(planConcat(concat)))
    return plan;
  if (failed(planNest(type)))
    return failure();
  return plan;
}

/// One stage per run of inputs of one type, where each can be written densely at its place: inputs
/// that share a stage are written beside each other, so that no line of memory is written twice.
/// Fails silently if not.
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
    Space space = spaceOf(part);
    SmallVector<Bound> valid =
        boundsOf(space.coordinates, space.extents, [&](int64_t d) { return part.getDimSize(d); });
    StagePlan stage;
    StageBuilder builder(stage, space);
    for (; !rest.empty() && rest.front().getType() == part; rest = rest.drop_front()) {
      FailureOr<unsigned> node = builder.evaluate(rest.front(), space.coordinates);
      if (failed(node)) {
        plan.stages.clear();
        return failure();
      }
      Coordinates at = space.coordinates;
      at[dim].offset += offset;
      offset += part.getDimSize(dim);
      Address place = addressOf(type, at, space.extents);
      if (!place.linear) {
        plan.stages.clear();
        return failure();
      }
      builder.write(resultBuffer(0), type.getElementType(), *node, *place.linear, valid);
    }
    planLoops(stage);
    plan.stages.push_back(std::move(stage));
  }
  return success();
}

/// Splits the loops over dimensions that are pooled, so that a window and the place in it are
/// linear forms.
static Space tiledSpaceOf(RankedTensorType type, Block &cluster) {
  Space space = spaceOf(type);
  auto grads = cluster.getOps<nn::MaxPoolGradOp>();
  if (grads.empty())
    return space;
  nn::MaxPoolGradOp grad = *grads.begin();
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
  Space space = tiledSpaceOf(type, cluster);
  StagePlan stage;
  StageBuilder builder(stage, space);
  SmallVector<Bound> valid =
      boundsOf(space.coordinates, space.extents, [&](int64_t dim) { return type.getDimSize(dim); });
  SmallVector<unsigned> reductions;
  for (auto [result, value] : llvm::enumerate(yield.getValues())) {
    if (isReduction(value)) {
      reductions.push_back(result);
      continue;
    }
    FailureOr<unsigned> node = builder.evaluate(value, space.coordinates);
    if (failed(node))
      return failure();
    auto own = nn::tensorType(value);
    Address place = addressOf(own, space.coordinates, space.extents);
    if (!place.linear)
      return yield.emitOpError("writes ") << own << " in an order in which its blocks do not lie";
    builder.write(resultBuffer(result), own.getElementType(), *node, *place.linear, valid);
  }
  for (unsigned result : reductions)
    if (failed(addReduction(builder, space, result, reductions.back(), valid)))
      return failure();
  planLoops(stage);
  if (!reductions.empty() && !writesDirectly(stage, reductions))
    planPartials(stage, reductions);
  plan.stages.insert(plan.stages.begin(), std::move(stage));
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
LogicalResult ClusterPlanner::addReduction(StageBuilder &builder, const Space &space,
                                           unsigned result, unsigned last, ArrayRef<Bound> valid) {
  Operation *op = yield.getValues()[result].getDefiningOp();
  if (reducedDims(op) != reducedDims(yield.getValues()[last].getDefiningOp()))
    return op->emitOpError("reduces other dimensions than the cluster's last reduction");
  // Parts of all reductions are combined in one loop nest.
  if (nn::tensorType(yield.getValues()[result]).getEncoding() !=
      nn::tensorType(yield.getValues()[last]).getEncoding())
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
  Type element = nn::tensorType(yield.getValues()[result]).getElementType();
  builder.write(resultBuffer(result), element, *node, address, valid, op);
  return success();
}

/// True if each item has whole results, and their places are those in the result.
bool ClusterPlanner::writesDirectly(const StagePlan &stage, ArrayRef<unsigned> reductions) {
  for (const StagePlan::Loop &loop : stage.loops)
    if (loop.item && loop.reduced)
      return false;
  // Padding that is kept has no place in the result.
  for (const ClusterWrite &write : stage.writes)
    for (const Bound &bound : write.valid)
      for (auto [loop, weight] : llvm::zip(stage.loops, bound.form.weights))
        if (weight != 0 && !loop.reduced)
          return false;
  return llvm::all_of(reductions, [&](unsigned result) {
    return nn::layoutOf(nn::tensorType(yield.getValues()[result])).isRowMajor();
  });
}

/// Lets the stage write one partial result per item to scratch, and adds the stage that combines
/// them in order.
void ClusterPlanner::planPartials(StagePlan &stage, ArrayRef<unsigned> reductions) {
  int64_t partials = 1;
  LinearForm position = LinearForm::constant(stage.loops.size(), 0);
  for (size_t i = stage.loops.size(); i-- > 0;)
    if (stage.loops[i].item && stage.loops[i].reduced) {
      position.weights[i] = partials;
      partials *= stage.loops[i].extent;
      stage.loops[i].reduced = false; // each iteration has a partial result of its own
    }
  auto first = nn::tensorType(yield.getValues()[reductions.front()]);
  Space kept = spaceOf(first), space;
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
  for (ClusterWrite &write : stage.writes) {
    if (!write.reduction)
      continue;
    SmallVector<int64_t> shape = keptShape(write.reduction);
    shape.insert(shape.begin(), partials);
    auto scratch = RankedTensorType::get(shape, accumulatorType(write.reduction));
    unsigned buffer = plan.buffers.size();
    auto result = plan.buffers[write.buffer];
    Coordinates at = space.coordinates;
    at.insert(at.begin(), partial);
    builder.write(write.buffer, write.element, builder.read(buffer, scratch, at),
                  *addressOf(result, space.coordinates, space.extents).linear, valid,
                  write.reduction);
    write.address.add(position, scratch.getNumElements() / partials);
    write.buffer = buffer;
    write.element = scratch.getElementType();
    plan.buffers.push_back(scratch);
    plan.scratch.push_back(scratch);
  }
  planLoops(combine, /*wholeResults=*/true);
  plan.stages.push_back(std::move(combine));
}

//===- Preconditions --------------------------------------------------------------------------===//

/// Windows tile `full`, and no block of its layout lies across them.
template <typename Pool> static LogicalResult verifyTiling(Pool pool, Value full) {
  auto type = nn::tensorType(full);
  rt::Layout layout = nn::layoutOf(type);
  auto isZero = [](int64_t padding) { return padding == 0; };
  bool isTiling = llvm::equal(pool.getKernel(), pool.getStrides()) &&
                  llvm::all_of(pool.getPaddingLow(), isZero) &&
                  llvm::all_of(pool.getPaddingHigh(), isZero);
  for (auto [i, window] : llvm::enumerate(pool.getKernel()))
    isTiling &= type.getDimSize(i + 2) % window == 0 && layout.blockOf(i + 2) == 1;
  if (!isTiling)
    return pool.emitOpError("has windows that do not tile ")
           << type << "; no kernel can be generated for it";
  return success();
}

static LogicalResult verifyOp(Operation &op) {
  if (isa<nn::ReduceSumOp, nn::ReduceMaxOp>(op)) {
    if (!llvm::all_of(op.getUsers(), llvm::IsaPred<nn::YieldOp>))
      return op.emitOpError("is read in its own cluster, but reductions end one");
    return success();
  }
  if (auto pool = dyn_cast<nn::MaxPoolOp>(op))
    return verifyTiling(pool, pool.getX());
  if (auto grad = dyn_cast<nn::MaxPoolGradOp>(op))
    return verifyTiling(grad, grad.getDx());
  bool isKnown = isa<nn::BroadcastOp, nn::TransposeOp, nn::SliceOp, nn::ReorderOp, nn::PadOp,
                     nn::ConcatOp, nn::IotaOp, nn::ConstantOp>(op);
  if (!isKnown && !op.hasTrait<nn::Elementwise>())
    return op.emitOpError("cannot be inside of a generated kernel");
  return success();
}

/// What planning counts on, whoever wrote the cluster.
static LogicalResult verifyCluster(Block &cluster) {
  auto fail = [&](const Twine &message) { return cluster.getParentOp()->emitOpError(message); };
  if (cluster.empty() || !isa<nn::YieldOp>(cluster.back()))
    return fail("needs nn.yield as its last op");
  if (!llvm::all_of(cluster.getArgumentTypes(), nn::isTensor))
    return fail("has an argument that is no tensor of nn");
  for (Operation &op : cluster.without_terminator())
    if (failed(verifyOp(op)))
      return failure();
  return success();
}

FailureOr<ClusterPlan> dlc::planCluster(Block &cluster) {
  if (failed(verifyCluster(cluster)))
    return failure();
  return ClusterPlanner(cluster).run();
}
