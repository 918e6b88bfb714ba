// One suite for all devices. An executable instantiates it for those that it has, each with code
// that it can load and with ranks that it can make.
#pragma once

#include "test/unit/artifact/TinyArtifact.h"
#include "test/unit/device/DeviceKind.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/core/ControlPlane.h"
#include "runtime/core/Device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace dlc::rt::test {

using Floats = std::vector<float>;

struct DeviceWorld {
  DeviceKind kind;
  /// TinyArtifact with its kernels' code for the device.
  std::function<Artifact()> load;
  /// Runs a body on every one of so many ranks: once per rank of this process.
  std::function<void(int ranks, const std::function<void(ControlPlane &)> &)> run;
};

inline std::ostream &operator<<(std::ostream &stream, const DeviceWorld &world) {
  return stream << world.kind;
}

/// One device, and what tests do with its memory.
class Bench {
public:
  Bench(const DeviceWorld &world, ControlPlane &control)
      : artifact(world.load()), device(world.kind.make(*artifact->target(), 1, control)) {}

  DeviceSpan allocate(artifact::ArenaKind kind, size_t size = tinyElements * sizeof(float)) {
    return device->allocate(kind, size);
  }
  DeviceSpan variable(const Floats &values) {
    DeviceSpan memory = allocate(artifact::ArenaKind::Variables, values.size() * sizeof(float));
    device->upload(std::as_bytes(std::span(values)), memory);
    return memory;
  }
  Floats read(DeviceSpan memory) {
    Floats values(memory.bytes / sizeof(float));
    device->download(memory, std::as_writable_bytes(std::span(values)));
    return values;
  }
  void stageInput(DeviceSpan memory, float value) {
    HostBlock block = device->stage(memory);
    Floats values(memory.bytes / sizeof(float), value);
    std::memcpy(block.bytes.data(), values.data(), memory.bytes);
  }
  uint32_t load(uint32_t kernel) {
    return device->load(artifact, *artifact->kernels()->Get(kernel));
  }

  Artifact artifact;
  std::unique_ptr<Device> device;
};

class DeviceTest : public testing::TestWithParam<DeviceWorld> {
protected:
  void run(const std::function<void(Bench &, ControlPlane &)> &body, int ranks = 1) {
    GetParam().run(ranks, [&](ControlPlane &control) {
      control.setTimeout(60);
      Bench bench(GetParam(), control);
      body(bench, control);
    });
  }
};

inline std::string worldName(const testing::TestParamInfo<DeviceWorld> &info) {
  return info.param.kind.name;
}

} // namespace dlc::rt::test
