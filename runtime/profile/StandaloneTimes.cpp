#include "runtime/profile/StandaloneTimes.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/BackEnd.h"
#include "runtime/core/PlacedKernel.h"
#include "runtime/record/ChromeTrace.h"

#include <algorithm>
#include <limits>

namespace dlc::rt {
namespace {

std::map<uint32_t, const artifact::Kernel *> libraryKernels(const Session &session,
                                                            const artifact::Program &program) {
  std::map<uint32_t, const artifact::Kernel *> kernels;
  for (const artifact::Instruction *instruction : *program.instructions())
    if (const artifact::Dispatch *dispatch = instruction->operation_as_Dispatch()) {
      const artifact::Kernel *kernel = session.artifact()->kernels()->Get(dispatch->kernel());
      if (kernel->kind() == artifact::KernelKind::Library)
        kernels[dispatch->kernel()] = kernel;
    }
  return kernels;
}

/// Ordinary numbers, neither denormals, which are slow, nor indices out of range.
void fillOperands(const artifact::Kernel &definition, const PlacedKernel &kernel, Device &device) {
  for (uint32_t i = 0; i < kernel.operands().size(); ++i) {
    DeviceSpan operand = kernel.operands()[i];
    HostBlock block = device.stage(operand);
    bool isNumber = isFloating(definition.operands()->Get(i)->dtype());
    std::ranges::fill(block.bytes, std::byte(isNumber ? 0x3c : 0)); // about 0.01, in f16 1
    device.upload(block.bytes, operand);
  }
}

/// The faster one of two launches: the first brings what fits into the caches.
double secondsOf(Executable &executable) {
  RunArguments timed;
  timed.timed = true;
  executable.run(timed);
  double best = std::numeric_limits<double>::infinity();
  for (const TraceEvent &event : executable.times().last(2))
    best = std::min(best, static_cast<double>(event.end - event.begin) * 1e-9);
  return best;
}

} // namespace

std::map<uint32_t, double>
standaloneTimes(const Session &session, const artifact::Program &program, double limitSeconds,
                const std::function<void(const std::string &)> &progress) {
  const artifact::Target &target = *session.artifact()->target();
  std::string reason;
  const BackEnd *backEnd = findBackEnd(target.name()->str(), reason);
  if (!backEnd)
    throw Error(ErrorCode::Runtime, reason);
  std::map<uint32_t, const artifact::Kernel *> kernels = libraryKernels(session, program);
  std::map<uint32_t, double> seconds;
  if (kernels.empty())
    return seconds;
  std::unique_ptr<Device> device =
      backEnd->makeDevice(target, session.threads(), session.control());
  size_t most = 0;
  for (const auto &[index, kernel] : kernels)
    most = std::max(most, PlacedKernel::bytesOf(*kernel));
  DeviceSpan memory = device->allocate(artifact::ArenaKind::Transient, most);
  std::map<uint32_t, std::unique_ptr<Executable>> executables;
  for (const auto &[index, kernel] : kernels)
    executables[index] = device->prepare(
        PlacedKernel(*kernel, memory).launches(device->load(session.artifact(), *kernel), 2));
  constexpr int leastRounds = 2, mostRounds = 8;
  int64_t begin = nowNanoseconds();
  auto spent = [&] { return static_cast<double>(nowNanoseconds() - begin) * 1e-9; };
  for (int round = 0; round < mostRounds; ++round) {
    if (round >= leastRounds && spent() * (round + 1) / round > limitSeconds)
      break;
    progress("library kernels alone: round " + std::to_string(round + 1) + " of " +
             std::to_string(kernels.size()) + " kernels");
    for (const auto &[index, executable] : executables) {
      fillOperands(*kernels[index], {*kernels[index], memory}, *device);
      double took = secondsOf(*executable);
      auto [best, isNew] = seconds.try_emplace(index, took);
      best->second = std::min(best->second, took);
    }
  }
  return seconds;
}

} // namespace dlc::rt
