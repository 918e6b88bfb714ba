#include "runtime/train/RunDirectory.h"
#include "runtime/artifact/JsonText.h"
#include "runtime/train/OutputPaths.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/AtomicFile.h"
#include "runtime/train/CollectiveError.h"

#include <filesystem>
#include <unistd.h>

namespace dlc::rt {

namespace fs = std::filesystem;

/// Rank 0's text, on all ranks.
std::string RunDirectory::shared(const std::string &ofRank0) const {
  std::vector<std::byte> first =
      control.allGather(std::as_bytes(std::span(ofRank0)), "choice of the run directory").front();
  return {reinterpret_cast<const char *>(first.data()), first.size()};
}

/// What the directory holds that this start cannot use; empty if nothing.
std::string RunDirectory::conflict() const {
  if (directory.empty())
    return "";
  std::error_code ignored; // of a name that no file can have, which create() tells
  for (std::string_view name : fileNames)
    if (std::string path = directory + "/" + std::string(name); fs::is_directory(path, ignored))
      return "'" + path +
             "' is a directory, in the place of a file of the run; remove it, or choose another "
             "--run";
  bool holdsRun = fs::exists(last(), ignored);
  if (resume && !holdsRun)
    return "cannot resume: there is no '" + last() + "'";
  if (!resume && holdsRun)
    return "'" + directory + "' holds a run already; add --resume or choose another --run";
  if (!resume && fs::exists(best(), ignored))
    return "'" + best() + "' is of a run that would be overwritten; choose another --run";
  return "";
}

/// Locks the directory, which exists. What is wrong, empty if nothing.
std::string RunDirectory::take() {
  try {
    bool alone = lock.take(lockPath()) && directoryLock.take(directory);
    return alone ? conflict() // which may be new: of a run that has just ended
                 : "another process trains in '" + directory +
                       "'; let it end, or choose another --run";
  } catch (const Error &error) {
    return error.what();
  }
}

RunDirectory::RunDirectory(const TrainOptions &options, const std::string &model,
                           ControlPlane &control)
    : control(control), model(model), directory(options.runDirectory), resume(options.resume) {
  std::string problem;
  if (control.rank() == 0) {
    problem = findWrongOutput(options);
    if (problem.empty())
      problem = conflict();
    if (problem.empty() && resume) // before anything of it is read
      problem = take();
  }
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
  if (error)
    return "cannot write the run directory '" + directory + "': " + error.message();
  return resume ? "" : take();
}

void RunDirectory::create() {
  // No rank is left that a signal would end at once, and rank 0 with it, an empty directory behind.
  control.barrier("creation of the run directory");
  std::string problem;
  if (control.rank() == 0)
    problem = make();
  problem = shared(problem);
  directory = shared(directory);
  if (!problem.empty())
    throw CollectiveError(ErrorCode::BadInput, problem);
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  if (isNew && !isKept) // all that it holds is this object's, and says nothing yet
    fs::remove_all(directory, ignored);
}

void RunDirectory::writeConfiguration(const nlohmann::ordered_json &content) const {
  std::string text = jsonText(content, 2) + "\n";
  AtomicFile file(configuration());
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

} // namespace dlc::rt
