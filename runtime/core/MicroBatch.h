// Which of how many micro-batches of a step.
#pragma once

#include <cstdint>

namespace dlc::rt {

struct MicroBatch {
  int64_t index = 0, count = 1;

  bool isLast() const { return index + 1 == count; }
};

} // namespace dlc::rt
