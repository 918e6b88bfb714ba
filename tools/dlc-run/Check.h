// `dlc-run --check`: what this build and this machine can do.
#pragma once

#include <string>

namespace dlc::run {

/// Prints it; the exit code.
int check();

/// `dlc-run --check --calibrate FILE.json`: measures this machine and writes a target's table.
int calibrate(const std::string &file);

} // namespace dlc::run
