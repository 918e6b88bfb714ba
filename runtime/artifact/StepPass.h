// Which instructions run when.
//
// A step of one micro-batch is one pass. In a step of several, each has a pass of its own, in which
// gradients are summed up; collectives and updates run in the last one. What is of phase Count has
// passes ahead of those, one for each micro-batch: its sums over all of them are what every pass of
// gradients recalls.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <array>
#include <cstdint>

namespace dlc::rt {

enum class StepPass : uint8_t { Whole, Count, LastCount, Gradients, LastGradients };

inline constexpr std::array stepPasses = {StepPass::Whole, StepPass::Count, StepPass::LastCount,
                                          StepPass::Gradients, StepPass::LastGradients};

/// By pass: whether an instruction runs in it.
using StepPasses = std::array<bool, stepPasses.size()>;
inline constexpr StepPasses everyPass = {true, true, true, true, true};
StepPasses passesOf(artifact::Operation operation, artifact::Phase phase);

/// True of what runs in the last micro-batch of a step alone: collectives, and what computes or
/// copies for the optimizer.
bool isOncePerStep(artifact::Operation operation, artifact::Phase phase);
inline bool isOncePerStep(const artifact::Instruction &instruction) {
  return isOncePerStep(instruction.operation_type(), instruction.phase());
}

} // namespace dlc::rt
