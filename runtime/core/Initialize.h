// Start values of variables: the same bits on every machine, for every layout and number of ranks.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <span>

namespace dlc::rt {

/// Two standard normal draws from two words of Philox (Box and Muller 1958), computed with basic
/// double arithmetic alone, because mathematical libraries differ between machines.
std::pair<float, float> normalPair(uint32_t first, uint32_t second);

/// Start values of a variable's logical elements first, first + 1, ...; each depends on its index
/// alone. Any thread may call it.
void drawInitialValues(const artifact::Variable &variable, uint64_t seed, size_t first,
                       std::span<float> values);

} // namespace dlc::rt
