#include "runtime/profile/StandaloneTimes.h"

#include "runtime/artifact/Align.h"
#include "runtime/artifact/Error.h"
#include "runtime/core/BackEnd.h"
#include "runtime/core/TensorIo.h"
#include "runtime/record/ChromeTrace.h"

#include <algorithm>
#include <limits>

namespace dlc::rt {
namespace {

constexpr size_t alignment = 4096;

size_t operandBytes(const artifact::Kernel &kernel) {
  size_t bytes = 0;
  for (const artifact::TensorType *type : *kernel.operands())
    bytes += alignUp(PhysicalType(*type).bytes(), alignment);
  return bytes;
}

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

/// A program that fills a kernel's operands, which lie one behind the other, with ordinary numbers,
/// neither denormals, which are slow, nor indices out of range, and launches the kernel twice: the
/// first time brings what fits into the caches.
ResolvedProgram launchesOf(Device::Kernel kernel, const artifact::Kernel &definition,
                           DeviceSpan memory) {
  ResolvedProgram program;
  ResolvedProgram::Launch launch{kernel, {}};
  auto add = [&](auto operation) {
    program.instructions.push_back({artifact::Stream::Compute, std::move(operation)});
  };
  size_t at = 0;
  for (const artifact::TensorType *type : *definition.operands()) {
    size_t bytes = PhysicalType(*type).bytes();
    bool floating = type->dtype() == artifact::DType::F32 || type->dtype() == artifact::DType::BF16;
    DeviceSpan operand = memory.subspan(at, bytes);
    launch.operands.push_back({operand, operand});
    uint8_t value = floating ? 0x3c : 0; // 0.0115 in either type
    add(ResolvedProgram::Fill{{operand, operand}, value});
    at += alignUp(bytes, alignment);
  }
  for (int i = 0; i < 2; ++i)
    add(launch);
  return program;
}

/// The faster one of the two launches.
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
    most = std::max(most, operandBytes(*kernel));
  DeviceSpan memory = device->allocate(artifact::ArenaKind::Transient, most);
  std::map<uint32_t, std::unique_ptr<Executable>> executables;
  for (const auto &[index, kernel] : kernels)
    executables[index] =
        device->prepare(launchesOf(device->load(session.artifact(), *kernel), *kernel, memory));
  constexpr int leastRounds = 2, mostRounds = 8;
  int64_t begin = nowNanoseconds();
  auto spent = [&] { return static_cast<double>(nowNanoseconds() - begin) * 1e-9; };
  for (int round = 0; round < mostRounds; ++round) {
    if (round >= leastRounds && spent() * (round + 1) / round > limitSeconds)
      break;
    progress("library kernels alone: round " + std::to_string(round + 1) + " of " +
             std::to_string(kernels.size()) + " kernels");
    for (const auto &[index, executable] : executables) {
      double took = secondsOf(*executable);
      auto [best, isNew] = seconds.try_emplace(index, took);
      best->second = std::min(best->second, took);
    }
  }
  return seconds;
}

} // namespace dlc::rt
