#include "runtime/train/StepProfile.h"
#include "runtime/comm/Communicator.h"
#include "runtime/train/ChromeTrace.h"
#include "test/unit/data/TestFiles.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlc::rt {
namespace {

/// Dispatch, start 0, start 1, dispatch, wait 0, wait 1, dispatch.
class StepProfileTest : public ::testing::Test {
protected:
  StepProfileTest() {
    using namespace artifact;
    ProgramT program;
    program.name = "train";
    auto add = [&](Phase phase, auto operation) {
      program.instructions.push_back(std::make_unique<InstructionT>());
      program.instructions.back()->phase = phase;
      program.instructions.back()->location = "layer";
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
    builder.Finish(Program::Pack(builder, &program));
  }

  const artifact::Program &program() const {
    return *flatbuffers::GetRoot<artifact::Program>(builder.GetBufferPointer());
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
  test::TemporaryDirectory directory;
  runInProcess(2, [&](Communicator &communicator) {
    ChromeTrace trace(program(), communicator);
    trace.add(0, events, 0, ms);
    trace.write(directory / "trace.json");
  });
  std::ifstream file(directory / "trace.json");
  nlohmann::json trace = nlohmann::json::parse(file)["traceEvents"];
  std::map<std::string, int> counts;
  for (const nlohmann::json &event : trace)
    ++counts[std::to_string(event["pid"].get<int>()) + event["ph"].get<std::string>()];
  for (const char *rank : {"0", "1"}) {
    EXPECT_EQ(counts[std::string(rank) + "M"], 4); // its name and three lanes
    EXPECT_EQ(counts[std::string(rank) + "X"], 6); // three dispatches, two waits, one for data
    EXPECT_EQ(counts[std::string(rank) + "b"], 2);
    EXPECT_EQ(counts[std::string(rank) + "e"], 2);
  }
}

} // namespace
} // namespace dlc::rt
