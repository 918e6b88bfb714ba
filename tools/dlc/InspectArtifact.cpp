// The JSON is the one source; the text formats it.

#include "tools/dlc/InspectArtifact.h"

#include "runtime/artifact/Align.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"

#include <algorithm>
#include <cstdio>
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

/// How a kernel is launched on a GPU; null for one that is not.
ordered_json describeLaunch(const artifact::Kernel &kernel) {
  const artifact::Launch *launch = kernel.launch();
  if (!launch)
    return nullptr;
  return {{"blocks", (kernel.extent() + kernel.chunk() - 1) / kernel.chunk()},
          {"threads", launch->threads()},
          {"shared_bytes", launch->shared_bytes()},
          {"registers", launch->registers()}};
}

/// "generated 784 x 256" is a launch of so many blocks of so many threads.
std::string implementationText(const ordered_json &dispatch) {
  std::string implementation = dispatch["implementation"];
  const ordered_json &launch = dispatch["launch"];
  if (launch.is_null())
    return implementation;
  return implementation + " " + launch["blocks"].dump() + " x " + launch["threads"].dump();
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
                            {"launch", describeLaunch(kernel)},
                            {"operands", operands},
                            {"flops", kernel.flops()},
                            {"bytes", kernel.bytes()},
                            {"nanoseconds", kernel.nanoseconds()},
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
                       {"nanoseconds", 0}});
      found = kinds.end() - 1;
    }
    (*found)["dispatches"] = (*found)["dispatches"].get<uint64_t>() + 1;
    for (const char *key : {"flops", "bytes", "nanoseconds"})
      (*found)[key] = (*found)[key].get<uint64_t>() + dispatch[key].get<uint64_t>();
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
          {"forecast",
           {{"compute_ns", forecast.compute},
            {"communication_ns", forecast.communication},
            {"exposed_ns", forecast.exposed},
            {"step_ns", forecast.total()}}},
          {"buckets", describeBuckets(program, forecast)},
          {"kinds", kinds},
          {"dispatches", dispatches}};
}

std::string number(double value, const char *format = "%.2f") {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string padded(const std::string &value, int width) {
  std::string result = value.substr(0, static_cast<size_t>(width));
  result.resize(static_cast<size_t>(width), ' ');
  return result + " ";
}

double mega(const ordered_json &value) { return value.get<double>() / 1e6; }

/// GFLOP, MB and forecast ms of a dispatch or a sum.
std::string amounts(const ordered_json &value) {
  return number(mega(value["flops"]) / 1e3, "%8.3f") + number(mega(value["bytes"]), "%9.2f") +
         number(mega(value["nanoseconds"]), "%9.3f");
}

/// The choice, then the runner-up and the rest.
void printLayouts(const ordered_json &layouts, std::ostream &out) {
  const char *before = "layouts: activations ";
  for (const ordered_json &layout : layouts) {
    out << before << layout["family"].get<std::string>() << ", kernels and reorders "
        << number(mega(layout["nanoseconds"])) << " ms";
    if (int64_t exceptions = layout["exceptions"])
      out << " with " << exceptions << (exceptions == 1 ? " exception" : " exceptions");
    before = "; else ";
  }
  if (!layouts.empty())
    out << "\n";
}

void printProgram(const ordered_json &program, std::ostream &out) {
  const ordered_json &forecast = program["forecast"];
  out << "\nprogram " << program["name"].get<std::string>() << ": batch " << program["batch"]
      << ", " << program["instructions"] << " instructions, "
      << number(mega(program["flops"]) / 1e3) << " GFLOP, " << number(mega(program["bytes_moved"]))
      << " MB moved\n";
  if (const ordered_json &tiling = program["tiling"]; !tiling.is_null())
    out << "  larger images by tiles that are exact " << tiling["overlap"].dump()
        << " pixels off their edges and start at multiples of " << tiling["alignment"].dump()
        << "\n";
  if (std::string untiled = program["untiled"]; !untiled.empty())
    out << "  images of this size only, as no tiles can be cut: " << untiled << "\n";
  out << "  " << padded("layer", 28) << padded("kernel", 22) << padded("kind", 16)
      << padded("implementation", 30) << "   GFLOP       MB       ms\n";
  for (const ordered_json &dispatch : program["dispatches"])
    out << "  " << padded(dispatch["layer"], 28) << padded(dispatch["kernel"], 22)
        << padded(dispatch["category"], 16) << padded(implementationText(dispatch), 30)
        << amounts(dispatch) << "\n";
  out << "  " << padded("sum over a step", 50) << padded("kind", 16) << padded("dispatches", 30)
      << "   GFLOP       MB       ms\n";
  for (const ordered_json &kind : program["kinds"])
    out << "  " << padded("", 50) << padded(kind["kind"], 16)
        << padded(std::to_string(kind["dispatches"].get<uint64_t>()), 30) << amounts(kind) << "\n";
  for (const ordered_json &dispatch : program["dispatches"])
    if (dispatch["recomputed"] > 0)
      out << "  " << dispatch["category"].get<std::string>() << " of "
          << dispatch["layer"].get<std::string>() << " runs again in "
          << number(mega(dispatch["nanoseconds"]), "%.3f") << " ms instead of keeping its result, "
          << number(mega(dispatch["recomputed"])) << " MB less at the peak\n";
  int index = 0;
  for (const ordered_json &bucket : program["buckets"])
    out << "  bucket " << index++ << ": " << number(mega(bucket["bytes"])) << " MB "
        << bucket["wire"].get<std::string>() << ", " << bucket["members"].size()
        << " tensors, started at " << number(mega(bucket["started_ns"])) << " ms, arrived at "
        << number(mega(bucket["arrived_ns"])) << " ms, exposed "
        << number(mega(bucket["exposed_ns"])) << " ms\n";
  out << "  forecast: compute " << number(mega(forecast["compute_ns"])) << " ms, communication "
      << number(mega(forecast["communication_ns"])) << " ms, of which exposed "
      << number(mega(forecast["exposed_ns"])) << " ms; step " << number(mega(forecast["step_ns"]))
      << " ms\n";
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

void dlc::printDescription(const ordered_json &description, std::ostream &out) {
  const ordered_json &target = description["target"];
  out << description["model"].get<std::string>() << " for " << target["name"].get<std::string>()
      << " (" << target["library"].get<std::string>() << "), 1.." << target["threads"]
      << " threads per rank, " << target["precision"].get<std::string>() << ", math "
      << target["math"].get<std::string>() << "\n\n";
  for (const ordered_json &parameter : description["parameters"])
    out << "  " << padded(parameter["name"], 40) << padded(parameter["type"], 32)
        << grouped(parameter["elements"].get<int64_t>()) << "\n";
  out << "parameters: " << grouped(description["parameter_count"].get<int64_t>()) << "\n";
  if (const ordered_json &copies = description["copies"]; copies["count"] > 0)
    out << "kept in 16 bits, written with the update: " << copies["count"].get<uint64_t>()
        << " parameters, " << number(mega(copies["bytes"])) << " MB\n";
  out << "\n";
  const ordered_json &memory = description["memory"];
  for (const ordered_json &arena : memory["arenas"])
    out << "  " << padded(arena["kind"], 12) << number(mega(arena["bytes"]), "%10.2f") << " MB x "
        << arena["instances"] << ", lower bound " << number(mega(arena["lower_bound"]), "%10.2f")
        << " MB\n";
  double bound = std::max(1.0, memory["lower_bound"].get<double>());
  out << "memory: " << number(mega(memory["bytes"])) << " MB planned, lower bound "
      << number(mega(memory["lower_bound"])) << " MB, ratio "
      << number(memory["bytes"].get<double>() / bound, "%.3f") << "\n";
  printLayouts(description["layouts"], out);
  for (const ordered_json &program : description["programs"])
    printProgram(program, out);
}
