#include "runtime/cuda/MeasureGpu.h"

#include <algorithm>
#include <limits>

namespace dlc::rt {
namespace {

constexpr int rounds = 5;
constexpr size_t movedBytes = size_t{256} << 20; // in a round, at least

/// Of copies between two areas: bytes read and written a nanosecond.
double copyRate(const CudaContext &gpu, size_t bytes) {
  Owned<void *> from = gpu.allocate(bytes), to = gpu.allocate(bytes);
  size_t copies = (movedBytes - 1) / bytes + 1;
  const std::string doing = "copy on the GPU";
  double nanoseconds = bestTime(gpu, rounds, doing, [&](cudart::Stream stream) {
    for (size_t i = 0; i < copies; ++i)
      gpu.require(gpu.cuda().memcpyAsync(to.get(), from.get(), bytes,
                                         cudart::CopyKind::DeviceToDevice, stream),
                  doing);
  });
  return 2.0 * static_cast<double>(bytes * copies) / nanoseconds;
}

} // namespace

double bestTime(const CudaContext &gpu, int rounds, const std::string &doing,
                const std::function<void(cudart::Stream stream)> &start) {
  const cudart::Functions &cuda = gpu.cuda();
  cudart::Stream stream = gpu.stream(artifact::Stream::Compute);
  Owned<cudart::Event> begin = gpu.makeEvent(0), end = gpu.makeEvent(0);
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    float milliseconds = 0;
    gpu.require(cuda.eventRecord(begin.get(), stream), "record an event");
    start(stream);
    gpu.require(cuda.eventRecord(end.get(), stream), "record an event");
    gpu.require(cuda.eventSynchronize(end.get()), doing);
    gpu.require(cuda.eventElapsedTime(&milliseconds, begin.get(), end.get()), "read times");
    best = std::min(best, static_cast<double>(milliseconds) * 1e6);
  }
  return best;
}

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
