// A kind of device that tests run on.
#pragma once

#include "runtime/core/Session.h"

#include <ostream>
#include <string>

namespace dlc::rt::test {

struct DeviceKind {
  std::string name;
  decltype(SessionOptions::makeDevice) make;
};

inline std::ostream &operator<<(std::ostream &stream, const DeviceKind &kind) {
  return stream << kind.name;
}

} // namespace dlc::rt::test
