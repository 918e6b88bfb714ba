#include "runtime/record/ChromeTrace.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/data/AtomicFile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace dlc::rt {

using artifact::Operation;
using nlohmann::json;

int64_t nowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ChromeTrace::ChromeTrace(const artifact::Artifact &root, const artifact::Program &program,
                         ControlPlane &control)
    : root(root), program(program), control(control) {
  control.barrier("start of the trace");
  origin = nowNanoseconds();
}

void ChromeTrace::add(uint64_t step, const std::vector<TraceEvent> &events, int64_t dataWaitBegin,
                      int64_t dataWaitEnd) {
  if (steps.size() < maximumSteps)
    steps.push_back({step, dataWaitBegin, dataWaitEnd, events});
}

namespace {

enum Lane { Steps, Phases, Compute, Waiting, Data };
constexpr const char *laneNames[] = {"steps", "phases", "kernels", "waiting for all-reduces",
                                     "waiting for data"};

/// What an event is part of; its category, and its colour in chrome://tracing.
struct Category {
  const char *name, *colour;
};
constexpr Category categories[] = {{"forward", "thread_state_running"},
                                   {"backward", "thread_state_iowait"},
                                   {"update", "thread_state_runnable"},
                                   {"communication", "detailed_memory_dump"},
                                   {"count", "rail_load"}};
static_assert(std::size(categories) == static_cast<size_t>(artifact::Phase::MAX) + 1);
constexpr Category dataCategory = {"data", "generic_work"}, stepCategory = {"step", "grey"};

const Category &categoryOf(artifact::Phase phase) { return categories[static_cast<size_t>(phase)]; }

struct Interval {
  int64_t begin, end;
};

/// One rank's events as JSON objects.
class Renderer {
public:
  Renderer(const artifact::Artifact &root, const artifact::Program &program, int rank,
           int64_t origin)
      : root(root), program(program), rank(rank), origin(origin) {
    append({{"ph", "M"},
            {"name", "process_name"},
            {"args", {{"name", "rank " + std::to_string(rank)}}}});
    append({{"ph", "M"}, {"name", "process_sort_index"}, {"args", {{"sort_index", rank}}}});
    for (int lane : {Steps, Phases, Compute, Waiting, Data}) {
      append({{"ph", "M"},
              {"name", "thread_name"},
              {"tid", lane},
              {"args", {{"name", laneNames[lane]}}}});
      append({{"ph", "M"},
              {"name", "thread_sort_index"},
              {"tid", lane},
              {"args", {{"sort_index", lane}}}});
    }
  }

  void step(uint64_t number, Interval dataWait, const std::vector<TraceEvent> &instructions) {
    Interval whole = dataWait;
    for (const TraceEvent &event : instructions)
      whole.end = std::max(whole.end, event.end);
    complete(Steps, stepCategory, "step " + std::to_string(number), whole, {{"step", number}});
    complete(Data, dataCategory, "data", dataWait, {{"step", number}});
    for (const TraceEvent &event : instructions)
      instruction(event, number);
    phases(number, instructions);
  }

  /// In the order of time, names of lanes first.
  std::string text() const {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < events.size(); ++i)
      order.emplace_back(events[i].value("ts", -HUGE_VAL), i);
    std::sort(order.begin(), order.end());
    std::string text;
    for (auto [time, i] : order)
      text += (text.empty() ? "" : ",\n") + jsonText(events[i]);
    return text;
  }

private:
  void complete(Lane lane, const Category &category, const std::string &name, Interval time,
                json arguments) {
    append({{"ph", "X"},
            {"name", name},
            {"cat", category.name},
            {"cname", category.colour},
            {"tid", lane},
            {"ts", microseconds(time.begin)},
            {"dur", static_cast<double>(time.end - time.begin) * 1e-3},
            {"args", std::move(arguments)}});
  }

  /// Kernels in a row of one phase are one event.
  void phases(uint64_t step, const std::vector<TraceEvent> &instructions) {
    std::optional<artifact::Phase> phase;
    Interval time{};
    auto finish = [&] {
      if (phase)
        complete(Phases, categoryOf(*phase), categoryOf(*phase).name, time, {{"step", step}});
    };
    std::vector<TraceEvent> inOrder;
    std::copy_if(instructions.begin(), instructions.end(), std::back_inserter(inOrder),
                 [&](const TraceEvent &event) { return isCompute(operationOf(event)); });
    std::sort(inOrder.begin(), inOrder.end(), [](const TraceEvent &a, const TraceEvent &b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    for (const TraceEvent &event : inOrder) {
      artifact::Phase next = program.instructions()->Get(event.instruction)->phase();
      if (phase != next) {
        finish();
        phase = next;
        time.begin = event.begin;
      }
      time.end = event.end;
    }
    finish();
  }

  Operation operationOf(const TraceEvent &event) const {
    return program.instructions()->Get(event.instruction)->operation_type();
  }
  static bool isCompute(Operation operation) {
    return operation == Operation::Dispatch || operation == Operation::Copy ||
           operation == Operation::Accumulate || operation == Operation::Recall;
  }

  void instruction(const TraceEvent &event, uint64_t step) {
    const artifact::Instruction &instruction = *program.instructions()->Get(event.instruction);
    Interval time{event.begin, event.end};
    if (const auto *start = instruction.operation_as_CollectiveStart())
      allReduce(start->collective(), time, step);
    else if (const auto *wait = instruction.operation_as_CollectiveWait())
      complete(Waiting, categoryOf(artifact::Phase::Communication), nameOf(wait->collective()),
               time, {{"step", step}});
    else if (isCompute(instruction.operation_type()))
      complete(Compute, categoryOf(instruction.phase()), computeName(instruction), time,
               computeArguments(instruction, time, step));
  }

  static std::string nameOf(uint32_t collective) {
    return "all-reduce " + std::to_string(collective);
  }

  void allReduce(uint32_t collective, Interval time, uint64_t step) {
    const artifact::Collective &message = *program.collectives()->Get(collective);
    json members = json::array();
    if (message.members())
      for (const flatbuffers::String *member : *message.members())
        members.push_back(member->str());
    json event = {{"cat", categoryOf(artifact::Phase::Communication).name},
                  {"name", nameOf(collective)},
                  {"id", std::to_string(rank) + "." + std::to_string(collective)},
                  {"args",
                   {{"step", step},
                    {"elements", message.elements()},
                    {"bytes", message.elements() * sizeOf(message.wire())},
                    {"members", members}}}};
    for (auto [kind, at] : {std::pair("b", time.begin), {"e", time.end}}) {
      event["ph"] = kind;
      event["ts"] = microseconds(at);
      append(event);
    }
  }

  const artifact::Kernel *kernelOf(const artifact::Instruction &instruction) const {
    const auto *dispatch = instruction.operation_as_Dispatch();
    return dispatch ? root.kernels()->Get(dispatch->kernel()) : nullptr;
  }

  /// The layer, else the kind of kernel, or what moves bytes.
  std::string computeName(const artifact::Instruction &instruction) const {
    bool isBackward = instruction.phase() == artifact::Phase::Backward;
    if (instruction.location() && instruction.location()->size())
      return instruction.location()->str() + (isBackward ? " backward" : "");
    if (const artifact::Kernel *kernel = kernelOf(instruction))
      return kernel->category() && kernel->category()->size() ? kernel->category()->str()
                                                              : kernel->name()->str();
    switch (instruction.operation_type()) {
    case Operation::Copy:
      return "copy";
    case Operation::Recall:
      return "recall";
    default:
      return "accumulate";
    }
  }

  json computeArguments(const artifact::Instruction &instruction, Interval time,
                        uint64_t step) const {
    json arguments = {{"step", step}};
    const artifact::Kernel *kernel = kernelOf(instruction);
    if (!kernel)
      return arguments;
    arguments["kernel"] = kernel->name()->str();
    for (auto [key, text] :
         {std::pair("kind", kernel->category()), {"implementation", kernel->implementation()}})
      if (text && text->size())
        arguments[key] = text->str();
    arguments["flops"] = kernel->flops();
    arguments["bytes"] = kernel->bytes();
    if (auto nanoseconds = static_cast<double>(time.end - time.begin); nanoseconds > 0) {
      arguments["gflop_per_s"] = static_cast<double>(kernel->flops()) / nanoseconds;
      arguments["gb_per_s"] = static_cast<double>(kernel->bytes()) / nanoseconds;
    }
    return arguments;
  }

  double microseconds(int64_t at) const { return static_cast<double>(at - origin) * 1e-3; }

  void append(json event) {
    event["pid"] = rank;
    if (!event.contains("tid"))
      event["tid"] = 0;
    events.push_back(std::move(event));
  }

  const artifact::Artifact &root;
  const artifact::Program &program;
  int rank;
  int64_t origin;
  std::vector<json> events;
};

} // namespace

std::string ChromeTrace::render() const {
  Renderer renderer(root, program, control.rank(), origin);
  for (const Step &step : steps)
    renderer.step(step.step, {step.dataWaitBegin, step.dataWaitEnd}, step.events);
  return renderer.text();
}

void ChromeTrace::write(const std::string &path) {
  std::string mine = render();
  std::vector<std::vector<std::byte>> all =
      control.allGather(std::as_bytes(std::span(mine)), "collection of the trace");
  if (control.rank() != 0)
    return;
  AtomicFile file(path);
  auto put = [&](const std::string &text) { file.write(std::as_bytes(std::span(text))); };
  put("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  for (size_t rank = 0; rank < all.size(); ++rank) {
    put(rank ? ",\n" : "");
    file.write(all[rank]);
  }
  put("\n]}\n");
  file.commit();
}

} // namespace dlc::rt
