// Statements that declare what goes in and out of a program: inputs, outputs, the loss, metrics.
#include "frontend/Elaborator.h"

#include <cmath>

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

FailureOr<mlir::RankedTensorType> Elaborator::evaluateType(const InputStmt &input) {
  SmallVector<int64_t> shape;
  auto append = [&](const Value &value, SMLoc loc) -> LogicalResult {
    if (!value.isInt() || value.asInt() < 1)
      return error(loc, "an extent is a positive int, got " + describe(value));
    shape.push_back(value.asInt());
    return success();
  };
  for (const Dimension &dimension : input.dimensions) {
    FailureOr<Value> value = evaluate(*dimension.value);
    if (failed(value))
      return failure();
    SMLoc loc = dimension.value->loc;
    if (!dimension.splice) {
      if (failed(append(*value, loc)))
        return failure();
      continue;
    }
    if (!value->isList())
      return error(loc, "'...' splices a list of ints, got " + describe(*value));
    for (const Value &item : value->asList())
      if (failed(append(item, loc)))
        return failure();
  }
  if (shape.size() > nn::maxRank || elementCount(shape) > maxElements)
    return error(input.typeLoc, "an input has at most 5 axes and 2^40 elements");
  if (input.element == "f32")
    return graph.f32(shape);
  if (input.element == "i32")
    return graph.i32(shape);
  return error(input.typeLoc, "unknown element type '" + input.element +
                                  "'; inputs are f32 or i32" +
                                  didYouMean(input.element, {"f32", "i32"}));
}

/// Per dimension: the parameter of the model that is its extent, `patch[1]` for an item of a list
/// whose items are all extents, else empty.
std::vector<std::string> Elaborator::extentNames(const InputStmt &input) {
  std::vector<std::string> names;
  for (const Dimension &dimension : input.dimensions) {
    const auto *name = dyn_cast<NameExpr>(dimension.value.get());
    bool isParameter = name && any_of(file.model->parameters, [&](const Parameter &parameter) {
                         return parameter.name == name->name;
                       });
    if (!dimension.splice) {
      names.push_back(isParameter ? name->name.str() : "");
      continue;
    }
    size_t count = evaluate(*dimension.value)->asList().size();
    for (size_t i = 0; i < count; ++i)
      names.push_back(isParameter ? name->name.str() + "[" + std::to_string(i) + "]" : "");
  }
  return names;
}

LogicalResult Elaborator::executeInput(const InputStmt &input) {
  FailureOr<mlir::RankedTensorType> type = evaluateType(input);
  if (failed(type))
    return failure();
  for (const InputInfo &other : inputInfos) {
    if (other.name == input.name)
      return error(input.loc, "a second input named '" + input.name + "'");
    if (other.type.getShape().front() != type->getShape().front())
      return error(input.typeLoc, "the first axis of every input is the batch: '" + input.name +
                                      "' is " + typeText(*type) + " but '" + other.name + "' is " +
                                      typeText(other.type));
  }
  inputInfos.push_back({input.name, input.loc, *type});
  setLocation(input.loc, "");
  frame->variables[input.name] = Value(graph.addInput(input.name, *type, extentNames(input)));
  return success();
}

LogicalResult Elaborator::executeOutput(const OutputStmt &output) {
  FailureOr<Value> value = evaluate(*output.value);
  if (failed(value))
    return failure();
  if (is_contained(outputNames, output.name))
    return error(output.loc, "a second output named '" + output.name + "'");
  outputNames.push_back(output.name);
  if (!value->isTensor())
    return error(output.value->loc, "an output is a tensor, got " + describe(*value));
  ArrayRef<int64_t> shape = shapeOf(value->asTensor());
  if (shape.empty() || shape.front() != graph.batch())
    return error(output.value->loc, "the first axis of an output is the batch, " +
                                        Twine(graph.batch()) + ", got " + describe(*value));
  setLocation(output.loc, output.name);
  if (graph.program() == ProgramKind::Predict)
    graph.addOutput(output.name, value->asTensor());
  return success();
}

LogicalResult Elaborator::executeLoss(const LossStmt &loss) {
  FailureOr<Value> value = evaluate(*loss.value);
  if (failed(value))
    return failure();
  if (lossLoc.isValid()) {
    (void)error(loss.loc, "a second loss; a model has one, the sum of all: loss = a + 0.4 * b");
    diags.note(lossLoc, "the first one");
    return failure();
  }
  lossLoc = loss.loc;
  if (value->isMean() && !value->asMean().differentiable)
    return error(loss.value->loc,
                 value->asMean().origin + " has no gradient; it can be a metric but no loss");
  if (!value->isMean() || !value->asMean().formula.empty())
    return error(loss.value->loc,
                 "a loss is a weighted sum of means, such as mean(x) or mse(a, b), "
                 "got " +
                     describe(*value));
  const Mean &mean = value->asMean();
  if (any_of(mean.terms, [](const Term &term) { return !std::isfinite(term.weight); }))
    return error(loss.value->loc, "the weight of a term is too large for a float");
  setLocation(loss.loc, "loss");
  if (graph.program() != ProgramKind::Predict)
    return graph.addLoss(mean, locationOf(loss.value->loc));
  return success();
}

/// True of what else the records of a run are made of: a metric has a column of its own beside
/// them, and with val_ ahead of its name another one for the validation.
static bool isOfLog(StringRef name) {
  constexpr StringRef fields[] = {
      "event",           "step",         "epoch",           "part",       "lr",
      "seconds",         "name",         "samples_per_s",   "step_ms",    "comm_ms",
      "exposed_comm_ms", "data_wait_ms", "wrapped_samples", "loss_scale", "skipped_steps"};
  return is_contained(fields, name) || name.starts_with("val_");
}

LogicalResult Elaborator::executeMetric(const MetricStmt &metric) {
  FailureOr<Value> value = evaluate(*metric.value);
  if (failed(value))
    return failure();
  if (any_of(metricInfos, [&](const MetricInfo &other) { return other.name == metric.name; }))
    return error(metric.loc, "a second metric named '" + metric.name + "'");
  if (metric.name == "loss")
    return error(metric.loc, "'loss' is the name of the loss; a metric needs another");
  if (isOfLog(metric.name))
    return error(metric.loc, "'" + metric.name +
                                 "' is the name of something else in a run's log; a metric needs "
                                 "another");
  if (!value->isMean())
    return error(metric.value->loc, "a metric is a mean, such as accuracy(...), iou(...) or "
                                    "mean(x), or a function of means, got " +
                                        describe(*value));
  if (any_of(value->asMean().terms, [](const Term &term) { return !std::isfinite(term.weight); }))
    return error(metric.value->loc, "the weight of a term is too large for a float");
  metricInfos.push_back({metric.name, value->asMean().better});
  setLocation(metric.loc, metric.name);
  if (graph.program() != ProgramKind::Predict)
    return graph.addMetric(metric.name, value->asMean(), locationOf(metric.value->loc));
  return success();
}

} // namespace dlc::fe
