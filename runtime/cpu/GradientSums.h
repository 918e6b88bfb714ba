// Sums of what a rank contributes to a program's collectives, over micro-batches. Memory is
// allocated by the constructor alone.
#pragma once

#include "runtime/core/ResolvedProgram.h"

#include <cstdint>
#include <vector>

namespace dlc::rt {

class GradientSums {
public:
  explicit GradientSums(const std::vector<ResolvedProgram::Collective> &collectives);

  /// Of a micro-batch that is not the last: takes over its contribution.
  void add(uint32_t collective, bool isFirst);
  /// Of the last: adds what the others contributed.
  void complete(uint32_t collective);
  uint64_t bytes() const;

private:
  struct Sum {
    float *contribution; // in the arena of gradients
    std::vector<float> values;
  };
  std::vector<Sum> sums; // by collective
};

} // namespace dlc::rt
