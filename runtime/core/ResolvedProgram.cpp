#include "runtime/core/ResolvedProgram.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/Arenas.h"
#include "runtime/core/ScalarBlock.h"

namespace dlc::rt {
namespace {

class Resolver {
public:
  Resolver(const artifact::Program &program, const Arenas &arenas,
           std::span<const uint32_t> kernels)
      : program(program), arenas(arenas), kernels(kernels) {}

  void addInstructions(ResolvedProgram &to) const;
  void addCollectives(ResolvedProgram &to) const;
  void addInputs(ResolvedProgram &to) const;
  void addResults(ResolvedProgram &to) const;

private:
  Places placesOf(uint32_t buffer) const {
    return {arenas.memory(buffer, 0), arenas.memory(buffer, 1)};
  }
  decltype(ResolvedProgram::Instruction::operation)
  operationOf(const artifact::Instruction &instruction) const;

  const artifact::Program &program;
  const Arenas &arenas;
  std::span<const uint32_t> kernels;
};

decltype(ResolvedProgram::Instruction::operation)
Resolver::operationOf(const artifact::Instruction &instruction) const {
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
  case artifact::Operation::Fill: {
    const artifact::Fill *fill = instruction.operation_as_Fill();
    return ResolvedProgram::Fill{placesOf(fill->buffer()), fill->value()};
  }
  case artifact::Operation::RecordEvent:
    return ResolvedProgram::RecordEvent{instruction.operation_as_RecordEvent()->event()};
  case artifact::Operation::WaitEvent:
    return ResolvedProgram::WaitEvent{instruction.operation_as_WaitEvent()->event()};
  default:
    return ResolvedProgram::HostRead{instruction.operation_as_HostRead()->result()};
  }
}

void Resolver::addInstructions(ResolvedProgram &to) const {
  if (program.instructions())
    for (const artifact::Instruction *instruction : *program.instructions())
      to.instructions.push_back({instruction->stream(), operationOf(*instruction)});
}

void Resolver::addCollectives(ResolvedProgram &to) const {
  if (!program.collectives())
    return;
  for (const artifact::Collective *collective : *program.collectives()) {
    ResolvedProgram::Collective &added = to.collectives.emplace_back();
    CollectiveOperation &operation = added.operation;
    operation.memory = arenas.memory(collective->buffer(), 0)
                           .subspan(0, collective->elements() * sizeOf(operation.type));
    operation.kind = collective->kind();
    operation.wire = collective->wire();
    if (collective->members())
      for (const flatbuffers::String *member : *collective->members())
        added.members.push_back(member->str());
  }
}

void Resolver::addInputs(ResolvedProgram &to) const {
  if (program.inputs())
    for (const artifact::ProgramInput *input : *program.inputs())
      to.inputs.push_back(placesOf(input->buffer()));
}

void Resolver::addResults(ResolvedProgram &to) const {
  if (!program.results())
    return;
  for (const artifact::Result *result : *program.results()) {
    std::vector<ResolvedProgram::Transfer> &transfers = to.results.emplace_back();
    if (result->kind() == artifact::ResultKind::Output)
      continue;
    for (uint32_t buffer : *result->buffers()) { // of one f32 each
      Places places = placesOf(buffer);
      for (DeviceSpan &place : places)
        place.bytes = sizeof(float);
      transfers.push_back({places, to.resultBytes});
      to.resultBytes += sizeof(float);
    }
  }
}

} // namespace

ResolvedProgram resolve(const artifact::Program &program, const Arenas &arenas,
                        std::span<const uint32_t> kernels, const ScalarBlock &scalars) {
  ResolvedProgram resolved;
  resolved.events = program.events();
  Resolver resolver(program, arenas, kernels);
  resolver.addInstructions(resolved);
  resolver.addCollectives(resolved);
  resolver.addInputs(resolved);
  resolver.addResults(resolved);
  for (const auto &[variable, offset] : scalars.offsets()) {
    DeviceSpan memory = arenas.memory(variable->buffer(), 0);
    resolved.scalars.push_back({{memory, memory}, offset});
  }
  return resolved;
}

} // namespace dlc::rt
