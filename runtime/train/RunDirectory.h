// The directory that keeps everything of one run.
//
// Rank 0 chooses and creates it; all ranks know its name. Collective constructor.
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/train/TrainOptions.h"

#include <nlohmann/json.hpp>
#include <string>

namespace dlc::rt {

class RunDirectory {
public:
  /// Creates `options.runDirectory`, or the first free runs/MODEL-k. Throws Error on all ranks if
  /// it cannot be created or written, or holds a run and `resume` is not set, or the other way
  /// around.
  RunDirectory(const TrainOptions &options, const std::string &model, Communicator &communicator);

  const std::string &path() const { return directory; }
  std::string last() const { return directory + "/last.safetensors"; }
  std::string best() const { return directory + "/best.safetensors"; }
  std::string configuration() const { return directory + "/config.json"; }
  /// Rank 0: the resolved configuration.
  void writeConfiguration(const nlohmann::ordered_json &content) const;

private:
  std::string directory;
};

} // namespace dlc::rt
