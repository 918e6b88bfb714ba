// A program on the asynchronous device: every run becomes tasks of streams.
#pragma once

#include "test/asynchronous/AsynchronousDevice.h"

namespace dlc::rt::test {

class AsynchronousExecutable final : public Executable {
public:
  AsynchronousExecutable(AsynchronousDevice &device, ResolvedProgram program);
  ~AsynchronousExecutable() override;

  void run(const RunArguments &arguments) override;
  std::span<const std::byte> results(unsigned slot) override;
  bool isRunning() override { return !device.runEnds.empty(); }
  std::span<const TraceEvent> times() override;

private:
  using Task = TaskQueue::Task;
  /// A run while its tasks are made.
  struct Run {
    RunArguments arguments;
    std::vector<Task> tasks;
    std::map<uint32_t, Task> records;     // by event
    std::map<uint32_t, Task> completions; // by collective
    std::array<bool, TaskQueue::streams> hasBegun = {};
  };

  Task add(Run &run, unsigned stream, std::vector<Task> after, std::function<void()> work);
  /// Behind the runs before.
  void beginStream(Run &run, unsigned stream);
  void add(Run &run, uint32_t instruction);
  void addStart(Run &run, uint32_t instruction, uint32_t collective);
  void end(Run &run);

  void depart(uint32_t collective);
  void reduce(uint32_t collective, uint64_t step);
  void upload(uint32_t instruction, const RunArguments &arguments,
              std::span<const std::byte> scalars);
  void download(const ResolvedProgram::Download &download, unsigned slot);

  AsynchronousDevice &device;
  ResolvedProgram program;                               // at addresses that can be followed
  std::vector<std::unique_ptr<Executable>> instructions; // each a program of its own, or null
  /// By instruction; of an upload by input and slot.
  std::vector<std::vector<std::array<std::span<const std::byte>, 2>>> staged;
  std::vector<std::vector<std::byte>> inFlight;       // by collective: its operand
  std::array<std::vector<std::byte>, 2> resultBlocks; // by input slot
  std::vector<TraceEvent> events;
};

} // namespace dlc::rt::test
