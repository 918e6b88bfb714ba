#include "runtime/train/RunConfiguration.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace dlc::rt {

using Json = nlohmann::ordered_json;

/// A run may be resumed in another directory.
static std::string absolute(const std::string &path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

static Json pathsOf(const DataPaths &paths) {
  Json json = Json::object();
  for (const auto &[name, path] : paths)
    json[name] = absolute(path);
  return json;
}

/// Adds the paths of names that have none.
static void addPaths(DataPaths &paths, const Json &saved) {
  for (const auto &[name, path] : saved.items())
    if (std::none_of(paths.begin(), paths.end(),
                     [&](const auto &entry) { return entry.first == name; }))
      paths.emplace_back(name, path);
}

static void takeUp(TrainOptions &options, const Json &saved) {
  addPaths(options.data, saved.at("data"));
  addPaths(options.validation, saved.at("val"));
  options.init = saved.at("init");
  if (options.epochs || options.steps)
    return; // a new end
  if (saved.contains("epochs"))
    options.epochs = saved.at("epochs").get<int64_t>();
  if (saved.contains("steps"))
    options.steps = saved.at("steps").get<int64_t>();
}

TrainOptions completeOptions(TrainOptions options, const Artifact &artifact,
                             const std::string &path) {
  if (options.resume && std::filesystem::exists(path))
    try {
      takeUp(options, Json::parse(std::ifstream(path)));
    } catch (const Json::exception &) { // whose text is of bytes and types
      throw Error(ErrorCode::BadInput,
                  "'" + path +
                      "' is damaged; remove it, and say again what it said: --data, --val, "
                      "--epochs, --steps");
    }
  if (!options.epochs && !options.steps) {
    int64_t epochs = artifact->training() ? artifact->training()->epochs() : 0;
    options.epochs = std::max<int64_t>(epochs, 1);
  }
  return options;
}

Json runConfiguration(const Artifact &artifact, const TrainOptions &options, const Recipe &recipe,
                      const RunState &state) {
  Json json = {{"model", artifact->model()->str()},
               {"file", options.file},
               {"producer", artifact->producer() ? artifact->producer()->str() : ""},
               {"target", artifact->target()->name()->str()},
               {"ranks", state.ranks},
               {"threads", state.threads}};
  if (options.epochs)
    json["epochs"] = *options.epochs;
  if (options.steps)
    json["steps"] = *options.steps;
  json["data"] = pathsOf(options.data);
  json["val"] = pathsOf(options.validation);
  json["init"] = absolute(options.init);
  json["recipe"] = recipe.resolved();
  json["overrides"] = state.overrides;
  return json;
}

} // namespace dlc::rt
