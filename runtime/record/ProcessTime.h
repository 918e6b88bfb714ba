// How long this process has run and kept processors busy, start-up included.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dlc::rt {

/// Seconds since the kernel started this process, to its clock tick (10 ms).
double secondsOfProcess();

/// Seconds that this process has kept processors busy, all its threads together, and so have those
/// that it waited for, as the compiler.
struct ProcessorTime {
  double user = 0, system = 0;
};
ProcessorTime processorTime();

/// "user 1.50 s, system 0.25 s (2 ranks together), wall 1.00 s", start-up included.
std::string timesText(ProcessorTime processor, int ranks, double wall);

/// "first step after 1.23 s (device 0.40, memory 0.10, kernels 0.50, variables 0.03, rest 0.20)",
/// said once it has ended. `phases`: their names and seconds.
std::string firstStepText(double seconds,
                          const std::vector<std::pair<std::string, double>> &phases);

} // namespace dlc::rt
