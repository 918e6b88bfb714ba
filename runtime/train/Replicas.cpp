#include "runtime/train/Replicas.h"

#include "runtime/train/CollectiveError.h"
#include "runtime/train/Signature.h"

#include <algorithm>
#include <cstring>

namespace dlc::rt {

std::vector<uint64_t> variableHashes(const Session &session) {
  std::vector<uint64_t> hashes;
  for (const VariableInfo &variable : variablesOf(session.artifact()))
    hashes.push_back(session.fingerprint(variable.name));
  return hashes;
}

void requireEqualReplicas(const Session &session, const std::string &when,
                          const std::string &advice) {
  ControlPlane &control = session.control();
  if (control.size() == 1)
    return;
  std::vector<VariableInfo> variables = variablesOf(session.artifact());
  std::vector<uint64_t> hashes = variableHashes(session);
  auto all = control.allGather(std::as_bytes(std::span(hashes)),
                               "comparison of the ranks' variables " + when);
  auto differs = [&](size_t rank, size_t i) {
    size_t at = i * sizeof(uint64_t);
    return std::memcmp(all[rank].data() + at, all[0].data() + at, sizeof(uint64_t)) != 0;
  };
  for (size_t i = 0; i < variables.size(); ++i) {
    std::string ranks;
    for (size_t rank = 1; rank < all.size(); ++rank)
      if (differs(rank, i))
        ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    if (!ranks.empty())
      throw CollectiveError(ErrorCode::Runtime, "ranks do not hold the same variables " + when +
                                                    ": " + variables[i].name + " of rank " + ranks +
                                                    " differs from that of rank 0; " + advice);
  }
}

} // namespace dlc::rt
