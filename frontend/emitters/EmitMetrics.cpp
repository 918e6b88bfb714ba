// Metrics: sums over rows and ranks, so nothing is divided here. Every term keeps its elements
// (first axis: the batch), because evaluation leaves out the rows that pad it.
#include "frontend/emitters/Labels.h"
#include "runtime/artifact/Formula.h"

#include <cmath>

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

/// A row is right if fewer than k classes come before its label: those of larger logits, and of
/// equal logits with a smaller index. A NaN comes before everything, so that a diverged network
/// scores nothing.
Result emitAccuracy(Emission &call) {
  if (failed(call.checkClassification()))
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
  FailureOr<Labels> labels = labelsOf(call, "label", shape[1]);
  if (failed(labels))
    return failure();
  mlir::Value label = spread(labels->classes);
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
  mlir::Value right = graph.compare(nn::Comparison::LT, count, limit);
  if (labels->counted)
    right = nn::AndOp::create(builder, graph.loc, right, labels->counted);
  Mean mean = call.mean(right, labels->counted);
  mean.differentiable = false;
  return Value(std::move(mean));
}

//===- Overlap --------------------------------------------------------------------------------===//

/// Refuses anything but two tensors of one shape: bool, or i32 with `classes`.
static LogicalResult checkOverlap(const Emission &call, bool hasClasses) {
  for (StringRef argument : {"prediction", "truth"}) {
    const Value &value = call[argument];
    if (!value.isTensor() ||
        !nn::tensorType(value.asTensor()).getElementType().isInteger(hasClasses ? 32 : 1))
      return call.error(argument, call.name() + " expects " +
                                      (hasClasses ? "i32 tensors beside 'classes'"
                                                  : "comparisons such as 'logits > 0.0', or i32 "
                                                    "tensors with classes = K") +
                                      ", got " + describe(value));
  }
  return call.checkSameShape("prediction", "truth");
}

/// What two sets have in common, and what that is a share of: their union, or, for dice, half of
/// both together.
static Term overlap(Graph &graph, mlir::Value a, mlir::Value b, bool isDice) {
  mlir::OpBuilder &builder = graph.builder;
  mlir::Value both = nn::AndOp::create(builder, graph.loc, a, b);
  if (!isDice)
    return {both, nn::OrOp::create(builder, graph.loc, a, b), 1};
  both = graph.toFloat(both);
  return {nn::AddOp::create(builder, graph.loc, both, both),
          nn::AddOp::create(builder, graph.loc, graph.toFloat(a), graph.toFloat(b)), 1};
}

/// Of classes the mean over those that occur. What is ignored is in no set, and an ignored class
/// that is predicted nevertheless does not occur.
static Result emitOverlap(const Emission &call, bool isDice) {
  bool hasClasses = !call["classes"].isAbsent();
  if (failed(checkOverlap(call, hasClasses)))
    return failure();
  Graph &graph = call.graph;
  mlir::Value a = call["prediction"].asTensor();
  mlir::Value b = call["truth"].asTensor();
  Mean mean = call.mean({});
  mean.terms.clear();
  mean.differentiable = false;
  if (!hasClasses) {
    if (!call["ignore"].isAbsent())
      return call.error("ignore",
                        call.name() + " ignores a class of i32 tensors; write classes = K");
    mean.terms.push_back(overlap(graph, a, b, isDice));
    return Value(std::move(mean));
  }
  FailureOr<int64_t> classes = call.integer("classes", 1, rt::Formula::maxMeans);
  if (failed(classes))
    return failure();
  FailureOr<Labels> truth = labelsOf(call, "truth", *classes);
  if (failed(truth))
    return failure();
  auto setOf = [&](mlir::Value labels, int64_t k) {
    mlir::RankedTensorType type = nn::tensorType(labels);
    if (truth->ignored == k)
      return graph.constant(type.clone(graph.builder.getI1Type()), 0);
    mlir::Value isLabel =
        graph.compare(nn::Comparison::EQ, labels, graph.constant(type, static_cast<double>(k)));
    return truth->counted
               ? nn::AndOp::create(graph.builder, graph.loc, isLabel, truth->counted).getResult()
               : isLabel;
  };
  for (int64_t k = 0; k < *classes; ++k) {
    mean.terms.push_back(overlap(graph, setOf(a, k), setOf(truth->classes, k), isDice));
    mean.formula += (k ? "|m" : "m") + std::to_string(k);
  }
  return Value(std::move(mean));
}

Result emitIou(Emission &call) { return emitOverlap(call, /*isDice=*/false); }
Result emitDice(Emission &call) { return emitOverlap(call, /*isDice=*/true); }

//===- Noise ----------------------------------------------------------------------------------===//

/// 20 log10(range) - 10 log10(mse).
Result emitPsnr(Emission &call) {
  FailureOr<mlir::Value> target = call.sameShape("x", "target");
  if (failed(target))
    return failure();
  double range = call.real("range");
  if (!(range > 0) || !fitsF32(range))
    return call.error("range", "psnr expects a range above 0, got " + toText(call["range"]));
  mlir::Value d = nn::SubOp::create(call.graph.builder, call.loc(), call.tensor("x"), *target);
  Mean mean = call.mean(nn::MulOp::create(call.graph.builder, call.loc(), d, d));
  mean.formula = "m0 log10 -10 mul " + toText(Value(20 * std::log10(range))) + " add";
  return Value(std::move(mean));
}

} // namespace dlc::fe
