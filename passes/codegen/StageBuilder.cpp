// Each value has coordinates, linear forms over the physical loops. Broadcasts, slices, pads and
// transposes change coordinates and leave no code. An element of any other op is one node, or a
// few; a value at the same coordinates is the same node. Operands come first.

#include "passes/codegen/StageBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;

using Kind = ClusterNode::Kind;

unsigned StageBuilder::add(ClusterNode node) {
  stage.nodes.push_back(std::move(node));
  return stage.nodes.size() - 1;
}

unsigned StageBuilder::inside(MLIRContext *context, SmallVector<Bound> bounds) {
  ClusterNode node{Kind::Inside};
  node.element = IntegerType::get(context, 1);
  node.bounds = std::move(bounds);
  return add(std::move(node));
}

unsigned StageBuilder::compare(Kind kind, unsigned a, unsigned b) {
  ClusterNode node{kind};
  node.operands = {a, b};
  node.element = IntegerType::get(stage.nodes[a].element.getContext(), 1);
  return add(std::move(node));
}

unsigned StageBuilder::coordinate(Type element, LinearForm form, SmallVector<Quotient> quotients) {
  ClusterNode node{Kind::Index};
  node.element = element;
  node.form = std::move(form);
  node.quotients = std::move(quotients);
  return add(std::move(node));
}

unsigned StageBuilder::select(unsigned condition, unsigned a, unsigned b) {
  ClusterNode node{Kind::Select};
  node.operands = {condition, a, b};
  node.element = stage.nodes[a].element;
  return add(std::move(node));
}

/// The element of a tensor in memory.
ClusterNode StageBuilder::elementOf(RankedTensorType type, const Coordinates &at) const {
  rt::Layout layout = nn::layoutOf(type);
  ClusterNode node{Kind::Read};
  node.element = type.getElementType();
  node.bounds = boundsOf(at, extents, [&](int64_t dim) { return paddedExtent(type, layout, dim); });
  node.form = addressOf(type, at, extents);
  if (!node.form)
    node.address = addressExpressionOf(type, at);
  return node;
}

unsigned StageBuilder::read(unsigned buffer, RankedTensorType type, const Coordinates &at) {
  ClusterNode node = elementOf(type, at);
  node.buffer = buffer;
  return add(std::move(node));
}

void StageBuilder::beginEpilogue(const Coordinates &kept) {
  known.clear();
  stage.epilogue = stage.nodes.size();
  for (auto [number, write] : llvm::enumerate(stage.writes)) {
    if (!write.reduction)
      continue;
    ClusterNode node{Kind::Reduced};
    node.element = write.element;
    node.write = number;
    known[write.reduction->getResult(0)].emplace(kept, add(std::move(node)));
  }
}

FailureOr<unsigned> StageBuilder::evaluate(Value value, const Coordinates &at) {
  const std::map<Coordinates, unsigned> &nodes = known[value];
  if (auto other = nodes.find(at); other != nodes.end())
    return other->second;
  FailureOr<unsigned> node = evaluateNew(value, at);
  if (succeeded(node))
    known[value].emplace(at, *node);
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
      .Case([&](nn::SubsampleOp subsample) {
        Coordinates inner;
        for (auto [form, stride] : llvm::zip(at, subsample.getStrides())) {
          inner.push_back(LinearForm::constant(extents.size(), 0));
          inner.back().add(form, stride);
        }
        return evaluate(subsample.getX(), inner);
      })
      .Case([&](nn::ReorderOp reorder) { return evaluate(reorder.getX(), at); })
      .Case([&](nn::PadOp pad) { return evaluatePad(pad, at); })
      .Case([&](nn::ConcatOp concat) { return evaluateConcat(concat, at); })
      .Case([&](nn::MaxPoolOp pool) { return evaluatePool(pool, value == pool.getIndex(), at); })
      .Case([&](nn::MaxPoolGradOp grad) { return evaluatePoolGrad(grad, at); })
      .Case<nn::ConvOp, nn::ConvTransposeOp, nn::ConvGradDataOp>(
          [&](auto conv) { return evaluateDepthwise(conv, at); })
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
  if (isa<nn::RandomOpInterface>(op)) {
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

/// The coordinates of a window's element, and which of them may be in the padding.
Coordinates StageBuilder::elementOfWindow(nn::MaxPoolOp op, int64_t element, const Coordinates &at,
                                          SmallVector<Bound> &bounds) const {
  ArrayRef<int64_t> kernel = op.getKernel();
  Coordinates inner = at;
  for (size_t dim = kernel.size(); dim-- > 0; element /= kernel[dim]) {
    LinearForm &form = inner[dim + 2];
    form = LinearForm::constant(extents.size(), element % kernel[dim] - op.getPaddingLow()[dim]);
    form.add(at[dim + 2], op.getStrides()[dim]);
  }
  auto type = nn::tensorType(op.getX());
  bounds = boundsOf(inner, extents, [&](int64_t dim) { return type.getDimSize(dim); });
  return inner;
}

/// The first maximum of a window, or its position. What is in the padding never wins, and the first
/// element that is not does.
FailureOr<unsigned> StageBuilder::evaluatePool(nn::MaxPoolOp op, bool index,
                                               const Coordinates &at) {
  Type indexType = nn::tensorType(op.getIndex()).getElementType();
  unsigned maximum = 0, position = 0;
  std::optional<unsigned> found; // whether any element so far is real; nothing: one surely is
  for (int64_t i = 0; i < llvm::product_of(op.getKernel()); ++i) {
    SmallVector<Bound> bounds;
    Coordinates inner = elementOfWindow(op, i, at, bounds);
    FailureOr<unsigned> element = evaluate(op.getX(), inner);
    if (failed(element))
      return failure();
    unsigned here = coordinate(indexType, LinearForm::constant(extents.size(), i));
    bool isReal = bounds.empty();
    if (isReal) // a bound that holds
      bounds.push_back({LinearForm::constant(extents.size(), 0), 1});
    bool needsBounds = !isReal || found;
    unsigned real = needsBounds ? inside(op.getContext(), std::move(bounds)) : 0;
    unsigned wins = i == 0 ? 0 : compare(Kind::Wins, *element, maximum);
    if (i > 0 && found)
      wins = select(*found, wins, real);
    if (i > 0 && !isReal)
      wins = select(real, wins, real);
    maximum = i == 0 ? *element : select(wins, *element, maximum);
    position = i == 0 ? here : select(wins, here, position);
    if (i == 0 && !isReal)
      found = real;
    else if (found && isReal)
      found = std::nullopt;
    else if (found)
      found = select(*found, *found, real);
  }
  known[op.getY()].emplace(at, maximum);
  known[op.getIndex()].emplace(at, position);
  return index ? position : maximum;
}

FailureOr<unsigned> StageBuilder::evaluatePoolGrad(nn::MaxPoolGradOp op, const Coordinates &at) {
  return nn::windowsTile(op) ? evaluateTile(op, at) : gatherWindows(op, at);
}

/// The gradient of the one window that an element is in, if it is its maximum.
FailureOr<unsigned> StageBuilder::evaluateTile(nn::MaxPoolGradOp op, const Coordinates &at) {
  ArrayRef<int64_t> kernel = op.getKernel();
  Coordinates window = at;
  LinearForm position = LinearForm::constant(extents.size(), 0);
  int64_t stride = 1;
  for (size_t dim = kernel.size(); dim-- > 0; stride *= kernel[dim]) {
    auto parts = at[dim + 2].divide(kernel[dim], extents);
    if (!parts)
      return op.emitOpError("has windows across the loops of its cluster");
    window[dim + 2] = parts->first;
    position.add(parts->second, stride);
  }
  FailureOr<unsigned> index = evaluate(op.getIndex(), window), dy = evaluate(op.getDy(), window);
  if (failed(index) || failed(dy))
    return failure();
  return gradientOf(*index, *dy, std::move(position));
}

/// dy where the index is a position, else zero.
unsigned StageBuilder::gradientOf(unsigned index, unsigned dy, LinearForm position,
                                  SmallVector<Quotient> quotients) {
  unsigned here = coordinate(stage.nodes[index].element, std::move(position), std::move(quotients));
  ClusterNode zero{Kind::Zero};
  zero.element = stage.nodes[dy].element;
  unsigned hit = compare(Kind::Equal, index, here);
  return select(hit, dy, add(std::move(zero)));
}

/// The element of an operand in memory, or of a slice of one, in the row and channel that `at` has
/// and at other places; zero where there is none.
unsigned StageBuilder::gather(Value operand, const GatheredPlaces &places, const Coordinates &at) {
  auto read = nn::tensorType(operand);
  Coordinates start(at.size(), LinearForm::constant(extents.size(), 0));
  for (; auto slice = operand.getDefiningOp<nn::SliceOp>(); operand = slice.getX())
    for (auto [form, more] : llvm::zip(start, slice.getStart()))
      form.offset += more;
  auto type = nn::tensorType(operand);
  for (size_t dim : {size_t{0}, size_t{1}})
    start[dim].add(at[dim]);
  ClusterNode node{Kind::Read};
  node.element = type.getElementType();
  node.buffer = cast<BlockArgument>(operand).getArgNumber();
  for (auto [i, place] : llvm::enumerate(places)) {
    auto [form, divisor, rest] = place;
    int64_t end = divisor * read.getDimSize(i + 2);
    auto [low, high] = form.range(extents);
    if (rest < divisor || low < 0 || high >= end)
      node.bounds.push_back({form, end, divisor, rest});
    start[i + 2].offset += form.takeWhole(divisor);
    if (divisor == 1) {
      start[i + 2].add(form);
      continue;
    }
    Coordinates one(at.size(), LinearForm::constant(extents.size(), 0));
    one[i + 2].offset = 1;
    node.quotients.push_back({form, divisor, addressOf(type, one, extents)->offset});
  }
  node.form = addressOf(type, start, extents);
  return add(std::move(node));
}

/// What all windows give an element, those that have it at their first taps first.
FailureOr<unsigned> StageBuilder::gatherWindows(nn::MaxPoolGradOp op, const Coordinates &at) {
  ClusterNode sum{Kind::Sum};
  sum.element = nn::tensorType(op.getDx()).getElementType();
  WindowPlaces places = WindowPlaces::of(op);
  for (int64_t i = 0; i < places.windowsOfElement(); ++i) {
    GatheredPlaces window = places.windowsAround(i, at);
    unsigned index = gather(op.getIndex(), window, at), dy = gather(op.getDy(), window, at);
    auto [position, quotients] = places.tapOf(at, window);
    sum.operands.push_back(gradientOf(index, dy, std::move(position), std::move(quotients)));
  }
  return add(std::move(sum));
}

//===- Depthwise convolutions -----------------------------------------------------------------===//

/// A convolution, or the transpose of one: the sum of what the taps of a channel's filter meet, and
/// of a bias.
template <typename Conv>
FailureOr<unsigned> StageBuilder::evaluateDepthwise(Conv op, const Coordinates &at) {
  WindowPlaces windows = WindowPlaces::of(op, op.getWeight());
  ClusterNode sum{Kind::Products, op};
  sum.element = nn::tensorType(op->getResult(0)).getElementType();
  for (int64_t i = 0; i < windows.count(); ++i) {
    Coordinates tap = windows.tap(i, extents.size());
    GatheredPlaces places = std::is_same_v<Conv, nn::ConvOp> ? windows.elementsAt(tap, at)
                                                             : windows.windowsWith(tap, at);
    Coordinates filter{at[1], LinearForm::constant(extents.size(), 0)};
    filter.append(tap);
    FailureOr<unsigned> weight = evaluate(op.getWeight(), filter);
    if (failed(weight))
      return failure();
    sum.operands.append({gather(op->getOperand(0), places, at), *weight});
  }
  auto epilogue = dyn_cast<nn::EpilogueOpInterface>(op.getOperation());
  if (Value bias = epilogue ? epilogue.getBias() : Value()) {
    FailureOr<unsigned> term = evaluate(bias, {at[1]});
    if (failed(term))
      return failure();
    sum.operands.push_back(*term);
  }
  return add(std::move(sum));
}

FailureOr<unsigned> StageBuilder::evaluateTerm(nn::ConvGradFilterOp op, const Coordinates &tap,
                                               const Coordinates &at) {
  FailureOr<unsigned> dy = evaluate(op.getDy(), at);
  if (failed(dy))
    return failure();
  WindowPlaces windows = WindowPlaces::of(op, op.getDw());
  ClusterNode product{Kind::Products};
  product.element = nn::sumType(nn::tensorType(op.getX())).getElementType();
  product.operands = {gather(op.getX(), windows.elementsAt(tap, at), at), *dy};
  return add(std::move(product));
}
