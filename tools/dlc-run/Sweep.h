// `dlc-run bench` over several batch sizes or numbers of ranks.
//
// The launching process compiles, and measures each row by running this program's own bench, with
// -np where there are several ranks.
#pragma once

#include "runtime/core/StopSignal.h"
#include "tools/dlc-run/CommandLine.h"

namespace dlc::run {

/// True if the command asks for a sweep.
bool isSweep(const Command &command);

/// The exit code. Throws Error for what cannot be swept or measured, and Error(Interrupted) after a
/// request to stop.
int runSweep(const Command &command, const rt::StopSignal &stop);

} // namespace dlc::run
