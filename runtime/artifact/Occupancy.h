// How many of a GPU's threads a kernel can keep resident.
#pragma once

#include <optional>

namespace dlc::rt {

/// What a block of a kernel takes; registers are a thread's.
struct BlockNeeds {
  unsigned threads = 0, registers = 0, sharedBytes = 0;
};

/// The share of a multiprocessor's threads that blocks of this kind fill, from 0 to 1, on devices
/// of a compute capability (90 for 9.0). Nothing for one that is not known here, or if it is not
/// known how many registers a thread needs.
std::optional<double> occupancy(unsigned architecture, const BlockNeeds &block);

} // namespace dlc::rt
