// The module's one entry.

#include "runtime/core/BackEnd.h"

#include "runtime/cpu/Calibrate.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/CpuPlanner.h"
#include "runtime/cpu/MeasureMachine.h"

#include <oneapi/dnnl/dnnl.h>

namespace dlc::rt {
namespace {

std::unique_ptr<Device> makeCpuDevice(const artifact::Target &target, unsigned threads,
                                      ControlPlane &control) {
  return std::make_unique<CpuDevice>(target, threads, control.hostCollectives());
}

std::string describeCpu() {
  const dnnl_version_t *version = dnnl_version();
  CpuTarget native("cpu:native", 1);
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + ", native target " + native.name() +
         (native.table().empty() ? "" : " by the table of " + native.table());
}

const BackEnd backEnd{BackEnd::currentVersion, makeCpuPlanner, makeCpuDevice,
                      measureMachine,          calibrate,      describeCpu};

} // namespace
} // namespace dlc::rt

extern "C" const dlc::rt::BackEnd *dlc_back_end() { return &dlc::rt::backEnd; }
