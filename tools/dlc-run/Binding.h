// Pins a rank to its share of the cores it inherited.
#pragma once

#include "tools/dlc-run/CommandLine.h"

namespace dlc::run {

/// Cores that this process may use.
unsigned usableCores();
/// Cores of the host.
unsigned onlineCores();

/// Pins the calling thread, and so all threads it starts, to `threads` cores: rank after rank side
/// by side (compact) or as far apart as they go (spread). Does nothing if the ranks of this host
/// want more cores than there are.
void bindRank(Bind bind, int localRank, int localSize, unsigned threads);

} // namespace dlc::run
