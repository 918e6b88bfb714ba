// Sums of a training step's collectives over micro-batches.
//
// A step of K micro-batches runs forward and backward K times; what a rank contributes to a
// collective is the sum of all, in their order. So K micro-batches on one rank are what K ranks
// would be: the same numbers in the same order. Memory is allocated by the constructor alone.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <cstdint>
#include <vector>

namespace dlc::rt {

/// Which of how many micro-batches of a step.
struct MicroBatch {
  int64_t index = 0, count = 1;

  bool isLast() const { return index + 1 == count; }
};

class Accumulation {
public:
  /// Throws Error(BadInput) if the backward pass needs what is known after the last micro-batch
  /// only.
  Accumulation(const Artifact &artifact, const artifact::Program &program);

  /// True for what runs once a step: the optimizer.
  bool runsOnce(uint32_t instruction) const { return once[instruction]; }
  /// Of a micro-batch that is not the last: takes over its contribution.
  void add(uint32_t collective, const float *contribution, bool isFirst);
  /// Of the last: adds what the others contributed.
  void complete(uint32_t collective, float *contribution) const;
  uint64_t bytes() const;

private:
  std::vector<bool> once;               // by instruction
  std::vector<std::vector<float>> sums; // by collective
};

} // namespace dlc::rt
