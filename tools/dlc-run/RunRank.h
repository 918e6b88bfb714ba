// What one rank does: opens artifact, communicator and session, and carries out the command.
#pragma once

#include "tools/dlc-run/CommandLine.h"

namespace dlc::run {

/// The exit code. Errors are reported here, since peers have to be told while the communicator
/// still lives.
int runRank(const Command &command);

/// Prints "dlc-run: error: ..." in one line to stderr.
void printError(const std::string &message);

} // namespace dlc::run
