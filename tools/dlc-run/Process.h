// Child processes.
//
// While one is waited for, requests to stop must be noted (StopSignal): they are passed on to the
// child, whose end is then waited for. A child ends when this process does.
#pragma once

#include "runtime/core/StopSignal.h"

#include <functional>
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
/// stdin. Throws Error(Runtime) if it cannot be started.
pid_t startProcess(const std::vector<std::string> &arguments, Streams streams, bool detached);

/// Is called again and again while there is cause to: a child that has just been started misses
/// what comes too early.
using Poll = std::function<void()>;

/// Gives `take` what comes through a pipe until that closes. Calls `poll` several times a second.
void readPipe(int pipe, const std::function<void(std::string_view)> &take, const Poll &poll);

/// Waits; the exit code, or 128 + the signal that ended it. Calls `poll` many times a second.
int waitForProcess(pid_t process, const Poll &poll);

/// Runs to the end, without its stdout; the exit code, or 128 + the signal that ended it.
int runProcess(const std::vector<std::string> &arguments, const rt::StopSignal &stop);

/// As runProcess, with what the child writes to its stdout in `output`.
int captureProcess(const std::vector<std::string> &arguments, std::string &output,
                   const rt::StopSignal &stop);

} // namespace dlc::run
