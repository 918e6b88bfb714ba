// An error that every rank throws at the same place, so that one rank alone needs to report it and
// none has to abort the others.
#pragma once

#include "runtime/core/Error.h"

namespace dlc::rt {

class CollectiveError : public Error {
public:
  using Error::Error;
};

} // namespace dlc::rt
