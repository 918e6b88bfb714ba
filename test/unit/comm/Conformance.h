// One suite for all control planes and collectives. An executable instantiates it for the worlds
// that it can make.
#pragma once

#include "runtime/core/Collectives.h"
#include "runtime/core/ControlPlane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt::test {

/// One rank under test: its control plane, its collectives, and how the host gets at their
/// operands.
class Rank {
public:
  virtual ~Rank() = default;

  virtual ControlPlane &control() = 0;
  virtual Collectives &collectives() = 0;
  /// Zeroed memory of f32, which the rank owns and has registered.
  virtual DeviceSpan allocate(size_t elements) = 0;
  /// The same, not registered.
  virtual DeviceSpan allocatePrivate(size_t elements) = 0;
  virtual void write(DeviceSpan memory, std::span<const float> values) = 0;
  virtual std::vector<float> read(DeviceSpan memory) = 0;

  int rank() { return control().rank(); }
  int size() { return control().size(); }
};

/// The host's own memory and collectives.
class HostRank final : public Rank {
public:
  explicit HostRank(ControlPlane &plane) : plane(plane) {}
  ~HostRank() override {
    for (DeviceSpan memory : shared)
      collectives().unregisterMemory(memory);
  }

  ControlPlane &control() override { return plane; }
  Collectives &collectives() override { return plane.hostCollectives(); }
  DeviceSpan allocate(size_t elements) override {
    return shared.emplace_back(plane.hostCollectives().allocateShared(elements * sizeof(float)));
  }
  DeviceSpan allocatePrivate(size_t elements) override {
    std::vector<float> &memory = others.emplace_back(elements);
    return {reinterpret_cast<uintptr_t>(memory.data()), elements * sizeof(float)};
  }
  void write(DeviceSpan memory, std::span<const float> values) override {
    std::ranges::copy(values, floats(memory).begin());
  }
  std::vector<float> read(DeviceSpan memory) override {
    std::span<const float> values = floats(memory);
    return {values.begin(), values.end()};
  }

private:
  static std::span<float> floats(DeviceSpan memory) {
    return {reinterpret_cast<float *>(memory.address), memory.bytes / sizeof(float)};
  }

  ControlPlane &plane;
  std::vector<DeviceSpan> shared;
  std::vector<std::vector<float>> others;
};

/// A way to run a body on every rank. The body runs once per rank of this process.
struct World {
  std::string name;
  int ranks;
  std::function<void(const std::function<void(Rank &)> &)> run;
};

inline std::ostream &operator<<(std::ostream &stream, const World &world) {
  return stream << world.name;
}

class CollectivesTest : public testing::TestWithParam<World> {
protected:
  void run(const std::function<void(Rank &)> &body) { GetParam().run(body); }
};
class ControlPlaneTest : public testing::TestWithParam<World> {
protected:
  void run(const std::function<void(ControlPlane &)> &body) {
    GetParam().run([&](Rank &rank) { body(rank.control()); });
  }
};

inline std::string worldName(const testing::TestParamInfo<World> &info) { return info.param.name; }

} // namespace dlc::rt::test
