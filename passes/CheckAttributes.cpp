// One schema for the model's attributes, walked together with what is there. Missing entries are
// fine unless their reader has no default.

#include "dialects/NN/InputRange.h"
#include "passes/ModelChecks.h"

#include "dialects/Exec/Exec.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dlc;

namespace {
enum class Form { Flag, Integer, Integers, Real, Range, Text, Tensor, Dictionary, Call, Monitor };

/// An entry of a dictionary, or a list of such.
struct Field {
  StringLiteral name;
  Form form;
  bool isList = false;
  bool isNeeded = false;
  ArrayRef<Field> fields = {}; // of a dictionary
};

constexpr Field sourceFields[] = {{"name", Form::Text, false, true}, {"axes", Form::Text}};
constexpr Field chainFields[] = {{"inputs", Form::Text, true, true},
                                 {"steps", Form::Call, true},
                                 {"outputs", Form::Text, true, true}};
constexpr Field dataFields[] = {{"sources", Form::Dictionary, true, false, sourceFields},
                                {"chains", Form::Dictionary, true, false, chainFields},
                                {"validation", Form::Real}};
constexpr Field trainFields[] = {{"optimizer", Form::Call},          {"epochs", Form::Integer},
                                 {"steps_per_epoch", Form::Integer}, {"schedule", Form::Call, true},
                                 {"early_stop", Form::Call},         {"monitor", Form::Monitor}};
constexpr Field layoutFields[] = {{"family", Form::Text, false, true},
                                  {"nanoseconds", Form::Integer, false, true},
                                  {"exceptions", Form::Integer, false, true}};
constexpr Field inputFields[] = {{"name", Form::Text, false, true},
                                 {"type", Form::Tensor, false, true},
                                 {"range", Form::Range},
                                 {"needed_by_predict", Form::Flag}};
constexpr Field tilingFields[] = {{"alignment", Form::Integers, false, true},
                                  {"overlap", Form::Integers, false, true},
                                  {"parameters", Form::Text, true}};
constexpr Field modelFields[] = {{"batch", Form::Integer},
                                 {"config", Form::Dictionary},
                                 {"train", Form::Dictionary, false, false, trainFields},
                                 {"data", Form::Dictionary, false, false, dataFields},
                                 {"tiling", Form::Dictionary, false, false, tilingFields},
                                 {"untiled", Form::Text},
                                 {"target", Form::Text},
                                 {"threads", Form::Integer},
                                 {"math", Form::Text},
                                 {"precision", Form::Text},
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
    return isa<StringAttr>(value);
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

LogicalResult verifyFields(nn::ModelOp model, DictionaryAttr dictionary, ArrayRef<Field> fields,
                           const std::string &path);

LogicalResult verifyValue(nn::ModelOp model, Attribute value, const Field &field,
                          const std::string &path) {
  if (!hasForm(value, field.form))
    return model.emitOpError("has ")
           << path << " = " << value << ", expected " << nameOf(field.form);
  if (field.form == Form::Dictionary)
    return verifyFields(model, cast<DictionaryAttr>(value), field.fields, path + ".");
  return success();
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
    else if (auto read = dyn_cast<exec::HostReadOp>(op);
             read && read.getKind() == exec::ResultKind::Metric)
      names.insert(read.getResult());
  });
  return names;
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
  if (known.contains(name))
    return success();
  known.insert("loss");
  InFlightDiagnostic error = model.emitOpError("has train.monitor = ")
                             << monitor << ", but @" << SymbolTable::getSymbolName(program)
                             << " has no such metric; there are ";
  llvm::interleaveComma(known, error, [&](StringRef each) { error << "'" << each << "'"; });
  return error;
}
} // namespace

LogicalResult dlc::verifyAttributes(nn::ModelOp model) {
  DictionaryAttr attributes = model->getDiscardableAttrDictionary();
  if (failed(verifyFields(model, attributes, modelFields, "")))
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
