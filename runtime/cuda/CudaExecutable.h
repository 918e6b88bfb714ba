// A program on a GPU. What a pass through it launches and copies is captured the second time that
// it runs, into a graph that is launched as one from then on.
//
// Inputs go up outside of it, while runs before are under way.
#pragma once

#include "runtime/core/Executable.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/NcclProgress.h"

#include <map>
#include <optional>

namespace dlc::rt {

class CudaExecutable final : public Executable {
public:
  CudaExecutable(CudaDevice &device, ResolvedProgram program);
  ~CudaExecutable() override;
  CudaExecutable(const CudaExecutable &) = delete;
  CudaExecutable &operator=(const CudaExecutable &) = delete;

  void run(const RunArguments &arguments) override;
  std::span<ArrayRow> rows(DeviceSpan memory, artifact::DType type, size_t rows) override;
  std::span<const std::byte> results(unsigned slot) override;
  bool isRunning() override;
  std::span<const TraceEvent> times() override;

private:
  /// Runs that do the same.
  struct Kind {
    unsigned slot;
    StepPass pass;
    bool isFirst; // micro-batch
    bool timed;
    auto operator<=>(const Kind &) const = default;
  };
  /// Launches of an instruction by input slot; of an accumulation, those to sum and to bucket.
  using Launches = std::array<uint32_t, 2>;

  Launches bind(const ResolvedProgram::Instruction &instruction);
  void uploadInputs(const RunArguments &arguments);
  bool gather(DeviceSpan input, std::span<const std::byte> staged);
  /// Starts all instructions of a run on their streams, now or in a graph.
  void start(const RunArguments &arguments, bool isCaptured);
  void start(uint32_t instruction, const RunArguments &arguments);
  Owned<cudart::GraphExec> capture(const RunArguments &arguments);
  void require(cudart::Status status, const std::string &doing) const;
  void copy(DeviceSpan from, DeviceSpan to, cudart::Stream stream);
  void record(cudart::Event event, artifact::Stream stream);
  void wait(artifact::Stream stream, cudart::Event event);
  /// The host waits for the last run on the slot, for so long as peers may take.
  void await(unsigned slot, cudart::Event event);
  void await(cudart::Event event, const std::string &doing);
  std::string nameOf(uint32_t instruction) const;
  cudart::Event makeEvent(unsigned flags);

  CudaDevice &device;
  const cudart::Functions &cuda;
  ResolvedProgram program;
  std::vector<CudaLaunch> launches;
  std::vector<Launches> launchesOf;                          // by instruction
  std::vector<std::vector<std::array<HostBlock, 2>>> staged; // by instruction, input and slot
  std::map<uintptr_t, GatheredInput> gathered;               // by address of the input
  std::array<HostBlock, 2> scalars;                          // by slot, page-locked
  std::array<HostBlock, 2> resultBlocks;                     // likewise
  std::vector<Owned<cudart::Event>> allEvents;
  std::vector<cudart::Event> started;  // by collective
  std::vector<cudart::Event> recorded; // by event of the program
  std::vector<bool> isRecorded;        // likewise, in the run that is being started
  cudart::Event begun, commDone, copyDone, uploaded;
  std::array<cudart::Event, 2> done;                // by slot, the last run on it
  std::vector<std::array<cudart::Event, 2>> timers; // by instruction
  std::map<Kind, Owned<cudart::GraphExec>> graphs;  // null: has run once
  std::array<RunArguments, 2> last;                 // likewise
  std::optional<NcclProgress> progress;             // where runs have collectives of several ranks
  uint32_t collectivesBegun = 0;                    // of the run that is being started
  unsigned lastSlot = 0;
  std::vector<TraceEvent> events;
};

} // namespace dlc::rt
