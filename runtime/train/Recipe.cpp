#include "runtime/train/Recipe.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/Fingerprint.h"
#include "runtime/train/Arguments.h"
#include "runtime/train/Schedule.h"
#include "runtime/train/Signature.h"

#include <algorithm>
#include <set>

namespace dlc::rt {

using nlohmann::json;

//===- Facts of the model ---------------------------------------------------------------------===//

static json valueOf(const artifact::ArgumentT &argument) {
  auto one = [](const auto &values) { return values.size() == 1 ? json(values[0]) : json(values); };
  if (!argument.floats.empty() && !argument.text.empty()) // a list of patterns and numbers
    return json::array({argument.text, one(argument.floats)});
  if (!argument.floats.empty())
    return one(argument.floats);
  if (!argument.ints.empty())
    return one(argument.ints);
  return argument.text;
}

static json callOf(const artifact::CallT &call) {
  json object = {{"name", call.name}};
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const artifact::ArgumentT &argument = *call.arguments[i];
    object[argument.name.empty() ? std::to_string(i) : argument.name] = valueOf(argument);
  }
  return object;
}
static json callOf(const std::unique_ptr<artifact::CallT> &call) {
  return call ? callOf(*call) : json();
}
static json callsOf(const std::vector<std::unique_ptr<artifact::CallT>> &calls) {
  json list = json::array();
  for (const auto &call : calls)
    list.push_back(callOf(call));
  return list;
}

static json dataBlock(const artifact::DataPipelineT &pipeline) {
  json sources = json::object(), chains = json::array();
  for (const auto &source : pipeline.sources)
    sources[source->name] = source->axes;
  for (const auto &chain : pipeline.chains)
    chains.push_back(json::object({{"inputs", chain->inputs},
                                   {"steps", callsOf(chain->steps)},
                                   {"outputs", chain->outputs}}));
  return json::object(
      {{"sources", sources}, {"chains", chains}, {"validation", pipeline.validation}});
}

/// The model's parameters without its batch, which is a fact of its own.
static json parametersOf(const artifact::ArtifactT &content) {
  json parameters = json::object();
  for (const auto &argument : content.configuration)
    if (argument->name != "batch")
      parameters[argument->name] = valueOf(*argument);
  return parameters;
}

static std::string wireOf(const artifact::Program &train) {
  if (train.collectives())
    for (const artifact::Collective *collective : *train.collectives())
      if (collective->wire() == artifact::DType::BF16)
        return "bf16";
  return "f32";
}

//===- Facts of the command line --------------------------------------------------------------===//

/// Contents by input, so that the order of --data does not matter.
static json contentsOf(const DataPaths &paths) {
  json contents;
  for (const auto &[name, path] : paths)
    contents[name] = fingerprint(path);
  return contents;
}

/// How long the schedule is if it counts to its end: as long as the run was to be when it started.
static json scheduleLength(const artifact::TrainingT &training, const TrainOptions &options) {
  if (!Schedule::countsToAnEnd(training.schedule))
    return {};
  return options.epochs ? json::object({{"epochs", *options.epochs}})
                        : json::object({{"steps", options.steps.value_or(1)}});
}

/// Writes it as the graph language does: "max(iou)".
static std::string monitorOf(const artifact::TrainingT &training) {
  std::string name = training.monitor.empty() ? "loss" : training.monitor;
  return (training.goal == artifact::Goal::Max ? "max(" : "min(") + name + ")";
}

static std::vector<Fact> factsOf(const Artifact &artifact, const TrainOptions &options) {
  artifact::ArtifactT content;
  artifact->UnPackTo(&content);
  static const artifact::TrainingT none;
  const artifact::TrainingT &training = content.training ? *content.training : none;
  const artifact::Program &train = requireProgram(artifact, "train");

  auto flag = [](const std::string &name, const auto &given, json byDefault, json model = {}) {
    Fact fact{name, std::nullopt, std::move(byDefault), std::move(model)};
    if (given)
      fact.given.emplace(*given);
    return fact;
  };
  auto named = [](const std::optional<bool> &given, const char *yes, const char *no) {
    return given ? std::optional<std::string>(*given ? yes : no) : std::nullopt;
  };
  // Always given: a start cannot but use the model and the files that it has.
  auto found = [](const std::string &name, const json &value) {
    return Fact{name, value, value, {}};
  };
  double modelRate = training.optimizer ? numberOf(*training.optimizer, "lr", 1e-3) : 1e-3;
  return {
      flag("lr", options.learningRate, json(), modelRate),
      flag("scale-lr", named(options.scaleRate, "linear", "none"), "none"),
      flag("scale-epochs", options.scaleEpochs, false),
      flag("accumulate", options.accumulate, 1),
      flag("seed", options.seed, 0),
      flag("shuffle", options.shuffle, true),
      flag("on-nan", named(options.stopOnNan, "stop", "continue"), "stop"),
      flag("length", std::optional<json>(), scheduleLength(training, options)),
      found("data", contentsOf(options.data)),
      found("val", contentsOf(options.validation)),
      found("data_block", dataBlock(dataPipeline(artifact))),
      found("parameters", parametersOf(content)),
      found("batch", train.batch()),
      found("optimizer", callOf(training.optimizer)),
      found("updates", callOf(training.updates)),
      found("schedule", callsOf(training.schedule)),
      found("steps_per_epoch", training.steps_per_epoch),
      found("monitor", monitorOf(training)),
      found("early_stop", callOf(training.early_stop)),
      found("math", content.target->math),
      found("precision", content.target->precision),
      found("wire", wireOf(train)),
  };
}

//===- The list as a whole --------------------------------------------------------------------===//

Recipe::Recipe(const Artifact &artifact, const TrainOptions &options)
    : facts(factsOf(artifact, options)) {
  for (const Fact &fact : facts)
    held[fact.name] = fact.given.value_or(fact.byDefault);
}

static json resolve(const Fact &fact, const json &value) {
  return value.is_null() ? fact.model : value;
}

static std::string joined(const std::vector<std::string> &items, const std::string &separator) {
  std::string text;
  for (const std::string &item : items)
    text += (text.empty() ? "" : separator) + item;
  return text;
}

/// The name of a call; null if there is none.
static json nameOf(const json &call) {
  return call.is_object() ? call.value("name", json()) : json();
}

std::vector<RecipeChange> Recipe::takeUp(const json &saved,
                                         const std::vector<std::string> &overrides,
                                         const std::string &path) {
  std::vector<std::string> known, refused, differences;
  std::vector<RecipeChange> changes;
  bool otherOptimizer = false; // not only of another rate
  for (const Fact &fact : facts) {
    known.push_back(fact.name);
    if (!saved.is_object() || !saved.contains(fact.name))
      throw Error(ErrorCode::BadInput,
                  "'" + path + "' does not say what its run was trained with (" + fact.name +
                      "), so that it cannot be resumed; start a new run from "
                      "its weights with --init");
    const json &was = saved.at(fact.name);
    RecipeChange change{fact.name, resolve(fact, was), resolve(fact, held[fact.name])};
    bool overridden = std::count(overrides.begin(), overrides.end(), fact.name) > 0;
    // What is not UTF-8 was replaced in what was saved.
    bool differs = change.was != change.now && jsonText(change.was) != jsonText(change.now);
    if (overridden && differs) {
      changes.push_back(change);
      continue;
    }
    held[fact.name] = was;
    if (fact.given && differs) {
      refused.push_back(fact.name);
      differences.push_back(differenceText(change));
      otherOptimizer |= fact.name == "optimizer" && nameOf(change.was) != nameOf(change.now);
    }
  }
  for (const std::string &name : overrides)
    if (std::count(known.begin(), known.end(), name) == 0)
      throw Error(ErrorCode::BadInput, "--override does not know '" + name +
                                           "'; what determines a run is " + joined(known, ", "));
  if (!refused.empty())
    throw Error(ErrorCode::BadInput,
                "'" + path + "' was trained otherwise: " + joined(differences, "; ") +
                    "; resume it as it was, or add --override " + joined(refused, ",") +
                    (otherOptimizer ? "; --init starts a new run from its weights" : ""));
  return changes;
}

json Recipe::resolved() const {
  json values;
  for (const Fact &fact : facts)
    values[fact.name] = resolve(fact, held.at(fact.name));
  return values;
}

double Recipe::learningRate() const { return resolved().at("lr"); }

int64_t Recipe::scheduleSteps(const Course &course) const {
  const json &length = held.at("length");
  if (length.is_null())
    return course.end;
  return length.contains("steps")
             ? length.at("steps").get<int64_t>()
             : course.epochsOf(length.at("epochs").get<int64_t>()) * course.stepsPerEpoch;
}

static std::string textOf(const json &value) {
  if (value.is_null() || value == "")
    return "none";
  return value.is_string() ? value.get<std::string>() : jsonText(value);
}

std::string differenceText(const RecipeChange &change) {
  if (!change.was.is_object() || !change.now.is_object())
    return change.name + " was " + textOf(change.was) + ", is " + textOf(change.now);
  std::set<std::string> keys;
  for (const json *side : {&change.was, &change.now})
    for (const auto &[key, value] : side->items())
      keys.insert(key);
  std::vector<std::string> texts;
  for (const std::string &key : keys) {
    json was = change.was.value(key, json()), now = change.now.value(key, json());
    if (was != now)
      texts.push_back(differenceText({change.name + "." + key, was, now}));
  }
  return joined(texts, "; ");
}

} // namespace dlc::rt
