// Which of how many micro-batches of a step.
#pragma once

#include "runtime/artifact/StepPass.h"

#include <cstdint>

namespace dlc::rt {

struct MicroBatch {
  int64_t index = 0, count = 1;
  bool counts = false; // ahead of the passes for gradients

  bool isLast() const { return index + 1 == count; }
  StepPass pass() const {
    if (count == 1)
      return StepPass::Whole;
    if (counts)
      return isLast() ? StepPass::LastCount : StepPass::Count;
    return isLast() ? StepPass::LastGradients : StepPass::Gradients;
  }
};

} // namespace dlc::rt
