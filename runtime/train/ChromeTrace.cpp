#include "runtime/train/ChromeTrace.h"

#include "runtime/data/AtomicFile.h"

#include <chrono>
#include <nlohmann/json.hpp>

namespace dlc::rt {

using artifact::Operation;
using nlohmann::json;

int64_t nowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ChromeTrace::ChromeTrace(const artifact::Program &program, Communicator &communicator)
    : program(program), communicator(communicator) {
  communicator.barrier("start of the trace");
  origin = nowNanoseconds();
}

void ChromeTrace::add(uint64_t step, const std::vector<TraceEvent> &events, int64_t dataWaitBegin,
                      int64_t dataWaitEnd) {
  if (steps.size() < maximumSteps)
    steps.push_back({step, dataWaitBegin, dataWaitEnd, events});
}

namespace {

enum Lane { Compute, Waiting, Data };
constexpr const char *laneNames[] = {"compute", "waiting for all-reduce", "waiting for data"};

/// Renders one rank's events as JSON objects separated by commas.
class Renderer {
public:
  Renderer(const artifact::Program &program, int rank, int64_t origin)
      : program(program), rank(rank), origin(origin) {
    append({{"ph", "M"}, {"name", "process_name"}, {"args", {{"name", name("rank")}}}});
    for (int lane : {Compute, Waiting, Data})
      append({{"ph", "M"},
              {"name", "thread_name"},
              {"tid", lane},
              {"args", {{"name", laneNames[lane]}}}});
  }

  void complete(Lane lane, const std::string &name, int64_t begin, int64_t end, uint64_t step) {
    append({{"ph", "X"},
            {"name", name},
            {"tid", lane},
            {"ts", microseconds(begin)},
            {"dur", static_cast<double>(end - begin) * 1e-3},
            {"args", {{"step", step}}}});
  }

  void instruction(const TraceEvent &event, uint64_t step) {
    const artifact::Instruction &instruction = *program.instructions()->Get(event.instruction);
    if (const auto *start = instruction.operation_as_CollectiveStart())
      allReduce(start->collective(), event, step);
    else if (const auto *wait = instruction.operation_as_CollectiveWait()) {
      complete(Waiting, nameOf(wait->collective()), event.begin, event.end, step);
    } else if (instruction.operation_type() == Operation::Dispatch ||
               instruction.operation_type() == Operation::Copy ||
               instruction.operation_type() == Operation::Fill) {
      complete(Compute, computeName(instruction), event.begin, event.end, step);
    }
  }

  std::string text;

private:
  static std::string nameOf(uint32_t collective) {
    return "all-reduce " + std::to_string(collective);
  }

  void allReduce(uint32_t collective, const TraceEvent &flight, uint64_t step) {
    json event = {{"cat", "all-reduce"},
                  {"name", nameOf(collective)},
                  {"id", std::to_string(rank) + "." + std::to_string(collective)}};
    const artifact::Collective &message = *program.collectives()->Get(collective);
    event["args"] = {{"step", step}, {"elements", message.elements()}};
    event["ph"] = "b";
    event["ts"] = microseconds(flight.begin);
    append(event);
    event["ph"] = "e";
    event["ts"] = microseconds(flight.end);
    append(event);
  }

  static std::string computeName(const artifact::Instruction &instruction) {
    if (instruction.location() && instruction.location()->size())
      return instruction.location()->str();
    return artifact::EnumNameOperation(instruction.operation_type());
  }

  std::string name(const std::string &what) const { return what + " " + std::to_string(rank); }
  double microseconds(int64_t at) const { return static_cast<double>(at - origin) * 1e-3; }

  void append(json event) {
    event["pid"] = rank;
    if (!event.contains("tid"))
      event["tid"] = 0;
    text += (text.empty() ? "" : ",\n") + event.dump();
  }

  const artifact::Program &program;
  int rank;
  int64_t origin;
};

} // namespace

std::string ChromeTrace::render() const {
  Renderer renderer(program, communicator.rank(), origin);
  for (const Step &step : steps) {
    renderer.complete(Data, "data", step.dataWaitBegin, step.dataWaitEnd, step.step);
    for (const TraceEvent &event : step.events)
      renderer.instruction(event, step.step);
  }
  return renderer.text;
}

void ChromeTrace::write(const std::string &path) {
  std::string mine = render();
  std::vector<std::vector<std::byte>> all =
      communicator.allGather(std::as_bytes(std::span(mine)), "collection of the trace");
  if (communicator.rank() != 0)
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
