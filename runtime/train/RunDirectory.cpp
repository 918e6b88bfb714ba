#include "runtime/train/RunDirectory.h"

#include "runtime/core/Error.h"
#include "runtime/data/AtomicFile.h"
#include "runtime/train/CollectiveError.h"

#include <filesystem>
#include <unistd.h>

namespace dlc::rt {

namespace fs = std::filesystem;

/// Rank 0's text, on all ranks.
std::string RunDirectory::shared(const std::string &ofRank0) const {
  std::vector<std::byte> first =
      communicator.allGather(std::as_bytes(std::span(ofRank0)), "choice of the run directory")
          .front();
  return {reinterpret_cast<const char *>(first.data()), first.size()};
}

RunDirectory::RunDirectory(const TrainOptions &options, const std::string &model,
                           Communicator &communicator)
    : communicator(communicator), model(model), directory(options.runDirectory) {
  std::string problem;
  bool holdsRun = !directory.empty() && fs::exists(last());
  if (options.resume && !holdsRun)
    problem = "cannot resume: there is no '" + last() + "'";
  if (!options.resume && holdsRun)
    problem = "'" + directory + "' holds a run already; add --resume or choose another --run";
  problem = shared(problem);
  if (!problem.empty())
    throw CollectiveError(ErrorCode::BadInput, problem);
}

/// Makes the directory, or the first runs/MODEL-k that nobody else makes. What is wrong, empty if
/// nothing.
std::string RunDirectory::make() {
  std::error_code error;
  if (directory.empty()) {
    directory = "runs";
    fs::create_directories(directory, error);
    for (int k = 1; !error && !isNew; ++k) {
      directory = "runs/" + model + "-" + std::to_string(k);
      isNew = fs::create_directory(directory, error);
    }
  } else {
    isNew = fs::create_directories(directory, error);
  }
  if (!error && ::access(directory.c_str(), W_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  return error ? "cannot write the run directory '" + directory + "': " + error.message() : "";
}

void RunDirectory::create() {
  // No rank is left that a signal would end at once, and rank 0 with it, an empty directory behind.
  communicator.barrier("creation of the run directory");
  std::string problem;
  if (communicator.rank() == 0)
    problem = make();
  problem = shared(problem);
  directory = shared(directory);
  if (!problem.empty())
    throw CollectiveError(ErrorCode::BadInput, problem);
}

RunDirectory::~RunDirectory() {
  if (isNew)
    ::rmdir(directory.c_str()); // which refuses what holds a file
}

void RunDirectory::writeConfiguration(const nlohmann::ordered_json &content) const {
  std::string text = content.dump(2) + "\n";
  AtomicFile file(configuration());
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

} // namespace dlc::rt
