// Child processes.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace dlc::run {

/// Path of this program.
std::string ownPath();

/// What a child gets in place of our own output and errors; negative: nothing.
struct Streams {
  int output = -1, error = -1;
};

/// Starts `arguments[0]` (looked up in PATH). A detached child has its own process group and no
/// stdin, and ends when this process does. Throws Error(Runtime) if it cannot be started.
pid_t startProcess(const std::vector<std::string> &arguments, Streams streams, bool detached);

/// Runs to the end; the exit code, 1 if a signal ended it.
int runProcess(const std::vector<std::string> &arguments);

/// As runProcess, with what the child writes to its stdout in `output`.
int captureProcess(const std::vector<std::string> &arguments, std::string &output);

/// Waits; the exit code, or 128 + the signal that ended it.
int waitForProcess(pid_t process);

} // namespace dlc::run
