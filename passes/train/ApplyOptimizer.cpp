// dlc-apply-optimizer: each nn.gradient becomes torch.optim's update of its parameter.
//
// All arithmetic on tensors is elementwise in the parameter's shape, so that an update fuses into
// one kernel; what depends on the step alone is computed once on scalars and broadcast. So is what
// clips gradients: one factor of all of them.

#include "dialects/NN/ParameterPatterns.h"
#include "dialects/NN/Role.h"
#include "dialects/NN/Scalars.h"
#include "passes/Passes.h"
#include "passes/train/Arithmetic.h"
#include "passes/train/LossScale.h"
#include "runtime/artifact/Ranges.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_APPLYOPTIMIZER
#include "passes/Passes.h.inc"
} // namespace dlc

//===- Configuration --------------------------------------------------------------------------===//

namespace {
/// `train` of the model. Absent entries of the optimizer have torch.optim's defaults.
class Configuration {
public:
  static FailureOr<Configuration> read(ModelOp model) {
    auto train = model->getAttrOfType<DictionaryAttr>("train");
    auto call = train ? train.getAs<DictionaryAttr>("optimizer") : DictionaryAttr();
    auto name = call ? call.getAs<StringAttr>("name") : StringAttr();
    if (!name)
      return model.emitOpError("has gradients, but no optimizer: its attribute `train` needs "
                               "optimizer = {name = \"sgd\", lr = ...}");
    if (!llvm::is_contained({"sgd", "adam", "adamw", "rmsprop"}, name.getValue()))
      return model.emitOpError("has the optimizer '")
             << name.getValue() << "', expected sgd, adam, adamw or rmsprop";
    Configuration configuration(call);
    if (failed(configuration.checkNumbers(model)) || failed(configuration.readPatterns(model)) ||
        failed(configuration.readScales(model, train)) ||
        failed(configuration.readNumber(model, train, "clip_norm", configuration.clip)) ||
        failed(configuration.readNumber(model, train, "ema", configuration.ema)))
      return failure();
    return configuration;
  }

  StringRef name() const { return call.getAs<StringAttr>("name"); }
  double number(StringRef key, double otherwise) const {
    auto attr = call.getAs<FloatAttr>(key);
    return attr ? attr.getValueAsDouble() : otherwise;
  }
  bool flag(StringRef key) const {
    auto attr = call.getAs<BoolAttr>(key);
    return attr && attr.getValue();
  }
  bool isAdam() const { return name() == "adam" || name() == "adamw"; }
  double learningRate() const { return number("lr", isAdam() ? 1e-3 : 1e-2); }
  /// Of all gradients together; 0: any norm.
  double clipNorm() const { return clip; }
  /// Of the averages of parameters; 0: there are none.
  double averageDecay() const { return ema; }
  /// Of the learning rate of some parameters.
  ArrayRef<double> factors() const { return scales; }
  std::optional<size_t> factorOf(StringRef parameter) const { return scaled.firstMatch(parameter); }
  double weightDecay() const { return number("weight_decay", name() == "adamw" ? 1e-2 : 0); }
  double weightDecay(StringRef parameter) const {
    return noDecay.match(parameter) ? 0 : weightDecay();
  }

private:
  explicit Configuration(DictionaryAttr call) : call(call) {}

  LogicalResult checkNumbers(ModelOp model) const {
    constexpr StringLiteral keys[] = {"lr",    "momentum", "beta1",       "beta2",
                                      "alpha", "eps",      "weight_decay"};
    for (StringRef key : keys)
      if (Attribute value = call.get(key); value && !isa<FloatAttr>(value))
        return model.emitOpError("has the optimizer's ")
               << key << " = " << value << ", expected a float";
    for (StringRef key : keys)
      if (rt::Range range = rt::rangeOf(name(), key); !range.contains(number(key, 0)))
        return model.emitOpError("has the optimizer's ")
               << key << " = " << number(key, 0) << ", expected a number " << range.text();
    if (flag("nesterov") && number("momentum", 0) == 0)
      return model.emitOpError("has the optimizer's nesterov without a momentum");
    return success();
  }

  LogicalResult readPatterns(ModelOp model) {
    auto exempt = call.getAs<ArrayAttr>("no_decay");
    FailureOr<ParameterPatterns> patterns = ParameterPatterns::create(
        model, "the optimizer's no_decay", exempt ? exempt.getValue() : ArrayRef<Attribute>());
    if (failed(patterns))
      return failure();
    noDecay = std::move(*patterns);
    return success();
  }

  LogicalResult readScales(ModelOp model, DictionaryAttr train) {
    SmallVector<Attribute> patterns;
    auto entries = train.getAs<ArrayAttr>("lr_scale");
    for (Attribute entry : entries ? entries.getValue() : ArrayRef<Attribute>()) {
      auto pair = dyn_cast<ArrayAttr>(entry);
      auto factor = pair && pair.size() == 2 ? dyn_cast<FloatAttr>(pair[1]) : FloatAttr();
      if (!factor)
        return model.emitOpError("has the setting lr_scale's ")
               << entry << ", expected [pattern, factor]";
      patterns.push_back(pair[0]);
      scales.push_back(factor.getValueAsDouble());
    }
    FailureOr<ParameterPatterns> created =
        ParameterPatterns::create(model, "the setting lr_scale's", patterns);
    if (failed(created))
      return failure();
    scaled = std::move(*created);
    return success();
  }

  LogicalResult readNumber(ModelOp model, DictionaryAttr train, StringRef name, double &number) {
    Attribute value = train.get(name);
    if (auto given = dyn_cast_or_null<FloatAttr>(value))
      number = given.getValueAsDouble();
    if (rt::Range range = rt::rangeOf("updates", name); value && !range.contains(number))
      return model.emitOpError("has the setting ")
             << name << " = " << value << ", expected a float " << range.text();
    return success();
  }

  DictionaryAttr call;
  ParameterPatterns noDecay, scaled;
  SmallVector<double> scales; // by pattern of `scaled`
  double clip = 0, ema = 0;
};

//===- Updates --------------------------------------------------------------------------------===//

/// Writes the updates of one program at the positions of its gradients; where gradients are
/// clipped, all at the last one's, since each update needs all gradients.
class Updater {
public:
  Updater(ModelOp model, const Configuration &configuration, ArrayRef<GradientOp> gradients)
      : model(model), configuration(configuration), last(gradients.back()),
        builder(optimizerLoc(model.getLoc()), configuration.clipNorm() ? last : gradients.front()),
        stamp({Phase::Update}), parameters(model) {
    builder.setListener(&stamp);
    gradientScale = readScalar(builder, builder.getLoc(), model, "inverse_world");
    if (configuration.clipNorm())
      gradientScale = clipped(gradients, gradientScale);
    Value learningRate = readScalar(builder, builder.getLoc(), model, "lr");
    cast<VariableOp>(SymbolTable::lookupSymbolIn(model, "lr"))
        .setInitAttr(InitializerAttr::get(model.getContext(), InitializerKind::Constant,
                                          configuration.learningRate(), 0));
    Value step = configuration.isAdam() ? readStep(learningRate) : Value();
    Arithmetic m(builder, cast<RankedTensorType>(learningRate.getType()));
    base = ratesOf(m, learningRate, step);
    for (double factor : configuration.factors())
      scaled.push_back(
          ratesOf(m, m.scale(learningRate, factor), step ? m.scale(step, factor) : Value()));
  }

  void update(GradientOp gradient) {
    builder.setInsertionPoint(configuration.clipNorm() ? last : gradient);
    builder.setLoc(optimizerLoc(gradient.getLoc()));
    parameter = parameters.lookup<VariableOp>(gradient.getVariable());
    std::optional<size_t> factor = configuration.factorOf(parameter.getSymName());
    rates = factor ? scaled[*factor] : base;
    stamp.role.variable = gradient.getVariableAttr();
    auto type = cast<RankedTensorType>(parameter.getType());
    Arithmetic m(builder, type);
    Value value = ReadOp::create(builder, type, parameter.getSymName());
    Value mean = m.mul(gradient.getValue(), m.broadcast(gradientScale));
    Value updated = configuration.isAdam()          ? adam(m, value, mean)
                    : configuration.name() == "sgd" ? sgd(m, value, mean)
                                                    : rmsprop(m, value, mean);
    AssignOp::create(builder, parameter.getSymName(), updated);
    if (configuration.averageDecay() != 0)
      average(m, updated);
    gradient.erase();
  }

private:
  /// What the step takes of a direction: the learning rate, and Adam's with its correction; and
  /// what AdamW's decay leaves of a value.
  struct Rates {
    Value learning, step, kept;
  };

  /// By scalars: an update has to share no tensor with others, or they would not be one kernel.
  Rates ratesOf(Arithmetic &m, Value learning, Value step) {
    Rates rates{learning, step, {}};
    if (configuration.name() == "adamw" && configuration.weightDecay() != 0)
      rates.kept = m.sub(m.constant(1), m.scale(learning, configuration.weightDecay()));
    return rates;
  }

  /// Names the layer "optimizer", at the place in the source that the gradient is of.
  static Location optimizerLoc(Location loc) {
    return NameLoc::get(StringAttr::get(loc.getContext(), "optimizer"), loc);
  }

  /// torch.nn.utils.clip_grad_norm_, as a scalar that the sums over ranks are multiplied by. The
  /// norm adds up squares by parameter in the order of their declaration, whatever the order in
  /// which gradients arrive.
  Value clipped(ArrayRef<GradientOp> gradients, Value inverseWorld) {
    Arithmetic m(builder, cast<RankedTensorType>(inverseWorld.getType()));
    Value total;
    for (GradientOp gradient : gradients) {
      stamp.role.variable = gradient.getVariableAttr();
      Value sum = sumOfSquares(gradient.getValue());
      total = total ? m.add(total, sum) : sum;
    }
    stamp.role.variable = {};
    Value norm = m.mul(m.sqrt(total), inverseWorld);
    Value share = m.div(m.constant(configuration.clipNorm()), m.add(norm, m.constant(1e-6)));
    return m.mul(m.min(share, m.constant(1)), inverseWorld);
  }

  Value sumOfSquares(Value x) {
    auto type = cast<RankedTensorType>(x.getType());
    Value square = MulOp::create(builder, x, x);
    if (type.getRank() == 0)
      return square;
    return ReduceSumOp::create(builder, square,
                               llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())));
  }

  /// torch.optim.SGD with dampening 0; the buffer starts at 0, which makes its first value the
  /// gradient.
  Value sgd(Arithmetic &m, Value value, Value gradient) {
    double momentum = configuration.number("momentum", 0);
    gradient = addDecay(m, value, gradient);
    if (momentum != 0) {
      Value buffer = m.add(m.scale(readSlot("momentum_buffer"), momentum), gradient);
      assignSlot("momentum_buffer", buffer);
      gradient =
          configuration.flag("nesterov") ? m.add(gradient, m.scale(buffer, momentum)) : buffer;
    }
    return m.sub(value, m.mul(m.broadcast(rates.learning), gradient));
  }

  /// torch.optim.RMSprop, not centered. The momentum's buffer has no part of lr.
  Value rmsprop(Arithmetic &m, Value value, Value gradient) {
    double alpha = configuration.number("alpha", 0.99);
    double momentum = configuration.number("momentum", 0);
    gradient = addDecay(m, value, gradient);
    Value square = m.add(m.scale(readSlot("square_avg"), alpha),
                         m.scale(m.mul(gradient, gradient), 1 - alpha));
    assignSlot("square_avg", square);
    Value step =
        m.div(gradient, m.add(m.sqrt(square), m.constant(configuration.number("eps", 1e-8))));
    if (momentum != 0) {
      step = m.add(m.scale(readSlot("momentum_buffer"), momentum), step);
      assignSlot("momentum_buffer", step);
    }
    return m.sub(value, m.mul(m.broadcast(rates.learning), step));
  }

  /// torch.optim.Adam and AdamW (decoupled decay).
  Value adam(Arithmetic &m, Value value, Value gradient) {
    double beta1 = configuration.number("beta1", 0.9), beta2 = configuration.number("beta2", 0.999);
    if (configuration.name() == "adam")
      gradient = addDecay(m, value, gradient);
    else
      value = decay(m, value);
    Value oldFirst = readSlot("exp_avg"), oldSecond = readSlot("exp_avg_sq");
    Value first = m.add(oldFirst, m.scale(m.sub(gradient, oldFirst), 1 - beta1));
    Value second = m.add(m.scale(oldSecond, beta2), m.scale(m.mul(gradient, gradient), 1 - beta2));
    assignSlot("exp_avg", first);
    assignSlot("exp_avg_sq", second);
    Value deviation = m.div(m.sqrt(second), m.broadcast(secondCorrection));
    Value denominator = m.add(deviation, m.constant(configuration.number("eps", 1e-8)));
    return m.sub(value, m.mul(m.broadcast(rates.step), m.div(first, denominator)));
  }

  /// torch.optim.swa_utils.get_ema_avg_fn. The runtime starts the average as the parameter's value.
  void average(Arithmetic &m, Value updated) {
    Value old = readSlot("ema");
    assignSlot("ema", m.add(old, m.scale(m.sub(updated, old), 1 - configuration.averageDecay())));
  }

  /// gradient + weight_decay * value.
  Value addDecay(Arithmetic &m, Value value, Value gradient) {
    double rate = configuration.weightDecay(parameter.getSymName());
    return rate == 0 ? gradient : m.add(gradient, m.scale(value, rate));
  }

  /// value * (1 - lr * weight_decay).
  Value decay(Arithmetic &m, Value value) {
    if (configuration.weightDecay(parameter.getSymName()) == 0)
      return value;
    return m.mul(value, m.broadcast(rates.kept));
  }

  /// lr / (1 - beta1^t); `secondCorrection` becomes sqrt(1 - beta2^t), t = step + 1 without steps
  /// that changed nothing. In f32 the difference would lose four digits at the first steps;
  /// 1 - e^-2x = 2 tanh x / (1 + tanh x) loses none.
  Value readStep(Value learningRate) {
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    Arithmetic m(builder, scalar);
    Value step = readScalar(builder, builder.getLoc(), model, "step");
    Value t = m.add(CastOp::create(builder, scalar, step), m.constant(1));
    if (LossScale::isNeeded(model))
      t = m.sub(t, LossScale::readSkipped(builder, builder.getLoc(), model));
    auto correction = [&](double beta) -> Value {
      if (beta == 0)
        return m.constant(1);
      Value tanh = m.tanh(m.scale(t, -std::log(beta) / 2));
      return m.div(m.scale(tanh, 2), m.add(tanh, m.constant(1)));
    };
    Value size = m.div(learningRate, correction(configuration.number("beta1", 0.9)));
    secondCorrection = m.sqrt(correction(configuration.number("beta2", 0.999)));
    return size;
  }

  std::string slotName(StringRef slot) {
    return ("optimizer." + slot + "." + parameter.getSymName()).str();
  }

  /// The slot's old value; creates the variable.
  Value readSlot(StringRef slot) {
    std::string name = slotName(slot);
    auto type = cast<RankedTensorType>(parameter.getType());
    OpBuilder behind(model.getContext());
    behind.setInsertionPointAfter(parameter);
    auto zero = InitializerAttr::get(model.getContext(), InitializerKind::Constant, 0, 0);
    VariableOp::create(behind, parameter.getLoc(), name, type, VariableKind::Slot, zero,
                       FlatSymbolRefAttr::get(parameter.getSymNameAttr()),
                       builder.getStringAttr(slot));
    return ReadOp::create(builder, type, name);
  }

  void assignSlot(StringRef slot, Value value) { AssignOp::create(builder, slotName(slot), value); }

  ModelOp model;
  const Configuration &configuration;
  GradientOp last;
  ImplicitLocOpBuilder builder;
  RoleStamp stamp;
  SymbolTable parameters;
  Rates base;
  SmallVector<Rates> scaled; // by factor of the configuration
  VariableOp parameter;      // being updated
  Rates rates;               // of that parameter
  Value gradientScale, secondCorrection;
};

//===- Pass -----------------------------------------------------------------------------------===//

class ApplyOptimizerPass : public dlc::impl::ApplyOptimizerBase<ApplyOptimizerPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Train)))
      return signalPassFailure();
    ModelOp model = getOperation();
    ProgramOp train = trainProgram(model);
    if (!train)
      return;
    SmallVector<GradientOp> gradients(train.getBody().getOps<GradientOp>());
    if (gradients.empty())
      return;
    FailureOr<Configuration> configuration = Configuration::read(model);
    if (failed(configuration))
      return signalPassFailure();
    std::optional<LossScale> scale;
    if (LossScale::isNeeded(model))
      scale.emplace(model, gradients);
    Updater updater(model, *configuration, gradients);
    for (GradientOp gradient : gradients)
      updater.update(gradient);
    if (scale)
      scale->guardAssignments();
  }
};
} // namespace
