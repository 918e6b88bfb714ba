#include "runtime/cuda/Tune.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/ReplacePlans.h"
#include "runtime/core/Philox.h"
#include "runtime/core/PlacedKernel.h"
#include "runtime/cuda/CudaKernel.h"
#include "runtime/cuda/CudaPlanner.h"
#include "runtime/cuda/MeasureGpu.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <string_view>

namespace dlc::rt {
namespace {

constexpr size_t mostPlans = 256;
constexpr int rounds = 3, launches = 8; // of which the host prepares the next ones meanwhile
constexpr double leastGain = 1.02;      // more than times differ from one round to the next

/// Memory with numbers around one in f32 and 16-bit floats alike.
Owned<void *> filledMemory(const CudaContext &context, size_t bytes) {
  Owned<void *> memory = context.allocate(bytes);
  const cudart::Functions &cuda = context.cuda();
  std::vector<uint32_t> values(bytes / sizeof(uint32_t) + 1);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (philoxBits(0, 0, 0, i) & 0x83ff83ffU) | 0x3c003c00U;
  cuda.require(cuda.memcpy(memory.get(), values.data(), bytes, cudart::CopyKind::HostToDevice),
               "copy to the GPU");
  return memory;
}

class Tuner {
public:
  Tuner(const Artifact &artifact, const std::function<void(const std::string &)> &progress);

  std::vector<uint8_t> run();

private:
  struct Timed {
    cudnn::Plan plan;
    double nanoseconds;
  };
  void tune(uint32_t index, DeviceSpan memory);
  double time(const std::string &plan, const CudaPlan &planned, const std::string &name,
              std::span<const DeviceSpan> operands);

  const Artifact &artifact;
  const std::function<void(const std::string &)> &progress;
  CudaContext context{0};
  Math math;
  std::vector<NewPlan> found;
};

Tuner::Tuner(const Artifact &artifact, const std::function<void(const std::string &)> &progress)
    : artifact(artifact), progress(progress), math(mathOf(*artifact->target())) {}

/// The fastest of some rounds of launches.
double Tuner::time(const std::string &plan, const CudaPlan &planned, const std::string &name,
                   std::span<const DeviceSpan> operands) {
  CudaPlan one;
  one.convolutions = {plan};
  one.workspaceBytes = planned.workspaceBytes;
  ConvolutionKernel kernel(context.convolutions(), one, name, math);
  cudnn::Descriptor bound = kernel.bind(operands);
  kernel.run(bound, context.stream(artifact::Stream::Compute)); // loads it
  return bestTime(context, rounds, "run kernel " + name,
                  [&](cudart::Stream stream) {
                    for (int launch = 0; launch < launches; ++launch)
                      kernel.run(bound, stream);
                  }) /
         launches;
}

void Tuner::tune(uint32_t index, DeviceSpan memory) {
  const artifact::Kernel &kernel = *artifact->kernels()->Get(index);
  std::string name = kernel.name()->str(), reason;
  CudaPlan planned = CudaPlan::of(kernel, math);
  if (planned.product)
    return;
  const CudaContext::Convolutions &convolutions = context.convolutions();
  const PlacedKernel placed(kernel, memory);
  const std::vector<DeviceSpan> &operands = placed.operands();
  std::vector<Timed> timed;
  std::exception_ptr refusal; // of an engine that is not taken
  cudnn::Graph::Limits limits{mostPlans, planned.workspaceBytes, math, /*all=*/true};
  for (cudnn::Plan &plan : cudnn::Graph::stored(convolutions.library, planned.convolutions.front())
                               .plans(convolutions.properties, limits, reason)) {
    try {
      double nanoseconds = time(plan.json, planned, name, operands);
      timed.push_back({std::move(plan), nanoseconds});
    } catch (const Error &) {
      refusal = std::current_exception();
    }
  }
  if (timed.empty() && refusal)
    std::rethrow_exception(refusal);
  if (timed.empty())
    throw Error(ErrorCode::Artifact, "kernel " + name + ": " + reason);
  std::ranges::sort(timed, {}, &Timed::nanoseconds);
  std::optional<double> before;
  if (cudnn::isOwn(convolutions.library, planned.convolutions.front()))
    before = time(planned.convolutions.front(), planned, name, operands);
  bool isKept = before && *before < leastGain * timed.front().nanoseconds;
  CudaPlan best;
  best.workspaceBytes = planned.workspaceBytes;
  if (isKept)
    best.convolutions.push_back(planned.convolutions.front());
  for (const Timed &each : timed)
    if (best.convolutions.size() <= CudaPlanner::mostAlternatives)
      best.convolutions.push_back(each.plan.json);
  std::string chosen = isKept ? kernel.implementation()->str() : timed.front().plan.engine.name();
  double nanoseconds = isKept ? *before : timed.front().nanoseconds;
  auto microseconds = [](double time) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f us", time / 1e3);
    return std::string(text);
  };
  progress(name + ": " + microseconds(nanoseconds) + " by " + chosen + ", the best of " +
           std::to_string(timed.size()) + "; " +
           (before ? "as planned " + microseconds(*before) : "planned by another cuDNN"));
  found.push_back(
      {index, chosen, best.serialize(), static_cast<uint64_t>(std::llround(nanoseconds))});
}

std::vector<uint8_t> Tuner::run() {
  context.requireOwn(*artifact->target());
  std::string library = cudnn::nameOf(context.convolutions().library);
  if (!artifact->kernels())
    return replacePlans(artifact, {}, library);
  size_t most = 1;
  const auto &kernels = *artifact->kernels();
  for (const artifact::Kernel *kernel : kernels)
    if (kernel->kind() == artifact::KernelKind::Library)
      most = std::max(most, PlacedKernel::bytesOf(*kernel));
  Owned<void *> memory = filledMemory(context, most);
  DeviceSpan span{reinterpret_cast<uintptr_t>(memory.get()), most};
  for (uint32_t i = 0; i < kernels.size(); ++i)
    if (kernels.Get(i)->kind() == artifact::KernelKind::Library)
      tune(i, span);
  return replacePlans(artifact, found, library);
}

} // namespace

std::vector<uint8_t> tune(const Artifact &artifact,
                          const std::function<void(const std::string &)> &progress) {
  return Tuner(artifact, progress).run();
}

} // namespace dlc::rt
