// How long the library kernels of a program take when nothing else runs: what a step could take if
// the library were all that limits it.
//
// Kernels are rebuilt on a device of their own and run on its memory, on a team as large as the
// session's. Collective where devices join others; ranks that measure at the same time share the
// machine as in a step.
#pragma once

#include "runtime/core/Session.h"

#include <functional>
#include <map>

namespace dlc::rt {

/// Seconds by index of kernel: the best of several runs each, as many as fit into `limitSeconds`.
/// `progress` hears now and then how many are done.
std::map<uint32_t, double>
standaloneTimes(const Session &session, const artifact::Program &program, double limitSeconds,
                const std::function<void(const std::string &)> &progress);

} // namespace dlc::rt
