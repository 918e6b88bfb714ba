// Binaries of GPUs, which a driver reads without being told their size.
#pragma once

#include <cstdint>
#include <span>

namespace dlc::rt {

/// True of an ELF file of 64 bits whose headers and sections lie in it.
bool isWholeElf(std::span<const uint8_t> file);

} // namespace dlc::rt
