// Tables first, each against those before it: arenas, buffers, variables, modules, kernels; then
// the programs. Live ranges are checked by a sweep over time that keeps the living buffers of an
// arena in order of address: a new one may only touch its two neighbours.

#include "runtime/artifact/Verifier.h"

#include "runtime/artifact/Align.h"
#include "runtime/artifact/Contract.h"
#include "runtime/artifact/Elf.h"
#include "runtime/artifact/Faults.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/artifact/Ranges.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace dlc::rt {
namespace {

constexpr uint64_t maxBytes = uint64_t{1} << 48;

// Of a block and a thread on every GPU; some have less shared memory.
constexpr uint32_t mostThreads = 1024, mostSharedBytes = 227 * 1024, mostRegisters = 255;

template <typename Enum> bool inRange(Enum value) { return value <= Enum::MAX; }

// Physical elements, or nothing if the type is malformed or absurdly large.
std::optional<uint64_t> elementsOf(const artifact::TensorType &type) {
  std::optional<Layout> layout = readLayout(type);
  if (!inRange(type.dtype()) || !layout)
    return std::nullopt;
  std::vector<int64_t> shape = readShape(type);
  uint64_t elements = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] < 1 || static_cast<uint64_t>(shape[dim]) > maxBytes)
      return std::nullopt;
    auto block = static_cast<uint64_t>(layout->blockOf(dim));
    uint64_t padded = alignUp(static_cast<uint64_t>(shape[dim]), block);
    if (padded > maxBytes / elements)
      return std::nullopt;
    elements *= padded;
  }
  return elements;
}

class TableVerifier {
public:
  TableVerifier(const artifact::Artifact &root, std::span<const uint8_t> dataSection)
      : root(root), dataSection(dataSection) {}

  std::vector<std::string> run();

private:
  void verifyArenas();
  void verifyBuffers();
  void verifyAliases();
  void verifyVariables();
  bool isCopy(const artifact::Variable &copy) const;
  void verifyModules();
  void verifyKernels();
  void verifyPart(const artifact::Kernel &kernel, const std::string &where);
  void verifyLaunch(const artifact::Kernel &kernel, const std::string &where);
  void verifyContracts();
  void verifyInputs();
  void verifyMonitor();
  void verifySizes();
  void verifyPlaces();
  void verifyTarget();
  void verifyOverlap(int32_t program);

  bool isData(const artifact::Span &span) const {
    return span.offset() % 64 == 0 && span.offset() <= dataSection.size() &&
           span.bytes() <= dataSection.size() - span.offset();
  }
  static std::string at(const char *table, uint32_t index, const flatbuffers::String *name) {
    return std::string(table) + " " + std::to_string(index) +
           (name ? " '" + name->str() + "'" : "");
  }

  const artifact::Artifact &root;
  std::span<const uint8_t> dataSection;
  std::vector<CheckedBuffer> buffers;
  Faults faults;
};

void TableVerifier::verifyArenas() {
  uint64_t total = 0;
  for (uint32_t i = 0; i < countOf(root.arenas()); ++i) {
    const artifact::Arena *arena = root.arenas()->Get(i);
    if (!inRange(arena->kind()))
      faults.add(at("arena", i, nullptr), "unknown kind");
    if (arena->bytes() % 64 != 0 || arena->bytes() > maxBytes - total)
      faults.add(at("arena", i, nullptr), "its size is no multiple of 64 or beyond reason");
    else
      total += arena->bytes();
  }
}

void TableVerifier::verifyBuffers() {
  uint32_t programs = countOf(root.programs());
  buffers.resize(countOf(root.buffers()));
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const artifact::Buffer *stored = root.buffers()->Get(i);
    CheckedBuffer &buffer = buffers[i];
    std::string where = at("buffer", i, stored->name());
    std::optional<uint64_t> elements = elementsOf(*stored->type());
    if (!elements || *elements > maxBytes / sizeOf(stored->type()->dtype())) {
      faults.add(where, "malformed type");
      continue;
    }
    if (stored->arena() >= countOf(root.arenas())) {
      faults.add(where, "no arena " + std::to_string(stored->arena()));
      continue;
    }
    uint64_t bytes = *elements * sizeOf(stored->type()->dtype());
    uint64_t arenaBytes = root.arenas()->Get(stored->arena())->bytes();
    uint64_t alignment = stored->alias_of() >= 0 ? sizeOf(stored->type()->dtype()) : 64;
    if (stored->offset() % alignment != 0)
      faults.add(where, "offset " + std::to_string(stored->offset()) + " is not aligned to " +
                            std::to_string(alignment));
    else if (stored->offset() > arenaBytes || bytes > arenaBytes - stored->offset())
      faults.add(where, "exceeds its arena of " + std::to_string(arenaBytes) + " bytes");
    else if (stored->program() < -1 || stored->program() >= static_cast<int64_t>(programs))
      faults.add(where, "no program " + std::to_string(stored->program()));
    else if (stored->live_begin() > stored->live_end())
      faults.add(where, "lives backwards");
    else if (stored->alias_of() < -1 || stored->alias_of() >= static_cast<int64_t>(buffers.size()))
      faults.add(where, "alias of no buffer");
    else
      buffer = {true,
                stored->arena(),
                stored->offset(),
                stored->offset() + bytes,
                *elements,
                stored->program(),
                stored->alias_of(),
                stored->live_begin(),
                stored->live_end()};
    using artifact::ArenaKind;
    ArenaKind kind = root.arenas()->Get(stored->arena())->kind();
    if (buffer.valid && buffer.program < 0 && kind != ArenaKind::Variables &&
        kind != ArenaKind::Slots) {
      faults.add(where, "belongs to no program, but lies in no arena of variables");
      buffer.valid = false;
    }
    if (buffer.valid && buffer.program < 0) {
      buffer.liveBegin = 0;
      buffer.liveEnd = std::numeric_limits<uint32_t>::max();
    }
  }
}

/// Memory is taken for what lies in it, not for what a damaged size says.
void TableVerifier::verifySizes() {
  std::vector<uint64_t> reached(countOf(root.arenas()), 0);
  for (const CheckedBuffer &buffer : buffers)
    if (buffer.valid)
      reached[buffer.arena] = std::max(reached[buffer.arena], alignUp(buffer.end, uint64_t{64}));
  for (uint32_t i = 0; i < reached.size(); ++i)
    if (root.arenas()->Get(i)->bytes() > reached[i])
      faults.add(at("arena", i, nullptr), "has " + std::to_string(root.arenas()->Get(i)->bytes()) +
                                              " bytes, but what lies in it ends at " +
                                              std::to_string(reached[i]));
}

void TableVerifier::verifyAliases() {
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    CheckedBuffer &buffer = buffers[i];
    if (!buffer.valid || buffer.aliasOf < 0)
      continue;
    const CheckedBuffer &whole = buffers[buffer.aliasOf];
    std::string where = at("buffer", i, root.buffers()->Get(i)->name());
    bool sameLife = whole.program < 0 ||
                    (whole.program == buffer.program && whole.liveBegin <= buffer.liveBegin &&
                     whole.liveEnd >= buffer.liveEnd);
    if (!whole.valid || whole.aliasOf >= 0)
      faults.add(where, "alias of an alias or of a faulty buffer");
    else if (whole.arena != buffer.arena || whole.begin > buffer.begin || whole.end < buffer.end)
      faults.add(where, "exceeds the buffer that it is an alias of");
    else if (!sameLife)
      faults.add(where, "outlives the buffer that it is an alias of");
    else
      continue;
    buffer.valid = false;
  }
}

/// Compares with how the runtime makes it: element by element, as they lie.
bool TableVerifier::isCopy(const artifact::Variable &copy) const {
  if (copy.parameter() < 0)
    return false;
  const artifact::Variable *parameter =
      root.variables()->Get(static_cast<uint32_t>(copy.parameter()));
  if (parameter->kind() != artifact::VariableKind::Parameter ||
      parameter->buffer() >= buffers.size() || !buffers[parameter->buffer()].valid)
    return false;
  const artifact::TensorType *type = root.buffers()->Get(copy.buffer())->type();
  const artifact::TensorType *whole = root.buffers()->Get(parameter->buffer())->type();
  return whole->dtype() == artifact::DType::F32 && sizeOf(type->dtype()) == 2 &&
         readShape(*type) == readShape(*whole) && readLayout(*type) == readLayout(*whole);
}

void TableVerifier::verifyVariables() {
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < countOf(root.variables()); ++i) {
    const artifact::Variable *variable = root.variables()->Get(i);
    std::string where = at("variable", i, variable->name());
    if (!names.insert(variable->name()->string_view()).second)
      faults.add(where, "defined twice");
    if (!inRange(variable->kind()))
      faults.add(where, "unknown kind");
    if (variable->buffer() >= buffers.size() || !buffers[variable->buffer()].valid) {
      faults.add(where, "no buffer " + std::to_string(variable->buffer()));
      continue;
    }
    if (buffers[variable->buffer()].program >= 0)
      faults.add(where, "its buffer belongs to one program");
    if (variable->kind() == artifact::VariableKind::Scalar &&
        buffers[variable->buffer()].elements != 1)
      faults.add(where, "is a scalar of several elements");
    if (variable->parameter() < -1 ||
        variable->parameter() >= static_cast<int64_t>(root.variables()->size()))
      faults.add(where, "slot of no variable");
    else if (variable->kind() == artifact::VariableKind::Copy && !isCopy(*variable))
      faults.add(where, "no narrower copy of an f32 parameter of its shape and layout");
    const artifact::Initializer *start = variable->initializer();
    if (!inRange(start->kind()))
      faults.add(where, "unknown initializer");
  }
}

/// No two variables share a byte, wherever they lie in a buffer of several.
void TableVerifier::verifyPlaces() {
  std::map<std::pair<uint32_t, uint64_t>, std::pair<uint64_t, uint32_t>> places; // end, variable
  for (uint32_t i = 0; i < countOf(root.variables()); ++i) {
    const artifact::Variable *variable = root.variables()->Get(i);
    if (variable->buffer() >= buffers.size() || !buffers[variable->buffer()].valid)
      continue;
    const CheckedBuffer &buffer = buffers[variable->buffer()];
    auto above = places.lower_bound({buffer.arena, buffer.begin});
    auto meets = [&](auto other) {
      return other->first.first == buffer.arena && other->first.second < buffer.end &&
             buffer.begin < other->second.first;
    };
    auto clash = above;
    if (clash == places.end() || !meets(clash))
      clash = above == places.begin() ? places.end() : std::prev(above);
    if (clash != places.end() && meets(clash))
      faults.add(at("variable", i, variable->name()),
                 "shares memory with " + at("variable", clash->second.second,
                                            root.variables()->Get(clash->second.second)->name()));
    else
      places.emplace(std::pair(buffer.arena, buffer.begin), std::pair(buffer.end, i));
  }
}

void TableVerifier::verifyModules() {
  for (uint32_t i = 0; i < countOf(root.modules()); ++i) {
    const artifact::CodeModule &module = *root.modules()->Get(i);
    const artifact::Span *code = module.code();
    bool isBinary =
        module.architecture() && module.architecture()->string_view().starts_with("sm_");
    if (!code || code->bytes() == 0 || !isData(*code))
      faults.add(at("module", i, nullptr), "its code is not in the file");
    else if (isBinary && !isWholeElf(dataSection.subspan(code->offset(), code->bytes())))
      faults.add(at("module", i, module.architecture()), "its code is damaged");
  }
}

void TableVerifier::verifyKernels() {
  for (uint32_t i = 0; i < countOf(root.kernels()); ++i) {
    const artifact::Kernel *kernel = root.kernels()->Get(i);
    std::string where = at("kernel", i, kernel->name());
    if (kernel->kind() == artifact::KernelKind::Library) {
      if (countOf(kernel->plan()) == 0 || !kernel->implementation())
        faults.add(where, "library kernel without plan");
    } else if (kernel->kind() == artifact::KernelKind::Generated) {
      if (kernel->module_() >= countOf(root.modules()) || countOf(kernel->symbol()) == 0)
        faults.add(where, "generated kernel without code");
      if (kernel->extent() < 1 || kernel->chunk() < 1)
        faults.add(where, "extent and chunk must be positive");
    } else {
      faults.add(where, "unknown kind");
    }
    if (countOf(kernel->operands()) != countOf(kernel->access()))
      faults.add(where, "operands and accesses differ in number");
    for (uint32_t k = 0; k < countOf(kernel->operands()); ++k)
      if (!elementsOf(*kernel->operands()->Get(k)))
        faults.add(where, "operand " + std::to_string(k) + " has a malformed type");
    for (uint32_t k = 0; k < countOf(kernel->access()); ++k) {
      auto access = static_cast<unsigned>(kernel->access()->Get(k));
      if (access < 1 || access > 3)
        faults.add(where, "operand " + std::to_string(k) + " has an unknown access");
    }
    verifyPart(*kernel, where);
    verifyLaunch(*kernel, where);
  }
}

/// Generated kernels are launched on GPUs, and called elsewhere.
void TableVerifier::verifyLaunch(const artifact::Kernel &kernel, const std::string &where) {
  bool isLaunched = kernel.kind() == artifact::KernelKind::Generated && root.target()->name() &&
                    root.target()->name()->string_view().starts_with("cuda:");
  if (const artifact::Launch *launch = kernel.launch(); isLaunched != (launch != nullptr))
    faults.add(where, launch ? "has a launch, but is not for a GPU" : "has no launch");
  else if (launch &&
           (launch->threads() < 1 || launch->threads() > mostThreads ||
            launch->shared_bytes() > mostSharedBytes || launch->registers() > mostRegisters))
    faults.add(where, "its launch is more than a GPU can do");
}

/// Kernels of GPUs have what they were made for in their names, by which alone their code is found.
void TableVerifier::verifyContracts() {
  std::map<std::string, ClusterSignature> clusters;
  auto split = [](const artifact::Kernel &kernel) {
    std::string symbol = kernel.symbol()->str();
    size_t end = symbol.rfind('_');
    return std::pair(symbol.substr(0, end), symbol.substr(end + 1));
  };
  for (bool isKnown : {false, true})
    for (uint32_t i = 0; i < countOf(root.kernels()); ++i) {
      const artifact::Kernel &kernel = *root.kernels()->Get(i);
      if (!kernel.launch())
        continue;
      auto [name, stage] = split(kernel);
      if (!isKnown)
        clusters[name].add(stage, contractOf(kernel));
      else if (clusters[name].contradicts(name))
        faults.add(at("kernel", i, kernel.name()),
                   "its code was generated for other iterations or buffers than the artifact says; "
                   "compile the model again");
    }
}

/// A kernel writes a part of one buffer alone, and reads what else it takes.
void TableVerifier::verifyPart(const artifact::Kernel &kernel, const std::string &where) {
  if (kernel.part() == 0)
    return;
  bool fits = kernel.kind() == artifact::KernelKind::Generated;
  uint32_t written = 0;
  for (uint32_t k = 0; k < std::min(countOf(kernel.access()), countOf(kernel.operands())); ++k)
    if (kernel.access()->Get(k) != artifact::Access::Read) {
      std::optional<uint64_t> elements = elementsOf(*kernel.operands()->Get(k));
      fits &= kernel.access()->Get(k) == artifact::Access::Write && elements &&
              kernel.part() < *elements && ++written == 1;
    }
  if (!fits || written == 0)
    faults.add(where, "writes a part, but not of one buffer");
}

void TableVerifier::verifyInputs() {
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < countOf(root.inputs()); ++i) {
    const artifact::InputSignature *input = root.inputs()->Get(i);
    std::string where = at("input", i, input->name());
    if (!names.insert(input->name()->string_view()).second)
      faults.add(where, "defined twice");
    if (!elementsOf(*input->type()))
      faults.add(where, "malformed type");
    if (input->range() && !(input->range()->low() <= input->range()->high()))
      faults.add(where, "its range is empty");
    for (uint32_t k = 0; k < countOf(input->others()); ++k)
      if (!input->range() || !ranges::finite.contains(input->others()->Get(k)))
        faults.add(where, "takes a value that is not finite, or none besides a range");
  }
}

void TableVerifier::verifyTarget() {
  const artifact::Target &target = *root.target();
  if (!ranges::threads.contains(target.threads()))
    faults.add("target", "planned for " + std::to_string(target.threads()) +
                             " threads, expected a number " + ranges::threads.text());
  if (target.math() && target.math()->string_view() != "strict" &&
      target.math()->string_view() != "fast")
    faults.add("target", "math '" + target.math()->str() + "', expected strict or fast");
  for (double number : {target.link() ? target.link()->gbit_per_s() : 1.0,
                        target.link() ? target.link()->latency_us() : 1.0})
    if (!ranges::positive.contains(number))
      faults.add("target", "a link of " + std::to_string(number) + ", expected a number " +
                               ranges::positive.text());
}

// No two buffers that this program sees may share a byte at any instruction.
void TableVerifier::verifyOverlap(int32_t program) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].valid && buffers[i].aliasOf < 0 && buffers[i].begin < buffers[i].end &&
        (buffers[i].program < 0 || buffers[i].program == program))
      order.push_back(i);
  std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(buffers[i].liveBegin, i); });
  using Place = std::pair<uint32_t, uint64_t>; // arena, begin
  std::map<Place, uint32_t> living;
  std::multimap<uint32_t, Place> deaths;
  for (uint32_t i : order) {
    const CheckedBuffer &buffer = buffers[i];
    for (; !deaths.empty() && deaths.begin()->first < buffer.liveBegin;
         deaths.erase(deaths.begin()))
      living.erase(deaths.begin()->second);
    Place place(buffer.arena, buffer.begin);
    auto above = living.lower_bound(place);
    auto meets = [&](uint32_t other) {
      return buffers[other].arena == buffer.arena && buffers[other].begin < buffer.end &&
             buffer.begin < buffers[other].end;
    };
    std::optional<uint32_t> clash;
    if (above != living.end() && meets(above->second))
      clash = above->second;
    else if (above != living.begin() && meets(std::prev(above)->second))
      clash = std::prev(above)->second;
    if (clash) {
      faults.add(at("buffer", i, root.buffers()->Get(i)->name()),
                 "shares memory with living " +
                     at("buffer", *clash, root.buffers()->Get(*clash)->name()));
      continue;
    }
    living.emplace(place, i);
    deaths.emplace(buffer.liveEnd, place);
  }
}

/// The monitor is the loss or a metric of eval, and its goal is stated.
void TableVerifier::verifyMonitor() {
  if (!root.training() || countOf(root.training()->monitor()) == 0)
    return;
  std::string name = root.training()->monitor()->str();
  artifact::Goal goal = root.training()->goal();
  if (goal != artifact::Goal::Min && goal != artifact::Goal::Max)
    faults.add("training", "monitor '" + name + "' without a goal, min or max");
  bool known = name == "loss";
  for (uint32_t i = 0; i < countOf(root.programs()); ++i) {
    const artifact::Program &program = *root.programs()->Get(i);
    for (uint32_t k = 0; program.name()->str() == "eval" && k < countOf(program.results()); ++k) {
      const artifact::Result &result = *program.results()->Get(k);
      known |= result.kind() == artifact::ResultKind::Metric && result.name()->str() == name;
    }
    for (uint32_t k = 0; program.name()->str() == "eval" && k < countOf(program.formulas()); ++k)
      known |= program.formulas()->Get(k)->name()->str() == name;
  }
  if (!known)
    faults.add("training", "monitor '" + name + "' is no metric of eval");
}

std::vector<std::string> TableVerifier::run() {
  constexpr uint32_t maxPrograms = 16;
  if (countOf(root.programs()) > maxPrograms)
    faults.add("artifact", "more than " + std::to_string(maxPrograms) + " programs");
  if (!numbersAreAligned(root))
    faults.add("artifact", "numbers that are not aligned");
  std::vector<std::string> found = faults.take();
  if (!found.empty())
    return found;
  verifyArenas();
  verifyBuffers();
  verifyAliases();
  verifyVariables();
  verifyPlaces();
  verifyModules();
  verifyKernels();
  verifyInputs();
  verifyTarget();
  verifyConfiguration(root, faults);
  verifySizes();
  found = faults.take();
  if (found.empty()) {
    verifyContracts();
    found = faults.take();
  }
  if (!found.empty())
    return found; // programs are judged against sound tables only
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < countOf(root.programs()); ++i) {
    if (!names.insert(root.programs()->Get(i)->name()->string_view()).second)
      faults.add(at("program", i, root.programs()->Get(i)->name()), "defined twice");
    verifyOverlap(static_cast<int32_t>(i));
    verifyProgram(root, buffers, i, faults);
  }
  verifyMonitor();
  return faults.take();
}

} // namespace

bool sameType(const artifact::TensorType &a, const artifact::TensorType &b) {
  return a.dtype() == b.dtype() && readShape(a) == readShape(b) && readLayout(a) == readLayout(b);
}

std::vector<std::string> verifyArtifact(const artifact::Artifact &root,
                                        std::span<const uint8_t> dataSection) {
  return TableVerifier(root, dataSection).run();
}

} // namespace dlc::rt
