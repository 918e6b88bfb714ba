// Back ends are shared modules, opened on demand: dlc_cpu.so serves targets cpu:*.
//
// One module holds planner and device, so that what plans a kernel is what rebuilds it; the
// compiler uses the one, the runtime the other.
#pragma once

#include "runtime/core/ControlPlane.h"
#include "runtime/core/Device.h"
#include "runtime/core/KernelPlanner.h"
#include "runtime/core/MachineSpeed.h"

#include <functional>
#include <memory>
#include <string>

namespace dlc::rt {

/// What a module's `dlc_back_end` returns.
struct BackEnd {
  struct Finding {
    bool canRun;      // programs, on this machine
    std::string text; // one line: library, version, what it may use here or what is missing
    /// What the library says of the device, as JSON; empty if it says nothing.
    std::string properties = "";
  };

  /// Changes with this struct, and with the virtual methods of what modules make or take.
  static constexpr uint32_t currentVersion = 13;

  uint32_t version;
  /// Null with `reason` set if this machine cannot plan for the target. Costs assume teams of
  /// `threads`.
  std::unique_ptr<KernelPlanner> (*makePlanner)(const std::string &target, unsigned threads,
                                                std::string &reason) noexcept;
  /// This rank's device for the artifact's target, run by a team of `threads`, which is the calling
  /// thread's from now on. Throws Error if the machine or the library cannot serve it. `control`
  /// outlives it.
  std::unique_ptr<Device> (*makeDevice)(const artifact::Target &target, unsigned threads,
                                        ControlPlane &control);
  /// Measures what the calling thread's team can do here, or the GPU of the rank with this number
  /// on its host, in about a second.
  MachineSpeed (*measureMachine)(int localRank);
  /// Measures the machine and returns the text of a table that `makePlanner` takes as
  /// "cpu:FILE.json"; `progress` hears how far it is. Takes up to three minutes.
  std::string (*calibrate)(const std::function<void(const std::string &)> &progress);
  /// The artifact's file with the plans of its library kernels that are fastest on this machine's
  /// device; `progress` hears of each. Throws Error if plans are not chosen that way.
  std::vector<uint8_t> (*tune)(const Artifact &artifact,
                               const std::function<void(const std::string &)> &progress);
  /// What a library kernel of an artifact computes, and its plans. Throws Error(Artifact) naming it
  /// if it is damaged.
  StoredKernel (*readKernel)(const artifact::Kernel &kernel, const artifact::Target &target);
  Finding (*describe)();
};

/// The back end of a target, "cpu:..." by its part before the colon; null with `reason` set if its
/// module is missing or of another version. Modules stay open.
const BackEnd *findBackEnd(const std::string &target, std::string &reason) noexcept;

} // namespace dlc::rt

extern "C" const dlc::rt::BackEnd *dlc_back_end();
