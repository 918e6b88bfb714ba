// Measures training steps on synthetic data.
//
// The lines are those of Horovod's synthetic benchmark, so its parsers understand them; DEV is the
// kind of device, one per rank. Collective; one compute thread.
#pragma once

#include "runtime/record/Console.h"

#include "runtime/core/Session.h"

namespace dlc::rt {

/// Which parts of a step are compared with their bounds: none, each kind of kernel, or each kernel
/// as well.
enum class Profile : uint8_t { None, Kinds, Kernels };

struct BenchOptions {
  int64_t warmup = 10, iterations = 10, batchesPerIteration = 10;
  bool json = false; // one flat object instead of lines
  Profile profile = Profile::None;
};

void bench(Session &session, const BenchOptions &options, Console &console);

} // namespace dlc::rt
