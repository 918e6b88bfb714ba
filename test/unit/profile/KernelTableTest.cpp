// A step by kernel: launches of one kernel are one row, what is furthest from its bound comes
// first.

#include "runtime/profile/KernelTable.h"
#include "test/unit/artifact/TinyArtifact.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace dlc::rt;

namespace {

InstructionBound boundOf(const std::string &kind, double bytes, const char *level, double seconds) {
  InstructionBound bound;
  bound.kind = kind;
  bound.bytes = bound.levels[level] = bytes;
  bound.bound = seconds;
  return bound;
}

/// The tiny step with a second update: gradient in 6, all-reduce in 10 and 11, updates in 12
/// and 14.
KernelTable table() {
  test::TinyArtifact tiny;
  tiny.root.arenas[0]->bytes = tiny.root.arenas[0]->lower_bound = 960;
  uint32_t other = tiny.addBuffer("other", 0, 512, {test::tinyElements}, -1, 0, 0);
  tiny.addVariable("other", dlc::artifact::VariableKind::Parameter, other,
                   dlc::artifact::InitializerKind::Constant, 0, 0);
  tiny.addDispatch(1, {other, 5, 1});
  tiny.program().instructions.back()->phase = dlc::artifact::Phase::Optimizer;
  Artifact artifact(tiny.pack(), "tiny.dlx");
  constexpr size_t count = 15;
  std::vector<InstructionBound> bounds(count);
  MeasuredStep mean{0.030, std::vector<double>(count)}, best{0.025, std::vector<double>(count)};
  auto set = [&](size_t at, InstructionBound bound, double meanSeconds, double bestSeconds) {
    bounds[at] = std::move(bound);
    mean.instructions[at] = meanSeconds;
    best.instructions[at] = bestSeconds;
  };
  set(6, boundOf("pointwise", 8e6, "DRAM", 0.004), 0.009, 0.005);
  set(10, boundOf("all-reduce", 0, "L2", 0), 0.001, 0.001);
  set(11, boundOf("all-reduce", 0, "L2", 0), 0.002, 0.001);
  set(12, boundOf("optimizer", 1e6, "L2", 0.001), 0.004, 0.003);
  set(14, boundOf("optimizer", 2e6, "L3", 0.002), 0.006, 0.005);
  return {artifact, *artifact.program("train"), mean, best, bounds};
}

} // namespace

TEST(KernelTable, LaunchesOfAKernelAreOneRow) {
  std::vector<KernelRow> rows = table().all();
  ASSERT_EQ(rows.size(), 3u);
  const KernelRow &update = rows[0];
  EXPECT_EQ(update.kernel, "update");
  EXPECT_EQ(update.kind, "optimizer");
  EXPECT_EQ(update.instructions, (std::vector<size_t>{12, 14}));
  EXPECT_NEAR(update.seconds, 0.010, 1e-12);
  EXPECT_NEAR(update.best, 0.008, 1e-12);
  EXPECT_NEAR(update.bound, 0.003, 1e-12);
  EXPECT_NEAR(update.bytes, 3e6, 1e-3);
}

TEST(KernelTable, TheLongestTimeOverItsBoundComesFirst) {
  std::vector<std::string> names;
  KernelTable kernels = table();
  for (const KernelRow &row : kernels.all())
    names.push_back(row.kernel);
  EXPECT_EQ(names, (std::vector<std::string>{"update", "all-reduce", "gradient"})); // 5, 2, 1 ms
}

TEST(KernelTable, LinesBeyondTheMostAreSummedUp) {
  std::vector<std::string> lines = table().lines(1);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], "update                                        optimizer              2"
                      "      3.00     L3    10.000     8.000     3.000       38%     5.000");
  EXPECT_EQ(lines[2], "2 others                                                             3"
                      "      8.00   DRAM    12.000     7.000     4.000       57%     3.000");
  EXPECT_EQ(table().lines(3).size(), 4u);
}

TEST(KernelTable, RecordNamesInstructionsAndLevels) {
  nlohmann::ordered_json record;
  table().addTo(record);
  const auto &first = record["profile.kernels"][0];
  EXPECT_EQ(first["kernel"], "update");
  EXPECT_EQ(first["instructions"], (std::vector<size_t>{12, 14}));
  EXPECT_EQ(first["level"], "L3");
  EXPECT_NEAR(first["best_ms"], 8, 1e-9);
}
