// A step by kind: what is measured, bound and forecast adds up.

#include "runtime/profile/KindTable.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace dlc::rt;

namespace {

std::vector<InstructionBound> bounds() {
  return {{"conv.forward", true, 100, {}, 4e9, 0.030, 0.020},
          {"norm", false, 200, {}, 10, 0.005, 0.004},
          {},
          {"all-reduce", false, 0, {}, 0, 0, 0}};
}

nlohmann::ordered_json recordOf(const MeasuredStep &step) {
  nlohmann::ordered_json record;
  KindTable(step, bounds(), 0.002).addTo(record, MachineSpeed());
  return record;
}

} // namespace

TEST(KindTable, AddsUpKinds) {
  nlohmann::ordered_json record = recordOf({0.050, {0.030, 0.010, 0.001, 0.003}});
  EXPECT_NEAR(record["profile.conv.forward.ms"], 30, 1e-9);
  EXPECT_NEAR(record["profile.norm.ms"], 10, 1e-9);
  EXPECT_NEAR(record["profile.all-reduce.ms"], 3, 1e-9);
  EXPECT_NEAR(record["profile.idle.ms"], 6, 1e-9); // what no instruction accounts for
  EXPECT_NEAR(record["profile.step_ms"], 50, 1e-9);
  EXPECT_NEAR(record["profile.forecast_ms"], 37, 1e-9);
}

TEST(KindTable, RatioIsToLibraryAlonePlusMemory) {
  nlohmann::ordered_json record = recordOf({0.048, {0.030, 0.010, 0, 0}});
  EXPECT_NEAR(record["profile.library_alone_ms"], 20, 1e-9);
  EXPECT_NEAR(record["profile.memory_bound_ms"], 4, 1e-9);
  EXPECT_NEAR(record["profile.step_over_bound"], 2, 1e-9);
  EXPECT_EQ(KindTable({0.048, {0.030, 0.010, 0, 0}}, bounds(), 0).lines(MachineSpeed()).back(),
            "step 2.00 x (library alone 20.000 ms + bytes / bandwidth 4.000 ms)");
}
