// The names of instructions and types.
#pragma once

#include "test/ptx/Module.h"

#include <optional>

namespace dlc::ptx {

/// ".b32" and others.
std::optional<Type> typeNamed(const std::string &name);

/// Reads an opcode with its modifiers, "setp.lt.ftz.f32". Returns why it is refused, or nothing.
std::string decodeOpcode(const std::string &opcode, Instruction &instruction);

} // namespace dlc::ptx
