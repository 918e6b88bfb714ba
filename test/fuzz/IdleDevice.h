// A device that executes no kernel: what is left of a session is what the runtime itself does with
// an artifact, and no code of the artifact is ever loaded.
#pragma once

#include "runtime/artifact/Error.h"
#include "runtime/core/ControlPlane.h"
#include "runtime/core/Device.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace dlc::rt::test {

inline std::byte *bytesAt(DeviceSpan memory) {
  return reinterpret_cast<std::byte *>(memory.address);
}

/// Copies, takes scalars and gives results. A sum over micro-batches is what the last one gives.
class IdleExecutable : public Executable {
public:
  explicit IdleExecutable(ResolvedProgram program)
      : program(std::move(program)), block(this->program.resultBytes) {}

  void run(const RunArguments &arguments) override {
    unsigned slot = arguments.slot;
    auto move = [](DeviceSpan from, DeviceSpan to) {
      std::memmove(bytesAt(to), bytesAt(from), from.bytes);
    };
    for (const ResolvedProgram::Instruction &instruction : program.instructions) {
      if (!instruction.runsIn(arguments.part))
        continue;
      if (const auto *copy = std::get_if<ResolvedProgram::Copy>(&instruction.operation)) {
        move(copy->from[slot], copy->to[slot]);
      } else if (const auto *add =
                     std::get_if<ResolvedProgram::Accumulate>(&instruction.operation)) {
        move(add->bucket, add->sum);
      } else if (const auto *recall =
                     std::get_if<ResolvedProgram::Recall>(&instruction.operation)) {
        arguments.part.counts ? move(recall->bucket, recall->sum)
                              : move(recall->sum, recall->bucket);
      } else if (const auto *upload =
                     std::get_if<ResolvedProgram::Upload>(&instruction.operation)) {
        for (const ResolvedProgram::Transfer &scalar : upload->scalars)
          std::memcpy(bytesAt(scalar.memory[slot]), arguments.scalars.data() + scalar.offset,
                      scalar.memory[slot].bytes);
      } else if (const auto *download =
                     std::get_if<ResolvedProgram::Download>(&instruction.operation)) {
        for (const ResolvedProgram::Transfer &part : download->parts)
          std::memcpy(block.data() + part.offset, bytesAt(part.memory[slot]),
                      part.memory[slot].bytes);
      }
    }
  }
  std::span<const std::byte> results(unsigned) override { return block; }
  std::span<const TraceEvent> times() override { return {}; }

private:
  ResolvedProgram program;
  std::vector<std::byte> block;
};

class IdleDevice : public Device {
public:
  explicit IdleDevice(ControlPlane &control) : hostCollectives(control.hostCollectives()) {}

  /// Of exactly the size asked for, so that AddressSanitizer sees what goes beyond. No more than
  /// `most` in all: a sound plan may be for a machine of any size.
  DeviceSpan allocate(artifact::ArenaKind, size_t bytes) override {
    constexpr size_t most = size_t{1} << 28;
    if (bytes > most - taken)
      throw Error(ErrorCode::Runtime,
                  "the idle device has no memory for " + std::to_string(bytes) + " bytes");
    taken += bytes;
    auto *memory = static_cast<std::byte *>(::operator new(bytes, alignment));
    std::memset(memory, 0, bytes);
    memories.emplace_back(memory);
    return {reinterpret_cast<uintptr_t>(memory), bytes};
  }
  void countHugePages(std::span<const DeviceSpan>, std::span<uint64_t> bytes) const override {
    std::ranges::fill(bytes, 0);
  }
  Kernel load(const Artifact &, const artifact::Kernel &) override { return 0; }
  std::unique_ptr<Executable> prepare(ResolvedProgram program) override {
    return std::make_unique<IdleExecutable>(std::move(program));
  }
  HostBlock stage(DeviceSpan memory) override { return {{bytesAt(memory), memory.bytes}, nullptr}; }
  void upload(std::span<const std::byte> from, DeviceSpan to) override {
    std::memmove(bytesAt(to), from.data(), from.size());
  }
  void download(DeviceSpan from, std::span<std::byte> to) override {
    std::memmove(to.data(), bytesAt(from), to.size());
  }
  Collectives &collectives() override { return hostCollectives; }

private:
  static constexpr std::align_val_t alignment{64};
  struct Release {
    void operator()(std::byte *memory) const { ::operator delete(memory, alignment); }
  };
  HostCollectives &hostCollectives;
  size_t taken = 0;
  std::vector<std::unique_ptr<std::byte, Release>> memories;
};

} // namespace dlc::rt::test
