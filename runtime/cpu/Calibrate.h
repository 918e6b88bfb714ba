// Writes a target's table as this machine measures it.
#pragma once

#include <functional>
#include <string>

namespace dlc::rt {

/// The text of a targets/*.json for the host: peaks, bandwidths by number of cores, overhead of a
/// kernel, and the efficiency of every implementation of convolutions and matrix products by
/// channels and size of image; what was not measured is as in the table that is compiled in. Takes
/// one to three minutes; `progress` hears how far it is. Sets the calling thread's team.
std::string calibrate(const std::function<void(const std::string &)> &progress);

} // namespace dlc::rt
