// The JSON is the one source; the text formats it.

#include "tools/dlc/InspectArtifact.h"

#include "runtime/artifact/Align.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/artifact/Occupancy.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

using namespace dlc;
using nlohmann::ordered_json;

namespace {
std::string text(const flatbuffers::String *string) { return string ? string->str() : ""; }

/// The elements of a vector that may be missing.
template <typename Element>
std::vector<const Element *>
listOf(const flatbuffers::Vector<flatbuffers::Offset<Element>> *vector) {
  if (!vector)
    return {};
  return {vector->begin(), vector->end()};
}

std::string typeText(const artifact::TensorType &type) {
  std::string result;
  for (int64_t extent : rt::readShape(type))
    result += std::to_string(extent) + "x";
  for (const char *c = artifact::EnumNameDType(type.dtype()); *c; ++c)
    result += static_cast<char>(std::tolower(*c));
  std::optional<rt::Layout> layout = rt::readLayout(type);
  return layout && !layout->isRowMajor() ? result + " " + layout->toString() : result;
}

ordered_json describeVariables(const artifact::Artifact &root) {
  ordered_json parameters = ordered_json::array();
  int64_t count = 0;
  uint64_t copies = 0, copiedBytes = 0;
  for (const artifact::Variable *variable : listOf(root.variables())) {
    const artifact::TensorType &type = *root.buffers()->Get(variable->buffer())->type();
    if (variable->kind() == artifact::VariableKind::Copy) {
      ++copies;
      copiedBytes += rt::physicalBytes(type.dtype(), rt::readShape(type), *rt::readLayout(type));
    }
    if (variable->kind() != artifact::VariableKind::Parameter)
      continue;
    int64_t elements = 1;
    for (int64_t extent : rt::readShape(type))
      elements *= extent;
    count += elements;
    parameters.push_back(
        {{"name", text(variable->name())}, {"type", typeText(type)}, {"elements", elements}});
  }
  return {{"parameter_count", count},
          {"parameters", parameters},
          {"copies", {{"count", copies}, {"bytes", copiedBytes}}}};
}

/// Inputs are double-buffered; sums are for runs with several micro-batches a step alone.
uint64_t instancesOf(const artifact::Arena &arena) {
  switch (arena.kind()) {
  case artifact::ArenaKind::Inputs:
    return 2;
  case artifact::ArenaKind::Sums:
    return 0;
  default:
    return 1;
  }
}

/// The most bytes that are live at one time, over all arenas. Variables always are, and so are a
/// program's inputs in both instances: the host fills the one while the program reads the other.
uint64_t mostLiveBytes(const artifact::Artifact &root) {
  std::map<int32_t, std::map<uint64_t, int64_t>> changes; // by program and instruction
  for (const artifact::Buffer *buffer : listOf(root.buffers())) {
    if (buffer->alias_of() >= 0)
      continue;
    const artifact::TensorType &type = *buffer->type();
    const artifact::Arena &arena = *root.arenas()->Get(buffer->arena());
    auto bytes = static_cast<int64_t>(
        instancesOf(arena) *
        rt::alignUp(rt::physicalBytes(type.dtype(), rt::readShape(type), *rt::readLayout(type)),
                    uint64_t{64}));
    bool isAlways = buffer->program() < 0 || arena.kind() == artifact::ArenaKind::Inputs;
    std::map<uint64_t, int64_t> &change = changes[buffer->program()];
    change[isAlways ? 0 : buffer->live_begin()] += bytes;
    if (!isAlways)
      change[uint64_t{buffer->live_end()} + 1] -= bytes;
  }
  int64_t always = 0, most = 0;
  for (const auto &[program, change] : changes) {
    int64_t live = 0, peak = 0;
    for (auto [time, delta] : change)
      peak = std::max(peak, live += delta);
    (program < 0 ? always : most) = std::max(program < 0 ? always : most, peak);
  }
  return static_cast<uint64_t>(always + most);
}

ordered_json describeArenas(const artifact::Artifact &root) {
  ordered_json arenas = ordered_json::array();
  uint64_t bytes = 0;
  for (const artifact::Arena *arena : listOf(root.arenas())) {
    uint64_t instances = instancesOf(*arena);
    bytes += instances * arena->bytes();
    arenas.push_back({{"kind", artifact::EnumNameArenaKind(arena->kind())},
                      {"instances", instances},
                      {"bytes", arena->bytes()},
                      {"lower_bound", arena->lower_bound()}});
  }
  return {{"bytes", bytes}, {"lower_bound", mostLiveBytes(root)}, {"arenas", arenas}};
}

ordered_json describeLayouts(const artifact::Target &target) {
  ordered_json layouts = ordered_json::array();
  for (const artifact::LayoutCost *cost : listOf(target.layouts()))
    layouts.push_back({{"family", text(cost->family())},
                       {"nanoseconds", cost->nanoseconds()},
                       {"exceptions", cost->exceptions()}});
  return layouts;
}

/// The schedule of a program as the simulator reads it. `times`: of each instruction, or empty.
std::vector<ScheduleItem> scheduleOf(const artifact::Artifact &root,
                                     const artifact::Program &program,
                                     const std::vector<uint64_t> &times) {
  std::vector<ScheduleItem> items;
  size_t index = 0;
  for (const artifact::Instruction *instruction : *program.instructions()) {
    uint64_t measured = times.empty() ? 0 : times[index++];
    if (const auto *dispatch = instruction->operation_as_Dispatch()) {
      uint64_t planned = root.kernels()->Get(dispatch->kernel())->nanoseconds();
      items.push_back(ScheduleItem::compute(times.empty() ? planned : measured));
    } else if (instruction->operation_as_Copy() && measured > 0) {
      items.push_back(ScheduleItem::compute(measured));
    } else if (const auto *start = instruction->operation_as_CollectiveStart()) {
      uint64_t bytes = program.collectives()->Get(start->collective())->elements() *
                       rt::sizeOf(program.collectives()->Get(start->collective())->wire());
      items.push_back(ScheduleItem::start(start->collective(), bytes));
    } else if (const auto *wait = instruction->operation_as_CollectiveWait()) {
      items.push_back(ScheduleItem::wait(wait->collective()));
    }
  }
  return items;
}

/// The compute capability that a target is for, 90 for sm_90; 0 if it is no GPU.
unsigned architectureOf(const artifact::Target &target) {
  for (const flatbuffers::String *feature : listOf(target.features()))
    if (feature->string_view().starts_with("sm_"))
      return static_cast<unsigned>(std::strtoul(feature->c_str() + 3, nullptr, 10));
  return 0;
}

/// How a kernel is launched on a GPU; null for one that is not.
ordered_json describeLaunch(const artifact::Kernel &kernel, unsigned architecture) {
  const artifact::Launch *launch = kernel.launch();
  if (!launch)
    return nullptr;
  std::optional<double> resident =
      rt::occupancy(architecture, {launch->threads(), launch->registers(), launch->shared_bytes()});
  return {{"blocks", (kernel.extent() + kernel.chunk() - 1) / kernel.chunk()},
          {"threads", launch->threads()},
          {"shared_bytes", launch->shared_bytes()},
          {"registers", launch->registers()},
          {"symbol", kernel.symbol()->str()},
          {"occupancy", resident ? ordered_json(*resident) : ordered_json(nullptr)}};
}

/// The least nanoseconds that the target's peaks allow; null if the artifact does not say them.
ordered_json rooflineOf(const artifact::Kernel &kernel, const artifact::Target &target) {
  const artifact::Peaks *peaks = target.peaks();
  double gflops = !peaks                                           ? 0
                  : kernel.kind() == artifact::KernelKind::Library ? peaks->product_gflops()
                                                                   : peaks->element_gflops();
  if (!(gflops > 0) || !(peaks->gb_per_s() > 0))
    return nullptr;
  return std::llround(std::max(static_cast<double>(kernel.flops()) / gflops,
                               static_cast<double>(kernel.bytes()) / peaks->gb_per_s()));
}

/// Bytes that a library's kernel may write beside its result.
uint64_t workspaceOf(const artifact::Kernel &kernel) {
  std::vector<const artifact::TensorType *> operands = listOf(kernel.operands());
  bool hasOne = kernel.kind() == artifact::KernelKind::Library && !operands.empty() &&
                operands.back()->dtype() == artifact::DType::U8;
  return hasOne ? static_cast<uint64_t>(rt::readShape(*operands.back())[0]) : 0;
}

ordered_json describeKernels(const artifact::Artifact &root, const artifact::Program &program) {
  ordered_json dispatches = ordered_json::array();
  for (const artifact::Instruction *instruction : *program.instructions())
    if (const auto *dispatch = instruction->operation_as_Dispatch()) {
      const artifact::Kernel &kernel = *root.kernels()->Get(dispatch->kernel());
      ordered_json operands = ordered_json::array();
      for (const artifact::TensorType *type : listOf(kernel.operands()))
        operands.push_back(typeText(*type));
      ordered_json variables = ordered_json::array();
      if (dispatch->variables())
        for (uint32_t index : *dispatch->variables())
          variables.push_back(text(root.variables()->Get(index)->name()));
      dispatches.push_back({{"layer", text(instruction->location())},
                            {"phase", artifact::EnumNamePhase(instruction->phase())},
                            {"variables", variables},
                            {"kernel", text(kernel.name())},
                            {"category", text(kernel.category())},
                            {"implementation", text(kernel.implementation())},
                            {"launch", describeLaunch(kernel, architectureOf(*root.target()))},
                            {"workspace", workspaceOf(kernel)},
                            {"operands", operands},
                            {"flops", kernel.flops()},
                            {"bytes", kernel.bytes()},
                            {"nanoseconds", kernel.nanoseconds()},
                            {"roofline_ns", rooflineOf(kernel, *root.target())},
                            {"recomputed", dispatch->recomputed()}});
    }
  return dispatches;
}

ordered_json describeBuckets(const artifact::Program &program, const OverlapForecast &forecast) {
  ordered_json buckets = ordered_json::array();
  std::vector<const artifact::Collective *> collectives = listOf(program.collectives());
  for (size_t i = 0; i < collectives.size(); ++i) {
    const artifact::Collective &collective = *collectives[i];
    ordered_json members = ordered_json::array();
    for (const flatbuffers::String *member : listOf(collective.members()))
      members.push_back(member->str());
    const BucketForecast &times = forecast.buckets[i];
    buckets.push_back({{"bytes", collective.elements() * rt::sizeOf(collective.wire())},
                       {"wire", artifact::EnumNameDType(collective.wire())},
                       {"members", members},
                       {"started_ns", times.started},
                       {"arrived_ns", times.arrived},
                       {"waited_ns", times.waited},
                       {"exposed_ns", times.exposed()}});
  }
  return buckets;
}

/// Sums over the dispatches of each kind of kernel, in the order in which the kinds appear.
ordered_json describeKinds(const ordered_json &dispatches) {
  ordered_json kinds = ordered_json::array();
  for (const ordered_json &dispatch : dispatches) {
    auto found = std::find_if(kinds.begin(), kinds.end(), [&](const ordered_json &kind) {
      return kind["kind"] == dispatch["category"];
    });
    if (found == kinds.end()) {
      kinds.push_back({{"kind", dispatch["category"]},
                       {"dispatches", 0},
                       {"flops", 0},
                       {"bytes", 0},
                       {"nanoseconds", 0},
                       {"roofline_ns", 0}});
      found = kinds.end() - 1;
    }
    (*found)["dispatches"] = (*found)["dispatches"].get<uint64_t>() + 1;
    for (const char *key : {"flops", "bytes", "nanoseconds"})
      (*found)[key] = (*found)[key].get<uint64_t>() + dispatch[key].get<uint64_t>();
    ordered_json &roofline = (*found)["roofline_ns"];
    if (roofline.is_null() || dispatch["roofline_ns"].is_null())
      roofline = nullptr;
    else
      roofline = roofline.get<uint64_t>() + dispatch["roofline_ns"].get<uint64_t>();
  }
  return kinds;
}

OverlapForecast forecastOf(const artifact::Artifact &root, const artifact::Program &program,
                           const InspectOptions &options) {
  Link planned;
  if (const artifact::Link *link = root.target()->link())
    planned = {link->gbit_per_s(), link->latency_us()};
  OverlapSimulator simulator(options.link.value_or(planned), options.ranks);
  static const std::vector<uint64_t> none;
  bool isMeasured = program.name()->string_view() == "train" && !options.trainTimes.empty();
  if (isMeasured && options.trainTimes.size() != program.instructions()->size())
    throw rt::Error(rt::ErrorCode::BadInput,
                    "the measured times are of " + std::to_string(options.trainTimes.size()) +
                        " instructions, the artifact's train program has " +
                        std::to_string(program.instructions()->size()) +
                        "; give times of this artifact");
  return simulator.run(scheduleOf(root, program, isMeasured ? options.trainTimes : none));
}

uint64_t inputBytes(const artifact::Artifact &root, const artifact::Program &program) {
  uint64_t bytes = 0;
  for (const artifact::ProgramInput *input : listOf(program.inputs())) {
    const artifact::TensorType &type = *root.buffers()->Get(input->buffer())->type();
    bytes += rt::physicalBytes(type.dtype(), rt::readShape(type), *rt::readLayout(type));
  }
  return bytes;
}

ordered_json describeProgram(const artifact::Artifact &root, const artifact::Program &program,
                             const InspectOptions &options) {
  OverlapForecast forecast = forecastOf(root, program, options);
  ordered_json dispatches = describeKernels(root, program), kinds = describeKinds(dispatches);
  uint64_t flops = 0, bytes = 0;
  for (const ordered_json &kind : kinds) {
    flops += kind["flops"].get<uint64_t>();
    bytes += kind["bytes"].get<uint64_t>();
  }
  ordered_json tiling = nullptr;
  if (const artifact::Tiling *tiles = program.tiling())
    tiling = {
        {"overlap", std::vector<uint64_t>(tiles->overlap()->begin(), tiles->overlap()->end())},
        {"alignment",
         std::vector<uint64_t>(tiles->alignment()->begin(), tiles->alignment()->end())}};
  return {{"name", text(program.name())},
          {"batch", program.batch()},
          {"tiling", tiling},
          {"untiled", text(program.untiled())},
          {"instructions", program.instructions()->size()},
          {"flops", flops},
          {"bytes_moved", bytes},
          {"input_bytes", inputBytes(root, program)},
          {"forecast",
           {{"compute_ns", forecast.compute},
            {"communication_ns", forecast.communication},
            {"exposed_ns", forecast.exposed},
            {"step_ns", forecast.total()}}},
          {"buckets", describeBuckets(program, forecast)},
          {"kinds", kinds},
          {"dispatches", dispatches}};
}

} // namespace

ArtifactSummary dlc::summaryOf(const rt::Artifact &artifact) {
  const artifact::Artifact &root = artifact.root();
  ArtifactSummary summary;
  summary.parameters = describeVariables(root)["parameter_count"];
  for (const artifact::Arena *arena : listOf(root.arenas()))
    summary.bytes += instancesOf(*arena) * arena->bytes();
  for (const artifact::Program *program : listOf(root.programs()))
    if (program->name()->string_view() == "train")
      summary.step = forecastOf(root, *program, {}).total();
  return summary;
}

ordered_json dlc::describeArtifact(const rt::Artifact &artifact, const InspectOptions &options) {
  const artifact::Artifact &root = artifact.root();
  const artifact::Target &target = *root.target();
  ordered_json description = {{"model", text(root.model())},
                              {"producer", text(root.producer())},
                              {"target",
                               {{"name", text(target.name())},
                                {"library", text(target.library())},
                                {"threads", target.threads()},
                                {"math", text(target.math())},
                                {"precision", text(target.precision())}}}};
  description.update(describeVariables(root));
  description["memory"] = describeArenas(root);
  description["layouts"] = describeLayouts(target);
  description["programs"] = ordered_json::array();
  for (const artifact::Program *program : listOf(root.programs()))
    description["programs"].push_back(describeProgram(root, *program, options));
  return description;
}
