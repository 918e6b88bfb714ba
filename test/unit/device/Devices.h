// The devices of the host that tests run on: the CPU's, and the asynchronous one by several seeds.
#pragma once

#include "runtime/cpu/CpuDevice.h"
#include "test/asynchronous/AsynchronousDevice.h"
#include "test/unit/device/DeviceKind.h"

#include <memory>
#include <string>
#include <vector>

namespace dlc::rt::test {

inline DeviceKind cpuDevice() {
  return {"cpu", [](const artifact::Target &target, unsigned threads, ControlPlane &control) {
            return std::make_unique<CpuDevice>(target, threads, control.hostCollectives());
          }};
}

inline DeviceKind asynchronousDevice(AsynchronousOptions options) {
  return {"asynchronous" + std::to_string(options.seed),
          [options](const artifact::Target &target, unsigned threads, ControlPlane &control) {
            return std::make_unique<AsynchronousDevice>(cpuDevice().make(target, threads, control),
                                                        options);
          }};
}

inline DeviceKind asynchronousDevice(uint64_t seed) {
  AsynchronousOptions options;
  options.seed = seed;
  return asynchronousDevice(options);
}

inline std::vector<DeviceKind> allDevices() {
  std::vector<DeviceKind> kinds = {cpuDevice()};
  for (uint64_t seed = 0; seed < 4; ++seed)
    kinds.push_back(asynchronousDevice(seed));
  return kinds;
}

} // namespace dlc::rt::test
