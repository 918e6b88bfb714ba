// What an instruction makes of values.
#pragma once

#include "test/ptx/Module.h"

namespace dlc::ptx {

/// True of an integer division that has no result.
bool dividesByZero(const Instruction &instruction, const uint64_t *operands);

/// The result of an instruction on values, of whose 64 bits a type takes the lowest. Arithmetic is
/// IEEE's; approximations, of which the project emits none, are refused. Throws ParseError for a
/// type that the instruction does not have.
uint64_t evaluate(const Instruction &instruction, const uint64_t *operands);

} // namespace dlc::ptx
