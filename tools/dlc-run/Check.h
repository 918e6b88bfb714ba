// `dlc-run --check`: what this build and this machine can do.
#pragma once

namespace dlc::run {

/// Prints it; the exit code.
int check();

} // namespace dlc::run
