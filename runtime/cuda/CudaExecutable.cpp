#include "runtime/cuda/CudaExecutable.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/Range.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

namespace dlc::rt {
namespace {

using artifact::Stream;

template <typename Operation> const Operation *as(const ResolvedProgram::Instruction &instruction) {
  return std::get_if<Operation>(&instruction.operation);
}

/// Uploads of inputs need not wait for runs before.
const ResolvedProgram::Upload *earlyUpload(const ResolvedProgram::Instruction &instruction) {
  const auto *upload = as<ResolvedProgram::Upload>(instruction);
  return upload && upload->scalars.empty() ? upload : nullptr;
}

/// Transfers whose both ends are next to each other, as one.
std::vector<std::pair<DeviceSpan, size_t>>
merged(const std::vector<ResolvedProgram::Transfer> &transfers, unsigned slot) {
  std::vector<std::pair<DeviceSpan, size_t>> parts;
  for (const ResolvedProgram::Transfer &transfer : transfers) {
    DeviceSpan memory = transfer.memory[slot];
    if (!parts.empty()) {
      auto &[before, offset] = parts.back();
      if (before.address + before.bytes == memory.address &&
          offset + before.bytes == transfer.offset) {
        before.bytes += memory.bytes;
        continue;
      }
    }
    parts.emplace_back(memory, transfer.offset);
  }
  return parts;
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

CudaExecutable::CudaExecutable(CudaDevice &device, ResolvedProgram newProgram)
    : device(device), cuda(device.context.cuda()), program(std::move(newProgram)) {
  size_t scalarBytes = 0;
  for (const ResolvedProgram::Instruction &instruction : program.instructions) {
    launchesOf.push_back(bind(instruction));
    auto &places = staged.emplace_back();
    if (const auto *upload = as<ResolvedProgram::Upload>(instruction)) {
      for (const Places &input : upload->inputs)
        places.push_back({device.stage(input[0]), device.stage(input[1])});
      for (const ResolvedProgram::Transfer &scalar : upload->scalars)
        scalarBytes = std::max(scalarBytes, scalar.offset + scalar.memory[0].bytes);
    }
  }
  for (unsigned slot : {0U, 1U}) {
    scalars[slot] = device.context.lock(scalarBytes);
    resultBlocks[slot] = device.context.lock(program.resultBytes);
  }
  for (uint32_t i = 0; i < program.events; ++i)
    recorded.push_back(makeEvent(cudart::eventWithoutTime));
  for (size_t i = 0; i < program.collectives.size(); ++i)
    started.push_back(makeEvent(cudart::eventWithoutTime));
  for (cudart::Event *event : {&begun, &commDone, &copyDone, &uploaded, &done[0], &done[1]})
    *event = makeEvent(cudart::eventWithoutTime);
  if (device.peers && !program.collectives.empty())
    progress.emplace(device.context, program);
}

CudaExecutable::~CudaExecutable() {
  if (device.peers && std::uncaught_exceptions() > 0)
    device.peers->abandon(); // peers may not come to what has started
  cuda.deviceSynchronize();
}

cudart::Event CudaExecutable::makeEvent(unsigned flags) {
  return allEvents.emplace_back(device.context.makeEvent(flags)).get();
}

CudaExecutable::Launches CudaExecutable::bind(const ResolvedProgram::Instruction &instruction) {
  Launches bound{};
  auto add = [&](uint32_t kernel, const std::vector<DeviceSpan> &operands) {
    launches.emplace_back(device.context, device.kernels[kernel], operands);
    return static_cast<uint32_t>(launches.size() - 1);
  };
  if (const auto *launch = as<ResolvedProgram::Launch>(instruction)) {
    std::array<std::vector<DeviceSpan>, 2> operands;
    for (const Places &places : launch->operands)
      for (unsigned slot : {0u, 1u})
        operands[slot].push_back(places[slot]);
    bound[0] = bound[1] = add(launch->kernel, operands[0]);
    if (operands[0] != operands[1])
      bound[1] = add(launch->kernel, operands[1]);
  } else if (const auto *sum = as<ResolvedProgram::Accumulate>(instruction)) {
    bound[0] = add(sum->kernel, {sum->sum, sum->bucket, sum->sum});
    bound[1] = add(sum->kernel, {sum->bucket, sum->sum, sum->bucket});
  }
  return bound;
}

//===- A run ----------------------------------------------------------------------------------===//

void CudaExecutable::run(const RunArguments &arguments) {
  Range step("step", arguments.step + 1);
  unsigned slot = arguments.slot;
  await(slot, device.context.slotIsFree(slot));
  std::span<std::byte> block = scalars[slot].bytes;
  std::ranges::copy(arguments.scalars.first(block.size()), block.begin());
  if (arguments.timed && timers.empty())
    for (size_t i = 0; i < program.instructions.size(); ++i)
      timers.push_back({makeEvent(0), makeEvent(0)});
  if (progress)
    progress->begin(arguments, *device.peers);
  uploadInputs(arguments);
  Kind kind{slot, arguments.part.pass(), arguments.part.index == 0, arguments.timed};
  cudart::Stream compute = device.context.stream(Stream::Compute);
  if (arguments.oneByOne) {
    start(arguments, false);
  } else if (auto [known, isNew] = graphs.try_emplace(kind); isNew) {
    start(arguments, false);
  } else {
    if (!known->second)
      known->second = capture(arguments);
    require(cuda.graphLaunch(known->second.get(), compute), "launch a step's graph");
  }
  require(cuda.eventRecord(device.context.slotIsFree(slot), compute), "record an event");
  require(cuda.eventRecord(done[slot], compute), "record an event");
  last[slot] = arguments;
  lastSlot = slot;
}

std::span<ArrayRow> CudaExecutable::rows(DeviceSpan memory, artifact::DType type, size_t rows) {
  if (!device.arrays)
    return {};
  try {
    return gathered.try_emplace(memory.address, device.context, memory, type, rows)
        .first->second.rows;
  } catch (const Error &) { // no memory
    return {};
  }
}

/// What of the input is to come from arrays, and then all else of it; false if nothing is.
bool CudaExecutable::gather(DeviceSpan input, std::span<const std::byte> staged) {
  auto found = gathered.find(input.address);
  if (found == gathered.end())
    return false;
  if (device.arrays->wantsArrays(found->second)) {
    // Of memory that can move, the host waits for what is ahead of the copy: with an eye on the
    // other ranks.
    record(uploaded, Stream::Copy);
    await(uploaded, "copy inputs to the GPU");
  }
  return device.arrays->gather(found->second, staged, device.context.stream(Stream::Copy));
}

/// On the copy stream, behind what used the slot before; computation waits for it.
void CudaExecutable::uploadInputs(const RunArguments &arguments) {
  Range range("upload", arguments.step + 1);
  cudart::Stream stream = device.context.stream(Stream::Copy);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const auto *upload = earlyUpload(program.instructions[i]);
    if (!upload || !program.instructions[i].runsIn(arguments.part))
      continue;
    for (size_t input = 0; input < upload->inputs.size(); ++input) {
      std::span<std::byte> from = staged[i][input][arguments.slot].bytes;
      DeviceSpan to = upload->inputs[input][arguments.slot];
      if (!gather(to, from))
        require(cuda.memcpyAsync(pointerTo(to), from.data(), from.size(),
                                 cudart::CopyKind::HostToDevice, stream),
                "copy inputs to the GPU");
    }
  }
  record(uploaded, Stream::Copy);
  wait(Stream::Compute, uploaded);
}

Owned<cudart::GraphExec> CudaExecutable::capture(const RunArguments &arguments) {
  cudart::Stream compute = device.context.stream(Stream::Compute);
  require(cuda.streamBeginCapture(compute, cudart::CaptureMode::ThreadLocal), "capture a step");
  auto end = [&](Owned<cudart::Graph> &captured) {
    cudart::Graph graph = nullptr;
    cudart::Status status = cuda.streamEndCapture(compute, &graph);
    captured = {graph, {cuda.graphDestroy}};
    return status;
  };
  Owned<cudart::Graph> graph;
  try {
    start(arguments, true);
  } catch (...) {
    end(graph);
    throw;
  }
  require(end(graph), "capture a step");
  cudart::GraphExec executable = nullptr;
  require(cuda.graphInstantiate(&executable, graph.get(), 0), "make a step's graph");
  return {executable, {cuda.graphExecDestroy}};
}

/// Other streams than the first begin behind it, and it ends behind them.
void CudaExecutable::start(const RunArguments &arguments, bool isCaptured) {
  isRecorded.assign(program.events, false);
  collectivesBegun = 0;
  record(begun, Stream::Compute);
  wait(Stream::Comm, begun);
  wait(Stream::Copy, begun);
  for (uint32_t i = 0; i < program.instructions.size(); ++i) {
    const ResolvedProgram::Instruction &instruction = program.instructions[i];
    if (!instruction.runsIn(arguments.part))
      continue;
    // A graph's launches have no host's time of their own.
    bool isShown = !isCaptured && !instruction.layer.empty();
    Range layer(isShown ? instruction.layer.c_str() : nullptr, i);
    cudart::Stream stream = device.context.stream(instruction.stream);
    auto time = [&](size_t end) {
      unsigned flags = isCaptured ? cudart::externalRecord : 0;
      if (arguments.timed)
        require(cuda.eventRecordWithFlags(timers[i][end], stream, flags), "record an event");
    };
    time(0);
    start(i, arguments);
    time(1);
    if (arguments.oneByOne) {
      record(begun, instruction.stream); // which nobody waits for any more
      await(begun, "run " + nameOf(i) + " in step " + std::to_string(arguments.step + 1));
    }
  }
  record(commDone, Stream::Comm);
  record(copyDone, Stream::Copy);
  wait(Stream::Compute, commDone);
  wait(Stream::Compute, copyDone);
}

void CudaExecutable::start(uint32_t index, const RunArguments &arguments) {
  const ResolvedProgram::Instruction &instruction = program.instructions[index];
  cudart::Stream stream = device.context.stream(instruction.stream);
  unsigned slot = arguments.slot;
  MicroBatch part = arguments.part;
  if (as<ResolvedProgram::Launch>(instruction)) {
    launches[launchesOf[index][slot]].run(stream);
  } else if (const auto *copied = as<ResolvedProgram::Copy>(instruction)) {
    copy(copied->from[slot], copied->to[slot], stream);
  } else if (const auto *sum = as<ResolvedProgram::Accumulate>(instruction)) {
    if (part.index == 0)
      copy(sum->bucket, sum->sum, stream);
    else
      launches[launchesOf[index][part.isLast()]].run(stream);
  } else if (const auto *recall = as<ResolvedProgram::Recall>(instruction)) {
    if (part.counts)
      copy(recall->bucket, recall->sum, stream);
    else
      copy(recall->sum, recall->bucket, stream);
  } else if (const auto *event = as<ResolvedProgram::RecordEvent>(instruction)) {
    record(recorded[event->event], instruction.stream);
    isRecorded[event->event] = true;
  } else if (const auto *event = as<ResolvedProgram::WaitEvent>(instruction)) {
    if (isRecorded[event->event]) // else what records it is in no such pass
      wait(instruction.stream, recorded[event->event]);
  } else if (const auto *collective = as<ResolvedProgram::Start>(instruction)) {
    // One rank has nothing to add up, but what waits is behind what started.
    const CollectiveOperation &operation = program.collectives[collective->collective].operation;
    if (progress) {
      cudart::Stream own = device.context.stream(operation.stream);
      progress->reach(collectivesBegun++, slot, own);
      device.peers->start(operation, own);
      if (collectivesBegun == progress->count(slot))
        progress->reach(collectivesBegun, slot, own);
    }
    record(started[collective->collective], operation.stream);
  } else if (const auto *collective = as<ResolvedProgram::Wait>(instruction)) {
    wait(instruction.stream, started[collective->collective]);
  } else if (const auto *upload = as<ResolvedProgram::Upload>(instruction)) {
    for (const auto &[memory, offset] : merged(upload->scalars, slot))
      require(cuda.memcpyAsync(pointerTo(memory), scalars[slot].bytes.data() + offset, memory.bytes,
                               cudart::CopyKind::HostToDevice, stream),
              "copy scalars to the GPU");
  } else if (const auto *download = as<ResolvedProgram::Download>(instruction)) {
    for (const auto &[memory, offset] : merged(download->parts, slot))
      require(cuda.memcpyAsync(resultBlocks[slot].bytes.data() + offset, pointerTo(memory),
                               memory.bytes, cudart::CopyKind::DeviceToHost, stream),
              "copy results from the GPU");
  }
}

void CudaExecutable::require(cudart::Status status, const std::string &doing) const {
  device.context.require(status, doing);
}

void CudaExecutable::copy(DeviceSpan from, DeviceSpan to, cudart::Stream stream) {
  require(cuda.memcpyAsync(pointerTo(to), pointerTo(from), to.bytes,
                           cudart::CopyKind::DeviceToDevice, stream),
          "copy on the GPU");
}

void CudaExecutable::record(cudart::Event event, Stream stream) {
  require(cuda.eventRecord(event, device.context.stream(stream)), "record an event");
}

void CudaExecutable::wait(Stream stream, cudart::Event event) {
  require(cuda.streamWaitEvent(device.context.stream(stream), event, 0), "wait for an event");
}

/// "kernel conv_1 (instruction 12)", counted from 0 as in instruction_ns of dlc-run bench --json.
std::string CudaExecutable::nameOf(uint32_t index) const {
  const ResolvedProgram::Instruction &instruction = program.instructions[index];
  std::string what = "a copy";
  if (const auto *launch = as<ResolvedProgram::Launch>(instruction))
    what = "kernel " + std::visit([](const auto &kernel) { return kernel.name; },
                                  device.kernels[launch->kernel]);
  else if (as<ResolvedProgram::Start>(instruction) || as<ResolvedProgram::Wait>(instruction))
    what = "an all-reduce";
  return what + " (instruction " + std::to_string(index) + ")";
}

void CudaExecutable::await(unsigned slot, cudart::Event event) {
  await(event, "run step " + std::to_string(last[slot].step + 1));
}

void CudaExecutable::await(cudart::Event event, const std::string &doing) {
  if (!device.peers)
    return require(cuda.eventSynchronize(event), doing);
  if (device.peers->await(event, doing))
    return;
  if (!progress) // of its own work, without collectives
    throw Error(ErrorCode::Peer, "cannot " + doing +
                                     ": it does not end, or other ranks have given up; " +
                                     "find out what holds it up, or raise --timeout");
  bool isLast = cuda.eventQuery(done[1 - progress->lastSlot()]) != cudart::notReady;
  device.peers->giveUp(progress->standing(isLast),
                       [&](uint64_t collective) { return progress->nameOf(collective); });
}

std::span<const std::byte> CudaExecutable::results(unsigned slot) {
  await(slot, done[slot]);
  return resultBlocks[slot].bytes;
}

bool CudaExecutable::isRunning() { return cuda.eventQuery(done[lastSlot]) == cudart::notReady; }

std::span<const TraceEvent> CudaExecutable::times() {
  results(lastSlot);
  events.clear();
  cudart::Event first = nullptr;
  auto after = [&](cudart::Event event) {
    float milliseconds = 0;
    require(cuda.eventElapsedTime(&milliseconds, first, event), "read the GPU's times");
    return std::llround(static_cast<double>(milliseconds) * 1e6);
  };
  int64_t end = now(), begin = end;
  for (uint32_t i = 0; i < program.instructions.size(); ++i) {
    if (!program.instructions[i].runsIn(last[lastSlot].part))
      continue;
    first = first ? first : timers[i][0];
    events.push_back({i, after(timers[i][0]), after(timers[i][1])});
  }
  for (const TraceEvent &event : events)
    begin = std::min(begin, end - event.end);
  for (TraceEvent &event : events) {
    event.begin += begin;
    event.end += begin;
  }
  return events;
}

} // namespace dlc::rt
