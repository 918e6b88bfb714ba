// Where the factors of a product of matrices lie.
#pragma once

#include <cstdint>

namespace dlc::rt {

/// A part of the dimension that is summed over: where a and b begin, in rows of what they are of in
/// memory, behind what the parts have in common.
struct ProductPart {
  int64_t a, b, steps;
};

} // namespace dlc::rt
