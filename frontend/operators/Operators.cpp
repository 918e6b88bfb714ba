// Lookup in the table and matching of arguments.
#include "frontend/operators/Operators.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

static ArrayRef<CallSpec> tableOf(CallKind kind) {
  return kind == CallKind::Operator ? operatorTable() : configurationTable();
}

const CallSpec *lookupCall(StringRef name, CallKind kind) {
  for (const CallSpec &spec : tableOf(kind))
    if (spec.kind == kind && spec.name == name)
      return &spec;
  return nullptr;
}

std::vector<StringRef> callNames(CallKind kind) {
  std::vector<StringRef> names;
  for (const CallSpec &spec : tableOf(kind))
    if (spec.kind == kind)
      names.push_back(spec.name);
  return names;
}

StringRef kindName(CallKind kind) {
  switch (kind) {
  case CallKind::Operator:
    return "operator";
  case CallKind::Optimizer:
    return "optimizer";
  case CallKind::Schedule:
    return "schedule";
  case CallKind::EarlyStop:
    return "early stop";
  case CallKind::DataStep:
    return "data step";
  }
  llvm_unreachable("all kinds are named");
}

static SmallVector<StringRef> split(StringRef words) {
  SmallVector<StringRef> list;
  words.split(list, ' ', -1, /*KeepEmpty=*/false);
  return list;
}

ArrayRef<StringRef> argumentWords() {
  static const SmallVector<StringRef> known = [] {
    SmallVector<StringRef> words;
    for (ArrayRef<CallSpec> table : {operatorTable(), configurationTable()})
      for (const CallSpec &spec : table)
        for (const ArgumentSpec &argument : spec.arguments)
          for (StringRef word : split(argument.words))
            if (!is_contained(words, word))
              words.push_back(word);
    return words;
  }();
  return known;
}

std::string describe(const ArgumentSpec &argument) {
  static constexpr std::pair<Accept, StringLiteral> texts[] = {
      {Int, "an int"},
      {Float, "a number"},
      {Bool, "true or false"},
      {Text, "a string"},
      {IntList, "a list of ints"},
      {FloatList, "a list of numbers"},
      {TextList, "a list of strings"},
      {Tensor, "a tensor"},
      {TensorList, "a list of tensors"},
      {Anything, "a value"},
  };
  SmallVector<std::string> parts;
  for (auto [accept, text] : texts)
    if (argument.accepts & accept)
      parts.push_back(text.str());
  for (StringRef word : split(argument.words))
    parts.push_back(word.str());
  return join(parts, " or ");
}

//===- Matching -------------------------------------------------------------------------------===//

static bool accepts(const ArgumentSpec &argument, const Value &value) {
  unsigned set = argument.accepts;
  auto each = [&](unsigned single) {
    return all_of(value.asList(), [&](const Value &item) {
      return (single == Tensor && item.isGraph()) || (single == Int && item.isInt()) ||
             (single == Text && item.isString()) ||
             (single == Float && (item.isInt() || item.isFloat()));
    });
  };
  if (set & Anything)
    return true;
  if (value.isInt())
    return set & (Int | Float);
  if (value.isFloat())
    return set & Float;
  if (value.isBool())
    return set & Bool;
  if (value.isGraph())
    return set & Tensor;
  if (value.isString())
    return (set & Text) || is_contained(split(argument.words), value.asString());
  if (value.isList())
    return ((set & IntList) && each(Int)) || ((set & FloatList) && each(Float)) ||
           ((set & TextList) && each(Text)) || ((set & TensorList) && each(Tensor));
  return false;
}

/// Defaults of the table: an int, a float, a bool, a list of these, else a word.
static Value constantValue(StringRef text) {
  int64_t i = 0;
  double d = 0;
  if (text == "true" || text == "false")
    return Value(text == "true");
  if (text.consume_front("[") && text.consume_back("]")) {
    SmallVector<StringRef> items;
    text.split(items, ", ", -1, /*KeepEmpty=*/false);
    std::vector<Value> values;
    for (StringRef item : items)
      values.push_back(constantValue(item));
    return Value::list(std::move(values));
  }
  if (!text.getAsInteger(10, i))
    return Value(i);
  if (!text.getAsDouble(d))
    return Value(d);
  return Value(text.str());
}

static Value defaultValue(const ArgumentSpec &argument) {
  return argument.defaultText.starts_with("=") ? Value() : constantValue(argument.defaultText);
}

static LogicalResult checkType(const CallSpec &spec, const ArgumentSpec &argument,
                               const BoundArgument &bound, Diagnostics &diags) {
  if (accepts(argument, bound.value))
    return success();
  std::string hint;
  if (bound.value.isString()) {
    SmallVector<StringRef> words = split(argument.words);
    hint = didYouMean(bound.value.asString(), words);
  }
  return diags.error(bound.loc, "argument '" + argument.name + "' of " + spec.name + " expects " +
                                    describe(argument) + ", got " + describe(bound.value) + hint);
}

/// Index of the table's argument that a given one means.
static FailureOr<size_t> findArgument(const CallSpec &spec, const GivenArgument &given,
                                      size_t position, Diagnostics &diags) {
  ArrayRef<ArgumentSpec> table = spec.arguments;
  if (given.keyword.empty()) {
    if (!table.empty() && (table.front().accepts & Rest))
      return 0;
    if (position < table.size())
      return position;
    return diags.error(given.loc, spec.name + " takes " + Twine(table.size()) +
                                      (table.size() == 1 ? " argument" : " arguments") +
                                      ", got more");
  }
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].name == given.keyword)
      return i;
  SmallVector<StringRef> names;
  for (const ArgumentSpec &argument : table)
    names.push_back(argument.name);
  return diags.error(given.loc, spec.name + " has no argument '" + given.keyword + "'; it takes " +
                                    listNames(names) + didYouMean(given.keyword, names));
}

LogicalResult bindArguments(const CallSpec &spec, SMLoc callLoc, ArrayRef<GivenArgument> given,
                            Diagnostics &diags, SmallVectorImpl<BoundArgument> &bound) {
  bound.assign(spec.arguments.size(), {});
  std::vector<Value> rest;
  for (auto [position, argument] : enumerate(given)) {
    FailureOr<size_t> index = findArgument(spec, argument, position, diags);
    if (failed(index))
      return failure();
    BoundArgument &target = bound[*index];
    if (argument.keyword.empty() && (spec.arguments[*index].accepts & Rest))
      rest.push_back(argument.value);
    else if (target.loc.isValid())
      return diags.error(argument.loc, "argument '" + spec.arguments[*index].name + "' of " +
                                           spec.name + " is given twice");
    else
      target.value = argument.value;
    if (!target.loc.isValid())
      target.loc = argument.valueLoc;
  }
  if (!rest.empty()) {
    bool isOneList = rest.size() == 1 && rest.front().isList();
    bound.front().value = isOneList ? rest.front() : Value::list(std::move(rest));
  }
  for (auto [argument, target] : zip(spec.arguments, bound)) {
    if (target.loc.isValid()) {
      if (failed(checkType(spec, argument, target, diags)))
        return failure();
    } else if (argument.defaultText.empty()) {
      return diags.error(callLoc, spec.name + " needs its argument '" + argument.name +
                                      "': " + describe(argument) + ", " + argument.doc);
    } else {
      target.value = defaultValue(argument);
    }
  }
  return success();
}

} // namespace dlc::fe
