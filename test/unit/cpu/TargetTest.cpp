// Cost tables: what of a kernel its efficiency may depend on, and tables from files.

#include "runtime/artifact/Error.h"
#include "runtime/core/HostFeatures.h"
#include "runtime/cpu/CpuPlanner.h"
#include "test/unit/ErrorOf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

using namespace dlc::rt;

namespace {

/// Writes a table in which a core does one GFLOP/s and memory does not count, and reads it back.
CpuTarget targetWith(const std::string &efficiency, const std::string &more = "") {
  std::string path = testing::TempDir() + "target.json";
  std::ofstream(path) << R"({"isa": "avx2", "gflops_per_core": {"f32": 1, "bf16": 1},
    "bandwidth_gb_per_s": [1e9], "kernel_overhead_ns": 0, "efficiency": )"
                      << efficiency << more << "}";
  return CpuTarget("cpu:" + path, 1);
}

/// Share of peak that the table gives a kernel.
double share(const CpuTarget &target, const KernelTraits &kernel) {
  return 1000 / target.kernelCost(kernel, 1000, 0);
}

KernelTraits convolution(int64_t input, int64_t output, int64_t pixels) {
  return {KernelOp::Conv, DType::F32, "jit:avx2", "blocked", false, false, input, output, pixels};
}

} // namespace

TEST(CpuTarget, LastStepThatFitsCounts) {
  CpuTarget target = targetWith(
      R"([{"implementation": "jit", "conv": [[0, 0.1], [16, 0.2], [32, 64, 0.4], [32, 64, 1000, 0.8]]}])");
  EXPECT_DOUBLE_EQ(share(target, convolution(8, 64, 5000)), 0.1);
  EXPECT_DOUBLE_EQ(share(target, convolution(16, 16, 5000)), 0.2);
  EXPECT_DOUBLE_EQ(share(target, convolution(64, 32, 5000)), 0.2);
  EXPECT_DOUBLE_EQ(share(target, convolution(32, 64, 999)), 0.4);
  EXPECT_DOUBLE_EQ(share(target, convolution(32, 64, 1000)), 0.8);
}

TEST(CpuTarget, PeaksAreTheTeams) {
  Peaks one = CpuTarget("cpu:avx2", 1).peaks(), two = CpuTarget("cpu:avx2", 2).peaks();
  EXPECT_GT(one.f32, 0);
  EXPECT_DOUBLE_EQ(two.f32, 2 * one.f32);
  EXPECT_DOUBLE_EQ(two.elements, two.f32);
  EXPECT_DOUBLE_EQ(two.fastF32, two.f32);
  EXPECT_EQ(one.bf16, 0);
  EXPECT_GT(two.bandwidth, one.bandwidth);
}

TEST(CpuTarget, RowsMayNameLayoutWindowAndType) {
  CpuTarget target = targetWith(R"([
    {"implementation": "jit", "dtype": "bf16", "conv": 0.05},
    {"implementation": "jit", "layout": "channels_last", "conv": 0.1},
    {"implementation": "jit", "strided": true, "conv": 0.2},
    {"implementation": "jit", "pointwise": true, "conv": 0.3},
    {"implementation": "", "conv": 0.4}])");
  KernelTraits kernel = convolution(16, 16, 100);
  EXPECT_DOUBLE_EQ(share(target, kernel), 0.4);
  kernel.pointwise = true;
  EXPECT_DOUBLE_EQ(share(target, kernel), 0.3);
  kernel.strided = true;
  EXPECT_DOUBLE_EQ(share(target, kernel), 0.2);
  kernel.family = "channels_last";
  EXPECT_DOUBLE_EQ(share(target, kernel), 0.1);
  kernel.dtype = DType::BF16;
  EXPECT_DOUBLE_EQ(share(target, kernel), 0.05);
}

TEST(CpuTarget, TableFromFileKeepsItsNameForLaterPasses) {
  CpuTarget target = targetWith(R"([{"implementation": "", "other": 1}])");
  EXPECT_EQ(target.name(), "cpu:avx2");
  EXPECT_EQ(target.table(), "cpu:" + testing::TempDir() + "target.json");
  EXPECT_EQ(CpuTarget(testing::TempDir() + "target.json", 1).table(), target.table());
  EXPECT_EQ(CpuTarget("cpu:avx2", 1).table(), "");
}

TEST(CpuTarget, ActivationsLieInTheFamiliesOfTheTable) {
  const std::string any = R"([{"implementation": "", "other": 1}])";
  using enum LayoutFamily;
  EXPECT_EQ(targetWith(any).families(), (std::vector{Plain, ChannelsLast, Blocked}));
  EXPECT_EQ(targetWith(any, R"(, "families": ["blocked"])").families(), std::vector{Blocked});
  for (const char *bad : {R"([])", R"(["blocked", "last"])", R"(["plain", "plain"])", R"([1])"})
    EXPECT_THAT(test::errorOf([&] { targetWith(any, std::string(", \"families\": ") + bad); }),
                testing::HasSubstr("target.json: \"families\": "))
        << bad;
}

// What is wrong is named, with the table, whose typos must not pass for what is not said.
TEST(CpuTarget, WhatIsWrongIsNamed) {
  const std::string row = R"({"implementation": "", "other": 1})";
  auto expectOfRow = [](const std::string &rows, const std::string &what) {
    EXPECT_THAT(test::errorOf([&] { targetWith("[" + rows + "]"); }),
                testing::AllOf(testing::HasSubstr("target.json"), testing::HasSubstr(what)))
        << rows;
  };
  expectOfRow(R"({"implementation": "", "cnov": 1})", "unknown \"cnov\" in a row");
  expectOfRow(R"({"implementation": "", "layout": "nhwc"})",
              "expected one of plain, channels_last");
  expectOfRow(R"({"implementation": "", "dtype": "f16"})", "\"dtype\": \"f16\", expected one of");
  expectOfRow(R"({"implementation": "", "conv": [[16, -0.5]]})", "\"conv\": -0.5, expected a pos");
  expectOfRow(R"({"implementation": "", "conv": [[16]]})", "expected channels and a share");
  auto expectOfTable = [&](const std::string &more, const std::string &what) {
    EXPECT_THAT(test::errorOf([&] { targetWith("[" + row + "]", more); }),
                testing::AllOf(testing::HasSubstr("target.json"), testing::HasSubstr(what)))
        << more;
  };
  expectOfTable(R"(, "cach_bytes": 1)", "unknown \"cach_bytes\" in the table");
  expectOfTable(R"(, "cache_bytes": -1)", "\"cache_bytes\": -1, expected bytes");
  expectOfTable(R"(, "bandwidth_gb_per_s": [])", "expected a list of numbers");
  expectOfTable(R"(, "bandwidth_gb_per_s": [0])", "expected a positive number");
  expectOfTable(R"(, "gflops_per_core": {"f32": -1, "bf16": 1})", "\"f32\": -1, expected");
  expectOfTable(R"(, "kernel_overhead_ns": 1e300)", "expected nanoseconds");
  expectOfTable(R"(, "isa": "x")", "\"isa\": \"x\", expected one of avx2");
  expectOfTable(R"(, "families": "plain")", "\"families\": \"plain\", not some of");
}

TEST(CpuTarget, BadTableIsBadInput) {
  EXPECT_THROW(CpuTarget("cpu:/.json", 1), Error);
  EXPECT_THROW(targetWith(R"([{"conv": 1}])"), Error);
  EXPECT_THROW(CpuTarget("cpu:/nowhere.json", 1), Error);
}

TEST(CpuTarget, ProcessorsThatDifferHaveTheirOwnTable) {
  EXPECT_EQ(targetOf("avx512-bf16", "AuthenticAMD 25"), "cpu:zen4");
  EXPECT_EQ(targetOf("avx512-bf16", "AuthenticAMD 26"), "cpu:avx512-bf16");
  EXPECT_EQ(targetOf("avx512-bf16", "GenuineIntel 25"), "cpu:avx512-bf16");
  EXPECT_EQ(targetOf("avx2", "AuthenticAMD 25"), "cpu:avx2") << "Zen 3";
}

// A target of such a table is the instruction set's, and later passes find the table again.
TEST(CpuTarget, TableOfAProcessorKeepsItsNameForLaterPasses) {
  if (!missingFeatures({"avx512bf16"}).empty())
    GTEST_SKIP() << "no bf16 instructions";
  CpuTarget target("cpu:zen4", 1);
  EXPECT_EQ(target.name(), "cpu:avx512-bf16");
  EXPECT_EQ(target.table(), "cpu:zen4");
  EXPECT_EQ(CpuTarget("cpu:avx512-bf16", 1).table(), "");
  KernelTraits kernel{
      KernelOp::Conv, DType::F32, "jit:avx512_core", "blocked", false, false, 64, 64, 784};
  EXPECT_GT(target.kernelCost(kernel, 1000000000, 0),
            1.5 * CpuTarget("cpu:avx512-bf16", 1).kernelCost(kernel, 1000000000, 0))
      << "vectors of 256 bits against 512";
}

// Each table that is compiled in is one that calibration can fill in.
TEST(CpuTarget, TablesAreComplete) {
  for (const char *name : {"cpu:avx2", "cpu:avx512", "cpu:avx512-bf16", "cpu:zen4", "cpu:amx"}) {
    nlohmann::ordered_json table = embeddedTable(name);
    for (const char *key : {"isa", "gflops_per_core", "bandwidth_gb_per_s", "kernel_overhead_ns",
                            "cache_bytes", "efficiency"})
      EXPECT_TRUE(table.contains(key)) << name << " " << key;
  }
}

TEST(KernelTraits, AreThoseOfTheConvolution) {
  KernelRequest request;
  request.op = KernelOp::ConvGradFilter;
  request.strides = {2, 2};
  request.operands = {{DType::F32, {8, 16, 64, 32}, {}},
                      {DType::F32, {8, 24, 32, 16}, {}},
                      {DType::F32, {24, 16, 2, 2}, {}}};
  Layout blocked = Layout::rowMajor(4);
  blocked.blocks.push_back({1, 16});
  KernelTraits traits = kernelTraits(request, {blocked, blocked, Layout::rowMajor(4)}, "x");
  EXPECT_EQ(traits.input, 16);
  EXPECT_EQ(traits.output, 24);
  EXPECT_EQ(traits.pixels, 8 * 64 * 32);
  EXPECT_EQ(traits.family, "blocked");
  EXPECT_TRUE(traits.strided);
  EXPECT_FALSE(traits.pointwise);
  request.operands[2].shape = {24, 16, 1, 1};
  EXPECT_TRUE(kernelTraits(request, {blocked, blocked, Layout::rowMajor(4)}, "x").pointwise);
}
