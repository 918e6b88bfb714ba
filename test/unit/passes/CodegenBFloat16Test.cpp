// Generated kernels on bf16 in memory: every layout, ragged ends, with and without instructions
// that round to bf16. What they compute must be what the same f32 arithmetic on scalars gives, bit
// for bit.

#include "runtime/core/HostFeatures.h"
#include "test/unit/passes/ClusterRunner.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;
using reference::Tensor;

/// Nearest bf16, to even; no NaN.
static double rounded(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

namespace {
struct NamedTarget {
  std::string name;
  CodeTarget target;
};

struct Place {
  std::string shape, channels, layout;
  std::string type(const std::string &element) const {
    return "tensor<" + shape + "x" + element +
           (layout.empty() ? "" : ", #nn.layout<" + layout + ">") + ">";
  }
};
} // namespace

/// This machine's own target, and those without bf16 instructions that it can run.
static std::vector<NamedTarget> targets() {
  std::vector<NamedTarget> list{{"host", hostCodeTarget()}};
  if (rt::missingFeatures({"avx2", "fma"}).empty())
    list.push_back({"avx2", {"x86-64-v3", "", 32}});
  if (rt::missingFeatures({"avx512f", "avx512bw", "avx512dq", "avx512vl"}).empty())
    list.push_back({"avx512", {"x86-64-v4", "", 64}});
  return list;
}

static const Place places[] = {
    {"2x5x7x9", "5", ""},          {"2x5x7x9", "5", "nhwc"},     {"2x20x7x9", "20", "nChw16c"},
    {"3x32x4x5", "32", "nChw16c"}, {"2x20x33x17", "20", "nhwc"}, {"2x64x5x7", "64", "nhwc"},
    {"1x1x40x41", "1", "nhwc"},    {"2x3x9x9", "3", "nhwc"},     {"1x10007", "10007", ""}};

template <typename Check> static void everywhere(Check &&check) {
  for (const NamedTarget &named : targets())
    for (const Place &place : places) {
      SCOPED_TRACE(named.name + " " + place.shape + " " + place.layout);
      check(named.target, place);
    }
}

static void expectSame(const Tensor &got, const Tensor &want) {
  ASSERT_EQ(got.size(), want.size());
  int64_t wrong = 0;
  for (int64_t i = 0; i < want.size(); ++i)
    if (got.data[i] != want.data[i] && wrong++ < 3)
      ADD_FAILURE() << "element " << i << ": got " << got.data[i] << ", want " << want.data[i];
  EXPECT_EQ(wrong, 0);
}

// Batch norm's second half: factor and summand per channel, ReLU, one rounding at the end.
TEST(CodegenBFloat16, ScaleShiftRelu) {
  everywhere([](const CodeTarget &target, const Place &place) {
    ClusterRunner runner({{"!t", place.type("bf16")},
                          {"!f", place.type("f32")},
                          {"!c", "tensor<" + place.channels + "xf32>"}},
                         {{"!t"}, {"!c"}, {"!c"}},
                         R"(%w = nn.cast %0 : (!t) -> !f
                            %a = nn.broadcast %1 {dims = array<i64: 1>} : (!c) -> !f
                            %b = nn.broadcast %2 {dims = array<i64: 1>} : (!c) -> !f
                            %p = nn.mul %w, %a : (!f, !f) -> !f
                            %q = nn.add %p, %b : (!f, !f) -> !f
                            %r = nn.relu %q : (!f) -> !f
                            %y = nn.cast %r : (!f) -> !t)",
                         {{"%y", "!t"}}, target);
    std::vector<Tensor> operands = runner.randomOperands(5);
    Tensor want(operands[0].shape);
    int64_t channels = want.shape[1], inner = 1;
    for (size_t dim = 2; dim < want.shape.size(); ++dim)
      inner *= want.shape[dim];
    for (int64_t i = 0; i < want.size(); ++i) {
      int64_t channel = i / inner % channels;
      float product =
          static_cast<float>(operands[0].data[i]) * static_cast<float>(operands[1].data[channel]);
      float sum = product + static_cast<float>(operands[2].data[channel]);
      want.data[i] = rounded(std::max(sum, 0.0f));
    }
    expectSame(runner.run(operands)[0], want);
  });
}

// Ops on bf16 itself: each rounds, those that are exact do not change a bit.
TEST(CodegenBFloat16, RoundsAfterEachOp) {
  everywhere([](const CodeTarget &target, const Place &place) {
    ClusterRunner runner({{"!t", place.type("bf16")}, {"!b", place.type("i1")}},
                         {{"!t"}, {"!t"}, {"!b", 0, 2}},
                         R"(%p = nn.mul %0, %1 : (!t, !t) -> !t
                            %s = nn.add %p, %0 : (!t, !t) -> !t
                            %r = nn.relu %0 : (!t) -> !t
                            %m = nn.max %r, %1 : (!t, !t) -> !t
                            %c = nn.compare gt %0, %1 : (!t, !t) -> !b
                            %d = nn.or %c, %2 : (!b, !b) -> !b
                            %y = nn.select %d, %s, %m : (!b, !t, !t) -> !t)",
                         {{"%y", "!t"}}, target);
    std::vector<Tensor> operands = runner.randomOperands(6);
    Tensor want(operands[0].shape);
    for (int64_t i = 0; i < want.size(); ++i) {
      auto x = static_cast<float>(operands[0].data[i]), y = static_cast<float>(operands[1].data[i]);
      auto product = static_cast<float>(rounded(x * y));
      bool first = x > y || operands[2].data[i] != 0;
      want.data[i] = first ? rounded(product + x) : std::max(std::max(x, 0.0f), y);
    }
    expectSame(runner.run(operands)[0], want);
  });
}

// The sums of batch norm, forward: exact, whatever the order, since the terms are small integers.
// Beside a maximum they are f64 throughout.
TEST(CodegenBFloat16, SumsPerChannel) {
  everywhere([](const CodeTarget &target, const Place &place) {
    std::string dims = place.layout.empty() && place.channels == "10007" ? "0" : "0, 2, 3";
    for (bool maxima : {false, true}) {
      std::string maximum;
      std::vector<std::pair<std::string, std::string>> results{{"%s", "!c"}, {"%v", "!c"}};
      if (maxima) {
        maximum = "\n%m = nn.reduce_max %0 {dims = array<i64: " + dims + ">} : (!t) -> !n";
        results.emplace_back("%m", "!n");
      }
      ClusterRunner runner({{"!t", place.type("bf16")},
                            {"!i", place.type("i32")},
                            {"!w", place.type("f64")},
                            {"!c", "tensor<" + place.channels + "xf64>"},
                            {"!n", "tensor<" + place.channels + "xbf16>"}},
                           {{"!t"}, {"!i", -9, 9}},
                           R"(%j = nn.cast %1 : (!i) -> !t
                            %w = nn.cast %j : (!t) -> !w
                            %q = nn.mul %w, %w : (!w, !w) -> !w
                            %s = nn.reduce_sum %w {dims = array<i64: )" +
                               dims + R"(>} : (!w) -> !c
                            %v = nn.reduce_sum %q {dims = array<i64: )" +
                               dims + ">} : (!w) -> !c" + maximum,
                           results, target);
      runner.check(0, 0);
    }
  });
}

// Ties go to even, NaN stays NaN, infinities are kept and what is too large becomes one: in the
// body of a kernel and in its ragged end alike.
TEST(CodegenBFloat16, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::pair<double, double> values[] = {{1, 1},
                                              {1 + 0x1p-8, 1},
                                              {1 + 0x1.8p-7, 1 + 0x1p-6},
                                              {-1 - 0x1p-8, -1},
                                              {1 + 0x1.02p-8, 1 + 0x1p-7},
                                              {0x1.fep127, 0x1.fep127},
                                              {inf, inf},
                                              {-inf, -inf},
                                              {0x1.fffffep127, inf},
                                              {0, 0},
                                              {-0x1.fffffep127, -inf}};
  for (const NamedTarget &named : targets()) {
    SCOPED_TRACE(named.name);
    ClusterRunner runner({{"!t", "tensor<61xbf16>"}, {"!f", "tensor<61xf32>"}}, {{"!f"}},
                         "%y = nn.cast %0 : (!f) -> !t", {{"%y", "!t"}}, named.target);
    Tensor x({61}), want({61});
    for (int64_t i = 0; i < 61; ++i)
      std::tie(x.data[i], want.data[i]) = values[i % std::size(values)];
    expectSame(runner.run({x})[0], want);
    for (double &element : x.data)
      element = std::nan("");
    want = runner.run({x})[0];
    for (double element : want.data)
      EXPECT_TRUE(std::isnan(element));
  }
}

// Each element of a vector at a place of its own, and the last vector not full: of what is read,
// the filters of a channel each; of what is written, channels that are not next to each other.
TEST(CodegenBFloat16, ElementsThatLieApart) {
  for (const NamedTarget &named : targets()) {
    SCOPED_TRACE(named.name);
    ClusterRunner filters({{"!x", "tensor<1x3x9x10xbf16, #nn.layout<nhwc>>"},
                           {"!w", "tensor<3x1x3x2xbf16>"},
                           {"!y", "tensor<1x3x4x3xbf16, #nn.layout<nhwc>>"}},
                          {{"!x"}, {"!w"}},
                          "%y = nn.conv %0, %1 {strides = array<i64: 2, 3>, padding_low = "
                          "array<i64: 1, 0>, padding_high = array<i64: 0, 0>, dilations = "
                          "array<i64: 1, 3>, groups = 3} : (!x, !w) -> !y",
                          {{"%y", "!y"}}, named.target);
    filters.check(0x1p16, 1e-5);
    ClusterRunner turned(
        {{"!x", "tensor<2x3x5x7xbf16, #nn.layout<nhwc>>"}, {"!y", "tensor<2x3x5x7xbf16>"}},
        {{"!x"}}, "%y = nn.reorder %0 : (!x) -> !y", {{"%y", "!y"}}, named.target);
    turned.check(0, 0);
  }
}
