// The module's one entry.

#include "runtime/core/BackEnd.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/CudaPlanner.h"
#include "runtime/cuda/MeasureGpu.h"
#include "runtime/cuda/Tune.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace dlc::rt {
namespace {

std::unique_ptr<Device> makeCudaDevice(const artifact::Target &target, unsigned,
                                       ControlPlane &control) {
  return std::make_unique<CudaDevice>(target, control);
}

MachineSpeed measureMachine(int localRank) { return measureGpu(CudaContext(localRank)); }

std::string calibrateGpu(const std::function<void(const std::string &)> &) {
  throw Error(ErrorCode::Runtime, "the description of a GPU is written by hand: begin with the one "
                                  "in runtime/cuda/targets that is "
                                  "most like it");
}

/// What cuDNN says of a GPU, and what newer versions want to know of one to plan for it.
std::string propertiesOf(CudaContext &gpu) {
  nlohmann::ordered_json properties = nlohmann::ordered_json::parse(gpu.convolutions().properties);
  int bits = 0;
  gpu.require(
      gpu.cuda().deviceGetAttribute(&bits, cudart::DeviceAttribute::MemoryBusWidth, gpu.number()),
      "ask the GPU");
  properties["memoryBusWidth"] = bits;
  return properties.dump();
}

/// "GPU 0 of 8: NVIDIA H200 (sm_90), CUDA 13.0, cuDNN 9.19.0, cuBLASLt 13.1.0, 140.4 GiB", or why
/// there is none.
BackEnd::Finding describeGpu() try {
  CudaContext gpu(0);
  std::string properties = propertiesOf(gpu);
  gpu.products(); // for its version
  double bytes = nlohmann::json::parse(properties).at("totalGlobalMem").get<double>();
  char memory[32];
  std::snprintf(memory, sizeof memory, ", %.1f GiB", bytes / (1 << 30));
  return {true, "GPU 0 of " + std::to_string(gpu.count()) + ": " + gpu.platform() + memory,
          properties};
} catch (const std::exception &error) {
  return {false, error.what()};
}

BackEnd::Finding describeCuda() {
  std::string reason;
  const cudnn::Functions *library = cudnn::open(reason);
  if (!library)
    return {false, "no cuDNN: " + reason};
  BackEnd::Finding gpu = describeGpu();
  gpu.text = cudnn::nameOf(*library) + "; " + gpu.text;
  return gpu;
}

const BackEnd backEnd{BackEnd::currentVersion, makeCudaPlanner, makeCudaDevice,
                      measureMachine,          calibrateGpu,    tune,
                      readCudaKernel,          describeCuda};

} // namespace
} // namespace dlc::rt

extern "C" const dlc::rt::BackEnd *dlc_back_end() { return &dlc::rt::backEnd; }
