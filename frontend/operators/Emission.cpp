#include "frontend/operators/Emission.h"

#include "frontend/operators/Arithmetic.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

//===- Arguments ------------------------------------------------------------------------------===//

const BoundArgument &Emission::bound(StringRef argument) const {
  for (auto [entry, value] : zip(spec.arguments, arguments))
    if (entry.name == argument)
      return value;
  llvm_unreachable("emitters ask for arguments of their table entry");
}

FailureOr<int64_t> Emission::integer(StringRef argument, int64_t low, int64_t high) const {
  int64_t value = integer(argument);
  if (value < low || value > high)
    return error(argument, "argument '" + argument + "' of " + name() + " expects an int from " +
                               Twine(low) + " to " + Twine(high) + ", got " + Twine(value));
  return value;
}

FailureOr<double> Emission::real(StringRef argument, double low, double high) const {
  double value = real(argument);
  if (!(value >= low && value < high))
    return error(argument, "argument '" + argument + "' of " + name() + " expects a number from " +
                               toText(Value(low)) + " to below " + toText(Value(high)) + ", got " +
                               toText(Value(value)));
  return value;
}

FailureOr<SmallVector<int64_t>> Emission::perAxis(StringRef argument, size_t axes,
                                                  int64_t low) const {
  // Large enough for any window; sums and products of extents then fit in 64 bits.
  constexpr int64_t high = 1 << 16;
  const Value &value = (*this)[argument];
  SmallVector<int64_t> result;
  if (value.isInt())
    result.assign(axes, value.asInt());
  else
    for (const Value &item : value.asList())
      result.push_back(item.asInt());
  if (result.size() != axes)
    return error(argument, "argument '" + argument + "' of " + name() + " expects an int or " +
                               Twine(axes) + " ints, one per spatial axis, got " + toText(value));
  for (int64_t extent : result)
    if (extent < low || extent > high)
      return error(argument, "argument '" + argument + "' of " + name() + " expects " + Twine(low) +
                                 " to " + Twine(high) + ", got " + Twine(extent));
  return result;
}

FailureOr<mlir::Value> Emission::image(StringRef argument) const {
  const Value &value = (*this)[argument];
  size_t rank = value.isTensor() ? shapeOf(value.asTensor()).size() : 0;
  if (rank < 3 || rank > 5)
    return error(argument, name() +
                               " expects a tensor [N, C, spatial...] with one to three spatial "
                               "axes, got " +
                               describe(value));
  return tensor(argument);
}

FailureOr<SmallVector<int64_t>> Emission::axes(StringRef argument, size_t rank) const {
  const Value &value = (*this)[argument];
  SmallVector<int64_t> result;
  auto append = [&](int64_t axis) -> LogicalResult {
    int64_t extent = rank;
    if (axis < -extent || axis >= extent)
      return error(argument, "axis " + Twine(axis) + " of a tensor with " + Twine(rank) + " axes");
    result.push_back(axis < 0 ? axis + extent : axis);
    return success();
  };
  if (value.isInt()) {
    if (failed(append(value.asInt())))
      return failure();
    return result;
  }
  for (const Value &item : value.asList())
    if (failed(append(item.asInt())))
      return failure();
  sort(result);
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    return error(argument, "an axis is named twice in " + toText(value));
  return result;
}

//===- Variables ------------------------------------------------------------------------------===//

FailureOr<mlir::Value> Emission::parameter(StringRef leaf, ArrayRef<int64_t> shape,
                                           nn::InitializerAttr init) const {
  if (failed(checkShape(shape)))
    return failure();
  return graph.variable(variableName(leaf), shape, nn::VariableKind::Parameter, init, site);
}

FailureOr<mlir::Value> Emission::state(StringRef leaf, ArrayRef<int64_t> shape, double init) const {
  return graph.variable(variableName(leaf), shape, nn::VariableKind::State, constantInit(init),
                        site);
}

void Emission::assign(StringRef leaf, mlir::Value value) const {
  graph.assign(variableName(leaf), value);
}

nn::InitializerAttr Emission::constantInit(double value) const {
  return nn::InitializerAttr::get(graph.builder.getContext(), nn::InitializerKind::Constant, value,
                                  0);
}

FailureOr<RandomDraw> Emission::draw(StringRef argument, ArrayRef<int64_t> shape) const {
  if (shape.empty() || shape.front() != graph.batch())
    return error(argument, name() + " expects " + (argument == "shape" ? "a shape" : "a tensor") +
                               " whose first axis is the batch, got " +
                               describe((*this)[argument]));
  RandomDraw draw;
  if (!graph.claimRandomStream(path, site, draw.stream))
    return error("", "a second " + name() + " named '" + path +
                         "'; it would draw the same numbers, give it another name");
  draw.seed = graph.hostScalar("seed");
  draw.step = graph.hostScalar("step");
  draw.firstRow = graph.hostScalar("first_row");
  return draw;
}

/// Sources: He et al. 2015 (he_*), Glorot and Bengio 2010 (glorot_*); fans as torch.nn.init counts
/// them.
FailureOr<nn::InitializerAttr> Emission::weightInit(ArrayRef<int64_t> shape) const {
  mlir::MLIRContext *context = graph.builder.getContext();
  auto normal = [&](double deviation) {
    return nn::InitializerAttr::get(context, nn::InitializerKind::Normal, 0, deviation);
  };
  auto uniform = [&](double bound) {
    return nn::InitializerAttr::get(context, nn::InitializerKind::Uniform, -bound, bound);
  };
  const Value &init = (*this)["init"];
  if (!init.isString()) {
    FailureOr<double> deviation = real("init", 0, 1e6);
    if (failed(deviation))
      return failure();
    return normal(*deviation);
  }
  double window = 1;
  for (int64_t extent : shape.drop_front(2))
    window *= extent;
  double fanIn = shape[1] * window;
  double fanOut = shape[0] * window;
  StringRef word = init.asString();
  if (word == "he_normal")
    return normal(std::sqrt(2 / fanIn));
  if (word == "he_uniform")
    return uniform(std::sqrt(6 / fanIn));
  if (word == "glorot_normal")
    return normal(std::sqrt(2 / (fanIn + fanOut)));
  if (word == "glorot_uniform")
    return uniform(std::sqrt(6 / (fanIn + fanOut)));
  return constantInit(0); // zeros
}

//===- Results --------------------------------------------------------------------------------===//

LogicalResult Emission::error(StringRef argument, const Twine &message) const {
  SMLoc where = argument.empty() ? SMLoc() : bound(argument).loc;
  return diags.error(where.isValid() ? where : call, message);
}

LogicalResult Emission::checkShape(ArrayRef<int64_t> shape) const {
  if (elementCount(shape) <= maxElements)
    return success();
  std::string text;
  raw_string_ostream os(text);
  interleaveComma(shape, os);
  return error("", name() + " makes a tensor [" + text + "] of more than 2^40 elements");
}

LogicalResult Emission::checkSameShape(StringRef a, StringRef b) const {
  const Value &left = (*this)[a];
  const Value &right = (*this)[b];
  if (shapeOf(left.asTensor()) == shapeOf(right.asTensor()))
    return success();
  return error(b, name() + " expects '" + a + "' and '" + b + "' of one shape, got " +
                      typeText(left.asTensor().getType()) + " and " +
                      typeText(right.asTensor().getType()));
}

FailureOr<mlir::Value> Emission::sameShape(StringRef a, StringRef b) const {
  mlir::Value x = tensor(a);
  const Value &other = (*this)[b];
  if (other.isNumber() && !fitsF32(other.asDouble()))
    return error(b, toText(other) + " is too large for a tensor of f32");
  if (other.isNumber())
    return graph.constant(nn::tensorType(x), other.asDouble());
  mlir::Value y = tensor(b);
  if (shapeOf(x) == shapeOf(y))
    return y;
  return error(b, name() + " expects '" + a + "' and '" + b + "' of one shape, got " +
                      typeText(x.getType()) + " and " + typeText(y.getType()));
}

LogicalResult Emission::checkClassification(StringRef alternative) const {
  const Value &logits = (*this)["logits"];
  const Value &label = (*this)["label"];
  if (!logits.isTensor() || shapeOf(logits.asTensor()).size() < 2)
    return error("logits", name() + " expects logits [N, classes, ...], got " + describe(logits));
  SmallVector<int64_t> rows(shapeOf(logits.asTensor()));
  rows.erase(rows.begin() + 1);
  if (label.isTensor() && label.asTensor().getType() == graph.i32(rows))
    return success();
  std::string shares = alternative.empty() ? ""
                                           : " or " + alternative.str() + " " +
                                                 typeText(logits.asTensor().getType());
  return error("label", name() + " expects a label " + typeText(graph.i32(rows)) + shares +
                            " beside logits " + typeText(logits.asTensor().getType()) + ", got " +
                            describe(label));
}

Mean Emission::mean(mlir::Value numerator, mlir::Value denominator) const {
  Mean mean;
  mean.terms.push_back({numerator, denominator, 1});
  mean.origin = spec.name;
  mean.better = spec.better;
  return mean;
}

FailureOr<SmallVector<int64_t>> Emission::commonShape(StringRef argument, mlir::Type a,
                                                      mlir::Type b) const {
  SMLoc where = bound(argument).loc;
  return broadcastShape(diags, where.isValid() ? where : call, name(), a, b);
}

} // namespace dlc::fe
