#include "test/asynchronous/AsynchronousExecutable.h"

#include "runtime/cpu/CpuMemory.h"

#include <algorithm>
#include <chrono>

namespace dlc::rt::test {
namespace {

constexpr std::byte notANumber{0xff};
constexpr auto compute = static_cast<unsigned>(artifact::Stream::Compute);
constexpr auto copy = static_cast<unsigned>(artifact::Stream::Copy);
constexpr unsigned wire = copy + 1; // on which collectives complete, in their order
static_assert(wire < TaskQueue::streams && artifact::Stream::MAX == artifact::Stream::Copy);

constexpr size_t mostPendingRuns = 3;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void doNothing() {}

template <typename Operation> const Operation *as(const ResolvedProgram::Instruction &instruction) {
  return std::get_if<Operation>(&instruction.operation);
}

/// At addresses that can be followed.
ResolvedProgram revealed(ResolvedProgram program, const HiddenMemory &memory) {
  for (ResolvedProgram::Instruction &instruction : program.instructions) {
    if (auto *launch = std::get_if<ResolvedProgram::Launch>(&instruction.operation))
      for (Places &operand : launch->operands)
        operand = memory.reveal(operand);
    if (auto *copied = std::get_if<ResolvedProgram::Copy>(&instruction.operation)) {
      copied->from = memory.reveal(copied->from);
      copied->to = memory.reveal(copied->to);
    }
    if (auto *add = std::get_if<ResolvedProgram::Accumulate>(&instruction.operation)) {
      add->bucket = memory.reveal(add->bucket);
      add->sum = memory.reveal(add->sum);
    }
    if (auto *recall = std::get_if<ResolvedProgram::Recall>(&instruction.operation)) {
      recall->bucket = memory.reveal(recall->bucket);
      recall->sum = memory.reveal(recall->sum);
    }
    if (auto *upload = std::get_if<ResolvedProgram::Upload>(&instruction.operation)) {
      for (Places &input : upload->inputs)
        input = memory.reveal(input);
      for (ResolvedProgram::Transfer &scalar : upload->scalars)
        scalar.memory = memory.reveal(scalar.memory);
    }
    if (auto *download = std::get_if<ResolvedProgram::Download>(&instruction.operation))
      for (ResolvedProgram::Transfer &part : download->parts)
        part.memory = memory.reveal(part.memory);
  }
  for (ResolvedProgram::Collective &collective : program.collectives)
    collective.operation.memory = memory.reveal(collective.operation.memory);
  return program;
}

bool isComputed(const ResolvedProgram::Instruction &instruction) {
  return as<ResolvedProgram::Launch>(instruction) || as<ResolvedProgram::Copy>(instruction) ||
         as<ResolvedProgram::Accumulate>(instruction) || as<ResolvedProgram::Recall>(instruction);
}

} // namespace

AsynchronousExecutable::AsynchronousExecutable(AsynchronousDevice &device,
                                               ResolvedProgram newProgram)
    : device(device), program(revealed(newProgram, device.memory)),
      inFlight(program.collectives.size()),
      resultBlocks{std::vector<std::byte>(program.resultBytes),
                   std::vector<std::byte>(program.resultBytes)} {
  for (const ResolvedProgram::Instruction &instruction : newProgram.instructions) {
    auto &places = staged.emplace_back();
    if (const auto *upload = as<ResolvedProgram::Upload>(instruction))
      for (const Places &input : upload->inputs)
        places.push_back({device.stage(input[0]).bytes, device.stage(input[1]).bytes});
  }
  for (const ResolvedProgram::Instruction &instruction : program.instructions) {
    ResolvedProgram one;
    one.instructions.push_back(instruction);
    instructions.push_back(isComputed(instruction) ? device.kernels->prepare(std::move(one))
                                                   : nullptr);
  }
}

AsynchronousExecutable::~AsynchronousExecutable() { device.queue.clear(); }

AsynchronousExecutable::Task AsynchronousExecutable::add(Run &run, unsigned stream,
                                                         std::vector<Task> after,
                                                         std::function<void()> work) {
  return run.tasks.emplace_back(device.queue.add(stream, std::move(after), std::move(work)));
}

void AsynchronousExecutable::run(const RunArguments &arguments) {
  if (device.runEnds.size() >= mostPendingRuns || arguments.timed)
    device.drain();
  events.clear();
  Run run{arguments, {}, {}, {}};
  for (uint32_t i = 0; i < program.instructions.size(); ++i) {
    if (program.instructions[i].runsIn(arguments.part))
      add(run, i);
  }
  end(run);
}

void AsynchronousExecutable::beginStream(Run &run, unsigned stream) {
  if (!run.hasBegun[stream])
    add(run, stream, device.runEnds, doNothing);
  run.hasBegun[stream] = true;
}

void AsynchronousExecutable::add(Run &run, uint32_t index) {
  const ResolvedProgram::Instruction &instruction = program.instructions[index];
  auto stream = static_cast<unsigned>(instruction.stream);
  unsigned slot = run.arguments.slot;
  bool timed = run.arguments.timed;
  const auto *uploaded = as<ResolvedProgram::Upload>(instruction);
  bool isEarly = uploaded && uploaded->scalars.empty();
  if (!isEarly)
    beginStream(run, stream);
  if (const auto *start = as<ResolvedProgram::Start>(instruction))
    return addStart(run, index, start->collective);
  std::vector<Task> after;
  std::function<void()> work = doNothing;
  if (const auto *wait = as<ResolvedProgram::Wait>(instruction)) {
    after.push_back(run.completions.at(wait->collective));
  } else if (const auto *wait = as<ResolvedProgram::WaitEvent>(instruction)) {
    if (auto record = run.records.find(wait->event); record != run.records.end())
      after.push_back(record->second);
  } else if (uploaded) {
    if (isEarly)
      after = device.slotUsers[slot];
    const RunArguments &arguments = run.arguments;
    std::vector<std::byte> scalars(arguments.scalars.begin(), arguments.scalars.end());
    work = [this, index, arguments, scalars] { upload(index, arguments, scalars); };
  } else if (const auto *result = as<ResolvedProgram::Download>(instruction)) {
    work = [this, result, slot] { download(*result, slot); };
  } else if (instructions[index]) {
    RunArguments arguments;
    arguments.slot = slot;
    arguments.part = run.arguments.part;
    work = [this, index, arguments] { instructions[index]->run(arguments); };
  }
  Task task = add(run, stream, std::move(after), [this, index, timed, work] {
    int64_t begin = now();
    work();
    if (timed)
      events.push_back({index, begin, now()});
  });
  if (const auto *record = as<ResolvedProgram::RecordEvent>(instruction))
    run.records[record->event] = task;
}

void AsynchronousExecutable::addStart(Run &run, uint32_t index, uint32_t collective) {
  auto stream = static_cast<unsigned>(program.collectives[collective].operation.stream);
  auto begin = std::make_shared<int64_t>();
  Task start = add(run, stream, {}, [this, collective, begin] {
    *begin = now();
    depart(collective);
  });
  uint64_t step = run.arguments.step;
  bool timed = run.arguments.timed;
  run.completions[collective] =
      add(run, wire, {start}, [this, index, collective, step, timed, begin] {
        reduce(collective, step);
        if (timed)
          events.push_back({index, *begin, now()});
      });
}

void AsynchronousExecutable::end(Run &run) {
  unsigned slot = run.arguments.slot;
  Task end = add(run, compute, run.tasks, doNothing);
  device.runEnds.push_back(end);
  device.slotUsers[slot].push_back(end);
}

/// What a collective's memory holds while it is on its way is nobody's business.
void AsynchronousExecutable::depart(uint32_t collective) {
  std::span<std::byte> memory = bytesAt(program.collectives[collective].operation.memory);
  inFlight[collective].assign(memory.begin(), memory.end());
  std::ranges::fill(memory, notANumber);
}

void AsynchronousExecutable::reduce(uint32_t collective, uint64_t step) {
  const ResolvedProgram::Collective &started = program.collectives[collective];
  std::ranges::copy(inFlight[collective], bytesAt(started.operation.memory).begin());
  Collectives &collectives = device.kernels->collectives();
  collectives.wait(collectives.start(started.operation, {collective, step, started.members}));
}

void AsynchronousExecutable::upload(uint32_t index, const RunArguments &arguments,
                                    std::span<const std::byte> scalars) {
  const auto &upload = *as<ResolvedProgram::Upload>(program.instructions[index]);
  for (size_t i = 0; i < upload.inputs.size(); ++i)
    std::ranges::copy(staged[index][i][arguments.slot],
                      bytesAt(upload.inputs[i][arguments.slot]).begin());
  for (const ResolvedProgram::Transfer &scalar : upload.scalars) {
    std::span<std::byte> to = bytesAt(scalar.memory[arguments.slot]);
    std::ranges::copy(scalars.subspan(scalar.offset, to.size()), to.begin());
  }
}

void AsynchronousExecutable::download(const ResolvedProgram::Download &download, unsigned slot) {
  for (const ResolvedProgram::Transfer &part : download.parts)
    std::ranges::copy(bytesAt(part.memory[slot]),
                      resultBlocks[slot].begin() + static_cast<std::ptrdiff_t>(part.offset));
}

std::span<const std::byte> AsynchronousExecutable::results(unsigned slot) {
  device.drain();
  return resultBlocks[slot];
}

std::span<const TraceEvent> AsynchronousExecutable::times() {
  device.drain();
  return events;
}

} // namespace dlc::rt::test
