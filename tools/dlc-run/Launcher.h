// `-np N`: starts the ranks with mpirun and stays as their parent.
//
// SIGTERM, SIGINT and SIGUSR1 become the ranks' request to checkpoint. Whatever goes wrong, the
// last line printed is the one error that matters, and the exit code is 1.
#pragma once

#include <string>
#include <vector>

namespace dlc::run {

/// Runs this program with `arguments` on `ranks` ranks; the exit code. Throws Error if mpirun
/// cannot be started.
int launchRanks(int ranks, const std::vector<std::string> &arguments);

/// Sorts the lines that ranks and mpirun write to stderr.
class ErrorLines {
public:
  /// True if the line is to be shown as it comes.
  bool take(const std::string &line);
  /// The line that explains the end; `exitCode` of mpirun.
  std::string verdict(int exitCode) const;

private:
  bool inBlock = false; // between mpirun's dashed lines
  std::string rankError, mpirunReason;
};

} // namespace dlc::run
