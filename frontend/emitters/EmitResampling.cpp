// Operators that give an image another size: means over its parts, interpolation, low-pass filters.
#include "frontend/emitters/Parts.h"
#include "frontend/operators/Emission.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

static mlir::Value scaled(Graph &graph, mlir::Value x, double factor) {
  if (factor == 1)
    return x;
  mlir::Value share = graph.constant(nn::tensorType(x), factor);
  return nn::MulOp::create(graph.builder, graph.loc, x, share);
}

/// The image of argument `x` and the extents of `size`, one per spatial axis.
static FailureOr<std::pair<mlir::Value, SmallVector<int64_t>>> sizedImage(const Emission &call) {
  FailureOr<mlir::Value> x = call.image("x");
  if (failed(x))
    return failure();
  FailureOr<SmallVector<int64_t>> size = call.perAxis("size", shapeOf(*x).size() - 2, 1);
  if (failed(size))
    return failure();
  SmallVector<int64_t> shape(shapeOf(*x).take_front(2));
  append_range(shape, *size);
  if (failed(call.checkShape(shape)))
    return failure();
  return std::pair(*x, *size);
}

//===- Means ----------------------------------------------------------------------------------===//

/// Mean i is of [floor(i S / count), ceil((i + 1) S / count)).
static mlir::Value meansAlong(Graph &graph, mlir::Value x, int64_t axis, int64_t count) {
  int64_t extent = shapeOf(x)[axis];
  SmallVector<mlir::Value> means;
  for (int64_t i = 0; i < count; ++i) {
    int64_t begin = i * extent / count, end = divideCeilSigned((i + 1) * extent, count);
    mlir::Value sum = graph.sum(sliceOf(graph, x, axis, begin, end - begin), {axis});
    SmallVector<int64_t> shape(shapeOf(x));
    shape[axis] = 1;
    means.push_back(graph.reshape(scaled(graph, sum, 1 / static_cast<double>(end - begin)), shape));
  }
  return joined(graph, means, axis);
}

Result emitAdaptiveAvgPool(Emission &call) {
  auto image = sizedImage(call);
  if (failed(image))
    return failure();
  Graph &graph = call.graph;
  auto [y, size] = *image;
  SmallVector<int64_t> kernel, none(size.size(), 0);
  for (auto [extent, wanted] : zip(shapeOf(y).drop_front(2), size))
    kernel.push_back(extent % wanted == 0 ? extent / wanted : 1);
  if (any_of(kernel, [](int64_t extent) { return extent > 1; }))
    y = nn::AvgPoolOp::create(graph.builder, graph.loc, y, kernel, kernel, none, none,
                              /*count_padding=*/true, /*adaptive=*/true);
  for (auto [i, wanted] : enumerate(size))
    if (auto axis = static_cast<int64_t>(i + 2); shapeOf(y)[axis] != wanted)
      y = meansAlong(graph, y, axis, wanted);
  return Value(y);
}

//===- Interpolation --------------------------------------------------------------------------===//

/// Element k of each part, then element k + 1 of each.
static mlir::Value interleaved(Graph &graph, ArrayRef<mlir::Value> parts, int64_t axis) {
  if (parts.size() == 1)
    return parts.front();
  SmallVector<int64_t> shape(shapeOf(parts.front()));
  SmallVector<int64_t> apart{shape[0], elementCount(ArrayRef(shape).slice(1, axis - 1)),
                             shape[axis], 1, elementCount(ArrayRef(shape).drop_front(axis + 1))};
  SmallVector<mlir::Value> columns =
      map_to_vector(parts, [&](mlir::Value part) { return graph.reshape(part, apart); });
  shape[axis] *= static_cast<int64_t>(parts.size());
  return graph.reshape(joined(graph, columns, 3), shape);
}

/// The image with the outermost elements repeated once.
static mlir::Value withEdges(Graph &graph, mlir::Value x, int64_t axis) {
  int64_t last = shapeOf(x)[axis] - 1;
  return joined(graph, {sliceOf(graph, x, axis, 0, 1), x, sliceOf(graph, x, axis, last, 1)}, axis);
}

/// With extents of p and q times a number, q elements of the result come of p of the image, all in
/// the same way: element k has its centre at ((2 k + 1) p - q) / 2 q.
static mlir::Value resizedAlong(Graph &graph, mlir::Value x, int64_t axis, int64_t wanted,
                                bool linear) {
  int64_t extent = shapeOf(x)[axis], groups = std::gcd(extent, wanted);
  int64_t p = extent / groups, q = wanted / groups;
  mlir::Value source = linear ? withEdges(graph, x, axis) : x;
  auto elementsFrom = [&](int64_t first) {
    return everyNth(graph, sliceOf(graph, source, axis, first, (groups - 1) * p + 1), axis, p);
  };
  SmallVector<mlir::Value> phases;
  for (int64_t k = 0; k < q; ++k) {
    if (!linear) {
      phases.push_back(elementsFrom(k * p / q));
      continue;
    }
    int64_t centre = (2 * k + 1) * p - q, below = divideFloorSigned(centre, 2 * q);
    double share = static_cast<double>(centre - below * 2 * q) / static_cast<double>(2 * q);
    mlir::Value mixed = scaled(graph, elementsFrom(below + 1), 1 - share); // behind the edge
    if (share > 0)
      mixed = nn::AddOp::create(graph.builder, graph.loc, mixed,
                                scaled(graph, elementsFrom(below + 2), share));
    phases.push_back(mixed);
  }
  return interleaved(graph, phases, axis);
}

Result emitResize(Emission &call) {
  auto image = sizedImage(call);
  if (failed(image))
    return failure();
  Graph &graph = call.graph;
  auto [y, size] = *image;
  bool linear = call["mode"].asString() == "linear";
  SmallVector<int64_t> scale;
  for (auto [extent, wanted] : zip(shapeOf(y).drop_front(2), size))
    scale.push_back(wanted % extent == 0 ? wanted / extent : 1);
  // Smaller axes first, which leaves less to do for the others.
  for (auto [i, wanted] : enumerate(size))
    if (auto axis = static_cast<int64_t>(i + 2); scale[i] == 1 && shapeOf(y)[axis] != wanted)
      y = resizedAlong(graph, y, axis, wanted, linear);
  if (any_of(scale, [](int64_t factor) { return factor > 1; }))
    y = nn::UpsampleOp::create(graph.builder, graph.loc, y, scale, linear);
  return Value(y);
}

//===- Low-pass filter ------------------------------------------------------------------------===//

/// [1 2 1] / 4 is the mean of two neighbours, twice. Zeros outside are those of padding = same.
Result emitBlurPool(Emission &call) {
  FailureOr<mlir::Value> x = call.image("x");
  if (failed(x))
    return failure();
  size_t spatial = shapeOf(*x).size() - 2;
  FailureOr<SmallVector<int64_t>> stride = call.perAxis("stride", spatial, 1);
  if (failed(stride))
    return failure();
  Graph &graph = call.graph;
  SmallVector<int64_t> zeros(spatial, 0), ones(spatial, 1), twos(spatial, 2), low, high;
  for (auto [extent, step] : zip(shapeOf(*x).drop_front(2), *stride)) {
    int64_t output = (extent - 1) / step + 1;
    int64_t total = std::max<int64_t>(0, (output - 1) * step + 3 - extent);
    low.push_back(total / 2);
    high.push_back(total - total / 2);
  }
  mlir::Value means = nn::AvgPoolOp::create(graph.builder, graph.loc, *x, twos, ones, low, high,
                                            /*count_padding=*/true);
  return Value(mlir::Value(nn::AvgPoolOp::create(graph.builder, graph.loc, means, twos, *stride,
                                                 zeros, zeros, /*count_padding=*/true)));
}

} // namespace dlc::fe
