// Whether the library kernels of an artifact compute what they should on this machine.
//
// Each plan runs on memory of its own, twice with numbers of all their type's bits, whose results
// must have equal bits and be as near to f64 as sums in f32 are, and with small whole numbers,
// whose sums are exact in whatever order. Results and workspaces are NaN before each run.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/core/BackEnd.h"

#include <functional>
#include <string>
#include <vector>

namespace dlc::rt {

struct KernelCheck {
  size_t kernels = 0, plans = 0;   // looked at
  double error = 0;                // the largest, as a share of what is allowed
  std::string kernel;              // that has it
  std::vector<std::string> faults; // one line each, which names the kernel
};

/// Loads and runs every plan of every library kernel. `progress` hears of each kernel before it
/// runs. Throws Error if the device has not the memory of one, or fails.
KernelCheck checkKernels(const Artifact &artifact, const BackEnd &backEnd, Device &device,
                         const std::function<void(const std::string &)> &progress);

} // namespace dlc::rt
