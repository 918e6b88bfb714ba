#include "runtime/train/RunConfiguration.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/Ranges.h"

#include <algorithm>
#include <cmath>
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

/// What is wrong with the file, and how to go on.
static Error damaged(const std::string &path, const std::string &why) {
  return Error(ErrorCode::BadInput,
               "'" + path + "' is damaged" +
                   (why.empty() ? "; " : ": " + why + "; mend that, or ") +
                   "remove it, and say again what it said: --data, --val, --epochs, --steps");
}

/// A file that was edited by hand may hold anything.
class SavedConfiguration {
public:
  explicit SavedConfiguration(const std::string &path) : path(path) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored))
      throw damaged(path, "it is no regular file");
    content = Json::parse(std::ifstream(path), nullptr, /*allow_exceptions=*/false);
    if (!content.is_object())
      throw damaged(path, "");
  }

  /// Adds the paths of names that have none.
  void addPaths(DataPaths &paths, const char *key) const {
    const Json &saved = at(key);
    if (!saved.is_object() ||
        !std::ranges::all_of(saved, [](const Json &item) { return item.is_string(); }))
      throw wrong(key, "wanted an object of names and paths, as {\"image\": \"image.npy\"}");
    for (const auto &[name, file] : saved.items())
      if (std::none_of(paths.begin(), paths.end(),
                       [&](const auto &entry) { return entry.first == name; }))
        paths.emplace_back(name, file);
  }

  std::string text(const char *key) const {
    if (!at(key).is_string())
      throw wrong(key, "wanted a path, or \"\" for none");
    return at(key);
  }

  std::optional<int64_t> count(const char *key) const {
    if (!content.contains(key))
      return std::nullopt;
    const Json &value = at(key);
    double number = value.is_number() ? value.get<double>() : 0;
    if (!ranges::positiveCount.contains(number) || number != std::floor(number))
      throw wrong(key, "wanted a whole number " + ranges::positiveCount.text());
    return static_cast<int64_t>(number);
  }

private:
  const Json &at(const char *key) const {
    if (!content.contains(key))
      throw damaged(path, std::string("it lacks ") + key);
    return content.at(key);
  }

  Error wrong(const std::string &key, const std::string &wanted) const {
    constexpr size_t shown = 60;
    std::string value = content.at(key).dump(-1, ' ', true, Json::error_handler_t::replace);
    if (value.size() > shown)
      value = value.substr(0, shown) + "...";
    return damaged(path, key + " is " + value + ", " + wanted);
  }

  std::string path;
  Json content;
};

static void takeUp(TrainOptions &options, const SavedConfiguration &saved) {
  saved.addPaths(options.data, "data");
  saved.addPaths(options.validation, "val");
  options.init = saved.text("init");
  if (options.epochs || options.steps)
    return; // a new end
  options.epochs = saved.count("epochs");
  options.steps = saved.count("steps");
}

TrainOptions completeOptions(TrainOptions options, const Artifact &artifact,
                             const std::string &path) {
  std::error_code ignored;
  if (options.resume && std::filesystem::exists(path, ignored))
    takeUp(options, SavedConfiguration(path));
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
