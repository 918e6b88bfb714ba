// dlc-padding FILE.dlx: proves that the padding lanes of blocked tensors are zero while a model
// trains.
//
// Two ranks in this process train for three steps, then evaluate and predict, one instruction at a
// time, on memory that was filled with NaN. After every dispatch the padding of what it wrote is
// looked at, after every step that of all variables and optimizer slots. Prints how many padded
// tensors of each arena were seen; the first lane that is not zero, or a result that is not finite,
// ends the program with exit code 1.

#include "runtime/artifact/Error.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/Arenas.h"
#include "runtime/core/BackEnd.h"
#include "runtime/core/Initialize.h"
#include "runtime/core/Philox.h"
#include "runtime/core/TensorIo.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

using namespace dlc;
using namespace dlc::rt;

namespace {

/// The CPU's memory is the host's.
std::span<std::byte> bytesAt(DeviceSpan memory) {
  return {reinterpret_cast<std::byte *>(memory.address), memory.bytes};
}

constexpr std::byte notANumber{0xff}; // every byte, of f32 and bf16 alike

class Replay {
public:
  Replay(const Artifact &artifact, ControlPlane &control, Device &device);

  void run(const artifact::Program &program, uint32_t step);
  /// "Variables 6, Slots 6, ...": padded tensors by arena.
  std::string summary() const;

private:
  const artifact::Buffer &buffer(uint32_t index) const { return *artifact->buffers()->Get(index); }
  artifact::ArenaKind kindOf(uint32_t index) const {
    return artifact->arenas()->Get(buffer(index).arena())->kind();
  }
  void setScalar(const char *name, double value);
  void poison();
  void fillInputs(const artifact::Program &program, uint32_t step);
  void execute(const artifact::Program &program, const artifact::Instruction &instruction,
               uint32_t step);
  template <typename Operation> void run(Operation operation);
  void dispatch(const artifact::Dispatch &dispatch);
  Places placesOf(uint32_t index) const {
    return {arenas.memory(index, 0), arenas.memory(index, 0)};
  }
  const std::vector<size_t> &paddingOf(uint32_t index);
  void checkPadding(uint32_t index, const std::string &writer);
  void checkFinite(const artifact::Result &result) const;

  const Artifact &artifact;
  ControlPlane &control;
  Device &device;
  Arenas arenas;
  std::vector<Device::Kernel> kernels;
  std::map<uint32_t, Collectives::Ticket> tickets;
  std::map<uint32_t, std::vector<size_t>> paddings;
  std::map<artifact::ArenaKind, std::set<uint32_t>> seen;
};

Replay::Replay(const Artifact &artifact, ControlPlane &control, Device &device)
    : artifact(artifact), control(control), device(device), arenas(artifact, device) {
  for (const artifact::Kernel *kernel : *artifact->kernels())
    kernels.push_back(device.load(artifact, *kernel));
  for (const artifact::Variable *variable : *artifact->variables()) {
    bool isCopy = variable->kind() == artifact::VariableKind::Copy;
    auto parameter = static_cast<uint32_t>(variable->parameter());
    const artifact::Variable &source = isCopy ? *artifact->variables()->Get(parameter) : *variable;
    writeTensor(
        PhysicalType(*buffer(variable->buffer()).type()),
        [&](size_t first, std::span<float> values) { drawInitialValues(source, 3, first, values); },
        bytesAt(arenas.memory(variable->buffer(), 0)));
  }
  setScalar("lr", 0.01);
  setScalar("seed", 3);
  setScalar("inverse_world", 1.0 / control.size());
}

void Replay::setScalar(const char *name, double value) {
  if (const artifact::Variable *scalar = artifact.variable(name))
    writeScalar(buffer(scalar->buffer()).type()->dtype(),
                bytesAt(arenas.memory(scalar->buffer(), 0)).data(), value);
}

/// No kernel may count on what memory held before the step.
void Replay::poison() {
  for (uint32_t i = 0; i < artifact->buffers()->size(); ++i)
    if (kindOf(i) == artifact::ArenaKind::Transient || kindOf(i) == artifact::ArenaKind::Inputs)
      std::ranges::fill(bytesAt(arenas.memory(i, 0)), notANumber);
    else if (kindOf(i) == artifact::ArenaKind::Gradients && !paddingOf(i).empty())
      std::ranges::fill(bytesAt(arenas.memory(i, 0)), notANumber);
}

/// Numbers of this rank and step; integers are classes.
void Replay::fillInputs(const artifact::Program &program, uint32_t step) {
  for (const artifact::ProgramInput *input : *program.inputs()) {
    PhysicalType type(*buffer(input->buffer()).type());
    std::vector<float> values(type.logicalElements());
    for (size_t i = 0; i < values.size(); ++i) {
      uint32_t bits = philoxBits(1, static_cast<uint32_t>(control.rank()), step, i);
      values[i] =
          type.dtype == artifact::DType::F32 ? uniform01(bits) : static_cast<float>(bits % 2);
    }
    writeTensor(type, values, bytesAt(arenas.memory(input->buffer(), 0)));
  }
}

void Replay::run(const artifact::Program &program, uint32_t step) {
  poison();
  fillInputs(program, step);
  setScalar("step", step);
  setScalar("first_row", control.rank() * program.batch());
  setScalar("valid_rows", program.batch());
  for (const artifact::Instruction *instruction : *program.instructions())
    execute(program, *instruction, step);
  for (const artifact::Variable *variable : *artifact->variables())
    checkPadding(variable->buffer(), program.name()->str());
  for (const artifact::Result *result : *program.results())
    checkFinite(*result);
}

void Replay::checkFinite(const artifact::Result &result) const {
  for (uint32_t index : *result.buffers()) {
    PhysicalType type(*buffer(index).type());
    std::vector<float> values(type.logicalElements());
    readTensor(type, bytesAt(arenas.memory(index, 0)), values);
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
      throw Error(ErrorCode::Runtime, result.name()->str() + " is not finite");
  }
}

void Replay::execute(const artifact::Program &program, const artifact::Instruction &instruction,
                     uint32_t step) {
  switch (instruction.operation_type()) {
  case artifact::Operation::Dispatch:
    return dispatch(*instruction.operation_as_Dispatch());
  case artifact::Operation::CollectiveStart: {
    uint32_t index = instruction.operation_as_CollectiveStart()->collective();
    const artifact::Collective *collective = program.collectives()->Get(index);
    CollectiveOperation operation;
    operation.memory =
        arenas.memory(collective->buffer(), 0).subspan(0, collective->elements() * sizeof(float));
    operation.wire = collective->wire();
    tickets[index] = device.collectives().start(operation, {index, step, {}});
    return;
  }
  case artifact::Operation::CollectiveWait:
    return device.collectives().wait(
        tickets[instruction.operation_as_CollectiveWait()->collective()]);
  case artifact::Operation::Copy: {
    const artifact::Copy *copy = instruction.operation_as_Copy();
    return run(ResolvedProgram::Copy{placesOf(copy->source()), placesOf(copy->destination())});
  }
  default: // events; uploads and downloads, as memory is the host's
    return;
  }
}

/// A program of one instruction.
template <typename Operation> void Replay::run(Operation operation) {
  ResolvedProgram program;
  program.instructions.push_back({artifact::Stream::Compute, std::move(operation)});
  device.prepare(std::move(program))->run({});
}

void Replay::dispatch(const artifact::Dispatch &dispatch) {
  ResolvedProgram::Launch launch{kernels[dispatch.kernel()], {}};
  for (uint32_t index : *dispatch.buffers())
    launch.operands.push_back(placesOf(index));
  run(std::move(launch));
  const artifact::Kernel &kernel = *artifact->kernels()->Get(dispatch.kernel());
  for (uint32_t i = 0; i < dispatch.buffers()->size(); ++i)
    if (kernel.access()->Get(i) != artifact::Access::Read)
      checkPadding(dispatch.buffers()->Get(i), kernel.name()->str());
}

/// Physical elements that no logical one lies at.
const std::vector<size_t> &Replay::paddingOf(uint32_t index) {
  auto [entry, isNew] = paddings.try_emplace(index);
  PhysicalType type(*buffer(index).type());
  auto elements = static_cast<size_t>(type.layout.physicalElements(type.shape));
  if (!isNew || elements == type.logicalElements())
    return entry->second;
  std::vector<bool> used(elements);
  std::vector<int64_t> at(type.shape.size());
  for (size_t i = 0; i < type.logicalElements(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t dim = at.size(); dim-- > 0; rest /= type.shape[dim])
      at[dim] = rest % type.shape[dim];
    used[static_cast<size_t>(type.layout.offsetOf(type.shape, at))] = true;
  }
  for (size_t i = 0; i < elements; ++i)
    if (!used[i])
      entry->second.push_back(i);
  return entry->second;
}

void Replay::checkPadding(uint32_t index, const std::string &writer) {
  const std::vector<size_t> &padding = paddingOf(index);
  if (padding.empty())
    return;
  seen[kindOf(index)].insert(index);
  artifact::DType dtype = buffer(index).type()->dtype();
  const std::byte *memory = bytesAt(arenas.memory(index, 0)).data();
  for (size_t at : padding)
    if (double value = readScalar(dtype, memory + at * sizeOf(dtype)); value != 0)
      throw Error(ErrorCode::Runtime, writer + " leaves " + std::to_string(value) +
                                          " in a padding lane of buffer " + std::to_string(index) +
                                          ", " +
                                          PhysicalType(*buffer(index).type()).layout.toString());
}

std::string Replay::summary() const {
  std::string text;
  for (const auto &[kind, buffers] : seen)
    text += std::string(text.empty() ? "" : ", ") + artifact::EnumNameArenaKind(kind) + " " +
            std::to_string(buffers.size());
  return text;
}

void train(const Artifact &artifact, ControlPlane &control) {
  std::string reason;
  const BackEnd *backEnd = findBackEnd(artifact->target()->name()->str(), reason);
  if (!backEnd)
    throw Error(ErrorCode::Runtime, reason);
  std::unique_ptr<Device> device = backEnd->makeDevice(*artifact->target(), 1, control);
  Replay replay(artifact, control, *device);
  for (uint32_t step = 0; step < 3; ++step)
    replay.run(*artifact.program("train"), step);
  for (const char *name : {"eval", "predict"})
    replay.run(*artifact.program(name), 3);
  if (control.rank() == 0)
    std::printf("padded tensors: %s\n", replay.summary().c_str());
}

} // namespace

int main(int count, char **arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: dlc-padding FILE.dlx\n");
    return 2;
  }
  try {
    Artifact artifact(arguments[1]);
    runInProcess(2, [&](ControlPlane &control) { train(artifact, control); });
  } catch (const Error &error) {
    std::fprintf(stderr, "dlc-padding: %s\n", error.what());
    return 1;
  }
  return 0;
}
