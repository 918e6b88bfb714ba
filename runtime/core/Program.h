// One program of the artifact, flattened for replay: every kernel bound, every address resolved.
//
// Instructions run in artifact order; streams and events only matter to devices that have them.
#pragma once

#include "runtime/core/Accumulation.h"
#include "runtime/core/Arenas.h"
#include "runtime/core/Session.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlc::rt {

class Program {
public:
  /// `kernels` are the artifact's, loaded on the device.
  Program(const artifact::Program &program, const Arenas &arenas, Device &device,
          std::span<const Device::Kernel> kernels);

  const artifact::Program &definition() const { return program; }
  /// Lets steps have several micro-batches. Throws Error(BadInput) if the program cannot.
  void accumulate(const Artifact &artifact);
  uint64_t accumulatedBytes() const { return accumulation ? accumulation->bytes() : 0; }
  /// Replays the program once, or its part for one micro-batch; appends to `events` unless it is
  /// null.
  void run(Device &device, unsigned slot, uint64_t step, MicroBatch part,
           std::vector<TraceEvent> *events);

private:
  enum class Kind : uint8_t { Launch, Start, Wait, Copy, Fill, Nothing };
  struct Step {
    /// Takes long enough for messages to have arrived meanwhile.
    bool computes() const { return kind == Kind::Launch || kind == Kind::Copy; }

    Kind kind = Kind::Nothing;
    uint8_t value = 0;                         // Fill
    uint32_t collective = 0;                   // Start, Wait
    std::array<Device::Binding, 2> launches{}; // Launch, by input slot
    std::array<DeviceSpan, 2> to{}, from{};    // Copy, Fill, by input slot
  };
  struct Message {
    float *data() const { return reinterpret_cast<float *>(operation.memory.address); }

    CollectiveOperation operation;
    std::vector<std::string> members;
    Collectives::Ticket ticket = 0;
  };

  Step translate(const artifact::Instruction &instruction, const Arenas &arenas, Device &device,
                 std::span<const Device::Kernel> kernels) const;
  bool accumulates(uint32_t instruction, MicroBatch part);
  void execute(const Step &step, Device &device, unsigned slot, uint64_t number);

  /// A collective that a traced run has started.
  struct InFlight {
    uint32_t instruction;
    Collectives::Ticket ticket;
    int64_t begin;
  };
  void recordCompletions(const Collectives &collectives, int64_t now,
                         std::vector<TraceEvent> &events);

  const artifact::Program &program;
  std::vector<Step> steps;
  std::vector<Message> messages;
  std::unique_ptr<Accumulation> accumulation;
  std::vector<InFlight> inFlight;
};

} // namespace dlc::rt
