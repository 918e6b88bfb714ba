// What one rank does: opens artifact, control plane and session, and carries out the command.
#pragma once

#include "runtime/comm/Launch.h"
#include "runtime/core/StopSignal.h"
#include "tools/dlc-run/CommandLine.h"

namespace dlc::run {

/// How this process was started. Throws Error if the environment promises ranks that are not there.
rt::Launch detectLaunch(const Command &command);

/// Where MPI's module is, if this build has one.
std::string mpiModule();

/// The exit code. Errors are reported here, since peers have to be told while the control
/// plane still lives.
int runRank(const Command &command, rt::StopSignal &stop);

/// How lines of errors begin, lines of an interrupted run, and how those of a training run end that
/// was interrupted before it had something to save.
inline constexpr const char *errorPrefix = "dlc-run: error: ";
inline constexpr const char *interruptedPrefix = "dlc-run: error: interrupted by ";
inline constexpr const char *interruptedEarly = " before the first step; nothing was written";

/// Prints "dlc-run: error: ..." in one line to stderr.
void printError(const std::string &message);

} // namespace dlc::run
