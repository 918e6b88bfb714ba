// Phases in the constructor's order: device, schedule hash, arenas, kernels, programs, start
// values.

#include "runtime/core/Session.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/Hash.h"
#include "runtime/core/Accumulation.h"
#include "runtime/core/BackEnd.h"
#include "runtime/core/Initialize.h"
#include "runtime/core/Pages.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/core/ScalarBlock.h"
#include "runtime/core/TensorIo.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cstring>
#include <sched.h>

namespace dlc::rt {
namespace {

unsigned usableCores() {
  cpu_set_t mask;
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<unsigned>(CPU_COUNT(&mask))
                                                       : 1;
}

unsigned chooseThreads(const artifact::Target &target, const ControlPlane &control,
                       unsigned wanted) {
  unsigned planned = std::max(target.threads(), 1u);
  if (wanted > planned)
    throw Error(ErrorCode::BadInput, std::to_string(wanted) +
                                         " threads asked for, but the artifact was planned for at "
                                         "most " +
                                         std::to_string(planned) +
                                         "; compile it with --threads=" + std::to_string(wanted));
  unsigned share = usableCores() / static_cast<unsigned>(std::max(control.localSize(), 1));
  return wanted ? wanted : std::clamp(share, 1u, planned);
}

std::unique_ptr<Device> openDevice(const Artifact &artifact, unsigned threads,
                                   ControlPlane &control, const SessionOptions &options) {
  if (options.makeDevice)
    return options.makeDevice(*artifact->target(), threads, control);
  std::string reason;
  const BackEnd *backEnd = findBackEnd(artifact->target()->name()->str(), reason);
  if (!backEnd)
    throw Error(ErrorCode::Runtime, reason);
  return backEnd->makeDevice(*artifact->target(), threads, control);
}

// Ranks that would run different collectives would hang or add up garbage: so none starts.
void compareSchedules(const Artifact &artifact, ControlPlane &control) {
  uint64_t mine = artifact->schedule_hash();
  std::vector<std::vector<std::byte>> all =
      control.allGather(std::as_bytes(std::span(&mine, 1)), "comparison of the ranks' artifacts");
  std::string others;
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      others += (others.empty() ? "" : ", ") + std::to_string(rank);
  if (!others.empty())
    throw Error(ErrorCode::Peer, "ranks run different artifacts: rank " + others +
                                     " differs from rank 0; give every rank the same file");
}

/// Replicas stay equal where all compute alike.
void comparePlatforms(const Device &device, ControlPlane &control) {
  std::string mine = device.platform();
  std::vector<std::vector<std::byte>> all =
      control.allGather(std::as_bytes(std::span(mine)), "comparison of the ranks' devices");
  auto text = [&](size_t rank) {
    return std::string(reinterpret_cast<const char *>(all[rank].data()), all[rank].size());
  };
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw Error(ErrorCode::Peer, "rank " + std::to_string(rank) + " has " + text(rank) +
                                       ", but rank 0 has " + text(0) +
                                       ": give all ranks the same devices and libraries");
}

} // namespace

struct Session::Impl {
  Impl(const Artifact &artifact, ControlPlane &control, const SessionOptions &options);

  /// A program of the artifact, and what runs it.
  struct Loaded {
    const artifact::Program *definition;
    std::unique_ptr<Executable> executable;
    bool accumulates = false;
  };

  std::unique_ptr<Executable> prepare(const artifact::Program &program) {
    return device->prepare(resolve(program, *arenas, kernels, scalars));
  }
  Loaded &program(const std::string &name);
  const artifact::Variable &variable(const std::string &name) const;
  PhysicalType typeOf(uint32_t buffer) const {
    return PhysicalType(*artifact->buffers()->Get(buffer)->type());
  }
  std::vector<float> read(uint32_t buffer, unsigned slot) const;
  void read(uint32_t buffer, unsigned slot, std::vector<float> &values,
            std::vector<std::byte> &physical) const;
  void write(const artifact::Variable &variable, const FillValues &fill);
  void writeCopy(const artifact::Variable &copy, std::span<const std::byte> parameter);

  /// A phase of the start has ended.
  void endPhase(const std::string &name);

  using Clock = std::chrono::steady_clock;
  const Clock::time_point started = Clock::now();
  std::vector<std::pair<std::string, double>> phases;
  const Artifact &artifact;
  ControlPlane &control;
  unsigned threads, loaderThreads;
  bool oneByOne;
  std::unique_ptr<Device> device;
  std::unique_ptr<Arenas> arenas;
  ScalarBlock scalars;
  std::vector<Device::Kernel> kernels;
  std::vector<Loaded> programs;
  std::vector<TraceEvent> *events = nullptr;
  unsigned lastSlot = 0;
  uint64_t residentBefore = 0;
};

/// The layer that a kernel is first launched for; empty if it never is.
static std::string layerOf(const Artifact &artifact, uint32_t kernel) {
  if (artifact->programs())
    for (const artifact::Program *program : *artifact->programs())
      for (const artifact::Instruction *instruction : *program->instructions())
        if (const auto *dispatch = instruction->operation_as_Dispatch();
            dispatch && dispatch->kernel() == kernel && instruction->location())
          return instruction->location()->str();
  return "";
}

/// What goes wrong with a kernel is said of its layer, too.
static Device::Kernel loadKernel(Device &device, const Artifact &artifact, uint32_t index) {
  const artifact::Kernel &kernel = *artifact->kernels()->Get(index);
  try {
    return device.load(artifact, kernel);
  } catch (const Error &error) {
    std::string text = error.what(), name = "kernel " + kernel.name()->str();
    std::string layer = layerOf(artifact, index);
    size_t place = text.find(name);
    if (place == std::string::npos || layer.empty())
      throw;
    throw Error(error.code, text.insert(place + name.size(), " of layer " + layer));
  }
}

Session::Impl::Impl(const Artifact &artifact, ControlPlane &control, const SessionOptions &options)
    : artifact(artifact), control(control),
      threads(chooseThreads(*artifact->target(), control, options.threads)),
      loaderThreads(options.loaderThreads), oneByOne(options.oneByOne),
      device(openDevice(artifact, threads, control, options)), scalars(artifact) {
  compareSchedules(artifact, control);
  endPhase("device");
  residentBefore = residentBytes().now;
  arenas = std::make_unique<Arenas>(artifact, *device);
  endPhase("memory");
  if (artifact->kernels())
    for (uint32_t kernel = 0; kernel < artifact->kernels()->size(); ++kernel)
      kernels.push_back(loadKernel(*device, artifact, kernel));
  comparePlatforms(*device, control);
  if (artifact->programs())
    for (const artifact::Program *program : *artifact->programs())
      programs.push_back({program, prepare(*program)});
  endPhase("kernels");
}

void Session::Impl::endPhase(const std::string &name) {
  double seconds = std::chrono::duration<double>(Clock::now() - started).count();
  for (const auto &[before, took] : phases)
    seconds -= took;
  phases.emplace_back(name, seconds);
}

Session::Impl::Loaded &Session::Impl::program(const std::string &name) {
  for (Loaded &candidate : programs)
    if (candidate.definition->name()->string_view() == name)
      return candidate;
  throw Error(ErrorCode::BadInput, artifact.name() + " has no program '" + name + "'");
}

const artifact::Variable &Session::Impl::variable(const std::string &name) const {
  const artifact::Variable *found = artifact.variable(name);
  if (!found)
    throw Error(ErrorCode::BadInput, artifact.name() + " has no variable '" + name + "'");
  return *found;
}

std::vector<float> Session::Impl::read(uint32_t buffer, unsigned slot) const {
  std::vector<float> values;
  std::vector<std::byte> physical;
  read(buffer, slot, values, physical);
  return values;
}

void Session::Impl::read(uint32_t buffer, unsigned slot, std::vector<float> &values,
                         std::vector<std::byte> &physical) const {
  PhysicalType type = typeOf(buffer);
  physical.resize(type.bytes());
  device->download(arenas->memory(buffer, slot), physical);
  values.resize(type.logicalElements());
  readTensor(type, physical, values);
}

void Session::Impl::write(const artifact::Variable &variable, const FillValues &fill) {
  if (variable.kind() == artifact::VariableKind::Scalar)
    return writeTensor(typeOf(variable.buffer()), fill, scalars.of(variable));
  DeviceSpan memory = arenas->memory(variable.buffer(), 0);
  HostBlock staged = device->stage(memory);
  writeTensor(typeOf(variable.buffer()), fill, staged.bytes);
  const auto &variables = *artifact->variables();
  for (const artifact::Variable *copy : variables)
    if (copy->kind() == artifact::VariableKind::Copy &&
        variables.Get(static_cast<uint32_t>(copy->parameter())) == &variable)
      writeCopy(*copy, staged.bytes);
  device->upload(staged.bytes, memory);
}

/// Both have one shape and layout, so padding is narrowed to padding.
void Session::Impl::writeCopy(const artifact::Variable &copy,
                              std::span<const std::byte> parameter) {
  artifact::DType type = typeOf(copy.buffer()).dtype;
  DeviceSpan memory = arenas->memory(copy.buffer(), 0);
  HostBlock staged = device->stage(memory);
  std::span values(reinterpret_cast<const float *>(parameter.data()),
                   parameter.size() / sizeof(float));
  parallelFor(static_cast<int64_t>(values.size()), int64_t{1} << 16,
              [&](int64_t begin, int64_t end) {
                auto first = static_cast<size_t>(begin);
                narrow(values.subspan(first, static_cast<size_t>(end - begin)), type,
                       staged.bytes.subspan(first * sizeOf(type)));
              });
  device->upload(staged.bytes, memory);
}

Session::Session(const Artifact &artifact, ControlPlane &control, const SessionOptions &options)
    : impl(std::make_unique<Impl>(artifact, control, options)) {
  initialize(options.seed);
  impl->endPhase("variables");
}

Session::~Session() = default;

const Artifact &Session::artifact() const { return impl->artifact; }
ControlPlane &Session::control() const { return impl->control; }
unsigned Session::threads() const { return impl->threads; }
const std::vector<std::pair<std::string, double>> &Session::startPhases() const {
  return impl->phases;
}
unsigned Session::loaderThreads() const { return impl->loaderThreads; }
uint64_t Session::arenaBytes() const { return impl->arenas->bytes(); }
std::vector<ArenaPages> Session::arenaPages() const { return impl->arenas->pages(); }
uint64_t Session::residentBefore() const { return impl->residentBefore; }
bool Session::runsAhead() const { return impl->device->runsAhead(); }
void Session::trace(std::vector<TraceEvent> *events) { impl->events = events; }

void Session::initialize(uint64_t seed) {
  if (!impl->artifact->variables())
    return;
  for (const artifact::Variable *variable : *impl->artifact->variables())
    if (variable->kind() != artifact::VariableKind::Copy)
      impl->write(*variable, [&](size_t first, std::span<float> values) {
        drawInitialValues(*variable, seed, first, values);
      });
}

std::vector<float> Session::read(const std::string &name) const {
  std::vector<float> values;
  std::vector<std::byte> scratch;
  read(name, values, scratch);
  return values;
}

void Session::read(const std::string &name, std::vector<float> &values,
                   std::vector<std::byte> &scratch) const {
  const artifact::Variable &variable = impl->variable(name);
  if (variable.kind() != artifact::VariableKind::Scalar)
    return impl->read(variable.buffer(), 0, values, scratch);
  values.resize(1);
  readTensor(impl->typeOf(variable.buffer()), impl->scalars.of(variable), values);
}

void Session::write(const std::string &variable, std::span<const float> values) {
  const artifact::Variable &written = impl->variable(variable);
  size_t wanted = impl->typeOf(written.buffer()).logicalElements();
  if (values.size() != wanted)
    throw Error(ErrorCode::BadInput, "variable '" + variable + "' has " + std::to_string(wanted) +
                                         " elements, got " + std::to_string(values.size()));
  impl->write(written, [&](size_t first, std::span<float> part) {
    std::ranges::copy(values.subspan(first, part.size()), part.begin());
  });
}

/// Hands over device memory in pieces that stay in the cache.
template <typename Take> static void readPieces(Device &device, DeviceSpan memory, Take take) {
  std::vector<uint8_t> piece(std::min<size_t>(memory.bytes, 256 * 1024));
  for (size_t at = 0; at < memory.bytes; at += piece.size()) {
    std::span part(piece.data(), std::min(piece.size(), memory.bytes - at));
    device.download(memory.subspan(at, part.size()), std::as_writable_bytes(part));
    take(std::span<const uint8_t>(part));
  }
}

uint64_t Session::fingerprint(const std::string &variable) const {
  std::vector<uint64_t> hashes;
  readPieces(*impl->device, impl->arenas->memory(impl->variable(variable).buffer(), 0),
             [&](std::span<const uint8_t> piece) { hashes.push_back(hash64(piece)); });
  return hash64(
      {reinterpret_cast<const uint8_t *>(hashes.data()), hashes.size() * sizeof(uint64_t)});
}

bool Session::isFinite(const std::string &variable) const {
  uint32_t buffer = impl->variable(variable).buffer();
  if (impl->typeOf(buffer).dtype != artifact::DType::F32)
    return true;
  constexpr uint32_t exponent = 0x7f800000; // all ones: infinite or not a number
  bool finite = true;
  readPieces(*impl->device, impl->arenas->memory(buffer, 0), [&](std::span<const uint8_t> piece) {
    for (size_t at = 0; at + sizeof(uint32_t) <= piece.size(); at += sizeof(uint32_t)) {
      uint32_t bits;
      std::memcpy(&bits, piece.data() + at, sizeof bits);
      finite &= (bits & exponent) != exponent;
    }
  });
  return finite;
}

void Session::setScalar(const std::string &name, double value) { impl->scalars.set(name, value); }
void Session::setScalar(const std::string &name, int64_t value) { impl->scalars.set(name, value); }

static uint32_t inputBuffer(const artifact::Program &program, const std::string &name) {
  if (program.inputs())
    for (const artifact::ProgramInput *input : *program.inputs())
      if (input->name()->string_view() == name)
        return input->buffer();
  throw Error(ErrorCode::BadInput,
              "program '" + program.name()->str() + "' has no input '" + name + "'");
}

std::span<std::byte> Session::input(const std::string &program, const std::string &name,
                                    unsigned slot) {
  uint32_t buffer = inputBuffer(*impl->program(program).definition, name);
  return impl->device->stage(impl->arenas->memory(buffer, slot)).bytes;
}

uint64_t Session::keepArrays(std::span<const uint64_t> sizes) {
  return impl->device->keepArrays(sizes);
}

std::span<ArrayRow> Session::rows(const std::string &program, const std::string &name,
                                  unsigned slot) {
  const Impl::Loaded &loaded = impl->program(program);
  uint32_t buffer = inputBuffer(*loaded.definition, name);
  PhysicalType type = impl->typeOf(buffer);
  return loaded.executable->rows(impl->arenas->memory(buffer, slot), type.dtype,
                                 type.shape.empty() ? 1 : static_cast<size_t>(type.shape[0]));
}

uint64_t Session::accumulate(const std::string &program) {
  Impl::Loaded &loaded = impl->program(program);
  requireMicroBatches(impl->artifact, *loaded.definition);
  uint64_t bytes = impl->arenas->allocateSums();
  if (!loaded.accumulates)
    loaded.executable = impl->prepare(*loaded.definition);
  loaded.accumulates = true;
  return bytes;
}

void Session::run(const std::string &program, unsigned slot, uint64_t step, MicroBatch part) {
  Impl::Loaded &loaded = impl->program(program);
  assert((part.count == 1 || loaded.accumulates) && "sums have no memory before accumulate()");
  Executable &executable = *loaded.executable;
  impl->lastSlot = slot;
  bool timed = impl->events != nullptr;
  executable.run({slot % 2, step, part, impl->scalars.block(), timed, impl->oneByOne});
  if (timed)
    std::ranges::copy(executable.times(), std::back_inserter(*impl->events));
}

std::vector<Pair> Session::results(const std::string &program, unsigned slot) const {
  std::span<const std::byte> block = impl->program(program).executable->results(slot);
  std::vector<Pair> pairs;
  for (size_t at = 0; at < block.size(); at += 2 * sizeof(float)) {
    std::array<float, 2> values; // sum and count
    std::memcpy(values.data(), &block[at], sizeof values);
    pairs.push_back({values[0], values[1]});
  }
  return pairs;
}

bool Session::isRunning(const std::string &program) const {
  return impl->program(program).executable->isRunning();
}

std::string Session::platform() const { return impl->device->platform(); }
std::vector<std::string> Session::notices() const { return impl->device->notices(); }

std::vector<float> Session::output(const std::string &program, const std::string &name) const {
  const artifact::Program &definition = *impl->program(program).definition;
  if (definition.results())
    for (const artifact::Result *result : *definition.results())
      if (result->kind() == artifact::ResultKind::Output && result->name()->string_view() == name)
        return impl->read(result->buffers()->Get(0), impl->lastSlot);
  throw Error(ErrorCode::BadInput, "program '" + program + "' has no output '" + name + "'");
}

} // namespace dlc::rt
