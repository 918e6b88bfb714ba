#pragma once

#include <cstdint>

namespace dlc::rt {

/// a / b, rounded up, of numbers that are not negative.
constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace dlc::rt
