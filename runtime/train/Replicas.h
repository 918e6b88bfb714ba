// The invariant that all ranks hold the same variables, checked before a run and while it goes on.
#pragma once

#include "runtime/core/Session.h"

#include <string>
#include <vector>

namespace dlc::rt {

/// Of parameters, state and slots, in the artifact's order.
std::vector<uint64_t> variableHashes(const Session &session);

/// Compares parameters, state and slots over ranks by their hashes. Collective: all ranks throw
/// CollectiveError(Runtime) alike, which names the first variable that differs, the ranks where it
/// does, `when`, and then `advice`.
void requireEqualReplicas(const Session &session, const std::string &when,
                          const std::string &advice);

} // namespace dlc::rt
