// How fast a GPU moves memory, as copies of its own show.
#pragma once

#include "runtime/core/MachineSpeed.h"
#include "runtime/cuda/CudaContext.h"

namespace dlc::rt {

/// Of memory, and of the cache that all multiprocessors share. Throws Error(Runtime) if there is no
/// room for two areas that are twice as large as the cache, or the GPU fails.
MachineSpeed measureGpu(const CudaContext &gpu);

} // namespace dlc::rt
