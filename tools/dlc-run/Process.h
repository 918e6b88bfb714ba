// Child processes.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace dlc::run {

/// Path of this program.
std::string ownPath();

/// Starts `arguments[0]` (looked up in PATH). The child gets `standardError` as its stderr unless
/// that is negative; a detached child has its own process group and no stdin, and ends when this
/// process does. Throws Error(Runtime) if it cannot be started.
pid_t startProcess(const std::vector<std::string> &arguments, int standardError, bool detached);

/// Runs to the end; the exit code, 1 if a signal ended it.
int runProcess(const std::vector<std::string> &arguments);

/// Waits; the exit code, or 128 + the signal that ended it.
int waitForProcess(pid_t process);

} // namespace dlc::run
