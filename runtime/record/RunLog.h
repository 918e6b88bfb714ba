// The records of a run: flat JSON lines, a CSV table of the epochs, a picture of the losses, and
// events for TensorBoard.
//
// Rank 0 owns one. On resuming, records of what is done again are dropped, so a log never tells the
// same step twice. Somebody may have edited the lines: what is no record is dropped, what is
// missing stays missing, and notes() says so. One thread at a time.
#pragma once

#include "runtime/record/EventFile.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dlc::rt {

using Record = nlohmann::ordered_json;

class RunLog {
public:
  /// Writes DIR/log.jsonl, DIR/log.csv, DIR/loss.svg and a new event file, and a copy of the lines
  /// to `copy` unless that is empty. Keeps what earlier starts of the run logged of the steps and
  /// the whole epochs that it has done. Throws Error(Runtime) naming the file, as all below do.
  RunLog(const std::string &directory, const std::string &copy, int64_t steps, int64_t wholeEpochs);

  /// A record with `event`: step. Lines are on disk at once, events after flush().
  void step(const Record &record);
  /// A record with `event`: override.
  void overridden(const Record &record);
  /// A record with `event`: epoch; flushes all files. A `part` of an epoch is no event, and is
  /// dropped on resuming, since the whole one will follow.
  void epoch(const Record &record);
  void flush() { events.flush(); }

  /// Lines of earlier starts that were left out or cut, and records that are missing.
  const std::vector<std::string> &notes() const { return found; }

private:
  struct File {
    std::string path;
    std::ofstream stream;
  };

  void keep(const std::string &path, int64_t steps, int64_t wholeEpochs);
  void write(const Record &record);
  void writeTable();

  std::string directory;
  EventFile events;
  std::vector<File> files;
  std::vector<std::string> found;
  std::vector<Record> epochs;
  File table; // open once an epoch has ended
};

/// Losses, metrics and the learning rate over the epochs as SVG. Of more epochs than a picture can
/// show, every k-th one and the last.
std::string lossPicture(const std::string &title, const std::vector<Record> &epochs);

} // namespace dlc::rt
