// An error that every rank throws at the same place, so that one rank alone needs to report it and
// none has to abort the others.
#pragma once

#include "runtime/artifact/Error.h"
#include "runtime/core/ControlPlane.h"

namespace dlc::rt {

class CollectiveError : public Error {
public:
  using Error::Error;
};

/// Where some rank has met with an error, the first one's. `mine` says what this rank's is, empty
/// if it has none. Collective.
std::string firstError(ControlPlane &control, const std::string &mine);

} // namespace dlc::rt
