// Operators that take parts of a tensor, or move its elements to other places.
#include "frontend/emitters/Parts.h"
#include "frontend/operators/Emission.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

//===- Parts ----------------------------------------------------------------------------------===//

mlir::Value sliceOf(Graph &graph, mlir::Value x, int64_t axis, int64_t from, int64_t count) {
  SmallVector<int64_t> start(shapeOf(x).size(), 0), size(shapeOf(x));
  if (count == size[axis])
    return x;
  start[axis] = from;
  size[axis] = count;
  return nn::SliceOp::create(graph.builder, graph.loc, x, start, size);
}

mlir::Value joined(Graph &graph, ArrayRef<mlir::Value> parts, int64_t axis) {
  if (parts.size() == 1)
    return parts.front();
  return nn::ConcatOp::create(graph.builder, graph.loc, parts, axis);
}

/// A pooling with windows of one element keeps rows and tiles. Its gradient is spread over all of
/// the steps: few elements that lie far apart are taken one by one, which moves less.
mlir::Value everyNth(Graph &graph, mlir::Value x, int64_t axis, int64_t step) {
  if (step == 1)
    return x;
  if (axis > 0 && step > nn::mostRepeats) {
    SmallVector<mlir::Value> taken;
    for (int64_t at = 0; at < shapeOf(x)[axis]; at += step)
      taken.push_back(sliceOf(graph, x, axis, at, 1));
    return joined(graph, taken, axis);
  }
  SmallVector<int64_t> shape(shapeOf(x)), image(shape);
  int64_t place = axis;
  if (axis < 2 || shape.size() < 3) { // of no image; the rows stay apart
    int64_t between = axis > 1 ? elementCount(ArrayRef(shape).slice(1, axis - 1)) : 1;
    image = {axis == 0 ? 1 : shape[0], between, shape[axis],
             elementCount(ArrayRef(shape).drop_front(axis + 1))};
    place = 2;
  }
  size_t spatial = image.size() - 2;
  SmallVector<int64_t> ones(spatial, 1), zeros(spatial, 0), strides(ones);
  strides[place - 2] = step;
  mlir::Value taken = nn::AvgPoolOp::create(graph.builder, graph.loc, graph.reshape(x, image), ones,
                                            strides, zeros, zeros, /*count_padding=*/true);
  shape[axis] = shapeOf(taken)[place];
  return graph.reshape(taken, shape);
}

Result emitSlice(Emission &call) {
  mlir::Value x = call.tensor("x");
  FailureOr<SmallVector<int64_t>> axis = call.axes("axis", shapeOf(x).size());
  if (failed(axis))
    return failure();
  int64_t extent = shapeOf(x)[axis->front()];
  auto counted = [&](int64_t index) { return index < 0 ? index + extent : index; };
  int64_t from = counted(call.integer("from"));
  int64_t to = call["to"].isAbsent() ? extent : counted(call.integer("to"));
  FailureOr<int64_t> step = call.integer("step", 1, maxElementsOfAxis);
  if (failed(step))
    return failure();
  if (from < 0 || from >= to || to > extent)
    return call.error("from", "slice takes [" + Twine(from) + ", " + Twine(to) + ") of axis " +
                                  Twine(axis->front()) + " of " + typeText(x.getType()) +
                                  "; expected 0 <= from < to <= " + Twine(extent));
  mlir::Value part = sliceOf(call.graph, x, axis->front(), from, to - from);
  return Value(everyNth(call.graph, part, axis->front(), *step));
}

//===- Places ---------------------------------------------------------------------------------===//

Result emitTranspose(Emission &call) {
  mlir::Value x = call.tensor("x");
  SmallVector<int64_t> order;
  for (const Value &item : call["order"].asList())
    order.push_back(item.asInt());
  SmallVector<int64_t> sorted(order);
  sort(sorted);
  if (!equal(sorted, seq<int64_t>(0, shapeOf(x).size())))
    return call.error("order", "transpose expects each axis of " + typeText(x.getType()) +
                                   " once, got " + toText(call["order"]));
  return Value(mlir::Value(nn::TransposeOp::create(call.graph.builder, call.loc(), x, order)));
}

Result emitBroadcast(Emission &call) {
  mlir::Value x = call.tensor("x");
  SmallVector<int64_t> shape;
  for (const Value &item : call["shape"].asList())
    shape.push_back(item.asInt());
  bool fits = shape.size() == shapeOf(x).size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] >= 1 && (shapeOf(x)[i] == 1 || shapeOf(x)[i] == shape[i]);
  if (!fits)
    return call.error("shape", "broadcast repeats axes of size 1 and keeps the others of " +
                                   typeText(x.getType()) + ", which does not give " +
                                   toText(call["shape"]) + "; reshape adds axes of size 1");
  if (failed(call.checkShape(shape)))
    return failure();
  return Value(call.graph.broadcast(x, shape));
}

Result emitPixelShuffle(Emission &call) {
  FailureOr<mlir::Value> x = call.image("x");
  FailureOr<int64_t> factor = call.integer("factor", 1, maxChannels);
  if (failed(x) || failed(factor))
    return failure();
  SmallVector<int64_t> shape(shapeOf(*x));
  for (int64_t &extent : MutableArrayRef(shape).drop_front(2)) {
    if (shape[1] % *factor != 0)
      return call.error("factor", "pixel_shuffle makes factor^" + Twine(shape.size() - 2) +
                                      " channels one, which " + Twine(shapeOf(*x)[1]) +
                                      " channels of " + typeText(x->getType()) +
                                      " are no multiple of");
    shape[1] /= *factor;
    extent *= *factor;
  }
  if (failed(call.checkShape(shape)))
    return failure();
  return Value(mlir::Value(
      nn::PixelShuffleOp::create(call.graph.builder, call.loc(), *x, *factor, /*inverse=*/false)));
}

//===- Padding --------------------------------------------------------------------------------===//

using Pairs = SmallVector<std::pair<int64_t, int64_t>>;

/// [[low, high], ...], one pair per spatial axis.
static FailureOr<Pairs> paddingOf(Emission &call, size_t spatial) {
  const Value &given = call["pads"];
  ArrayRef<Value> list = given.isList() ? given.asList() : ArrayRef<Value>();
  Pairs pairs;
  for (const Value &item : list) {
    ArrayRef<Value> pair = item.isList() ? item.asList() : ArrayRef<Value>();
    auto isWidth = [](const Value &value) {
      return value.isInt() && value.asInt() >= 0 && value.asInt() <= maxElementsOfAxis;
    };
    if (pair.size() == 2 && isWidth(pair[0]) && isWidth(pair[1]))
      pairs.push_back({pair[0].asInt(), pair[1].asInt()});
  }
  if (!given.isList() || list.size() != spatial || pairs.size() != spatial)
    return call.error("pads", "pad expects a pair [low, high] of ints from 0 on for each of the " +
                                  Twine(spatial) + " spatial axes, such as [[1, 1], [0, 2]], got " +
                                  toText(given));
  return pairs;
}

/// What lies beyond the edges repeats the outermost element, or mirrors the image about it.
static mlir::Value continued(Graph &graph, mlir::Value x, int64_t axis,
                             std::pair<int64_t, int64_t> width, bool reflects) {
  int64_t extent = shapeOf(x)[axis];
  SmallVector<mlir::Value> parts;
  auto element = [&](int64_t index) { return sliceOf(graph, x, axis, index, 1); };
  auto repeat = [&](int64_t index, int64_t times) {
    if (times == 0)
      return;
    SmallVector<int64_t> shape(shapeOf(x));
    shape[axis] = times;
    parts.push_back(graph.broadcast(element(index), shape));
  };
  if (reflects)
    for (int64_t i = width.first; i > 0; --i)
      parts.push_back(element(i));
  else
    repeat(0, width.first);
  parts.push_back(x);
  if (reflects)
    for (int64_t i = 0; i < width.second; ++i)
      parts.push_back(element(extent - 2 - i));
  else
    repeat(extent - 1, width.second);
  return joined(graph, parts, axis);
}

Result emitPad(Emission &call) {
  FailureOr<mlir::Value> x = call.image("x");
  if (failed(x))
    return failure();
  SmallVector<int64_t> shape(shapeOf(*x)), low{0, 0}, high{0, 0};
  FailureOr<Pairs> pairs = paddingOf(call, shape.size() - 2);
  if (failed(pairs))
    return failure();
  bool reflects = call["mode"].asString() == "reflect";
  for (auto [i, pair] : enumerate(*pairs)) {
    if (reflects && std::max(pair.first, pair.second) >= shape[i + 2])
      return call.error("pads", "reflection pads by less than the image's extent, " +
                                    Twine(shape[i + 2]) + ", got " + toText(call["pads"]));
    low.push_back(pair.first);
    high.push_back(pair.second);
    shape[i + 2] += pair.first + pair.second;
  }
  if (failed(call.checkShape(shape)))
    return failure();
  if (call["mode"].asString() == "zero")
    return Value(mlir::Value(
        nn::PadOp::create(call.graph.builder, call.loc(), *x, low, high, llvm::APFloat(0.0))));
  mlir::Value y = *x;
  for (auto [i, pair] : enumerate(*pairs))
    y = continued(call.graph, y, static_cast<int64_t>(i + 2), pair, reflects);
  return Value(y);
}

} // namespace dlc::fe
