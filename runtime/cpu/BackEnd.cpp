// The module's one entry.

#include "runtime/core/BackEnd.h"

#include "runtime/artifact/Error.h"
#include "runtime/cpu/Calibrate.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/CpuPlan.h"
#include "runtime/cpu/CpuPlanner.h"
#include "runtime/cpu/MeasureMachine.h"

#include <oneapi/dnnl/dnnl.h>

namespace dlc::rt {
namespace {

std::unique_ptr<Device> makeCpuDevice(const artifact::Target &target, unsigned threads,
                                      ControlPlane &control) {
  return std::make_unique<CpuDevice>(target, threads, control.hostCollectives());
}

BackEnd::Finding describeCpu() {
  const dnnl_version_t *version = dnnl_version();
  CpuTarget native("cpu:native", 1);
  return {true, "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) +
                    "." + std::to_string(version->patch) + ", native target " + native.name() +
                    (native.table().empty() ? "" : " by the table of " + native.table())};
}

std::vector<uint8_t> tuneForCpu(const Artifact &,
                                const std::function<void(const std::string &)> &) {
  throw Error(ErrorCode::BadInput,
              "kernels for a CPU are chosen by its table: dlc-run --check --calibrate FILE.json "
              "measures one, dlc compile --target=cpu:FILE.json plans with it");
}

const BackEnd backEnd{BackEnd::currentVersion,
                      makeCpuPlanner,
                      makeCpuDevice,
                      [](int) { return measureMachine(); },
                      calibrate,
                      tuneForCpu,
                      readCpuKernel,
                      describeCpu};

} // namespace
} // namespace dlc::rt

extern "C" const dlc::rt::BackEnd *dlc_back_end() { return &dlc::rt::backEnd; }
