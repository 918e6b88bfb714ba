#include "runtime/train/StepProfile.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/record/ChromeTrace.h"
#include "test/unit/data/TestFiles.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

namespace dlc::rt {
namespace {

/// Dispatch, start 0, start 1, dispatch, wait 0, wait 1, dispatch.
class StepProfileTest : public ::testing::Test {
protected:
  StepProfileTest() {
    using namespace artifact;
    ArtifactT all;
    all.model = "m";
    all.target = std::make_unique<TargetT>();
    all.target->name = "cpu:avx2";
    all.kernels.push_back(std::make_unique<KernelT>());
    all.kernels.back()->name = "conv_0";
    all.kernels.back()->category = "conv.forward";
    all.kernels.back()->implementation = "jit:avx2";
    all.kernels.back()->flops = 20'000'000;
    all.programs.push_back(std::make_unique<ProgramT>());
    ProgramT &program = *all.programs.back();
    program.name = "train";
    auto add = [&](Phase phase, auto operation) {
      program.instructions.push_back(std::make_unique<InstructionT>());
      program.instructions.back()->phase = phase;
      program.instructions.back()->location = phase == Phase::Optimizer ? "" : "layer";
      program.instructions.back()->operation.Set(std::move(operation));
    };
    CollectiveStartT start0, start1;
    CollectiveWaitT wait0, wait1;
    start1.collective = wait1.collective = 1;
    add(Phase::Forward, DispatchT());
    add(Phase::Communication, start0);
    add(Phase::Communication, start1);
    add(Phase::Backward, DispatchT());
    add(Phase::Communication, wait0);
    add(Phase::Communication, wait1);
    add(Phase::Optimizer, DispatchT());
    for (int i = 0; i < 2; ++i)
      program.collectives.push_back(std::make_unique<CollectiveT>());
    builder.Finish(artifact::Artifact::Pack(builder, &all));
  }

  const artifact::Artifact &root() const {
    return *flatbuffers::GetRoot<artifact::Artifact>(builder.GetBufferPointer());
  }
  const artifact::Program &program() const { return *root().programs()->Get(0); }

  /// The events of a trace of two ranks and two steps.
  nlohmann::json trace() const {
    test::TemporaryDirectory directory;
    runInProcess(2, [&](ControlPlane &control) {
      ChromeTrace trace(root(), program(), control);
      std::vector<TraceEvent> later = events;
      for (TraceEvent &event : later) {
        event.begin += 60 * ms;
        event.end += 60 * ms;
      }
      trace.add(0, events, 0, 0);
      trace.add(1, later, 56 * ms, 60 * ms);
      trace.write(directory / "trace.json");
    });
    std::ifstream file(directory / "trace.json");
    return nlohmann::json::parse(file)["traceEvents"];
  }

  flatbuffers::FlatBufferBuilder builder;
  static constexpr int64_t ms = 1'000'000;
  std::vector<TraceEvent> events = {
      {0, 0, 10 * ms},       {3, 10 * ms, 40 * ms}, {1, 10 * ms, 30 * ms}, {2, 20 * ms, 50 * ms},
      {4, 40 * ms, 40 * ms}, {5, 40 * ms, 50 * ms}, {6, 50 * ms, 55 * ms}};
};

TEST_F(StepProfileTest, SplitsByPhaseAndCountsOverlappingFlightsOnce) {
  StepTimes times = StepProfile(program()).measure(events);
  EXPECT_DOUBLE_EQ(times.phases[0], 0.010);
  EXPECT_DOUBLE_EQ(times.phases[1], 0.030);
  EXPECT_DOUBLE_EQ(times.phases[2], 0.005);
  EXPECT_DOUBLE_EQ(times.communication, 0.040);
  EXPECT_DOUBLE_EQ(times.exposed, 0.010);
}

TEST_F(StepProfileTest, TracesOneProcessPerRankAndOneLanePerStream) {
  std::map<std::string, int> counts;
  for (const nlohmann::json &event : trace())
    ++counts[std::to_string(event["pid"].get<int>()) + event["ph"].get<std::string>()];
  for (const char *rank : {"0", "1"}) {
    EXPECT_EQ(counts[std::string(rank) + "M"], 12); // name and place of it and of five lanes
    // A step: itself, three phases, three dispatches, two waits, one for data.
    EXPECT_EQ(counts[std::string(rank) + "X"], 2 * 10);
    EXPECT_EQ(counts[std::string(rank) + "b"], 2 * 2);
    EXPECT_EQ(counts[std::string(rank) + "e"], 2 * 2);
  }
}

TEST_F(StepProfileTest, EventsOfALaneFollowEachOther) {
  std::map<std::pair<int, int>, double> ends; // by process and lane
  for (const nlohmann::json &event : trace())
    if (event["ph"] == "X") {
      auto lane = std::pair(event["pid"].get<int>(), event["tid"].get<int>());
      double begin = event["ts"], duration = event["dur"];
      EXPECT_GE(duration, 0);
      if (ends.contains(lane)) {
        EXPECT_GE(begin, ends[lane] - 1e-3) << event;
      }
      ends[lane] = begin + duration;
    }
  EXPECT_EQ(ends.size(), 2u * 5);
}

TEST_F(StepProfileTest, EventsSayWhatTheyAreAndOfWhichPhase) {
  std::set<std::pair<std::string, std::string>> found;
  nlohmann::json kernel;
  for (const nlohmann::json &event : trace())
    if (event["ph"] == "X") {
      found.emplace(event["name"], event["cat"]);
      if (event["name"] == "layer backward")
        kernel = event["args"];
    }
  std::set<std::pair<std::string, std::string>> wanted = {
      {"step 0", "step"},
      {"step 1", "step"},
      {"data", "data"},
      {"forward", "forward"},
      {"backward", "backward"},
      {"update", "update"},
      {"layer", "forward"},
      {"layer backward", "backward"},
      {"conv.forward", "update"}, // a kernel of no layer
      {"all-reduce 0", "communication"},
      {"all-reduce 1", "communication"}};
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(kernel["kernel"], "conv_0");
  EXPECT_EQ(kernel["kind"], "conv.forward");
  EXPECT_EQ(kernel["implementation"], "jit:avx2");
  EXPECT_EQ(kernel["flops"], 20'000'000);
  EXPECT_DOUBLE_EQ(kernel["gflop_per_s"], 20e6 / 30e6);
}

} // namespace
} // namespace dlc::rt
