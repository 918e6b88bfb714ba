#include "runtime/cuda/MeasureGpu.h"

#include <algorithm>

namespace dlc::rt {
namespace {

constexpr int rounds = 5;
constexpr size_t movedBytes = size_t{256} << 20; // in a round, at least

/// The best of some rounds, each of copies between two areas: bytes read and written a nanosecond.
double copyRate(const CudaContext &gpu, size_t bytes) {
  const cudart::Functions &cuda = gpu.cuda();
  cudart::Stream stream = gpu.stream(artifact::Stream::Compute);
  Owned<void *> from = gpu.allocate(bytes), to = gpu.allocate(bytes);
  Owned<cudart::Event> begin = gpu.makeEvent(0), end = gpu.makeEvent(0);
  size_t copies = (movedBytes - 1) / bytes + 1;
  auto copy = [&] {
    gpu.require(
        cuda.memcpyAsync(to.get(), from.get(), bytes, cudart::CopyKind::DeviceToDevice, stream),
        "copy on the GPU");
  };
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    copy(); // brings what fits into the cache
    gpu.require(cuda.eventRecord(begin.get(), stream), "record an event");
    for (size_t i = 0; i < copies; ++i)
      copy();
    gpu.require(cuda.eventRecord(end.get(), stream), "record an event");
    gpu.require(cuda.eventSynchronize(end.get()), "copy on the GPU");
    float milliseconds = 0;
    gpu.require(cuda.eventElapsedTime(&milliseconds, begin.get(), end.get()), "read times");
    best = std::max(best, 2.0 * static_cast<double>(bytes * copies) /
                              (static_cast<double>(milliseconds) * 1e6));
  }
  return best;
}

} // namespace

MachineSpeed measureGpu(const CudaContext &gpu) {
  int cache = 0;
  gpu.require(
      gpu.cuda().deviceGetAttribute(&cache, cudart::DeviceAttribute::CacheBytes, gpu.number()),
      "ask the GPU");
  auto level = [&](const char *name, size_t area, uint64_t bytes) {
    double rate = copyRate(gpu, area);
    return MemoryLevel{name, {rate, rate, rate}, bytes};
  };
  size_t bytes = std::max<size_t>(static_cast<size_t>(cache), 1 << 20);
  MachineSpeed speed;
  speed.fetchesLines = false; // whole sectors are stored without
  speed.sharesWorkspace = true;
  // Half of the cache: a multiprocessor is nearer to one half than to the other.
  speed.memory = {level("L2", bytes / 4, bytes), level("DRAM", 2 * bytes, 0)};
  return speed;
}

} // namespace dlc::rt
