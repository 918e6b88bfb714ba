#include "runtime/train/OutputPaths.h"

#include "runtime/train/RunDirectory.h"

#include <algorithm>
#include <filesystem>

namespace dlc::rt {

namespace fs = std::filesystem;

static bool isSame(const std::string &a, const std::string &b) {
  std::error_code ignored;
  return !a.empty() && !b.empty() && fs::equivalent(a, b, ignored);
}

static bool isRead(const std::string &output, const TrainOptions &options) {
  bool is =
      isSame(output, options.init) || isSame(output, options.file) || isSame(output, options.model);
  for (const DataPaths *paths : {&options.data, &options.validation})
    for (const auto &[name, path] : *paths)
      is |= isSame(output, path);
  return is;
}

/// Which the run will make.
static bool isRunDirectory(const fs::path &folder, const TrainOptions &options) {
  std::error_code error;
  return !options.runDirectory.empty() &&
         fs::weakly_canonical(folder, error) == fs::weakly_canonical(options.runDirectory, error);
}

/// Which the run keeps under a name of its own.
static bool isOfRun(const fs::path &output, const TrainOptions &options) {
  const auto &names = RunDirectory::fileNames;
  return std::ranges::find(names, output.filename().string()) != std::end(names) &&
         isRunDirectory(output.parent_path(), options);
}

std::string findWrongOutput(const TrainOptions &options) {
  const std::pair<const char *, const std::string *> outputs[] = {
      {"--save", &options.save}, {"--log", &options.log}, {"--trace", &options.trace}};
  for (const auto &[flag, output] : outputs) {
    if (output->empty())
      continue;
    fs::path folder = fs::path(*output).parent_path();
    if (!folder.empty() && !fs::is_directory(folder) && !isRunDirectory(folder, options))
      return std::string(flag) + " " + *output + ": there is no folder '" + folder.string() + "'";
    if (isRead(*output, options))
      return std::string(flag) + " would overwrite '" + *output + "', which the run reads";
    if (isOfRun(*output, options))
      return std::string(flag) + " would overwrite '" + *output + "', a file of the run itself";
  }
  return "";
}

} // namespace dlc::rt
