// The module's one entry.

#include "runtime/core/BackEnd.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/CudaPlanner.h"
#include "runtime/cuda/Tune.h"

namespace dlc::rt {
namespace {

[[noreturn]] void refuse() { throw Error(ErrorCode::Runtime, "this version measures no GPUs"); }

std::unique_ptr<Device> makeCudaDevice(const artifact::Target &target, unsigned,
                                       ControlPlane &control) {
  return std::make_unique<CudaDevice>(target, control);
}

MachineSpeed measureGpu() { refuse(); }

std::string calibrateGpu(const std::function<void(const std::string &)> &) { refuse(); }

std::string describeCuda() {
  std::string reason;
  const cudnn::Functions *library = cudnn::open(reason);
  return library ? "cuDNN " + cudnn::versionText(library->getVersion()) + ", for planning"
                 : "no cuDNN: " + reason;
}

const BackEnd backEnd{BackEnd::currentVersion,
                      makeCudaPlanner,
                      makeCudaDevice,
                      measureGpu,
                      calibrateGpu,
                      tune,
                      describeCuda};

} // namespace
} // namespace dlc::rt

extern "C" const dlc::rt::BackEnd *dlc_back_end() { return &dlc::rt::backEnd; }
