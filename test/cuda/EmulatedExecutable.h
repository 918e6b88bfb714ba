// A program on the emulated device: what computes or copies, one after the other. Uploads,
// downloads and collectives are for a device around it.
#pragma once

#include "test/cuda/EmulatedDevice.h"

namespace dlc::rt::test {

class EmulatedExecutable final : public Executable {
public:
  EmulatedExecutable(EmulatedDevice &device, ResolvedProgram program)
      : device(device), program(std::move(program)) {}

  void run(const RunArguments &arguments) override;
  std::span<const std::byte> results(unsigned) override { return {}; }
  std::span<const TraceEvent> times() override { return {}; }

private:
  void run(const ResolvedProgram::Instruction &instruction, const RunArguments &arguments);

  EmulatedDevice &device;
  ResolvedProgram program;
};

} // namespace dlc::rt::test
