// Measures the team's memory and arithmetic, at the sizes of its caches and beyond them.
#pragma once

#include "runtime/core/MachineSpeed.h"

namespace dlc::rt {

/// On the calling thread's team, in about a second. Each figure comes from many short windows in
/// which all threads ran together, so that what else runs on the machine counts little. Needs AVX2.
MachineSpeed measureMachine();

} // namespace dlc::rt
