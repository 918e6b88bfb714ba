#include "runtime/artifact/StepPass.h"

#include <algorithm>

namespace dlc::rt {

static bool isCounting(StepPass pass) {
  return pass == StepPass::Count || pass == StepPass::LastCount;
}

bool isOncePerStep(artifact::Operation operation, artifact::Phase phase) {
  switch (operation) {
  case artifact::Operation::CollectiveStart:
  case artifact::Operation::CollectiveWait:
    return true;
  case artifact::Operation::Dispatch:
  case artifact::Operation::Copy:
    return phase == artifact::Phase::Optimizer;
  default:
    return false; // what the host gives and takes is of a micro-batch
  }
}

static bool runsIn(StepPass pass, artifact::Operation operation, artifact::Phase phase) {
  bool counts = phase == artifact::Phase::Count;
  bool isLast = pass == StepPass::LastCount || pass == StepPass::LastGradients;
  bool isWhole = pass == StepPass::Whole;
  switch (operation) {
  case artifact::Operation::CollectiveStart:
  case artifact::Operation::CollectiveWait:
    return isWhole || (isLast && counts == isCounting(pass));
  case artifact::Operation::Accumulate:
    return !isWhole && counts == isCounting(pass);
  case artifact::Operation::Recall:
    return !isWhole && pass != StepPass::Count;
  case artifact::Operation::Download:
    return !isCounting(pass);
  case artifact::Operation::Dispatch:
  case artifact::Operation::Copy:
    if (isCounting(pass))
      return counts;
    return pass != StepPass::Gradients || !isOncePerStep(operation, phase);
  default:
    return true;
  }
}

StepPasses passesOf(artifact::Operation operation, artifact::Phase phase) {
  StepPasses passes;
  std::ranges::transform(stepPasses, passes.begin(),
                         [&](StepPass pass) { return runsIn(pass, operation, phase); });
  return passes;
}

} // namespace dlc::rt
