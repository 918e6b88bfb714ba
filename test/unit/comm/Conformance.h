// One suite for all communicators. An executable instantiates it for the worlds that it can make.
#pragma once

#include "runtime/core/Communicator.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

namespace dlc::rt::test {

/// A way to run a body on every rank. The body runs once per rank of this process.
struct World {
  std::string name;
  int ranks;
  std::function<void(const std::function<void(Communicator &)> &)> run;
};

inline std::ostream &operator<<(std::ostream &stream, const World &world) {
  return stream << world.name;
}

class CommunicatorTest : public testing::TestWithParam<World> {
protected:
  void run(const std::function<void(Communicator &)> &body) { GetParam().run(body); }
};

inline std::string worldName(const testing::TestParamInfo<World> &info) { return info.param.name; }

} // namespace dlc::rt::test
