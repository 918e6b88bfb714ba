// What the processor under us can do, in LLVM's spelling of instruction sets ("avx512bf16").
#pragma once

#include <string>
#include <vector>

namespace dlc::rt {

/// Instruction sets that processor and operating system offer; empty if they cannot be told.
std::vector<std::string> hostFeatures();

/// Those of `wanted` that this machine lacks.
std::vector<std::string> missingFeatures(const std::vector<std::string> &wanted);

/// The processor's name, e.g. "AMD EPYC".
std::string hostProcessor();

/// Its vendor and family, e.g. "AuthenticAMD 25", as the operating system has them.
std::string hostFamily();

} // namespace dlc::rt
