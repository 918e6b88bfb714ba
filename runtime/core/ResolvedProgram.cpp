#include "runtime/core/ResolvedProgram.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/Arenas.h"
#include "runtime/core/ScalarBlock.h"

#include <map>

namespace dlc::rt {
namespace {

class Resolver {
public:
  Resolver(const artifact::Program &program, const Arenas &arenas,
           std::span<const uint32_t> kernels, const ScalarBlock &scalars);

  ResolvedProgram run() const;

private:
  using Operation = decltype(ResolvedProgram::Instruction::operation);

  Places placesOf(uint32_t buffer) const {
    return {arenas.memory(buffer, 0), arenas.memory(buffer, 1)};
  }
  Operation operationOf(const artifact::Instruction &instruction) const;
  ResolvedProgram::Upload upload(const artifact::Upload &upload) const;
  ResolvedProgram::Collective collective(const artifact::Collective &collective) const;
  void findResults();

  const artifact::Program &program;
  const Arenas &arenas;
  std::span<const uint32_t> kernels;
  std::map<uint32_t, size_t> scalars;             // by buffer: where in the host's block
  std::vector<ResolvedProgram::Download> results; // in the program's order
  size_t resultBytes = 0;
};

Resolver::Resolver(const artifact::Program &program, const Arenas &arenas,
                   std::span<const uint32_t> kernels, const ScalarBlock &block)
    : program(program), arenas(arenas), kernels(kernels) {
  for (const auto &[variable, offset] : block.offsets())
    scalars[variable->buffer()] = offset;
  findResults();
}

void Resolver::findResults() {
  if (!program.results())
    return;
  for (const artifact::Result *result : *program.results()) {
    ResolvedProgram::Download &download = results.emplace_back();
    if (result->kind() == artifact::ResultKind::Output)
      continue;
    for (uint32_t buffer : *result->buffers()) { // of one f32 each
      Places places = placesOf(buffer);
      for (DeviceSpan &place : places)
        place.bytes = sizeof(float);
      download.parts.push_back({places, resultBytes});
      resultBytes += sizeof(float);
    }
  }
}

ResolvedProgram::Upload Resolver::upload(const artifact::Upload &upload) const {
  ResolvedProgram::Upload resolved;
  if (!upload.buffers())
    return resolved;
  for (uint32_t buffer : *upload.buffers())
    if (auto scalar = scalars.find(buffer); scalar != scalars.end())
      resolved.scalars.push_back({placesOf(buffer), scalar->second});
    else
      resolved.inputs.push_back(placesOf(buffer));
  return resolved;
}

Resolver::Operation Resolver::operationOf(const artifact::Instruction &instruction) const {
  switch (instruction.operation_type()) {
  case artifact::Operation::Dispatch: {
    const artifact::Dispatch *dispatch = instruction.operation_as_Dispatch();
    ResolvedProgram::Launch launch{kernels[dispatch->kernel()], {}};
    if (dispatch->buffers())
      for (uint32_t buffer : *dispatch->buffers())
        launch.operands.push_back(placesOf(buffer));
    return launch;
  }
  case artifact::Operation::CollectiveStart:
    return ResolvedProgram::Start{instruction.operation_as_CollectiveStart()->collective()};
  case artifact::Operation::CollectiveWait:
    return ResolvedProgram::Wait{instruction.operation_as_CollectiveWait()->collective()};
  case artifact::Operation::Copy: {
    const artifact::Copy *copy = instruction.operation_as_Copy();
    return ResolvedProgram::Copy{placesOf(copy->source()), placesOf(copy->destination())};
  }
  case artifact::Operation::RecordEvent:
    return ResolvedProgram::RecordEvent{instruction.operation_as_RecordEvent()->event()};
  case artifact::Operation::WaitEvent:
    return ResolvedProgram::WaitEvent{instruction.operation_as_WaitEvent()->event()};
  case artifact::Operation::Accumulate: {
    const artifact::Accumulate *add = instruction.operation_as_Accumulate();
    if (!arenas.haveSums())
      return std::monostate();
    return ResolvedProgram::Accumulate{kernels[add->kernel()], arenas.memory(add->bucket(), 0),
                                       arenas.memory(add->sum(), 0)};
  }
  case artifact::Operation::Recall: {
    const artifact::Recall *recall = instruction.operation_as_Recall();
    if (!arenas.haveSums())
      return std::monostate();
    return ResolvedProgram::Recall{arenas.memory(recall->bucket(), 0),
                                   arenas.memory(recall->sum(), 0)};
  }
  case artifact::Operation::Upload:
    return upload(*instruction.operation_as_Upload());
  default:
    return results[instruction.operation_as_Download()->result()];
  }
}

ResolvedProgram::Collective Resolver::collective(const artifact::Collective &collective) const {
  ResolvedProgram::Collective resolved;
  CollectiveOperation &operation = resolved.operation;
  operation.memory = arenas.memory(collective.buffer(), 0)
                         .subspan(0, collective.elements() * sizeOf(operation.type));
  operation.kind = collective.kind();
  operation.wire = collective.wire();
  if (collective.members())
    for (const flatbuffers::String *member : *collective.members())
      resolved.members.push_back(member->str());
  return resolved;
}

ResolvedProgram Resolver::run() const {
  ResolvedProgram resolved;
  resolved.events = program.events();
  resolved.resultBytes = resultBytes;
  if (program.instructions())
    for (const artifact::Instruction *instruction : *program.instructions())
      resolved.instructions.push_back(
          {instruction->stream(), operationOf(*instruction),
           passesOf(instruction->operation_type(), instruction->phase()),
           instruction->location() ? instruction->location()->str() : ""});
  if (program.collectives())
    for (const artifact::Collective *entry : *program.collectives())
      resolved.collectives.push_back(collective(*entry));
  for (const ResolvedProgram::Instruction &instruction : resolved.instructions)
    if (const auto *start = std::get_if<ResolvedProgram::Start>(&instruction.operation))
      resolved.collectives[start->collective].operation.stream = instruction.stream;
  return resolved;
}

} // namespace

ResolvedProgram resolve(const artifact::Program &program, const Arenas &arenas,
                        std::span<const uint32_t> kernels, const ScalarBlock &scalars) {
  return Resolver(program, arenas, kernels, scalars).run();
}

} // namespace dlc::rt
