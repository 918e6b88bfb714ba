// A program on the CPU: instructions in the artifact's order by one team of threads, and between
// kernels the outstanding collectives are moved on. Streams and events mean nothing here.
#pragma once

#include "runtime/core/Executable.h"
#include "runtime/core/ResolvedProgram.h"
#include "runtime/cpu/CpuLaunch.h"

#include <memory>
#include <vector>

namespace dlc::rt {

/// What an executable works with; outlives it.
struct CpuContext {
  const dnnl::engine &engine;
  const dnnl::stream &stream;
  unsigned threads;
  Collectives &collectives;
};

class CpuExecutable final : public Executable {
public:
  CpuExecutable(ResolvedProgram program, std::span<const LoadedKernel> kernels,
                const CpuContext &context);

  void run(const RunArguments &arguments) override;
  std::span<const std::byte> results(unsigned slot) override { return resultBlocks[slot]; }
  std::span<const TraceEvent> times() override { return events; }

private:
  enum class Kind : uint8_t {
    Launch,
    Start,
    Wait,
    Copy,
    Upload,
    Download,
    Accumulate,
    Recall,
    Nothing
  };
  struct Step {
    /// Takes long enough for messages to have arrived meanwhile.
    bool computes() const {
      return kind == Kind::Launch || kind == Kind::Copy || kind == Kind::Accumulate ||
             kind == Kind::Recall;
    }

    Kind kind = Kind::Nothing;
    uint32_t collective = 0;          // Start, Wait
    std::array<uint32_t, 2> launch{}; // Launch, by input slot;
                                      // Accumulate, to sum and to bucket
    Places to{}, from{};              // Copy; Accumulate and Recall, sum and bucket
    std::vector<ResolvedProgram::Transfer> transfers = {}; // Upload, Download
  };
  /// A collective that a timed run has started.
  struct InFlight {
    uint32_t instruction;
    Collectives::Ticket ticket;
    int64_t begin;
  };

  Step translate(const ResolvedProgram::Instruction &instruction,
                 std::span<const LoadedKernel> kernels);
  void execute(const Step &step, const RunArguments &arguments);
  void accumulate(const Step &step, MicroBatch part);
  static void upload(const Step &step, const RunArguments &arguments);
  void download(const Step &step, unsigned slot);
  void runSteps(const RunArguments &arguments);
  void runTimed(const RunArguments &arguments);
  void recordCompletions(int64_t now);

  ResolvedProgram program;
  CpuContext context;
  std::vector<CpuLaunch> launches;
  std::vector<Step> steps;
  std::vector<Collectives::Ticket> tickets;           // by collective
  std::array<std::vector<std::byte>, 2> resultBlocks; // by input slot
  std::vector<TraceEvent> events;
  std::vector<InFlight> inFlight;
};

} // namespace dlc::rt
