#include "frontend/Configuration.h"

#include "dialects/NN/ParameterPatterns.h"
#include "frontend/syntax/Habits.h"
#include "frontend/syntax/Parser.h"
#include "runtime/artifact/Ranges.h"

using namespace llvm;
using mlir::Attribute;
using mlir::FailureOr;

namespace dlc::fe {

static constexpr StringLiteral dataEntries[] = {"validation"};

//===- Settings -------------------------------------------------------------------------------===//

static void setEntry(std::vector<Entry> &entries, Entry entry) {
  auto old = find_if(entries, [&](const Entry &other) { return other.name == entry.name; });
  if (old != entries.end())
    *old = std::move(entry);
  else
    entries.push_back(std::move(entry));
}

LogicalResult applyBlockSettings(ModelFile &file, MutableArrayRef<Setting> settings,
                                 Diagnostics &diags) {
  std::pair<StringRef, std::vector<Entry> *> blocks[] = {
      {"train.", &file.train}, {"data.", &file.data}, {"predict.", &file.predict}};
  for (Setting &setting : settings)
    for (auto [prefix, entries] : blocks) {
      StringRef name = setting.name;
      if (!name.consume_front(prefix))
        continue;
      setting.used = true;
      SMLoc loc = SMLoc::getFromPointer(name.data());
      if (entries == &file.predict) { // how it reads depends on the parameter
        setEntry(*entries, {loc, name, nullptr, setting.text});
        continue;
      }
      ExprPtr value = Parser(setting.text, diags).parseWholeExpression();
      if (!value)
        return failure();
      setEntry(*entries, {loc, name, std::move(value), {}});
    }
  return success();
}

LogicalResult checkSettingsUsed(const ModelFile &file, ArrayRef<Setting> settings,
                                Diagnostics &diags) {
  SmallVector<StringRef> known;
  for (const Parameter &parameter : file.model->parameters)
    known.push_back(parameter.name);
  for (const Setting &setting : settings)
    if (!setting.used)
      return diags.error(SMLoc::getFromPointer(setting.name.data()),
                         "model '" + file.model->name + "' has no parameter '" + setting.name +
                             "'; it has " + listNames(known) +
                             ", and the blocks are set by train.NAME, data.NAME, predict.NAME" +
                             didYouMean(setting.name, known));
  return success();
}

//===- Calls ----------------------------------------------------------------------------------===//

static bool isFloats(const ArgumentSpec &argument) {
  return (argument.accepts & (Float | FloatList)) && !(argument.accepts & (Int | IntList));
}

static Attribute toAttr(mlir::Builder &builder, const Value &value, bool asFloats) {
  if (value.isBool())
    return builder.getBoolAttr(value.asBool());
  if (value.isNumber() && (asFloats || value.isFloat()))
    return builder.getF64FloatAttr(value.asDouble());
  if (value.isInt())
    return builder.getI64IntegerAttr(value.asInt());
  if (value.isString())
    return builder.getStringAttr(value.asString());
  // A list with one float becomes a list of floats, since readers take lists of one type.
  ArrayRef<Value> items = value.asList();
  asFloats |= any_of(items, [](const Value &item) { return item.isFloat(); });
  SmallVector<Attribute> attributes;
  for (const Value &item : items)
    attributes.push_back(toAttr(builder, item, asFloats));
  return builder.getArrayAttr(attributes);
}

/// Numbers are in the range that makes sense of them; texts are what their step reads.
LogicalResult Configuration::checkArguments(const CallSpec &spec, SMLoc loc,
                                            ArrayRef<BoundArgument> bound) {
  for (auto [argument, value] : zip(spec.arguments, bound)) {
    rt::Range range = rt::rangeOf(std::string(spec.name), std::string(argument.name));
    auto isGood = [&](const Value &number) { return range.contains(number.asDouble()); };
    SMLoc where = value.loc.isValid() ? value.loc : loc;
    bool good = true;
    if (value.value.isNumber())
      good = isGood(value.value);
    else if (value.value.isList())
      for (const Value &item : value.value.asList())
        good &= !item.isNumber() || isGood(item);
    if (!good)
      return diags.error(where, "argument '" + argument.name + "' of " + spec.name + " cannot be " +
                                    toText(value.value) + ", expected a number " + range.text());
  }
  if (spec.name == "flip" && bound[0].value.isString() &&
      StringRef(bound[0].value.asString()).find_first_not_of("ZYX") != StringRef::npos)
    return diags.error(bound[0].loc, "axes of flip are letters of ZYX, got \"" +
                                         bound[0].value.asString() + "\"");
  if (spec.name == "blind_spot" && bound[5].value.asString() != "X" &&
      bound[5].value.asString() != "Y" && bound[5].value.asString() != "Z")
    return diags.error(bound[5].loc, "axis of blind_spot is \"X\", \"Y\" or \"Z\", got \"" +
                                         bound[5].value.asString() + "\"");
  if (spec.name == "normalize" &&
      (bound[0].value.isString() != bound[1].value.isAbsent() ||
       (!bound[2].value.isAbsent() && (bound[0].loc.isValid() || bound[1].loc.isValid()))))
    return diags.error(loc, "normalize takes dataset, or per_image, or both mean and std, or "
                            "percentile");
  return checkBounds(spec, loc, bound);
}

/// Arguments that bound something: [low, high], or one named low and one named high.
LogicalResult Configuration::checkBounds(const CallSpec &spec, SMLoc loc,
                                         ArrayRef<BoundArgument> bound) {
  const Value *low = nullptr;
  for (auto [argument, value] : zip(spec.arguments, bound)) {
    if (argument.name == "low")
      low = &value.value;
    if (low && argument.name == "high" && low->asDouble() > value.value.asDouble())
      return diags.error(loc, "'low' of " + spec.name + " is above 'high'");
    if (!is_contained({"percentile", "scale", "ratio"}, argument.name) || !value.value.isList())
      continue;
    ArrayRef<Value> items = value.value.asList();
    bool mayBeEqual = argument.name != "percentile";
    if (items.size() != 2 || items[0].asDouble() > items[1].asDouble() ||
        (!mayBeEqual && items[0].asDouble() == items[1].asDouble()))
      return diags.error(value.loc.isValid() ? value.loc : loc,
                         "argument '" + argument.name + "' of " + spec.name +
                             " is [low, high], got " + toText(value.value));
  }
  return success();
}

/// A chain ends in as many arrays as it starts with, or in three if blind_spot makes them of one.
LogicalResult Configuration::checkArity(const ChainDecl &chain, ArrayRef<Attribute> steps) {
  size_t arrays = chain.inputs.size();
  for (auto [expr, step] : zip(chain.steps, steps)) {
    if (cast<mlir::DictionaryAttr>(step).getAs<mlir::StringAttr>("name") != "blind_spot")
      continue;
    if (arrays != 1)
      return diags.error(expr->loc, "blind_spot makes image, target and mask of one array, got " +
                                        Twine(arrays));
    arrays = 3;
  }
  if (arrays == chain.outputs.size())
    return success();
  return diags.error(chain.loc, "this chain makes " + Twine(arrays) + " arrays, but names " +
                                    Twine(chain.outputs.size()) + " inputs of the model");
}

/// A size has one extent, or one for each spatial axis of the images.
LogicalResult Configuration::checkSizes(const ChainDecl &chain, ArrayRef<Attribute> steps,
                                        ArrayRef<InputInfo> inputs) {
  for (const NamedLoc &output : chain.outputs) {
    const InputInfo *input =
        find_if(inputs, [&](const InputInfo &each) { return each.name == output.name; });
    int64_t rank = input->type.getRank() - 2;
    if (rank < 1)
      continue;
    // Maps of classes come without channels.
    bool mayLackChannels = rank == 1 || input->type.getElementType().isInteger();
    auto fits = [&](int64_t extents) {
      return extents == rank || (mayLackChannels && extents == rank + 1);
    };
    for (auto [expr, step] : zip(chain.steps, steps)) {
      auto call = cast<mlir::DictionaryAttr>(step);
      auto size = call.getAs<mlir::ArrayAttr>("size");
      StringRef name = call.getAs<mlir::StringAttr>("name").getValue();
      if (size && !fits(static_cast<int64_t>(size.size())))
        return diags.error(expr->loc, name + " gives " + Twine(size.size()) +
                                          " extents, but images of input '" + output.name +
                                          "' have " + Twine(rank) + " spatial axes");
      if (name == "random_resized_crop" && !fits(2))
        return diags.error(expr->loc, "random_resized_crop is for planes, but images of input '" +
                                          output.name + "' have " + Twine(rank) +
                                          " spatial axes; take random_crop");
    }
  }
  return success();
}

FailureOr<Attribute> Configuration::callAttr(const Expr &expr, CallKind kind) {
  const auto *call = dyn_cast<CallExpr>(&expr);
  const auto *name = dyn_cast<NameExpr>(call ? call->callee.get() : &expr);
  std::vector<StringRef> known = callNames(kind);
  const CallSpec *spec = name ? lookupCall(name->name, kind) : nullptr;
  if (!name)
    return diags.error(expr.loc,
                       "expected a call of the kind '" + kindName(kind) + "': " + listNames(known));
  if (!spec)
    return diags.error(expr.loc, "unknown " + kindName(kind) + " '" + name->name +
                                     "'; the known are " + listNames(known) +
                                     didYouMean(name->name, known));
  std::vector<GivenArgument> given;
  for (const Argument &argument : call ? ArrayRef(call->arguments) : ArrayRef<Argument>()) {
    const auto *source = dyn_cast<NameExpr>(argument.value.get());
    FailureOr<Value> value = source && spec->name == "denormalize"
                                 ? FailureOr<Value>(Value(source->name.str()))
                                 : elaborator.evaluateWith(parameters, *argument.value);
    if (failed(value))
      return failure();
    // A word, such as mean, may be the name of an operator, too.
    if (const auto *word = dyn_cast<NameExpr>(argument.value.get());
        word && value->isCallable() && is_contained(argumentWords(), word->name))
      *value = Value(word->name.str());
    given.push_back({argument.loc, argument.value->loc, argument.keyword, *value});
  }
  SmallVector<BoundArgument, 8> bound;
  if (failed(bindArguments(*spec, expr.loc, given, diags, bound)) ||
      failed(checkArguments(*spec, expr.loc, bound)))
    return failure();
  SmallVector<mlir::NamedAttribute> attributes{
      builder.getNamedAttr("name", builder.getStringAttr(spec->name))};
  for (auto [argument, value] : zip(spec->arguments, bound))
    if (!value.value.isAbsent())
      attributes.push_back(
          builder.getNamedAttr(argument.name, toAttr(builder, value.value, isFloats(argument))));
  return Attribute(builder.getDictionaryAttr(attributes));
}

//===- Predict --------------------------------------------------------------------------------===//

FailureOr<Value> Configuration::predictValue(const Entry &entry, const Value &current) {
  if (entry.value)
    return elaborator.evaluateWith(parameters, *entry.value);
  StringRef text = entry.setting.trim();
  if ((current.isList() && !text.starts_with("[")) ||
      (current.isString() && !text.starts_with("\"")))
    return convertSetting({entry.name, text}, current, diags);
  ExprPtr value = Parser(entry.setting, diags).parseWholeExpression();
  if (!value)
    return failure();
  return elaborator.evaluateWith(parameters, *value);
}

LogicalResult Configuration::evaluatePredict(Elaborator::Parameters &overrides) {
  for (const Entry &entry : file.predict) {
    SmallVector<StringRef> known;
    const Value *current = nullptr;
    for (const auto &[name, value] : parameters) {
      known.push_back(name);
      if (name == entry.name)
        current = &value;
    }
    if (!current)
      return diags.error(entry.loc, "'predict' overrides parameters of the model, which has no '" +
                                        entry.name + "'; it has " + listNames(known) +
                                        didYouMean(entry.name, known));
    FailureOr<Value> value = predictValue(entry, *current);
    if (failed(value))
      return failure();
    if (current->isFloat() && value->isInt())
      value = Value(value->asDouble());
    bool sameKind =
        (current->isInt() && value->isInt()) || (current->isFloat() && value->isFloat()) ||
        (current->isBool() && value->isBool()) || (current->isString() && value->isString()) ||
        (current->isList() && value->isList() && value->isPlain());
    if (!sameKind)
      return diags.error(entry.value ? entry.value->loc : entry.loc,
                         "'" + entry.name + "' is " + describe(*current) +
                             " in training; prediction cannot make it " + describe(*value));
    overrides.emplace_back(entry.name, *value);
  }
  return success();
}

//===- Data -----------------------------------------------------------------------------------===//

Attribute Configuration::strings(ArrayRef<NamedLoc> names) {
  SmallVector<Attribute> attributes;
  for (const NamedLoc &name : names)
    attributes.push_back(builder.getStringAttr(name.name));
  return builder.getArrayAttr(attributes);
}

FailureOr<Attribute> Configuration::sourcesAttr() {
  SmallVector<Attribute> sources;
  for (const SourceDecl &source : file.sources) {
    std::string axes;
    if (source.axes) {
      FailureOr<Value> value = elaborator.evaluateWith(parameters, *source.axes);
      if (failed(value))
        return failure();
      StringRef text = value->isString() ? StringRef(value->asString()) : "";
      bool unique = all_of(text, [&](char c) { return text.count(c) == 1; });
      if (text.empty() || !unique || text.find_first_not_of("NCZYX") != StringRef::npos)
        return diags.error(source.axes->loc,
                           "axes are letters of \"NCZYX\", each once, in the order "
                           "of the file, got " +
                               describe(*value));
      axes = text.str();
    }
    for (StringRef name : source.names)
      sources.push_back(
          builder.getDictionaryAttr({builder.getNamedAttr("name", builder.getStringAttr(name)),
                                     builder.getNamedAttr("axes", builder.getStringAttr(axes))}));
  }
  return Attribute(builder.getArrayAttr(sources));
}

/// `known`: names that stand for data before this chain; its outputs join them.
FailureOr<Attribute> Configuration::chainAttr(const ChainDecl &chain, std::vector<StringRef> &known,
                                              ArrayRef<InputInfo> inputs) {
  SmallVector<StringRef> inputNames;
  for (const InputInfo &input : inputs)
    inputNames.push_back(input.name);
  for (const NamedLoc &name : chain.inputs)
    if (!is_contained(known, name.name))
      return diags.error(name.loc, "unknown source '" + name.name + "'; the known are " +
                                       listNames(known) + didYouMean(name.name, known));
  for (const NamedLoc &name : chain.outputs)
    if (!is_contained(inputNames, name.name))
      return diags.error(name.loc, "the model has no input '" + name.name + "'; it has " +
                                       listNames(inputNames) + didYouMean(name.name, inputNames));
  SmallVector<Attribute> steps;
  for (const ExprPtr &step : chain.steps) {
    FailureOr<Attribute> call = callAttr(*step, CallKind::DataStep);
    if (failed(call))
      return failure();
    steps.push_back(*call);
  }
  if (failed(checkArity(chain, steps)) || failed(checkSizes(chain, steps, inputs)))
    return failure();
  for (const NamedLoc &name : chain.outputs)
    known.push_back(name.name);
  return Attribute(
      builder.getDictionaryAttr({builder.getNamedAttr("inputs", strings(chain.inputs)),
                                 builder.getNamedAttr("steps", builder.getArrayAttr(steps)),
                                 builder.getNamedAttr("outputs", strings(chain.outputs))}));
}

static bool undoesNormalize(const ChainDecl &chain) {
  return any_of(chain.steps, [](const ExprPtr &step) {
    const auto *call = dyn_cast<CallExpr>(step.get());
    const auto *name = dyn_cast<NameExpr>(call ? call->callee.get() : step.get());
    return name && name->name == "denormalize";
  });
}

/// OUTPUT -> denormalize(SOURCE) -> OUTPUT
FailureOr<Attribute> Configuration::outputChainAttr(const ChainDecl &chain) {
  ArrayRef<StringRef> known = elaborator.outputs();
  if (chain.inputs.size() != 1 || chain.outputs.size() != 1 || chain.steps.size() != 1 ||
      chain.inputs[0].name != chain.outputs[0].name)
    return diags.error(chain.loc, "denormalize has a chain of its own: OUTPUT -> "
                                  "denormalize(SOURCE) -> OUTPUT");
  const NamedLoc &output = chain.inputs[0];
  if (!is_contained(known, output.name))
    return diags.error(output.loc, "the model has no output '" + output.name + "'; it has " +
                                       listNames(known) + didYouMean(output.name, known));
  FailureOr<Attribute> call = callAttr(*chain.steps[0], CallKind::DataStep);
  if (failed(call))
    return failure();
  StringRef source = cast<mlir::DictionaryAttr>(*call).getAs<mlir::StringAttr>("source").getValue();
  size_t normalizes = 0;
  for (const ChainDecl &other : file.chains)
    if (any_of(other.inputs, [&](const NamedLoc &input) { return input.name == source; }))
      normalizes += count_if(other.steps, [](const ExprPtr &step) {
        const auto *call = dyn_cast<CallExpr>(step.get());
        const auto *name = dyn_cast<NameExpr>(call ? call->callee.get() : step.get());
        return name && name->name == "normalize";
      });
  if (normalizes != 1)
    return diags.error(chain.steps[0]->loc,
                       "denormalize undoes the one normalize of a source, but '" + source +
                           "' has " + (normalizes ? std::to_string(normalizes) : "none"));
  return Attribute(
      builder.getDictionaryAttr({builder.getNamedAttr("inputs", strings(chain.inputs)),
                                 builder.getNamedAttr("steps", builder.getArrayAttr({*call})),
                                 builder.getNamedAttr("outputs", strings(chain.outputs))}));
}

/// What is before patches sees a patch, what measures behind them would not see the volumes.
LogicalResult Configuration::checkPatches(ArrayRef<Attribute> chains) {
  auto isPatches = [](const std::pair<SMLoc, mlir::DictionaryAttr> &step) {
    return step.second.getAs<mlir::StringAttr>("name") == "patches";
  };
  SmallVector<std::pair<SMLoc, mlir::DictionaryAttr>> steps;
  for (auto [decl, chain] : zip(file.chains, chains))
    for (auto [expr, step] :
         zip(decl.steps, cast<mlir::DictionaryAttr>(chain).getAs<mlir::ArrayAttr>("steps")))
      steps.emplace_back(expr->loc, cast<mlir::DictionaryAttr>(step));
  auto patches = find_if(steps, isPatches);
  if (patches == steps.end())
    return success();
  auto second = std::find_if(std::next(patches), steps.end(), isPatches);
  if (second != steps.end())
    return diags.error(second->first, "patches stands once in a data block; one chain takes all "
                                      "inputs that are cut alike: image, mask -> patches(...) -> "
                                      "image, mask");
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    StringRef name = step->second.getAs<mlir::StringAttr>("name").getValue();
    auto mode = step->second.getAs<mlir::StringAttr>("mean");
    bool isMeasured =
        name == "normalize" && mode && mode == "dataset" && !step->second.contains("percentile");
    bool isPointwise = name == "one_hot" || isMeasured || (name == "normalize" && !mode);
    if (step < patches && !isPointwise)
      return diags.error(step->first,
                         "only normalize by dataset or by numbers and one_hot may stand before "
                         "patches, which reads no more than the patch; put " +
                             name + " behind it");
    if (step > patches && isMeasured)
      return diags.error(step->first, "normalize(dataset) measures whole volumes; put it before "
                                      "patches");
  }
  return success();
}

FailureOr<Attribute> Configuration::dataAttr(ArrayRef<InputInfo> inputs) {
  std::vector<StringRef> known;
  for (const InputInfo &input : inputs)
    known.push_back(input.name);
  for (const SourceDecl &source : file.sources)
    for (StringRef name : source.names) {
      auto feeds = [&](const ChainDecl &chain) {
        return any_of(chain.inputs, [&](const NamedLoc &input) { return input.name == name; });
      };
      if (!is_contained(known, name) && none_of(file.chains, feeds))
        return diags.error(source.loc, "source '" + name + "' feeds no input of the model" +
                                           didYouMean(name, known));
      if (!is_contained(known, name))
        known.push_back(name);
    }
  FailureOr<Attribute> sources = sourcesAttr();
  if (failed(sources))
    return failure();
  SmallVector<Attribute> chains;
  for (const ChainDecl &chain : file.chains) {
    FailureOr<Attribute> attribute =
        undoesNormalize(chain) ? outputChainAttr(chain) : chainAttr(chain, known, inputs);
    if (failed(attribute))
      return failure();
    chains.push_back(*attribute);
  }
  if (failed(checkPatches(chains)))
    return failure();
  double validation = 0;
  for (const Entry &entry : file.data) {
    if (!is_contained(dataEntries, entry.name))
      return diags.error(entry.loc, "'data' has no setting '" + entry.name + "'; it has " +
                                        listNames(to_vector_of<StringRef>(dataEntries)) +
                                        " and chains SOURCE -> step(...) -> INPUT" +
                                        nameHint(entry.name, to_vector_of<StringRef>(dataEntries)));
    FailureOr<Value> value = elaborator.evaluateWith(parameters, *entry.value);
    if (failed(value))
      return failure();
    if (!value->isNumber() || value->asDouble() < 0 || value->asDouble() >= 1)
      return diags.error(entry.value->loc,
                         "validation is a share from 0 to below 1, got " + describe(*value));
    validation = value->asDouble();
  }
  return Attribute(builder.getDictionaryAttr(
      {builder.getNamedAttr("sources", *sources),
       builder.getNamedAttr("chains", builder.getArrayAttr(chains)),
       builder.getNamedAttr("validation", builder.getF64FloatAttr(validation))}));
}

//===- Train ----------------------------------------------------------------------------------===//

FailureOr<Attribute> Configuration::countAttr(const Entry &entry, int64_t low) {
  constexpr int64_t high = 1'000'000'000;
  FailureOr<Value> value = elaborator.evaluateWith(parameters, *entry.value);
  if (failed(value))
    return failure();
  if (!value->isInt() || value->asInt() < low || value->asInt() > high)
    return diags.error(entry.value->loc, "'" + entry.name + "' is an int from " + Twine(low) +
                                             " to " + Twine(high) + ", got " + describe(*value));
  return Attribute(builder.getI64IntegerAttr(value->asInt()));
}

FailureOr<Attribute> Configuration::numberAttr(const Entry &entry, const rt::Range &range) {
  FailureOr<Value> value = elaborator.evaluateWith(parameters, *entry.value);
  if (failed(value))
    return failure();
  if (!value->isNumber() || !range.contains(value->asDouble()))
    return diags.error(entry.value->loc, "'" + entry.name + "' is a number " + range.text() +
                                             ", got " + describe(*value));
  return Attribute(builder.getF64FloatAttr(value->asDouble()));
}

FailureOr<Attribute> Configuration::scheduleAttr(const Expr &expr) {
  SmallVector<Attribute> entries;
  const auto *list = dyn_cast<ListExpr>(&expr);
  SmallVector<const Expr *> items;
  if (list)
    for (const ExprPtr &item : list->items)
      items.push_back(item.get());
  else
    items.push_back(&expr);
  for (const Expr *item : items) {
    FailureOr<Attribute> call = callAttr(*item, CallKind::Schedule);
    if (failed(call))
      return failure();
    entries.push_back(*call);
  }
  return Attribute(builder.getArrayAttr(entries));
}

/// Where an item of a list is written; the list itself if that is not known.
static SMLoc itemLoc(const Expr &list, size_t item) {
  const auto *written = dyn_cast<ListExpr>(&list);
  return written && item < written->items.size() ? written->items[item]->loc : list.loc;
}

FailureOr<Attribute> Configuration::trainEntryAttr(const Entry &entry,
                                                   ArrayRef<MetricInfo> metrics) {
  if (entry.name == "optimizer") {
    FailureOr<Attribute> optimizer = callAttr(*entry.value, CallKind::Optimizer);
    if (succeeded(optimizer))
      noteUnmatched(cast<mlir::DictionaryAttr>(*optimizer).getAs<mlir::ArrayAttr>("no_decay"),
                    entry.value->loc);
    return optimizer;
  }
  if (entry.name == "schedule")
    return scheduleAttr(*entry.value);
  if (entry.name == "early_stop")
    return callAttr(*entry.value, CallKind::EarlyStop);
  if (entry.name == "epochs")
    return countAttr(entry, 1);
  if (entry.name == "steps_per_epoch")
    return countAttr(entry, 0);
  if (entry.name == "freeze")
    return patternsAttr(*entry.value);
  if (entry.name == "lr_scale")
    return scalesAttr(*entry.value);
  if (entry.name == "clip_norm" || entry.name == "ema")
    return numberAttr(entry, rt::rangeOf("updates", entry.name));
  if (entry.name != "monitor") {
    auto known =
        map_to_vector(trainSettings(), [](const SettingSpec &s) -> StringRef { return s.name; });
    return diags.error(entry.loc, "'train' has no setting '" + entry.name + "'; it has " +
                                      listNames(known) + nameHint(entry.name, known));
  }
  return monitorAttr(*entry.value, metrics);
}

/// A list of patterns.
FailureOr<Attribute> Configuration::patternsAttr(const Expr &expr) {
  FailureOr<Value> value = elaborator.evaluateWith(parameters, expr);
  if (failed(value))
    return failure();
  bool isTexts =
      value->isList() && all_of(value->asList(), [](const Value &item) { return item.isString(); });
  if (!isTexts)
    return diags.error(expr.loc, "expected a list of patterns of parameters' names, such as "
                                 "[\"features.*\"], got " +
                                     describe(*value));
  for (auto [i, item] : enumerate(value->asList()))
    if (failed(checkPattern(item.asString(), itemLoc(expr, i))))
      return failure();
  return toAttr(builder, *value, /*asFloats=*/false);
}

/// A list of [pattern, factor].
FailureOr<Attribute> Configuration::scalesAttr(const Expr &expr) {
  FailureOr<Value> value = elaborator.evaluateWith(parameters, expr);
  if (failed(value))
    return failure();
  auto isScale = [](const Value &item) {
    return item.isList() && item.asList().size() == 2 && item.asList()[0].isString() &&
           item.asList()[1].isNumber();
  };
  if (!value->isList() || !all_of(value->asList(), isScale))
    return diags.error(expr.loc,
                       "expected a list of [pattern, factor], such as [[\"head.*\", 10]], got " +
                           describe(*value));
  rt::Range range = rt::rangeOf("updates", "lr_scale");
  SmallVector<Attribute> scales;
  for (auto [i, item] : enumerate(value->asList())) {
    const Value &pattern = item.asList()[0], &factor = item.asList()[1];
    if (failed(checkPattern(pattern.asString(), itemLoc(expr, i))))
      return failure();
    if (!range.contains(factor.asDouble()))
      return diags.error(itemLoc(expr, i), "the factor of a learning rate cannot be " +
                                               toText(factor) + ", expected a number " +
                                               range.text());
    scales.push_back(builder.getArrayAttr(
        {builder.getStringAttr(pattern.asString()), builder.getF64FloatAttr(factor.asDouble())}));
  }
  return Attribute(builder.getArrayAttr(scales));
}

/// Models of several forms say what has no decay in any of them, so this is no error.
void Configuration::noteUnmatched(mlir::ArrayAttr patterns, SMLoc loc) {
  for (auto pattern : patterns.getAsValueRange<mlir::StringAttr>())
    if (std::string fault = nn::patternFault(model, pattern); !fault.empty())
      diags.remark(loc, "pattern \"" + pattern + "\" " + fault);
}

LogicalResult Configuration::checkPattern(StringRef pattern, SMLoc loc) {
  std::string fault = nn::patternFault(model, pattern);
  return fault.empty() ? success() : diags.error(loc, "pattern \"" + pattern + "\" " + fault);
}

/// NAME, or max(NAME) or min(NAME). A bare name has the direction of its metric.
FailureOr<Attribute> Configuration::monitorAttr(const Expr &expr, ArrayRef<MetricInfo> metrics) {
  const auto *call = dyn_cast<CallExpr>(&expr);
  const auto *goal = dyn_cast_if_present<NameExpr>(call ? call->callee.get() : nullptr);
  bool isGoal = goal && (goal->name == "max" || goal->name == "min") &&
                call->arguments.size() == 1 && call->arguments[0].keyword.empty();
  const Expr &watched = isGoal ? *call->arguments[0].value : expr;
  const auto *name = dyn_cast<NameExpr>(&watched);
  SmallVector<MetricInfo> known(metrics);
  known.push_back({"loss", Better::Lower});
  auto found = find_if(known, [&](const MetricInfo &m) { return name && m.name == name->name; });
  if (found == known.end()) {
    auto names = map_to_vector(known, [](const MetricInfo &metric) { return metric.name; });
    return diags.error(watched.loc, "the monitor is NAME, max(NAME) or min(NAME) of a metric of "
                                    "the model or of the loss: " +
                                        listNames(names) +
                                        (name ? didYouMean(name->name, names) : ""));
  }
  if (!isGoal && found->better == Better::Unknown)
    return diags.error(expr.loc, "whether a higher or a lower '" + found->name +
                                     "' is better is not known; write monitor = max(" +
                                     found->name + ") or monitor = min(" + found->name + ")");
  bool isMax = isGoal ? goal->name == "max" : found->better == Better::Higher;
  if (found->name == "loss" && isMax)
    return diags.error(expr.loc, "training makes the loss small; write monitor = loss");
  return monitor(found->name, isMax);
}

Attribute Configuration::monitor(StringRef name, bool isMax) {
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("name", builder.getStringAttr(name)),
       builder.getNamedAttr("goal", builder.getStringAttr(isMax ? "max" : "min"))});
}

FailureOr<Attribute> Configuration::trainAttr(ArrayRef<MetricInfo> metrics) {
  mlir::NamedAttrList train;
  NameExpr adam{SMLoc()};
  adam.name = "adam";
  FailureOr<Attribute> optimizer = callAttr(adam, CallKind::Optimizer);
  if (failed(optimizer))
    return failure();
  train.set("optimizer", *optimizer);
  train.set("epochs", builder.getI64IntegerAttr(10));
  train.set("steps_per_epoch", builder.getI64IntegerAttr(0));
  train.set("schedule", builder.getArrayAttr({}));
  train.set("monitor", monitor("loss", /*isMax=*/false));
  for (const Entry &entry : file.train) {
    FailureOr<Attribute> attribute = trainEntryAttr(entry, metrics);
    if (failed(attribute))
      return failure();
    train.set(entry.name, *attribute);
  }
  return Attribute(train.getDictionary(builder.getContext()));
}

LogicalResult Configuration::write(nn::ModelOp written, ArrayRef<InputInfo> inputs,
                                   ArrayRef<MetricInfo> metrics) {
  model = written;
  builder = mlir::Builder(model.getContext());
  SmallVector<mlir::NamedAttribute> config;
  for (const auto &[name, value] : parameters)
    config.push_back(builder.getNamedAttr(name, toAttr(builder, value, /*asFloats=*/false)));
  FailureOr<Attribute> data = dataAttr(inputs);
  if (failed(data))
    return failure();
  FailureOr<Attribute> train = trainAttr(metrics);
  if (failed(train))
    return failure();
  model->setAttr("batch", builder.getI64IntegerAttr(inputs.front().type.getShape().front()));
  model->setAttr("config", builder.getDictionaryAttr(config));
  model->setAttr("data", *data);
  model->setAttr("train", *train);
  return success();
}

} // namespace dlc::fe
