#include "runtime/cpu/CpuExecutable.h"

#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuMemory.h"
#include "runtime/cpu/TeamCopy.h"

#include <chrono>
#include <cstring>

namespace dlc::rt {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

CpuExecutable::CpuExecutable(ResolvedProgram newProgram, std::span<const LoadedKernel> kernels,
                             const CpuContext &context)
    : program(std::move(newProgram)), context(context), tickets(program.collectives.size()),
      resultBlocks{std::vector<std::byte>(program.resultBytes),
                   std::vector<std::byte>(program.resultBytes)} {
  for (const ResolvedProgram::Instruction &instruction : program.instructions)
    steps.push_back(translate(instruction, kernels));
  events.reserve(steps.size());
  inFlight.reserve(program.collectives.size());
}

CpuExecutable::Step CpuExecutable::translate(const ResolvedProgram::Instruction &instruction,
                                             std::span<const LoadedKernel> kernels) {
  Step step;
  if (const auto *launch = std::get_if<ResolvedProgram::Launch>(&instruction.operation)) {
    step.kind = Kind::Launch;
    std::array<std::vector<DeviceSpan>, 2> operands;
    for (const Places &places : launch->operands)
      for (unsigned slot : {0u, 1u})
        operands[slot].push_back(places[slot]);
    for (unsigned slot : {0u, 1u}) {
      if (slot == 0 || operands[0] != operands[1])
        launches.emplace_back(kernels[launch->kernel], context.engine, operands[slot]);
      step.launch[slot] = static_cast<uint32_t>(launches.size() - 1);
    }
  } else if (const auto *start = std::get_if<ResolvedProgram::Start>(&instruction.operation)) {
    step.kind = Kind::Start;
    step.collective = start->collective;
  } else if (const auto *wait = std::get_if<ResolvedProgram::Wait>(&instruction.operation)) {
    step.kind = Kind::Wait;
    step.collective = wait->collective;
  } else if (const auto *copy = std::get_if<ResolvedProgram::Copy>(&instruction.operation)) {
    step.kind = Kind::Copy;
    step.from = copy->from;
    step.to = copy->to;
  } else if (const auto *add = std::get_if<ResolvedProgram::Accumulate>(&instruction.operation)) {
    step.kind = Kind::Accumulate;
    step.from = {add->bucket, add->bucket};
    step.to = {add->sum, add->sum};
    for (unsigned toBucket : {0u, 1u}) {
      DeviceSpan to = toBucket ? add->bucket : add->sum, from = toBucket ? add->sum : add->bucket;
      step.launch[toBucket] = static_cast<uint32_t>(launches.size());
      launches.emplace_back(kernels[add->kernel], context.engine, std::vector{to, from, to});
    }
  } else if (const auto *recall = std::get_if<ResolvedProgram::Recall>(&instruction.operation)) {
    step.kind = Kind::Recall;
    step.from = {recall->bucket, recall->bucket};
    step.to = {recall->sum, recall->sum};
  } else if (const auto *upload = std::get_if<ResolvedProgram::Upload>(&instruction.operation)) {
    step.kind = Kind::Upload; // inputs are staged in their places
    step.transfers = upload->scalars;
  } else if (const auto *download =
                 std::get_if<ResolvedProgram::Download>(&instruction.operation)) {
    step.kind = Kind::Download;
    step.transfers = download->parts;
  }
  return step;
}

void CpuExecutable::accumulate(const Step &step, MicroBatch part) {
  if (part.index == 0)
    copyOnTeam(bytesAt(step.from[0]), bytesAt(step.to[0]));
  else
    launches[step.launch[part.isLast()]].run(context.stream);
}

void CpuExecutable::execute(const Step &step, const RunArguments &arguments) {
  unsigned slot = arguments.slot;
  switch (step.kind) {
  case Kind::Launch:
    return launches[step.launch[slot]].run(context.stream);
  case Kind::Start: {
    const ResolvedProgram::Collective &started = program.collectives[step.collective];
    tickets[step.collective] = context.collectives.start(
        started.operation, {step.collective, arguments.step + 1, started.members});
    return;
  }
  case Kind::Wait:
    return context.collectives.wait(tickets[step.collective]);
  case Kind::Copy:
    return copyOnTeam(bytesAt(step.from[slot]), bytesAt(step.to[slot]));
  case Kind::Accumulate:
    return accumulate(step, arguments.part);
  case Kind::Recall:
    return arguments.part.counts ? copyOnTeam(bytesAt(step.from[0]), bytesAt(step.to[0]))
                                 : copyOnTeam(bytesAt(step.to[0]), bytesAt(step.from[0]));
  case Kind::Upload:
    return upload(step, arguments);
  case Kind::Download:
    return download(step, slot);
  case Kind::Nothing:
    return;
  }
}

void CpuExecutable::run(const RunArguments &arguments) {
  setTeamSize(context.threads); // of this thread, whichever made the device
  prepareTeam();
  if (arguments.timed)
    runTimed(arguments);
  else
    runSteps(arguments);
}

void CpuExecutable::upload(const Step &step, const RunArguments &arguments) {
  for (const ResolvedProgram::Transfer &scalar : step.transfers) {
    std::span<std::byte> to = bytesAt(scalar.memory[arguments.slot]);
    std::memcpy(to.data(), arguments.scalars.data() + scalar.offset, to.size());
  }
}

void CpuExecutable::download(const Step &step, unsigned slot) {
  for (const ResolvedProgram::Transfer &part : step.transfers) {
    std::span<std::byte> from = bytesAt(part.memory[slot]);
    std::memcpy(resultBlocks[slot].data() + part.offset, from.data(), from.size());
  }
}

void CpuExecutable::runSteps(const RunArguments &arguments) {
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (!program.instructions[i].runsIn(arguments.part))
      continue;
    execute(steps[i], arguments);
    if (steps[i].computes())
      context.collectives.progress();
  }
}

void CpuExecutable::runTimed(const RunArguments &arguments) {
  events.clear();
  inFlight.clear();
  for (uint32_t i = 0; i < steps.size(); ++i) {
    int64_t begin = now();
    if (!program.instructions[i].runsIn(arguments.part))
      continue;
    execute(steps[i], arguments);
    int64_t end = now();
    if (steps[i].kind == Kind::Start)
      inFlight.push_back({i, tickets[steps[i].collective], begin});
    else
      events.push_back({i, begin, end});
    if (steps[i].computes())
      context.collectives.progress();
    if (!inFlight.empty())
      recordCompletions(now());
  }
}

void CpuExecutable::recordCompletions(int64_t now) {
  std::erase_if(inFlight, [&](const InFlight &started) {
    bool complete = context.collectives.isComplete(started.ticket);
    if (complete)
      events.push_back({started.instruction, started.begin, now});
    return complete;
  });
}

} // namespace dlc::rt
