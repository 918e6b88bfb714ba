// The asynchronous device in the place of the CPU's. DLC_ASYNCHRONOUS_SEED draws the order.

#include "runtime/core/BackEnd.h"

#include "runtime/artifact/Error.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/CpuPlan.h"
#include "runtime/cpu/CpuPlanner.h"
#include "test/asynchronous/AsynchronousDevice.h"

#include <cstdlib>

namespace dlc::rt {
namespace {

std::unique_ptr<Device> makeDevice(const artifact::Target &target, unsigned threads,
                                   ControlPlane &control) {
  test::AsynchronousOptions options;
  if (const char *seed = std::getenv("DLC_ASYNCHRONOUS_SEED"))
    options.seed = std::strtoull(seed, nullptr, 10);
  auto kernels = std::make_unique<CpuDevice>(target, threads, control.hostCollectives());
  return std::make_unique<test::AsynchronousDevice>(std::move(kernels), options);
}

[[noreturn]] void refuse() {
  throw Error(ErrorCode::Runtime, "the asynchronous device measures nothing");
}
MachineSpeed measure(int) { refuse(); }
std::string calibrateDevice(const std::function<void(const std::string &)> &) { refuse(); }
std::vector<uint8_t> tuneDevice(const Artifact &,
                                const std::function<void(const std::string &)> &) {
  refuse();
}
BackEnd::Finding describe() { return {true, "the CPU, late"}; }

const BackEnd backEnd{BackEnd::currentVersion, makeCpuPlanner, makeDevice,    measure,
                      calibrateDevice,         tuneDevice,     readCpuKernel, describe};

} // namespace
} // namespace dlc::rt

extern "C" const dlc::rt::BackEnd *dlc_back_end() { return &dlc::rt::backEnd; }
