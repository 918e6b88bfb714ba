// The conformance suite of the devices of the host. Ranks are threads.

#include "test/unit/device/Conformance.h"
#include "test/unit/device/Devices.h"

#include "runtime/comm/ControlPlanes.h"

#include <fstream>
#include <iterator>

namespace dlc::rt::test {
namespace {

Artifact loadForHost() {
  TinyArtifact tiny;
  std::ifstream file(DLC_TINY_KERNELS, std::ios::binary);
  tiny.code.assign(std::istreambuf_iterator<char>(file), {});
  return Artifact(tiny.pack(), "tiny.dlx");
}

std::vector<DeviceWorld> hostWorlds() {
  std::vector<DeviceWorld> worlds;
  for (const DeviceKind &kind : allDevices())
    worlds.push_back(
        {kind, loadForHost, [](int ranks, const auto &body) { runInProcess(ranks, body); }});
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTest, testing::ValuesIn(hostWorlds()), worldName);

} // namespace
} // namespace dlc::rt::test
