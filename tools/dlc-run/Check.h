// `dlc-run --check`: what this build and this machine can do.
#pragma once

#include <string>

namespace dlc::run {

/// Prints it; the exit code.
/// `deviceFile`, unless empty, gets what describes the first GPU (--device-json).
int check(const std::string &deviceFile);

/// `dlc-run --check --kernels FILE.dlx`: whether its library kernels compute here what they should.
/// Prints what is wrong; the exit code.
int checkKernels(const std::string &file);

/// `dlc-run --check --calibrate FILE.json`: measures this machine and writes a target's table.
int calibrate(const std::string &file);

} // namespace dlc::run
