#include "runtime/core/Program.h"

#include <chrono>

namespace dlc::rt {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

Program::Program(const artifact::Program &program, const Arenas &arenas, Device &device,
                 std::span<const Device::Kernel> kernels)
    : program(program) {
  if (program.collectives())
    for (const artifact::Collective *collective : *program.collectives()) {
      Message message;
      message.operation.memory =
          arenas.memory(collective->buffer(), 0).subspan(0, collective->elements() * sizeof(float));
      message.operation.kind = collective->kind();
      message.operation.wire = collective->wire();
      if (collective->members())
        for (const flatbuffers::String *member : *collective->members())
          message.members.push_back(member->str());
      messages.push_back(std::move(message));
    }
  if (program.instructions())
    for (const artifact::Instruction *instruction : *program.instructions())
      steps.push_back(translate(*instruction, arenas, device, kernels));
}

Program::Step Program::translate(const artifact::Instruction &instruction, const Arenas &arenas,
                                 Device &device, std::span<const Device::Kernel> kernels) const {
  Step step;
  auto place = [&](uint32_t buffer) {
    return std::array{arenas.memory(buffer, 0), arenas.memory(buffer, 1)};
  };
  switch (instruction.operation_type()) {
  case artifact::Operation::Dispatch: {
    const artifact::Dispatch *dispatch = instruction.operation_as_Dispatch();
    step.kind = Kind::Launch;
    std::array<std::vector<DeviceSpan>, 2> buffers;
    if (dispatch->buffers())
      for (uint32_t buffer : *dispatch->buffers())
        for (unsigned slot : {0u, 1u})
          buffers[slot].push_back(arenas.memory(buffer, slot));
    step.launches[0] = device.bind(kernels[dispatch->kernel()], buffers[0]);
    step.launches[1] = buffers[0] == buffers[1]
                           ? step.launches[0]
                           : device.bind(kernels[dispatch->kernel()], buffers[1]);
    break;
  }
  case artifact::Operation::CollectiveStart:
    step.kind = Kind::Start;
    step.collective = instruction.operation_as_CollectiveStart()->collective();
    break;
  case artifact::Operation::CollectiveWait:
    step.kind = Kind::Wait;
    step.collective = instruction.operation_as_CollectiveWait()->collective();
    break;
  case artifact::Operation::Copy: {
    const artifact::Copy *copy = instruction.operation_as_Copy();
    step.kind = Kind::Copy;
    step.to = place(copy->destination());
    step.from = place(copy->source());
    break;
  }
  case artifact::Operation::Fill: {
    const artifact::Fill *fill = instruction.operation_as_Fill();
    step.kind = Kind::Fill;
    step.to = place(fill->buffer());
    step.value = fill->value();
    break;
  }
  default: // events and host reads order streams, and here is only one
    break;
  }
  return step;
}

void Program::execute(const Step &step, Device &device, unsigned slot, uint64_t number) {
  switch (step.kind) {
  case Kind::Launch:
    return device.launch(step.launches[slot]);
  case Kind::Start: {
    Message &message = messages[step.collective];
    message.ticket =
        device.collectives().start(message.operation, {step.collective, number, message.members});
    return;
  }
  case Kind::Wait:
    return device.collectives().wait(messages[step.collective].ticket);
  case Kind::Copy:
    return device.copy(step.from[slot], step.to[slot]);
  case Kind::Fill:
    return device.fill(step.to[slot], step.value);
  case Kind::Nothing:
    return;
  }
}

void Program::accumulate(const Artifact &artifact) {
  if (!accumulation)
    accumulation = std::make_unique<Accumulation>(artifact, program);
}

/// True if the instruction is done with, for this micro-batch.
bool Program::accumulates(uint32_t instruction, MicroBatch part) {
  const Step &step = steps[instruction];
  if (part.isLast()) {
    if (step.kind == Kind::Start)
      accumulation->complete(step.collective, messages[step.collective].data());
    return false;
  }
  if (step.kind == Kind::Start)
    accumulation->add(step.collective, messages[step.collective].data(), part.index == 0);
  return step.kind == Kind::Start || step.kind == Kind::Wait || accumulation->runsOnce(instruction);
}

void Program::run(Device &device, unsigned slot, uint64_t step, MicroBatch part,
                  std::vector<TraceEvent> *events) {
  if (!events) {
    for (uint32_t i = 0; i < steps.size(); ++i) {
      if (part.count > 1 && accumulates(i, part))
        continue;
      execute(steps[i], device, slot % 2, step);
      if (steps[i].computes())
        device.collectives().progress();
    }
    return;
  }
  inFlight.clear();
  for (uint32_t i = 0; i < steps.size(); ++i) {
    int64_t begin = now();
    if (part.count > 1 && accumulates(i, part))
      continue;
    execute(steps[i], device, slot % 2, step);
    int64_t end = now();
    if (steps[i].kind == Kind::Start)
      inFlight.push_back({i, messages[steps[i].collective].ticket, begin});
    else
      events->push_back({i, begin, end});
    if (steps[i].computes())
      device.collectives().progress();
    if (!inFlight.empty())
      recordCompletions(device.collectives(), now(), *events);
  }
}

void Program::recordCompletions(const Collectives &collectives, int64_t now,
                                std::vector<TraceEvent> &events) {
  std::erase_if(inFlight, [&](const InFlight &started) {
    bool complete = collectives.isComplete(started.ticket);
    if (complete)
      events.push_back({started.instruction, started.begin, now});
    return complete;
  });
}

} // namespace dlc::rt
