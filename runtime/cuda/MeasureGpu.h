// How long a GPU takes for what it is given, and how fast it moves memory, as copies show.
#pragma once

#include "runtime/core/MachineSpeed.h"
#include "runtime/cuda/CudaContext.h"

#include <functional>
#include <string>

namespace dlc::rt {

/// Nanoseconds of what `start` puts on the stream of computations, by the GPU's own clock: the best
/// of so many rounds. `doing` names it if the GPU fails.
double bestTime(const CudaContext &gpu, int rounds, const std::string &doing,
                const std::function<void(cudart::Stream stream)> &start);

/// Of memory, and of the cache that all multiprocessors share. Throws Error(Runtime) if there is no
/// room for two areas that are twice as large as the cache, or the GPU fails.
MachineSpeed measureGpu(const CudaContext &gpu);

} // namespace dlc::rt
