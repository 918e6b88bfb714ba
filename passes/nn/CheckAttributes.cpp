// A schema of the model's attributes is walked together with the attributes. An entry may be
// missing if its reader has a default.

#include "dialects/Exec/Exec.h"
#include "dialects/NN/InputRange.h"
#include "dialects/NN/ParameterPatterns.h"
#include "passes/nn/ModelChecks.h"
#include "runtime/artifact/Formula.h"
#include "runtime/artifact/Ranges.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dlc;

namespace {
enum class Form {
  Flag,
  Integer,
  Integers,
  Real,
  Range,
  Text,
  Tensor,
  Dictionary,
  Call,
  Monitor,
  Pattern,
  Scale
};

/// An entry of a dictionary, or a list of such.
struct Field {
  StringLiteral name;
  Form form;
  bool isList = false;
  bool isNeeded = false;
  ArrayRef<Field> fields = {}; // of a dictionary
  rt::Range range = {};        // of a number
  StringLiteral choices = "";  // of a text, divided by |; empty: any
};

constexpr Field integer(StringLiteral name, rt::Range range, bool isNeeded = false) {
  return {name, Form::Integer, false, isNeeded, {}, range};
}
constexpr Field real(StringLiteral name, rt::Range range, bool isNeeded = false) {
  return {name, Form::Real, false, isNeeded, {}, range};
}
constexpr Field choice(StringLiteral name, StringLiteral choices) {
  return {name, Form::Text, false, false, {}, {}, choices};
}
constexpr rt::Range sixtyThreeBits = {0, 0x1p63, false, true};

constexpr Field sourceFields[] = {{"name", Form::Text, false, true}, {"axes", Form::Text}};
constexpr Field chainFields[] = {{"inputs", Form::Text, true, true},
                                 {"steps", Form::Call, true},
                                 {"outputs", Form::Text, true, true}};
constexpr Field dataFields[] = {{"sources", Form::Dictionary, true, false, sourceFields},
                                {"chains", Form::Dictionary, true, false, chainFields},
                                real("validation", rt::ranges::share)};
constexpr Field trainFields[] = {{"optimizer", Form::Call},
                                 integer("epochs", rt::ranges::positiveCount),
                                 integer("steps_per_epoch", rt::ranges::count),
                                 {"schedule", Form::Call, true},
                                 {"early_stop", Form::Call},
                                 {"freeze", Form::Pattern, true},
                                 {"lr_scale", Form::Scale, true},
                                 real("clip_norm", rt::rangeOf("updates", "clip_norm")),
                                 real("ema", rt::rangeOf("updates", "ema")),
                                 {"monitor", Form::Monitor}};
constexpr Field layoutFields[] = {{"family", Form::Text, false, true},
                                  integer("nanoseconds", sixtyThreeBits, true),
                                  integer("exceptions", rt::ranges::count, true)};
constexpr Field inputFields[] = {{"name", Form::Text, false, true},
                                 {"type", Form::Tensor, false, true},
                                 {"range", Form::Range},
                                 {"sums_to_one", Form::Flag},
                                 {"needed_by_predict", Form::Flag}};
constexpr Field tilingFields[] = {{"alignment", Form::Integers, false, true},
                                  {"overlap", Form::Integers, false, true},
                                  {"parameters", Form::Text, true}};
constexpr Field linkFields[] = {real("gbit_per_s", rt::ranges::positive, true),
                                real("latency_us", rt::ranges::positive, true)};
constexpr Field modelFields[] = {{"batch", Form::Integer},
                                 {"config", Form::Dictionary},
                                 {"train", Form::Dictionary, false, false, trainFields},
                                 {"data", Form::Dictionary, false, false, dataFields},
                                 {"tiling", Form::Dictionary, false, false, tilingFields},
                                 {"untiled", Form::Text},
                                 {"eval_tiling", Form::Dictionary, false, false, tilingFields},
                                 {"target", Form::Text},
                                 integer("threads", rt::ranges::threads),
                                 choice("math", "strict|fast"),
                                 choice("precision", "f32|bf16|f16"),
                                 choice("wire", "f32|bf16"),
                                 {"sources", Form::Text},
                                 integer("bucket_size", sixtyThreeBits),
                                 {"link", Form::Dictionary, false, false, linkFields},
                                 {"no_overlap", Form::Flag},
                                 {"layouts", Form::Dictionary, true, false, layoutFields},
                                 {"inputs", Form::Dictionary, true, false, inputFields}};

bool isInteger(Attribute value) {
  auto integer = dyn_cast<IntegerAttr>(value);
  return integer &&
         (integer.getType().isIndex() || (integer.getType().isSignlessInteger() &&
                                          integer.getType().getIntOrFloatBitWidth() <= 64));
}

/// An argument of a call: what an artifact can store.
bool isArgument(Attribute value) {
  if (auto list = dyn_cast<ArrayAttr>(value))
    return llvm::all_of(list, isArgument);
  return isa<FloatAttr, StringAttr>(value) || isInteger(value);
}

/// The string of that name, empty if there is none.
StringRef textOf(DictionaryAttr dictionary, StringRef name) {
  auto text = dictionary.getAs<StringAttr>(name);
  return text ? text.getValue() : StringRef();
}

bool hasForm(Attribute value, Form form) {
  auto dictionary = dyn_cast<DictionaryAttr>(value);
  auto list = dyn_cast<ArrayAttr>(value);
  switch (form) {
  case Form::Flag:
    return isa<BoolAttr>(value);
  case Form::Integer:
    return isInteger(value) && !isa<BoolAttr>(value);
  case Form::Integers:
    return isa<DenseI64ArrayAttr>(value);
  case Form::Real:
    return isa<FloatAttr>(value);
  case Form::Range:
    return nn::isRange(value);
  case Form::Text:
  case Form::Pattern:
    return isa<StringAttr>(value);
  case Form::Scale:
    return list && list.size() == 2 && isa<StringAttr>(list[0]) && isa<FloatAttr>(list[1]);
  case Form::Tensor:
    return isa<TypeAttr>(value) && nn::isTensor(cast<TypeAttr>(value).getValue());
  case Form::Dictionary:
    return bool(dictionary);
  case Form::Call:
    return dictionary && dictionary.getAs<StringAttr>("name") &&
           llvm::all_of(dictionary, [](NamedAttribute a) { return isArgument(a.getValue()); });
  case Form::Monitor:
    return dictionary && dictionary.getAs<StringAttr>("name") &&
           llvm::is_contained({"max", "min"}, textOf(dictionary, "goal"));
  }
  llvm_unreachable("all forms are listed");
}

StringRef nameOf(Form form) {
  switch (form) {
  case Form::Flag:
    return "true or false";
  case Form::Integer:
    return "an integer";
  case Form::Integers:
    return "array<i64: ...>";
  case Form::Real:
    return "a float";
  case Form::Range:
    return "array<f64: low, high>";
  case Form::Text:
    return "a string";
  case Form::Pattern:
    return "a pattern of parameters' names";
  case Form::Scale:
    return "[a pattern of parameters' names, a float]";
  case Form::Tensor:
    return "a tensor's type";
  case Form::Dictionary:
    return "a dictionary";
  case Form::Call:
    return "a call {name = \"...\", argument = value}";
  case Form::Monitor:
    return "{name = a metric or \"loss\", goal = \"max\" or \"min\"}";
  }
  llvm_unreachable("all forms are listed");
}

/// Reports a number, or a number of a list, outside of its range.
LogicalResult verifyRange(nn::ModelOp model, Attribute value, const rt::Range &range,
                          const std::string &path) {
  if (auto list = dyn_cast<ArrayAttr>(value))
    return success(llvm::all_of(
        list, [&](Attribute entry) { return succeeded(verifyRange(model, entry, range, path)); }));
  double number = 0;
  if (auto real = dyn_cast<FloatAttr>(value))
    number = real.getValueAsDouble();
  else if (auto integer = dyn_cast<IntegerAttr>(value); integer && !isa<BoolAttr>(value))
    number = static_cast<double>(integer.getInt());
  else
    return success();
  if (range.contains(number))
    return success();
  return model.emitOpError("has ")
         << path << " = " << value << ", expected a number " << range.text();
}

LogicalResult verifyCall(nn::ModelOp model, DictionaryAttr call, const std::string &path) {
  StringRef name = call.getAs<StringAttr>("name").getValue();
  for (NamedAttribute argument : call)
    if (failed(verifyRange(model, argument.getValue(),
                           rt::rangeOf(name, argument.getName().getValue()),
                           path + "." + argument.getName().str())))
      return failure();
  return success();
}

LogicalResult verifyChoice(nn::ModelOp model, Attribute value, StringRef choices,
                           const std::string &path) {
  if (choices.empty() ||
      llvm::is_contained(llvm::split(choices, '|'), cast<StringAttr>(value).getValue()))
    return success();
  return model.emitOpError("has ") << path << " = " << value << ", expected one of " << choices;
}

LogicalResult verifyPattern(nn::ModelOp model, StringAttr pattern, const std::string &path) {
  std::string fault = nn::patternFault(model, pattern);
  return fault.empty()
             ? success()
             : model.emitOpError("has ") << path << " = " << pattern << ", which " << fault;
}

LogicalResult verifyFields(nn::ModelOp model, DictionaryAttr dictionary, ArrayRef<Field> fields,
                           const std::string &path);

LogicalResult verifyValue(nn::ModelOp model, Attribute value, const Field &field,
                          const std::string &path) {
  if (!hasForm(value, field.form))
    return model.emitOpError("has ")
           << path << " = " << value << ", expected " << nameOf(field.form);
  switch (field.form) {
  case Form::Dictionary:
    return verifyFields(model, cast<DictionaryAttr>(value), field.fields, path + ".");
  case Form::Call:
    return verifyCall(model, cast<DictionaryAttr>(value), path);
  case Form::Text:
    return verifyChoice(model, value, field.choices, path);
  case Form::Pattern:
    return verifyPattern(model, cast<StringAttr>(value), path);
  case Form::Scale:
    if (failed(verifyPattern(model, cast<StringAttr>(cast<ArrayAttr>(value)[0]), path)))
      return failure();
    return verifyRange(model, value, rt::rangeOf("updates", field.name), path);
  default:
    return verifyRange(model, value, field.range, path);
  }
}

LogicalResult verifyFields(nn::ModelOp model, DictionaryAttr dictionary, ArrayRef<Field> fields,
                           const std::string &prefix) {
  for (const Field &field : fields) {
    std::string path = prefix + field.name.str();
    Attribute value = dictionary.get(field.name);
    if (!value && field.isNeeded)
      return model.emitOpError("has ") << prefix.substr(0, prefix.size() - 1) << " = " << dictionary
                                       << " without '" << field.name << "'";
    if (!value)
      continue;
    if (!field.isList) {
      if (failed(verifyValue(model, value, field, path)))
        return failure();
      continue;
    }
    auto list = dyn_cast<ArrayAttr>(value);
    if (!list)
      return model.emitOpError("has ")
             << path << " = " << value << ", expected a list, each " << nameOf(field.form);
    for (auto [i, entry] : llvm::enumerate(list))
      if (failed(verifyValue(model, entry, field, path + "[" + std::to_string(i) + "]")))
        return failure();
  }
  return success();
}

/// Metrics of the program, at any stage.
llvm::SetVector<StringRef> metricsOf(Operation *program) {
  llvm::SetVector<StringRef> names;
  program->walk([&](Operation *op) {
    if (auto metric = dyn_cast<nn::MetricOp>(op))
      names.insert(metric.getMetric());
    else if (auto read = dyn_cast<exec::DownloadOp>(op);
             read && read.getKind() == exec::ResultKind::Metric)
      names.insert(read.getResult());
  });
  return names;
}

/// `formulas` of a program are metrics that are functions of others: {name, means = how many
/// others, called name.0, name.1 and so on, expression = as runtime/artifact/Formula.h reads it}.
ArrayAttr formulasOf(Operation *program) { return program->getAttrOfType<ArrayAttr>("formulas"); }

LogicalResult verifyFormulas(Operation *program) {
  if (!program->hasAttr("formulas"))
    return success();
  llvm::SetVector<StringRef> metrics = metricsOf(program), names = metrics;
  names.insert("loss");
  auto refuse = [&](Attribute formula, const Twine &reason) {
    return program->emitOpError("has formula ") << formula << ", " << reason;
  };
  if (!formulasOf(program))
    return refuse(program->getAttr("formulas"), "expected a list");
  for (Attribute entry : formulasOf(program)) {
    auto formula = dyn_cast<DictionaryAttr>(entry);
    auto means = formula ? formula.getAs<IntegerAttr>("means") : IntegerAttr();
    if (!means || means.getInt() < 1 ||
        means.getInt() > static_cast<int64_t>(rt::Formula::maxMeans) ||
        textOf(formula, "name").empty())
      return refuse(entry, "expected {name, means, expression}");
    StringRef name = textOf(formula, "name");
    if (!names.insert(name))
      return refuse(entry, "which has the name of another result");
    for (int64_t i = 0; i < means.getInt(); ++i)
      if (!metrics.contains((name + "." + Twine(i)).str()))
        return refuse(entry, "but there is no metric '" + name + "." + Twine(i) + "'");
    if (!rt::Formula::parse(textOf(formula, "expression"), static_cast<size_t>(means.getInt())))
      return refuse(entry, "whose expression is none of its means");
  }
  return success();
}

/// The monitor is the loss, which training makes small, or a metric that evaluation has. @eval may
/// still have to be derived from @train.
LogicalResult verifyMonitor(nn::ModelOp model, DictionaryAttr monitor) {
  StringRef name = textOf(monitor, "name");
  if (name == "loss")
    return textOf(monitor, "goal") == "min"
               ? success()
               : model.emitOpError("has train.monitor = ")
                     << monitor << "; training makes the loss small, so its goal is \"min\"";
  Operation *program = SymbolTable::lookupSymbolIn(model, "eval");
  if (!program)
    program = SymbolTable::lookupSymbolIn(model, "train");
  if (!program)
    return success();
  llvm::SetVector<StringRef> known = metricsOf(program);
  if (ArrayAttr formulas = formulasOf(program))
    for (auto formula : formulas.getAsRange<DictionaryAttr>())
      known.insert(textOf(formula, "name"));
  if (known.contains(name))
    return success();
  known.insert("loss");
  InFlightDiagnostic error = model.emitOpError("has train.monitor = ")
                             << monitor << ", but @"
                             << SymbolTable::getSymbolName(program).getValue()
                             << " has no such metric; there are ";
  llvm::interleaveComma(known, error, [&](StringRef each) { error << "'" << each << "'"; });
  return error;
}
} // namespace

LogicalResult dlc::verifyAttributes(nn::ModelOp model) {
  DictionaryAttr attributes = model->getDiscardableAttrDictionary();
  if (failed(verifyFields(model, attributes, modelFields, "")))
    return failure();
  for (Operation &program : model.getBody().front())
    if (isa<nn::ProgramOp, exec::ProgramOp>(program) && failed(verifyFormulas(&program)))
      return failure();
  auto train = attributes.getAs<DictionaryAttr>("train");
  if (auto monitor = train ? train.getAs<DictionaryAttr>("monitor") : DictionaryAttr())
    if (failed(verifyMonitor(model, monitor)))
      return failure();
  if (auto config = attributes.getAs<DictionaryAttr>("config"))
    for (NamedAttribute entry : config)
      if (!isArgument(entry.getValue()))
        return model.emitOpError("has config.")
               << entry.getName().getValue() << " = " << entry.getValue()
               << ", expected a number, a string or a list of such";
  return success();
}
