// Losses and metrics: sums over rows and ranks, so nothing is divided here. Every term keeps its
// elements (first axis: the batch), because evaluation leaves out the rows that pad it.
#include "dialects/NN/InputRange.h"
#include "frontend/operators/Emission.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

static Mean makeMean(const Emission &call, mlir::Value numerator, mlir::Value denominator = {}) {
  Mean mean;
  mean.terms.push_back({numerator, denominator, 1});
  mean.origin = call.name();
  mean.better = call.better();
  return mean;
}

/// Logits [N, C, spatial...] and label i32[N, spatial...].
static LogicalResult checkClassification(const Emission &call) {
  const Value &logits = call["logits"];
  const Value &label = call["label"];
  if (!logits.isTensor() || shapeOf(logits.asTensor()).size() < 2)
    return call.error("logits",
                      call.name() + " expects logits [N, classes, ...], got " + describe(logits));
  SmallVector<int64_t> rows(shapeOf(logits.asTensor()));
  rows.erase(rows.begin() + 1);
  if (!label.isTensor() || shapeOf(label.asTensor()) != ArrayRef<int64_t>(rows) ||
      !nn::tensorType(label.asTensor()).getElementType().isInteger(32))
    return call.error("label", call.name() + " expects a label " + typeText(call.graph.i32(rows)) +
                                   " beside logits " + typeText(logits.asTensor().getType()) +
                                   ", got " + describe(label));
  return success();
}

Result emitSoftmaxCrossEntropy(Emission &call) {
  if (failed(checkClassification(call)))
    return failure();
  FailureOr<double> smoothing = call.real("smoothing", 0, 1);
  if (failed(smoothing))
    return failure();
  Graph &graph = call.graph;
  auto loss = nn::SoftmaxCrossEntropyOp::create(graph.builder, graph.loc, call.tensor("logits"),
                                                call["label"].asTensor(),
                                                graph.builder.getF64FloatAttr(*smoothing));
  return Value(makeMean(call, loss));
}

/// log(1 + e^z) - z t, the binary cross entropy of sigmoid(z) and t without its overflow.
Result emitBceWithLogits(Emission &call) {
  FailureOr<mlir::Value> target = call.sameShape("logits", "target");
  if (failed(target))
    return failure();
  if (const Value &given = call["target"];
      given.isNumber() && !(given.asDouble() >= 0 && given.asDouble() <= 1))
    return call.error("target", "bce_with_logits expects targets in [0, 1], got " + toText(given));
  nn::expectRange(*target, 0, 1);
  Graph &graph = call.graph;
  mlir::Value z = call.tensor("logits");
  mlir::Value all = nn::SoftplusOp::create(graph.builder, graph.loc, z);
  mlir::Value hit = nn::MulOp::create(graph.builder, graph.loc, z, *target);
  return Value(makeMean(call, nn::SubOp::create(graph.builder, graph.loc, all, hit)));
}

/// Mean of `error` where the mask is, else everywhere.
static Result masked(Emission &call, mlir::Value error) {
  if (call["where"].isAbsent())
    return Value(makeMean(call, error));
  FailureOr<mlir::Value> mask = call.sameShape("x", "where");
  if (failed(mask))
    return failure();
  nn::expectRange(*mask, 0, std::numeric_limits<double>::infinity()); // weights
  mlir::Value counted = nn::MulOp::create(call.graph.builder, call.loc(), error, *mask);
  return Value(makeMean(call, counted, *mask));
}

static FailureOr<mlir::Value> difference(Emission &call) {
  FailureOr<mlir::Value> target = call.sameShape("x", "target");
  if (failed(target))
    return failure();
  return mlir::Value(nn::SubOp::create(call.graph.builder, call.loc(), call.tensor("x"), *target));
}

Result emitMse(Emission &call) {
  FailureOr<mlir::Value> d = difference(call);
  if (failed(d))
    return failure();
  return masked(call, nn::MulOp::create(call.graph.builder, call.loc(), *d, *d));
}

Result emitMae(Emission &call) {
  FailureOr<mlir::Value> d = difference(call);
  if (failed(d))
    return failure();
  return masked(call, nn::AbsOp::create(call.graph.builder, call.loc(), *d));
}

/// A row is right if fewer than k classes come before its label: those of larger logits, and of
/// equal logits with a smaller index. A NaN comes before everything, so that a diverged network
/// scores nothing.
Result emitAccuracy(Emission &call) {
  if (failed(checkClassification(call)))
    return failure();
  Graph &graph = call.graph;
  mlir::OpBuilder &builder = graph.builder;
  mlir::Value logits = call.tensor("logits");
  SmallVector<int64_t> shape(shapeOf(logits));
  FailureOr<int64_t> k = call.integer("k", 1, shape[1]);
  if (failed(k))
    return failure();
  SmallVector<int64_t> rowDims = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  rowDims.erase(rowDims.begin() + 1);
  auto spread = [&](mlir::Value perRow) { return graph.spread(perRow, rowDims, shape); };
  nn::expectRange(call["label"].asTensor(), 0, static_cast<double>(shape[1] - 1));
  mlir::Value label = spread(call["label"].asTensor());
  mlir::Value classes = nn::IotaOp::create(builder, graph.loc, graph.i32(shape), 1);
  mlir::Value isLabel = graph.compare(nn::Comparison::EQ, classes, label);
  mlir::Value zeros = graph.constant(graph.f32(shape), 0);
  mlir::Value chosen = nn::SelectOp::create(builder, graph.loc, isLabel, logits, zeros);
  mlir::Value ofLabel = spread(graph.sum(chosen, {1}));
  mlir::Value notSmaller =
      nn::NotOp::create(builder, graph.loc, graph.compare(nn::Comparison::LE, logits, ofLabel));
  mlir::Value equal = graph.compare(nn::Comparison::EQ, logits, ofLabel);
  mlir::Value earlier = graph.compare(nn::Comparison::LT, classes, label);
  mlir::Value tied = nn::AndOp::create(builder, graph.loc, equal, earlier);
  mlir::Value before = nn::OrOp::create(builder, graph.loc, notSmaller, tied);
  mlir::Value count = graph.sum(graph.toFloat(before), {1});
  mlir::Value limit = graph.constant(graph.f32(shapeOf(count)), *k);
  Mean mean = makeMean(call, graph.compare(nn::Comparison::LT, count, limit));
  mean.differentiable = false;
  return Value(std::move(mean));
}

Result emitIou(Emission &call) {
  for (StringRef argument : {"prediction", "truth"}) {
    const Value &value = call[argument];
    if (!value.isTensor() || !nn::tensorType(value.asTensor()).getElementType().isInteger(1))
      return call.error(argument,
                        "iou expects comparisons such as 'logits > 0.0', got " + describe(value));
  }
  if (failed(call.checkSameShape("prediction", "truth")))
    return failure();
  Graph &graph = call.graph;
  mlir::Value a = call["prediction"].asTensor();
  mlir::Value b = call["truth"].asTensor();
  Mean mean = makeMean(call, nn::AndOp::create(graph.builder, graph.loc, a, b),
                       nn::OrOp::create(graph.builder, graph.loc, a, b));
  mean.differentiable = false;
  return Value(std::move(mean));
}

} // namespace dlc::fe
