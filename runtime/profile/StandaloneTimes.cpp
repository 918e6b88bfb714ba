#include "runtime/profile/StandaloneTimes.h"

#include "runtime/artifact/Align.h"
#include "runtime/artifact/Error.h"
#include "runtime/core/BackEnd.h"
#include "runtime/core/TensorIo.h"
#include "runtime/record/ChromeTrace.h"

#include <algorithm>

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

/// A kernel's buffers, one behind the other, filled with ordinary numbers: neither denormals, which
/// are slow, nor indices out of range.
std::vector<DeviceSpan> lay(Device &device, const artifact::Kernel &kernel, DeviceSpan memory) {
  std::vector<DeviceSpan> buffers;
  size_t at = 0;
  for (const artifact::TensorType *type : *kernel.operands()) {
    size_t bytes = PhysicalType(*type).bytes();
    bool floating = type->dtype() == artifact::DType::F32 || type->dtype() == artifact::DType::BF16;
    buffers.push_back(memory.subspan(at, bytes));
    device.fill(buffers.back(), floating ? 0x3c : 0); // 0.0115 in either type
    at += alignUp(bytes, alignment);
  }
  return buffers;
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
  std::map<uint32_t, Device::Binding> bindings;
  for (const auto &[index, kernel] : kernels)
    bindings[index] =
        device->bind(device->load(session.artifact(), *kernel), lay(*device, *kernel, memory));
  constexpr int leastRounds = 2, mostRounds = 8;
  int64_t begin = nowNanoseconds();
  auto spent = [&] { return static_cast<double>(nowNanoseconds() - begin) * 1e-9; };
  for (int round = 0; round < mostRounds; ++round) {
    if (round >= leastRounds && spent() * (round + 1) / round > limitSeconds)
      break;
    progress("library kernels alone: round " + std::to_string(round + 1) + " of " +
             std::to_string(kernels.size()) + " kernels");
    for (auto [index, binding] : bindings) {
      lay(*device, *kernels[index], memory);
      for (int i = 0; i < 2; ++i) { // the first brings what fits into the caches
        int64_t start = nowNanoseconds();
        device->launch(binding);
        double took = static_cast<double>(nowNanoseconds() - start) * 1e-9;
        auto [best, isNew] = seconds.try_emplace(index, took);
        best->second = std::min(best->second, took);
      }
    }
  }
  return seconds;
}

} // namespace dlc::rt
