#include "frontend/operators/Graph.h"

#include "dialects/NN/RowMask.h"
#include "dialects/NN/Scalars.h"
#include "runtime/artifact/Formula.h"
#include "runtime/core/Philox.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <numbers>

using namespace llvm;
using namespace mlir;
using llvm::ArrayRef;

namespace dlc::fe {

StringRef programName(ProgramKind kind) {
  switch (kind) {
  case ProgramKind::Train:
    return "train";
  case ProgramKind::Eval:
    return "eval";
  case ProgramKind::Predict:
    return "predict";
  }
  llvm_unreachable("all programs are named");
}

int64_t elementCount(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count) || count > maxElements)
      return maxElements + 1;
  return count;
}

Graph::Graph(MLIRContext &context, StringRef modelName)
    : builder(&context), loc(builder.getUnknownLoc()), container(ModuleOp::create(loc)) {
  builder.setInsertionPointToEnd(container->getBody());
  modelOp = nn::ModelOp::create(builder, loc, modelName, "nn");
  modelOp.getBody().emplaceBlock();
}

//===- Programs -------------------------------------------------------------------------------===//

void Graph::beginProgram(ProgramKind which) {
  kind = which;
  builder.setInsertionPointToEnd(&modelOp.getBody().front());
  programOp =
      nn::ProgramOp::create(builder, builder.getUnknownLoc(), programName(kind),
                            builder.getFunctionType({}, {}), /*arg_attrs=*/nullptr, nullptr);
  if (!firstProgram)
    firstProgram = programOp;
  builder.setInsertionPointToEnd(&programOp.getBody().emplaceBlock());
  values.clear();
  assigned.clear();
  masked.clear();
  randomLayers.clear();
  rows = 0;
}

mlir::Value Graph::addInput(StringRef name, RankedTensorType type, ArrayRef<std::string> extents) {
  unsigned index = programOp.getNumArguments();
  mlir::NamedAttrList attributes;
  attributes.set("nn.input", builder.getStringAttr(name));
  // Only the size of what prediction reads is for its user to choose.
  if (kind == ProgramKind::Predict)
    attributes.set("nn.parameters",
                   builder.getStrArrayAttr(SmallVector<StringRef>(extents.begin(), extents.end())));
  (void)programOp.insertArgument(index, type, attributes.getDictionary(builder.getContext()),
                                 loc); // fails as eraseArguments does
  rows = type.getShape().front();
  return programOp.getArgument(index);
}

void Graph::endProgram() {
  markInfluential();
  Block &body = programOp.getBody().front();
  for (Operation &op : make_early_inc_range(reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  if (kind != ProgramKind::Predict)
    return;
  BitVector unused(body.getNumArguments());
  for (BlockArgument input : body.getArguments())
    if (input.use_empty())
      unused.set(input.getArgNumber());
  (void)programOp.eraseArguments(unused); // fails for function types of its own alone
}

/// Walks from losses, metrics and outputs to what they are computed from. Updates of running
/// statistics do not count: they only serve the values they are statistics of.
void Graph::markInfluential() {
  SmallVector<Operation *> pending;
  SmallPtrSet<Operation *, 32> seen;
  for (Operation &op : programOp.getBody().front())
    if (op.hasTrait<nn::ReadByHost>())
      pending.push_back(&op);
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (auto read = dyn_cast<nn::ReadOp>(op))
      variables.find(read.getVariable())->second.influential = true;
    for (mlir::Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && seen.insert(def).second)
        pending.push_back(def);
  }
}

LogicalResult Graph::checkAllParametersUsed() {
  for (auto variable : modelOp.getBody().getOps<nn::VariableOp>()) {
    const Variable &info = variables.find(variable.getSymName())->second;
    if (variable.getKind() == nn::VariableKind::Parameter && !info.influential)
      return emitError(info.site.loc, "parameter '")
             << variable.getSymName() << "' influences no loss, metric or output";
  }
  return success();
}

//===- Results --------------------------------------------------------------------------------===//

std::pair<mlir::Value, mlir::Value> Graph::sumAndCount(const Term &term) {
  mlir::Value sum = sumAll(toFloat(term.numerator));
  if (term.denominator)
    return {sum, sumAll(toFloat(term.denominator))};
  return {sum, constant(f32({}), elementCount(shapeOf(term.numerator)))};
}

/// In evaluation, makes the pair that of the rows that do not pad the batch. Returns why that
/// cannot be done, or an empty string.
std::string Graph::leaveOutPadding(mlir::Value &sum, mlir::Value &count) {
  if (kind != ProgramKind::Eval)
    return "";
  auto readValidRows = [&](OpBuilder &atBegin) {
    OpBuilder::InsertionGuard guard(builder);
    builder.restoreInsertionPoint(atBegin.saveInsertionPoint());
    return hostScalar("valid_rows");
  };
  nn::RowMask mask(programOp.getBody().front(), rows, readValidRows, masked);
  return mask.apply(sum, count);
}

FailureOr<std::pair<mlir::Value, mlir::Value>> Graph::validSumAndCount(const Term &term,
                                                                       Location where) {
  auto [sum, count] = sumAndCount(term);
  if (std::string reason = leaveOutPadding(sum, count); !reason.empty())
    return emitError(where, "this has ") << reason
                                         << "; reduce each row for itself, or write another one "
                                            "for evaluation: if training { ... } else { ... }";
  return std::pair(sum, count);
}

LogicalResult Graph::addLoss(const Mean &mean, Location where) {
  for (const Term &term : mean.terms) {
    auto pair = validSumAndCount(term, where);
    if (failed(pair))
      return failure();
    nn::LossOp::create(builder, loc, pair->first, pair->second,
                       builder.getF64FloatAttr(term.weight));
  }
  return success();
}

LogicalResult Graph::addMetric(StringRef name, const Mean &mean, Location where) {
  if (mean.formula.empty() && mean.terms.size() == 1)
    return addPooled(name, mean.terms.front(), where);
  Mean function = asFormula(mean);
  for (auto [i, term] : enumerate(function.terms))
    if (failed(addPooled((name + "." + Twine(i)).str(), term, where)))
      return failure();
  SmallVector<Attribute> formulas;
  if (auto known = programOp->getAttrOfType<ArrayAttr>("formulas"))
    append_range(formulas, known);
  formulas.push_back(builder.getDictionaryAttr(
      {builder.getNamedAttr("name", builder.getStringAttr(name)),
       builder.getNamedAttr("means", builder.getI64IntegerAttr(function.terms.size())),
       builder.getNamedAttr("expression", builder.getStringAttr(function.formula))}));
  programOp->setAttr("formulas", builder.getArrayAttr(formulas));
  return success();
}

LogicalResult Graph::addPooled(StringRef name, const Term &term, Location where) {
  auto pair = validSumAndCount(term, where);
  if (failed(pair))
    return failure();
  auto [sum, count] = *pair;
  if (term.weight != 1)
    sum = nn::MulOp::create(builder, loc, sum, constant(f32({}), term.weight));
  nn::MetricOp::create(builder, loc, builder.getStringAttr(name), sum, count);
  return success();
}

void Graph::addOutput(StringRef name, mlir::Value value) {
  nn::OutputOp::create(builder, loc, builder.getStringAttr(name), value);
}

//===- Variables ------------------------------------------------------------------------------===//

nn::VariableOp Graph::declare(StringRef name, RankedTensorType type, nn::VariableKind variableKind,
                              nn::InitializerAttr init) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(firstProgram);
  return nn::VariableOp::create(builder, loc, name, type, variableKind, init, nullptr, nullptr);
}

FailureOr<mlir::Value> Graph::variable(StringRef name, ArrayRef<int64_t> shape,
                                       nn::VariableKind variableKind, nn::InitializerAttr init,
                                       Site site) {
  RankedTensorType type = f32(shape);
  if (nn::lookupScalar(name))
    return emitError(site.loc, "'") << name << "' is a number of the run; give this another name";
  if (name == "__metadata__" || name.starts_with("optimizer.") || name.starts_with("data."))
    return emitError(site.loc, "'")
           << name << "' is what checkpoints call something else; give this another name";
  if (site.reuse)
    return reuse(name, type, variableKind, site);
  auto found = variables.find(name);
  if (found == variables.end()) {
    if (!isTraining())
      return emitError(site.loc, "'") << name << "' appears in @" << programName(kind)
                                      << " but not in @train, so it would never be trained";
    nn::VariableOp op = declare(name, type, variableKind, init);
    if (variableKind == nn::VariableKind::Parameter && !site.trainable)
      op->setAttr("trainable", builder.getBoolAttr(false));
    variables.try_emplace(name, Variable{op, site, kind});
    return valueOf(name, type);
  }
  Variable &known = found->second;
  if (known.lastProgram == kind) {
    InFlightDiagnostic error = emitError(site.loc, "a second variable named '")
                               << name
                               << "'; give one of the calls another name = \"...\", or "
                                  "let it take the first one's parameters by reuse = true";
    error.attachNote(known.site.loc) << "the first one";
    return error;
  }
  if (known.site.path != site.path || known.site.loc != site.loc) {
    InFlightDiagnostic error = emitError(site.loc, "'")
                               << name << "' names another layer in @" << programName(kind)
                               << " than in @train: calls in 'if training' shift the numbers of "
                                  "unnamed ones; give these layers a name = \"...\"";
    error.attachNote(known.site.loc) << "its layer in @train";
    return error;
  }
  if (known.op.getType() != type)
    return emitError(site.loc, "'")
           << name << "' has shape " << typeText(type) << " in @" << programName(kind) << " and "
           << typeText(known.op.getType()) << " in @train";
  known.lastProgram = kind;
  return valueOf(name, type);
}

/// What the program has made of a variable so far: a reused state as the use before left it.
mlir::Value Graph::valueOf(StringRef name, RankedTensorType type) {
  mlir::Value &value = values[name];
  if (!value)
    value = nn::ReadOp::create(builder, loc, type, name);
  return value;
}

FailureOr<mlir::Value> Graph::reuse(StringRef name, RankedTensorType type,
                                    nn::VariableKind variableKind, const Site &site) {
  auto found = variables.find(name);
  if (found == variables.end())
    return emitError(site.loc, "there is no '")
           << name
           << "' yet that this call could reuse; the first call of a name goes without reuse";
  Variable &known = found->second;
  std::string reason;
  if (known.op.getType() != type)
    reason = "has shape " + typeText(known.op.getType()) + ", but this call needs " +
             typeText(type) +
             "; let both calls have operands and arguments (channels, kernel, ...) of which equal "
             "shapes follow, or give this one parameters of its own: another name, without reuse";
  else if (known.op.getKind() != variableKind)
    reason = "is " + std::string(nn::stringifyVariableKind(known.op.getKind())) +
             ", but this call needs a " + std::string(nn::stringifyVariableKind(variableKind)) +
             "; give this one another name, without reuse";
  else if (variableKind == nn::VariableKind::Parameter && !site.trainable && known.site.trainable)
    reason = "is trained; 'trainable = false' belongs to the call that makes it";
  if (reason.empty()) {
    known.lastProgram = kind;
    return valueOf(name, type);
  }
  InFlightDiagnostic error = emitError(site.loc, "'")
                             << name << "' cannot be reused: it " << reason;
  error.attachNote(known.site.loc) << "what makes it";
  return error;
}

void Graph::assign(StringRef name, mlir::Value value) {
  nn::AssignOp &op = assigned[name];
  if (op)
    op.erase();
  op = nn::AssignOp::create(builder, loc, name, value);
  values[name] = value;
}

bool Graph::claimRandomStream(StringRef path, const Site &site, int64_t &stream) {
  unsigned use = randomLayers[path]++;
  std::string text = use == 0 ? path.str() : (path + "@" + Twine(use)).str();
  stream = rt::randomStream(text);
  return use == 0 || site.reuse;
}

mlir::Value Graph::hostScalar(StringRef role) {
  auto type = RankedTensorType::get({}, builder.getI64Type());
  if (!variables.contains(role)) {
    auto zero = nn::InitializerAttr::get(builder.getContext(), nn::InitializerKind::Constant, 0, 0);
    nn::VariableOp op = declare(role, type, nn::VariableKind::Scalar, zero);
    variables.try_emplace(role, Variable{op, {builder.getUnknownLoc()}, kind});
  }
  return valueOf(role, type);
}

//===- Ops ------------------------------------------------------------------------------------===//

RankedTensorType Graph::f32(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getF32Type());
}

RankedTensorType Graph::i32(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getI32Type());
}

mlir::Value Graph::constant(RankedTensorType type, double value) {
  return nn::ConstantOp::create(builder, loc, type, value);
}

mlir::Value Graph::cast(mlir::Value value, Type element) {
  if (nn::tensorType(value).getElementType() == element)
    return value;
  return nn::CastOp::create(builder, loc, RankedTensorType::get(shapeOf(value), element), value);
}

mlir::Value Graph::toFloat(mlir::Value value) { return cast(value, builder.getF32Type()); }

mlir::Value Graph::toFloat(const Value &value) {
  if (value.isTensor())
    return toFloat(value.asTensor());
  if (value.isMean())
    return materialise(value.asMean());
  return constant(f32({}), value.asDouble());
}

mlir::Value Graph::broadcast(mlir::Value value, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = shapeOf(value);
  if (from == shape)
    return value;
  SmallVector<int64_t> kept, extents;
  for (auto [axis, extent] : enumerate(from))
    if (extent == shape[axis]) {
      kept.push_back(axis);
      extents.push_back(extent);
    }
  return spread(reshape(value, extents), kept, shape);
}

mlir::Value Graph::spread(mlir::Value value, ArrayRef<int64_t> axes, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, nn::tensorType(value).getElementType());
  return nn::BroadcastOp::create(builder, loc, type, value, axes);
}

mlir::Value Graph::reshape(mlir::Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  auto type = RankedTensorType::get(shape, nn::tensorType(value).getElementType());
  return nn::ReshapeOp::create(builder, loc, type, value);
}

mlir::Value Graph::sum(mlir::Value value, ArrayRef<int64_t> axes) {
  return axes.empty() ? value : mlir::Value(nn::ReduceSumOp::create(builder, loc, value, axes));
}

mlir::Value Graph::sumAll(mlir::Value value) {
  return sum(value, to_vector(seq<int64_t>(0, shapeOf(value).size())));
}

mlir::Value Graph::compare(nn::Comparison predicate, mlir::Value a, mlir::Value b) {
  return nn::CompareOp::create(builder, loc, predicate, a, b);
}

mlir::Value Graph::stopGradient(mlir::Value value) {
  if (!isTraining())
    return value;
  return nn::StopGradientOp::create(builder, loc, value);
}

/// Where padding cannot be left out, a loss or metric of the result reports that.
mlir::Value Graph::materialise(const Mean &mean) {
  mlir::Value total;
  SmallVector<std::pair<mlir::Value, mlir::Value>> means;
  for (const Term &term : mean.terms) {
    auto [sum, count] = sumAndCount(term);
    if (leaveOutPadding(sum, count).empty())
      masked.insert_range(std::initializer_list<mlir::Value>{sum, count});
    means.emplace_back(sum, count);
  }
  if (!mean.formula.empty())
    return evaluateFormula(mean, means);
  for (auto [term, pair] : zip(mean.terms, means)) {
    auto [sum, count] = pair;
    mlir::Value value = nn::DivOp::create(builder, loc, sum, count);
    if (term.weight != 1)
      value = nn::MulOp::create(builder, loc, value, constant(f32({}), term.weight));
    total = total ? mlir::Value(nn::AddOp::create(builder, loc, total, value)) : value;
  }
  return total;
}

/// What rt::Formula::evaluate computes, by ops.
mlir::Value Graph::evaluateFormula(const Mean &mean,
                                   ArrayRef<std::pair<mlir::Value, mlir::Value>> means) {
  using Op = rt::Formula::Op;
  std::optional<rt::Formula> formula = rt::Formula::parse(mean.formula, means.size());
  SmallVector<mlir::Value> stack;
  auto number = [&](double value) { return constant(f32({}), value); };
  auto quotient = [&](mlir::Value a, mlir::Value b) -> mlir::Value {
    return nn::DivOp::create(builder, loc, a, b);
  };
  auto average = [&](ArrayRef<size_t> places) {
    if (places.size() == 1)
      return quotient(means[places[0]].first, means[places[0]].second);
    mlir::Value sum = number(0), count = number(0);
    for (size_t place : places) {
      auto [numerator, denominator] = means[place];
      mlir::Value counts = compare(nn::Comparison::NE, denominator, number(0));
      mlir::Value value =
          nn::SelectOp::create(builder, loc, counts, quotient(numerator, denominator), number(0));
      sum = nn::AddOp::create(builder, loc, sum, value);
      count = nn::AddOp::create(builder, loc, count, toFloat(counts));
    }
    return quotient(sum, count);
  };
  auto unary = [&](Op op, mlir::Value x) -> mlir::Value {
    switch (op) {
    case Op::Negate:
      return nn::NegOp::create(builder, loc, x);
    case Op::Abs:
      return nn::AbsOp::create(builder, loc, x);
    case Op::Exp:
      return nn::ExpOp::create(builder, loc, x);
    case Op::Log:
      return nn::LogOp::create(builder, loc, x);
    case Op::Log10:
      return nn::MulOp::create(builder, loc, nn::LogOp::create(builder, loc, x),
                               number(1 / std::numbers::ln10));
    case Op::Sqrt:
      return nn::SqrtOp::create(builder, loc, x);
    case Op::Tanh:
      return nn::TanhOp::create(builder, loc, x);
    case Op::Sigmoid:
      return nn::SigmoidOp::create(builder, loc, x);
    default:
      return nn::ReluOp::create(builder, loc, x);
    }
  };
  auto binary = [&](Op op, mlir::Value a, mlir::Value b) -> mlir::Value {
    switch (op) {
    case Op::Add:
      return nn::AddOp::create(builder, loc, a, b);
    case Op::Subtract:
      return nn::SubOp::create(builder, loc, a, b);
    case Op::Multiply:
      return nn::MulOp::create(builder, loc, a, b);
    default:
      return quotient(a, b);
    }
  };
  for (const rt::Formula::Step &step : formula->steps())
    if (step.op == Op::Number) {
      stack.push_back(number(step.number));
    } else if (step.op == Op::Mean) {
      stack.push_back(average(step.means));
    } else {
      mlir::Value b = stack.pop_back_val();
      stack.push_back(step.op >= Op::Add ? binary(step.op, stack.pop_back_val(), b)
                                         : unary(step.op, b));
    }
  return stack.back();
}

} // namespace dlc::fe
