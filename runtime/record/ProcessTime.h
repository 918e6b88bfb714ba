// How long this process has run, start-up included.
#pragma once

#include <string>

namespace dlc::rt {

/// Seconds since the kernel started this process, to its clock tick (10 ms).
double secondsOfProcess();

/// "first step after 1.23 s", said once it has ended.
std::string firstStepText(double seconds);

} // namespace dlc::rt
