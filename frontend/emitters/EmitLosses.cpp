// Losses: sums over rows and ranks, so nothing is divided here. Every term keeps its elements
// (first axis: the batch), because evaluation leaves out the rows that pad it.
#include "dialects/NN/InputRange.h"
#include "frontend/emitters/Labels.h"

#include <limits>

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

//===- Arithmetic -----------------------------------------------------------------------------===//

template <typename Op, typename... Operands>
static mlir::Value make(const Emission &call, Operands... operands) {
  return Op::create(call.graph.builder, call.loc(), operands...)->getResult(0);
}

static mlir::Value constantLike(const Emission &call, mlir::Value x, double value) {
  return call.graph.constant(nn::tensorType(x), value);
}

/// factor * x + offset.
static mlir::Value affine(const Emission &call, mlir::Value x, double factor, double offset) {
  if (factor != 1)
    x = make<nn::MulOp>(call, x, constantLike(call, x, factor));
  return offset == 0 ? x : make<nn::AddOp>(call, x, constantLike(call, x, offset));
}

//===- Means ----------------------------------------------------------------------------------===//

/// Argument `where` as f32, repeated along axes of size 1 to the shape of a loss's elements; null
/// if it is not given.
static FailureOr<mlir::Value> maskOf(const Emission &call, ArrayRef<int64_t> shape) {
  const Value &given = call["where"];
  if (given.isAbsent())
    return mlir::Value();
  ArrayRef<int64_t> from = given.isTensor() ? shapeOf(given.asTensor()) : ArrayRef<int64_t>();
  if (from.size() != shape.size() || !all_of(zip(from, shape), [](auto extents) {
        auto [have, want] = extents;
        return have == want || have == 1;
      }))
    return call.error("where", call.name() + " has a loss for each element of " +
                                   typeText(call.graph.f32(shape)) +
                                   ", so 'where' is a mask of that shape (axes of size 1 repeat), "
                                   "got " +
                                   describe(given));
  mlir::Value mask = call.tensor("where");
  nn::expectRange(mask, 0, std::numeric_limits<double>::infinity()); // weights
  return call.graph.broadcast(mask, shape);
}

/// The mean of `error` over its elements, of which each counts as often as `count` says (null:
/// once) and the mask `where` has it. The error is already multiplied by the count.
static Result meanOf(const Emission &call, mlir::Value error, mlir::Value count = {}) {
  FailureOr<mlir::Value> mask = maskOf(call, shapeOf(error));
  if (failed(mask))
    return failure();
  if (*mask) {
    error = make<nn::MulOp>(call, error, *mask);
    count = count ? make<nn::MulOp>(call, count, *mask) : *mask;
  }
  return Value(call.mean(error, count));
}

//===- Cross entropy --------------------------------------------------------------------------===//

/// One value per row, repeated for each class.
static mlir::Value alongClasses(const Emission &call, mlir::Value perRow, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> rows = to_vector(seq<int64_t>(0, shape.size()));
  rows.erase(rows.begin() + 1);
  return call.graph.spread(perRow, rows, shape);
}

/// Argument `weights`, one per class, repeated for each row of logits; null if it is not given.
static FailureOr<mlir::Value> classWeights(const Emission &call, ArrayRef<int64_t> shape) {
  const Value &given = call["weights"];
  if (given.isAbsent())
    return mlir::Value();
  SmallVector<float> weights;
  bool isGood = true;
  for (const Value &weight : given.asList()) {
    isGood &= weight.asDouble() >= 0 && fitsF32(weight.asDouble());
    weights.push_back(static_cast<float>(weight.asDouble()));
  }
  isGood &= any_of(weights, [](float weight) { return weight > 0; });
  if (!isGood || static_cast<int64_t>(weights.size()) != shape[1])
    return call.error("weights", call.name() + " expects a weight for each of the " +
                                     Twine(shape[1]) + " classes, 0 or more and not all 0, got " +
                                     toText(given));
  Graph &graph = call.graph;
  auto table = mlir::DenseElementsAttr::get(graph.f32({shape[1]}), ArrayRef<float>(weights));
  return graph.spread(nn::ConstantOp::create(graph.builder, graph.loc, table.getType(), table), {1},
                      shape);
}

/// -sum of target * log(softmax(logits)) over the classes, by row. The largest logit only guards
/// against overflow: what remains does not depend on it.
static mlir::Value entropyOfShares(const Emission &call, mlir::Value logits, mlir::Value target) {
  Graph &graph = call.graph;
  ArrayRef<int64_t> shape = shapeOf(logits);
  mlir::Value largest = make<nn::ReduceMaxOp>(call, logits, SmallVector<int64_t>{1});
  mlir::Value shift = make<nn::SubOp>(call, logits, alongClasses(call, largest, shape));
  mlir::Value total = graph.sum(make<nn::ExpOp>(call, shift), {1});
  mlir::Value normaliser = alongClasses(call, make<nn::LogOp>(call, total), shape);
  mlir::Value loss = make<nn::SubOp>(call, normaliser, shift); // of each class
  return graph.sum(make<nn::MulOp>(call, target, loss), {1});
}

/// The label is a share of each class. Weights do not change the count, as torch has it.
static Result emitSoftTarget(const Emission &call, double smoothing, mlir::Value weights) {
  if (!call["ignore"].isAbsent())
    return call.error("ignore", "softmax_cross_entropy has no class to ignore beside shares of "
                                "classes; write where = mask");
  mlir::Value logits = call.tensor("logits");
  mlir::Value target = call["label"].asTensor();
  nn::expectRange(target, 0, 1);
  nn::expectSumOfOne(target);
  auto classes = static_cast<double>(shapeOf(logits)[1]);
  target = affine(call, target, 1 - smoothing, smoothing / classes);
  if (weights)
    target = make<nn::MulOp>(call, target, weights);
  return meanOf(call, entropyOfShares(call, logits, target));
}

/// Source: torch.nn.CrossEntropyLoss. A row counts as often as its class weighs; smoothing spreads
/// a share of each row's target over all classes by their own weights, which are not in the count.
Result emitSoftmaxCrossEntropy(Emission &call) {
  const Value &label = call["label"];
  bool isSoft = call["logits"].isTensor() && label.isTensor() &&
                label.asTensor().getType() == call.tensor("logits").getType();
  if (!isSoft && failed(call.checkClassification("shares of the classes")))
    return failure();
  FailureOr<double> smoothing = call.real("smoothing", 0, 1);
  if (failed(smoothing))
    return failure();
  mlir::Value logits = call.tensor("logits");
  SmallVector<int64_t> shape(shapeOf(logits));
  FailureOr<mlir::Value> weights = classWeights(call, shape);
  if (failed(weights))
    return failure();
  if (isSoft)
    return emitSoftTarget(call, *smoothing, *weights);
  FailureOr<Labels> labels = labelsOf(call, "label", shape[1]);
  if (failed(labels))
    return failure();
  Graph &graph = call.graph;
  mlir::Value ofClass = labels->counted ? graph.toFloat(labels->counted) : mlir::Value();
  mlir::Value counts = ofClass;
  auto counted = [&](mlir::Value value) {
    return ofClass ? make<nn::MulOp>(call, value, ofClass) : value;
  };
  if (!*weights) {
    mlir::Value loss = make<nn::SoftmaxCrossEntropyOp>(call, logits, labels->classes,
                                                       graph.builder.getF64FloatAttr(*smoothing));
    return meanOf(call, counted(loss), counts);
  }
  mlir::Value column = nn::IotaOp::create(graph.builder, graph.loc, graph.i32(shape), 1);
  mlir::Value isLabel =
      graph.compare(nn::Comparison::EQ, column, alongClasses(call, labels->classes, shape));
  mlir::Value none = constantLike(call, logits, 0);
  counts = counted(graph.sum(make<nn::SelectOp>(call, isLabel, *weights, none), {1}));
  if (*smoothing == 0) {
    mlir::Value loss = make<nn::SoftmaxCrossEntropyOp>(call, logits, labels->classes,
                                                       graph.builder.getF64FloatAttr(0));
    return meanOf(call, make<nn::MulOp>(call, loss, counts), counts);
  }
  double spread = *smoothing / static_cast<double>(shape[1]);
  mlir::Value share =
      make<nn::SelectOp>(call, isLabel, constantLike(call, logits, 1 - *smoothing + spread),
                         constantLike(call, logits, spread));
  mlir::Value target = make<nn::MulOp>(call, share, *weights);
  return meanOf(call, counted(entropyOfShares(call, logits, target)), counts);
}

//===- Binary targets -------------------------------------------------------------------------===//

/// Argument `target` in the shape of argument `x`, from 0 to 1.
static FailureOr<mlir::Value> binaryTarget(const Emission &call, StringRef x) {
  FailureOr<mlir::Value> target = call.sameShape(x, "target");
  if (failed(target))
    return failure();
  if (const Value &given = call["target"];
      given.isNumber() && !(given.asDouble() >= 0 && given.asDouble() <= 1))
    return call.error("target", call.name() + " expects targets in [0, 1], got " + toText(given));
  nn::expectRange(*target, 0, 1);
  return target;
}

/// log(1 + e^z) - z t, the binary cross entropy of sigmoid(z) and t without its overflow.
static mlir::Value binaryCrossEntropy(const Emission &call, mlir::Value z, mlir::Value target) {
  return make<nn::SubOp>(call, make<nn::SoftplusOp>(call, z), make<nn::MulOp>(call, z, target));
}

/// With the weight w of positives: (1 - t) z + (1 + (w - 1) t) log(1 + e^-z).
Result emitBceWithLogits(Emission &call) {
  FailureOr<mlir::Value> target = binaryTarget(call, "logits");
  FailureOr<double> weight = call.real("pos_weight", 0, 1e9);
  if (failed(target) || failed(weight))
    return failure();
  mlir::Value z = call.tensor("logits");
  if (*weight == 1)
    return meanOf(call, binaryCrossEntropy(call, z, *target));
  mlir::Value rest = make<nn::MulOp>(call, affine(call, *target, -1, 1), z);
  mlir::Value tail = make<nn::SoftplusOp>(call, make<nn::NegOp>(call, z));
  mlir::Value weighted = make<nn::MulOp>(call, affine(call, *target, *weight - 1, 1), tail);
  return meanOf(call, make<nn::AddOp>(call, rest, weighted));
}

/// alpha_t (1 - p_t)^gamma times the binary cross entropy, p_t = p t + (1 - p) (1 - t) of
/// p = sigmoid(z). 1 - p_t comes from sigmoid(z) and sigmoid(-z), so that neither tail is lost.
Result emitFocalWithLogits(Emission &call) {
  FailureOr<mlir::Value> target = binaryTarget(call, "logits");
  FailureOr<double> gamma = call.real("gamma", 0, 1e3);
  if (failed(target) || failed(gamma))
    return failure();
  double alpha = call.real("alpha");
  if (!(alpha >= 0 && alpha <= 1) && alpha != -1)
    return call.error("alpha", "focal_with_logits expects alpha from 0 to 1, or -1 for none, got " +
                                   toText(call["alpha"]));
  mlir::Value z = call.tensor("logits");
  mlir::Value loss = binaryCrossEntropy(call, z, *target);
  mlir::Value positive = make<nn::SigmoidOp>(call, z);
  mlir::Value negative = make<nn::SigmoidOp>(call, make<nn::NegOp>(call, z));
  mlir::Value missed =
      make<nn::AddOp>(call, make<nn::MulOp>(call, negative, *target),
                      make<nn::MulOp>(call, positive, affine(call, *target, -1, 1)));
  if (*gamma == 1)
    loss = make<nn::MulOp>(call, loss, missed);
  else if (*gamma == 2)
    loss = make<nn::MulOp>(call, loss, make<nn::MulOp>(call, missed, missed));
  else if (*gamma != 0) {
    // Below, the derivative of a root overflows, and what is missed counts nothing.
    mlir::Value base = make<nn::MaxOp>(call, missed, constantLike(call, missed, 1e-30));
    loss =
        make<nn::MulOp>(call, loss, make<nn::PowOp>(call, base, constantLike(call, base, *gamma)));
  }
  if (alpha >= 0)
    loss = make<nn::MulOp>(call, loss, affine(call, *target, 2 * alpha - 1, 1 - alpha));
  return meanOf(call, loss);
}

/// Source: Milletari et al. 2016, with the sums themselves in place of their squares.
Result emitDiceLoss(Emission &call) {
  FailureOr<mlir::Value> p = call.image("p");
  if (failed(p))
    return failure();
  FailureOr<mlir::Value> target = binaryTarget(call, "p");
  FailureOr<double> smooth = call.real("smooth", 0, 1e9);
  if (failed(target) || failed(smooth))
    return failure();
  SmallVector<int64_t> spatial = to_vector(seq<int64_t>(2, shapeOf(*p).size()));
  auto sum = [&](mlir::Value x) { return call.graph.sum(x, spatial); };
  mlir::Value both = affine(call, sum(make<nn::MulOp>(call, *p, *target)), 2, *smooth);
  mlir::Value all = affine(call, make<nn::AddOp>(call, sum(*p), sum(*target)), 1, *smooth);
  return Value(call.mean(affine(call, make<nn::DivOp>(call, both, all), -1, 1)));
}

//===- Distances ------------------------------------------------------------------------------===//

static FailureOr<mlir::Value> difference(Emission &call) {
  FailureOr<mlir::Value> target = call.sameShape("x", "target");
  if (failed(target))
    return failure();
  return make<nn::SubOp>(call, call.tensor("x"), *target);
}

Result emitMse(Emission &call) {
  FailureOr<mlir::Value> d = difference(call);
  if (failed(d))
    return failure();
  return meanOf(call, make<nn::MulOp>(call, *d, *d));
}

Result emitMae(Emission &call) {
  FailureOr<mlir::Value> d = difference(call);
  if (failed(d))
    return failure();
  return meanOf(call, make<nn::AbsOp>(call, *d));
}

/// d^2 / 2 up to delta, from there on delta (|d| - delta / 2): q (|d| - q / 2) of q = min(|d|,
/// delta).
Result emitHuber(Emission &call) {
  FailureOr<mlir::Value> d = difference(call);
  if (failed(d))
    return failure();
  double delta = call.real("delta");
  if (!(delta > 0) || !fitsF32(delta))
    return call.error("delta", "huber expects a delta above 0, got " + toText(call["delta"]));
  mlir::Value distance = make<nn::AbsOp>(call, *d);
  mlir::Value near = make<nn::MinOp>(call, distance, constantLike(call, distance, delta));
  mlir::Value rest = make<nn::SubOp>(call, distance, affine(call, near, 0.5, 0));
  return meanOf(call, make<nn::MulOp>(call, near, rest));
}

} // namespace dlc::fe
