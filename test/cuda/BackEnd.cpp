// The emulated GPU, late, in the place of the CUDA back end. DLC_ASYNCHRONOUS_SEED draws the order.

#include "runtime/core/BackEnd.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/CudaPlanner.h"
#include "test/asynchronous/AsynchronousDevice.h"
#include "test/cuda/EmulatedDevice.h"

#include <cstdlib>

namespace dlc::rt {
namespace {

std::unique_ptr<Device> makeDevice(const artifact::Target &target, unsigned,
                                   ControlPlane &control) {
  test::AsynchronousOptions options;
  if (const char *seed = std::getenv("DLC_ASYNCHRONOUS_SEED"))
    options.seed = std::strtoull(seed, nullptr, 10);
  auto kernels = std::make_unique<test::EmulatedDevice>(target, control.hostCollectives());
  return std::make_unique<test::AsynchronousDevice>(std::move(kernels), options);
}

[[noreturn]] void refuse() {
  throw Error(ErrorCode::Runtime, "the emulated device measures nothing");
}
MachineSpeed measure(int) { refuse(); }
std::string calibrateDevice(const std::function<void(const std::string &)> &) { refuse(); }
std::vector<uint8_t> tuneDevice(const Artifact &,
                                const std::function<void(const std::string &)> &) {
  refuse();
}
BackEnd::Finding describe() { return {true, "a GPU, emulated"}; }

const BackEnd backEnd{BackEnd::currentVersion, makeCudaPlanner, makeDevice,     measure,
                      calibrateDevice,         tuneDevice,      readCudaKernel, describe};

} // namespace
} // namespace dlc::rt

extern "C" const dlc::rt::BackEnd *dlc_back_end() { return &dlc::rt::backEnd; }
