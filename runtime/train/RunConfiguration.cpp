#include "runtime/train/RunConfiguration.h"

#include "runtime/train/SavedEntry.h"

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

static SavedEntry savedConfiguration(const std::string &path) {
  auto damaged = [path](const std::string &why) {
    return Error(ErrorCode::BadInput,
                 "'" + path + "' is damaged" +
                     (why.empty() ? "; " : ": " + why + "; mend that, or ") +
                     "remove it, and say again what it said: --data, --val, --epochs, --steps");
  };
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    throw damaged("it is no regular file");
  return {Json::parse(std::ifstream(path), nullptr, /*allow_exceptions=*/false), damaged};
}

/// Adds the paths of names that have none.
static void addPaths(DataPaths &paths, const SavedEntry &saved) {
  if (!saved.json().is_object() ||
      !std::ranges::all_of(saved.json(), [](const Json &item) { return item.is_string(); }))
    throw saved.wrong("an object of names and paths, as {\"image\": \"image.npy\"}");
  for (const auto &[name, file] : saved.json().items())
    if (std::none_of(paths.begin(), paths.end(),
                     [&](const auto &entry) { return entry.first == name; }))
      paths.emplace_back(name, file);
}

static void takeUp(TrainOptions &options, const SavedEntry &saved) {
  addPaths(options.data, saved.at("data"));
  addPaths(options.validation, saved.at("val"));
  options.init = saved.at("init").text("a path, or \"\" for none");
  for (const SavedEntry &pattern : saved.at("init_except").list())
    options.initExcept.push_back(pattern.text());
  if (saved.has("save_every") && !options.saveEvery)
    options.saveEvery = saved.at("save_every").count(ranges::positiveCount);
  if (options.epochs || options.steps)
    return; // a new end
  if (saved.has("epochs"))
    options.epochs = saved.at("epochs").count(ranges::positiveCount);
  if (saved.has("steps"))
    options.steps = saved.at("steps").count(ranges::positiveCount);
}

TrainOptions completeOptions(TrainOptions options, const Artifact &artifact,
                             const std::string &path) {
  std::error_code ignored;
  if (options.resume && std::filesystem::exists(path, ignored))
    takeUp(options, savedConfiguration(path));
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
  if (!state.platform.empty())
    json["platform"] = state.platform;
  if (options.epochs)
    json["epochs"] = *options.epochs;
  if (options.steps)
    json["steps"] = *options.steps;
  if (options.saveEvery)
    json["save_every"] = *options.saveEvery;
  json["data"] = pathsOf(options.data);
  json["val"] = pathsOf(options.validation);
  json["init"] = absolute(options.init);
  json["init_except"] = options.initExcept;
  json["recipe"] = recipe.resolved();
  json["overrides"] = state.overrides;
  return json;
}

} // namespace dlc::rt
