#include "runtime/train/RunDirectory.h"

#include "runtime/core/Error.h"
#include "runtime/data/AtomicFile.h"
#include "runtime/train/CollectiveError.h"

#include <filesystem>
#include <unistd.h>

namespace dlc::rt {

namespace fs = std::filesystem;

static std::string firstFree(const std::string &model) {
  for (int k = 1;; ++k) {
    std::string path = "runs/" + model + "-" + std::to_string(k);
    if (!fs::exists(path))
      return path;
  }
}

/// What is wrong with the directory, empty if nothing.
static std::string prepare(const std::string &directory, bool resume) {
  if (resume && !fs::exists(directory + "/last.safetensors"))
    return "cannot resume: there is no '" + directory + "/last.safetensors'";
  if (!resume && fs::exists(directory + "/last.safetensors"))
    return "'" + directory + "' holds a run already; add --resume or choose another --run";
  std::error_code error;
  fs::create_directories(directory, error);
  if (!error && ::access(directory.c_str(), W_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  return error ? "cannot write the run directory '" + directory + "': " + error.message() : "";
}

RunDirectory::RunDirectory(const TrainOptions &options, const std::string &model,
                           Communicator &communicator) {
  std::string chosen, problem;
  if (communicator.rank() == 0) {
    chosen = options.runDirectory.empty() ? firstFree(model) : options.runDirectory;
    problem = prepare(chosen, options.resume);
  }
  auto shared = [&](const std::string &mine) {
    std::vector<std::byte> first =
        communicator.allGather(std::as_bytes(std::span(mine)), "choice of the run directory")
            .front();
    return std::string(reinterpret_cast<const char *>(first.data()), first.size());
  };
  directory = shared(chosen);
  problem = shared(problem);
  if (!problem.empty())
    throw CollectiveError(ErrorCode::BadInput, problem);
}

void RunDirectory::writeConfiguration(const nlohmann::ordered_json &content) const {
  std::string text = content.dump(2) + "\n";
  AtomicFile file(configuration());
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

} // namespace dlc::rt
