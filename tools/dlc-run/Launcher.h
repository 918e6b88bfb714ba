// `-np N`: starts the ranks and stays as their parent.
//
// A request to stop becomes the ranks' own. Whatever goes wrong, the last line printed is the one
// error that matters, and the exit code is 1.
#pragma once

#include "runtime/core/StopSignal.h"

#include <string>
#include <vector>

namespace dlc::run {

/// What ranks are started for.
struct Job {
  int ranks = 1;
  std::vector<std::string> arguments; // of this program, on every rank
  bool trains = false;
};

/// Runs a job; the exit code. Throws Error if a process cannot be started.
int launchRanks(const Job &job, rt::StopSignal &stop);

/// Sorts the lines that ranks, and perhaps mpirun, write to stderr.
class ErrorLines {
public:
  explicit ErrorLines(bool training) : training(training) {}

  /// True if the line is to be shown as it comes.
  bool take(const std::string &line);
  /// A signal has ended a rank.
  void noteSignal(int rank, int signal);
  /// The line that explains the end; `exitCode` of mpirun or of the first rank that failed.
  std::string verdict(int exitCode, const rt::StopSignal &stop) const;

private:
  bool training;
  bool inBlock = false; // between mpirun's dashed lines
  std::string interruption, rankError, endReason;
};

} // namespace dlc::run
