// The directory that keeps everything of one run.
//
// Rank 0 chooses and creates it, and holds its lock as long as this object lives, so that no other
// process trains in it; all ranks know its name. A run that fails before its first step leaves no
// directory behind. Collective constructor and create.
#pragma once

#include "runtime/core/ControlPlane.h"
#include "runtime/data/FileLock.h"
#include "runtime/train/TrainOptions.h"

#include <nlohmann/json.hpp>
#include <string>

namespace dlc::rt {

class RunDirectory {
public:
  /// Of `options.runDirectory`, or of a fresh runs/MODEL-k. Throws Error on all ranks if it holds a
  /// run and `resume` is not set, or the other way around, or if another process trains in it.
  RunDirectory(const TrainOptions &options, const std::string &model, ControlPlane &control);
  ~RunDirectory();
  RunDirectory(const RunDirectory &) = delete;
  RunDirectory &operator=(const RunDirectory &) = delete;

  /// Requests to stop are noted already. Makes it: no other process gets the same directory.
  /// Throws Error on all ranks if it cannot be created or written.
  void create();

  /// The directory now holds something of the run, so the destructor does not remove it.
  void keep() { isKept = true; }

  /// Empty before create() where it was not given.
  const std::string &path() const { return directory; }
  /// Of all files that a run keeps in its directory.
  static constexpr std::string_view fileNames[] = {
      "best.safetensors", "config.json", "last.safetensors", "lock",
      "log.csv",          "log.jsonl",   "loss.svg"};
  std::string last() const { return directory + "/last.safetensors"; }
  std::string best() const { return directory + "/best.safetensors"; }
  std::string configuration() const { return directory + "/config.json"; }
  /// Rank 0: the resolved configuration.
  void writeConfiguration(const nlohmann::ordered_json &content) const;

private:
  std::string lockPath() const { return directory + "/lock"; }
  std::string conflict() const;
  std::string take();
  std::string make();
  std::string shared(const std::string &ofRank0) const;

  ControlPlane &control;
  std::string model;
  std::string directory;
  bool resume;
  bool isNew = false; // made by this object
  bool isKept = false;
  FileLock lock, directoryLock; // somebody may remove the first one's file
};

} // namespace dlc::rt
