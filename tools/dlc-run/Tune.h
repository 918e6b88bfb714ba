// `dlc-run tune`: an artifact with the kernels that are fastest on this machine's device.
#pragma once

#include <string>

namespace dlc::run {

/// Writes it to `output`; the exit code.
int tune(const std::string &file, const std::string &output);

} // namespace dlc::run
