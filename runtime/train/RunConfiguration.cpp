#include "runtime/train/RunConfiguration.h"

namespace dlc::rt {

using Json = nlohmann::ordered_json;

static Json valueOf(const artifact::ArgumentT &argument) {
  auto one = [](const auto &values) { return values.size() == 1 ? Json(values[0]) : Json(values); };
  if (!argument.floats.empty())
    return one(argument.floats);
  if (!argument.ints.empty())
    return one(argument.ints);
  return argument.text;
}

static Json callOf(const artifact::CallT &call) {
  Json json = {{"name", call.name}};
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const artifact::ArgumentT &argument = *call.arguments[i];
    json[argument.name.empty() ? std::to_string(i) : argument.name] = valueOf(argument);
  }
  return json;
}

static Json pathsOf(const DataPaths &paths) {
  Json json = Json::object();
  for (const auto &[name, path] : paths)
    json[name] = path;
  return json;
}

Json runConfiguration(const Session &session, const TrainOptions &options, const RunState &state) {
  artifact::ArtifactT content;
  session.artifact()->UnPackTo(&content);
  Json json = {{"model", content.model},       {"file", options.file},
               {"producer", content.producer}, {"target", content.target->name},
               {"math", content.target->math}, {"precision", content.target->precision}};
  Json &parameters = json["parameters"] = Json::object();
  for (const auto &argument : content.configuration)
    parameters[argument->name] = valueOf(*argument);
  if (content.training) {
    Json &training = json["train"] = Json::object();
    if (content.training->optimizer)
      training["optimizer"] = callOf(*content.training->optimizer);
    Json &schedule = training["schedule"] = Json::array();
    for (const auto &entry : content.training->schedule)
      schedule.push_back(callOf(*entry));
    training["epochs"] = options.epochs.value_or(content.training->epochs);
    training["monitor"] = content.training->monitor;
  }
  if (options.steps)
    json["steps"] = *options.steps;
  if (options.learningRate)
    json["lr"] = *options.learningRate;
  json["scale_lr"] = options.scaleRate ? "linear" : "none";
  json["accumulate"] = options.accumulate;
  json["shuffle"] = options.shuffle;
  json["data"] = pathsOf(options.data);
  json["val"] = pathsOf(options.validation);
  json["init"] = options.init;
  json["seed"] = state.seed;
  json["ranks"] = state.ranks;
  json["batch"] = state.batch;
  json["threads"] = state.threads;
  return json;
}

} // namespace dlc::rt
