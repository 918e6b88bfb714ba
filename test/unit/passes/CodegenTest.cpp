// Generated kernels against the reference evaluator: shapes with ragged ends, all layouts, every
// elementwise op, data movement.

#include "runtime/core/HostFeatures.h"
#include "test/unit/passes/ClusterRunner.h"

#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;

static std::string tensor(const std::string &shape, const std::string &element,
                          const std::string &layout = "") {
  return "tensor<" + shape + (shape.empty() ? "" : "x") + element +
         (layout.empty() ? "" : ", #nn.layout<" + layout + ">") + ">";
}

static const std::pair<const char *, const char *> places[] = {
    {"2x5x7x9", ""},
    {"2x5x7x9", "nhwc"},
    {"2x20x7x9", "nChw16c"},
    {"3x32x4x5", "nChw16c"},
    {"2x24x3x5", "nChw8c"},
    {"2x20x33x17", "nhwc"},
    {"1x1x40x40", ""},
    {"2x1x6x6", "nChw16c"},
    {"20x5x3x3", "NChw16n8c"},
    {"2x20x3x4x5", "nCdhw16c"},
    {"2x20x3x4x5", "ndhwc"},
    {"7x10", ""},
    {"1x10007", ""},
    {"3x18x11", "nCw8c"},
    // Extents without divisors: the last item is shorter.
    {"1x40009", ""},
    {"1x16x40009", "nwc"},
    {"3x12007", ""}};

TEST(Codegen, PointwiseInEveryLayout) {
  for (auto [shape, layout] : places) {
    SCOPED_TRACE(std::string(shape) + " " + layout);
    ClusterRunner runner({{"!t", tensor(shape, "f32", layout)}}, {{"!t"}, {"!t"}},
                         R"(%y = nn.add %0, %1 : (!t, !t) -> !t
                            %z = nn.relu %y : (!t) -> !t)",
                         {{"%z", "!t"}});
    runner.check(1);
  }
}

// Per-channel factors, where a channel block may be ragged, and a scalar.
TEST(Codegen, BroadcastOperands) {
  for (auto [shape, layout] : places) {
    SCOPED_TRACE(std::string(shape) + " " + layout);
    std::string channels = std::string(shape).substr(std::string(shape).find('x') + 1);
    channels = channels.substr(0, channels.find('x'));
    ClusterRunner runner({{"!t", tensor(shape, "f32", layout)}, {"!c", tensor(channels, "f32")}},
                         {{"!t"}, {"!c"}, {"tensor<f32>"}},
                         R"(%a = nn.broadcast %1 {dims = array<i64: 1>} : (!c) -> !t
           %s = nn.broadcast %2 {dims = array<i64>} : (tensor<f32>) -> !t
           %p = nn.mul %0, %a : (!t, !t) -> !t
           %y = nn.add %p, %s : (!t, !t) -> !t
           %q = nn.sub %y, %0 : (!t, !t) -> !t)",
                         {{"%y", "!t"}, {"%q", "!t"}});
    runner.check(4, 1e-6);
  }
}

TEST(Codegen, EveryUnaryOp) {
  struct {
    const char *op;
    double low, high, ulps, absolute;
  } cases[] = {{"neg", -2, 2, 0, 0},
               {"abs", -2, 2, 0, 0},
               {"exp", -80, 80, 3, 1e-37},
               {"exp", -1, 1, 3, 0},
               {"log", 0, 1e6, 3, 1e-7},
               {"log", 0.5, 2, 4, 1e-7},
               {"sqrt", 0, 100, 1, 0},
               {"rsqrt", 1e-6, 100, 2, 0},
               {"tanh", -10, 10, 5, 1e-7},
               {"tanh", -0.1, 0.1, 5, 0},
               {"relu", -2, 2, 0, 0},
               {"sigmoid", -20, 20, 5, 0},
               {"softplus", -50, 50, 5, 1e-30},
               {"erf", -7, 7, 2, 0},
               {"erf", -1.5, 1.5, 2, 0},
               {"erf", -1e-3, 1e-3, 2, 0}};
  for (auto &test : cases)
    for (const char *element : {"f32", "f64"}) {
      SCOPED_TRACE(std::string(test.op) + " " + element);
      ClusterRunner runner({{"!t", tensor("1000", element)}}, {{"!t", test.low, test.high}},
                           "%y = nn." + std::string(test.op) + " %0 : (!t) -> !t", {{"%y", "!t"}});
      runner.check(test.ulps, test.absolute);
    }
}

TEST(Codegen, EveryBinaryOp) {
  for (const char *op : {"add", "sub", "mul", "div", "max", "min"}) {
    SCOPED_TRACE(op);
    ClusterRunner runner({{"!t", tensor("7x13", "f32")}}, {{"!t"}, {"!t"}},
                         "%y = nn." + std::string(op) + " %0, %1 : (!t, !t) -> !t", {{"%y", "!t"}});
    runner.check(1);
  }
  ClusterRunner pow({{"!t", tensor("7x13", "f32")}}, {{"!t", 0.01, 4}, {"!t", -3, 3}},
                    "%y = nn.pow %0, %1 : (!t, !t) -> !t", {{"%y", "!t"}});
  pow.check(1);
  // Negative bases have powers of whole exponents.
  ClusterRunner whole({{"!t", tensor("7x13", "f32")}}, {{"!t", -4, 4}},
                      R"(%p = nn.constant dense<9.0> : !t
                         %y = nn.pow %0, %p : (!t, !t) -> !t)",
                      {{"%y", "!t"}});
  whole.check(1);
  // A bias correction: the power of a number near one.
  ClusterRunner decay({{"!s", "tensor<f32>"}}, {{"!s", 0.999, 0.9999}, {"!s", 5000, 20000}},
                      "%y = nn.pow %0, %1 : (!s, !s) -> !s", {{"%y", "!s"}});
  decay.check(1);
}

TEST(Codegen, SpecialValues) {
  ClusterRunner runner({{"!t", "tensor<6xf32>"}, {"!b", "tensor<6xi1>"}}, {{"!t"}},
                       R"(%r = nn.relu %0 : (!t) -> !t
                          %e = nn.exp %0 : (!t) -> !t
                          %s = nn.sigmoid %0 : (!t) -> !t
                          %t = nn.tanh %0 : (!t) -> !t
                          %p = nn.softplus %0 : (!t) -> !t
                          %g = nn.erf %0 : (!t) -> !t
                          %n = nn.compare ne %0, %0 : (!t, !t) -> !b)",
                       {{"%r", "!t"},
                        {"%e", "!t"},
                        {"%s", "!t"},
                        {"%t", "!t"},
                        {"%p", "!t"},
                        {"%g", "!t"},
                        {"%n", "!b"}});
  double inf = std::numeric_limits<double>::infinity();
  reference::Tensor x({6});
  x.data = {std::nan(""), inf, -inf, 100, -110, 0};
  for (const std::vector<reference::Tensor> &y : {runner.run({x}), runner.runOnGpu({x})}) {
    for (int i = 0; i < 6; ++i)
      EXPECT_TRUE(std::isnan(y[i].data[0])) << i;
    EXPECT_EQ(y[0].data[1], inf);
    EXPECT_EQ(y[0].data[2], 0);
    EXPECT_EQ(y[1].data[1], inf);
    EXPECT_EQ(y[1].data[2], 0);
    EXPECT_EQ(y[1].data[3], inf); // exp(100) overflows f32
    EXPECT_EQ(y[2].data[1], 1);
    EXPECT_EQ(y[2].data[2], 0);
    EXPECT_EQ(y[3].data[1], 1);
    EXPECT_EQ(y[3].data[2], -1);
    EXPECT_EQ(y[4].data[1], inf);
    EXPECT_EQ(y[4].data[3], 100);
    EXPECT_EQ(y[5].data[1], 1);
    EXPECT_EQ(y[5].data[2], -1);
    EXPECT_EQ(y[5].data[5], 0);
    EXPECT_EQ(y[6].data, std::vector<double>({1, 0, 0, 0, 0, 0}));
  }
}

TEST(Codegen, MasksAndCasts) {
  ClusterRunner runner({{"!t", tensor("3x20x5x5", "f32", "nChw16c")},
                        {"!b", tensor("3x20x5x5", "i1", "nChw16c")},
                        {"!i", tensor("3x20x5x5", "i32", "nChw16c")},
                        {"!w", tensor("3x20x5x5", "f64", "nChw16c")}},
                       {{"!t"}, {"!t"}, {"!b", 0, 2}},
                       R"(%l = nn.compare lt %0, %1 : (!t, !t) -> !b
         %a = nn.and %l, %2 : (!b, !b) -> !b
         %n = nn.not %l : (!b) -> !b
         %o = nn.or %n, %2 : (!b, !b) -> !b
         %s = nn.select %o, %0, %1 : (!b, !t, !t) -> !t
         %f = nn.cast %a : (!b) -> !t
         %g = nn.cast %0 : (!t) -> !i
         %h = nn.cast %g : (!i) -> !t
         %w = nn.cast %0 : (!t) -> !w
         %q = nn.mul %w, %w : (!w, !w) -> !w)",
                       {{"%a", "!b"},
                        {"%o", "!b"},
                        {"%s", "!t"},
                        {"%f", "!t"},
                        {"%g", "!i"},
                        {"%h", "!t"},
                        {"%q", "!w"}});
  runner.check(0);
}

TEST(Codegen, HalfPrecision) {
  for (const char *half : {"bf16", "f16"}) {
    ClusterRunner runner({{"!t", tensor("2x20x9", half)}, {"!f", tensor("2x20x9", "f32")}},
                         {{"!t"}, {"!t"}},
                         R"(%a = nn.cast %0 : (!t) -> !f
                            %b = nn.cast %1 : (!t) -> !f
                            %p = nn.mul %a, %b : (!f, !f) -> !f
                            %y = nn.cast %p : (!f) -> !t
                            %r = nn.relu %0 : (!t) -> !t
                            %e = nn.exp %0 : (!t) -> !t)",
                         {{"%p", "!f"}, {"%y", "!t"}, {"%r", "!t"}, {"%e", "!t"}});
    runner.check(0x1p17);
  }
}

TEST(Codegen, ConstantsAndIndices) {
  for (const char *layout : {"", "nhwc", "nChw16c"}) {
    ClusterRunner runner({{"!t", tensor("2x20x3x4", "f32", layout)},
                          {"!i", tensor("2x20x3x4", "i32", layout)},
                          {"!b", tensor("2x20x3x4", "i1", layout)}},
                         {{"tensor<2xi32>", 0, 20}, {"!t"}},
                         R"(%c = nn.constant dense<2.5> : !t
                            %k = nn.iota {dim = 1 : i64} : !i
                            %h = nn.iota {dim = 2 : i64} : !i
                            %l = nn.broadcast %0 {dims = array<i64: 0>} : (tensor<2xi32>) -> !i
                            %e = nn.compare eq %k, %l : (!i, !i) -> !b
                            %y = nn.select %e, %c, %1 : (!b, !t, !t) -> !t)",
                         {{"%y", "!t"}, {"%h", "!i"}});
    runner.check(0);
  }
}

// Constants that are no splats are data of the code.
TEST(Codegen, Tables) {
  for (const char *layout : {"", "nhwc", "nChw16c"}) {
    ClusterRunner runner(
        {{"!t", tensor("2x3x3x4", "f32", layout)}, {"!b", tensor("2x3x3x4", "i1", layout)}},
        {{"!t"}},
        R"(%k = nn.constant dense<[1.5, -2.0, 7.0]> : tensor<3xf32>
           %m = nn.constant dense<[true, false]> : tensor<2xi1>
           %c = nn.broadcast %k {dims = array<i64: 1>} : (tensor<3xf32>) -> !t
           %r = nn.broadcast %m {dims = array<i64: 0>} : (tensor<2xi1>) -> !b
           %y = nn.select %r, %c, %0 : (!b, !t, !t) -> !t)",
        {{"%y", "!t"}});
    runner.check(0);
  }
}

// Exactly the mask of runtime/core/Philox.h, whatever the layout, whether four elements that follow
// each other share a counter in the code (the first two shapes, in any layout) or not.
TEST(Codegen, Dropout) {
  for (const char *shape : {"2x36x6x8", "2x20x16x33", "3x20x5x7", "3x5x3x7"})
    for (const char *layout : {"", "nhwc", "nChw16c"})
      for (const char *element : {"f32", "bf16"}) {
        SCOPED_TRACE(std::string(shape) + " " + layout + " " + element);
        ClusterRunner runner({{"!t", tensor(shape, element, layout)}, {"!s", "tensor<i64>"}},
                             {{"!t"}, {"!s", 0, 1e15}, {"!s", 0, 100000}, {"!s", 0, 1e9}},
                             "%y = nn.dropout %0, %1, %2, %3 {rate = 0.5 : f64, stream = "
                             "3735928559 : i64} : (!t, !s, !s, !s) -> !t",
                             {{"%y", "!t"}});
        runner.check(0);
      }
  ClusterRunner quarter({{"!t", "tensor<7x64xf32>"}, {"!s", "tensor<i64>"}},
                        {{"!t"}, {"!s", 0, 1e15}, {"!s", 0, 100000}, {"!s", 0, 1e9}},
                        "%y = nn.dropout %0, %1, %2, %3 {rate = 0.25 : f64, stream = 7 : i64} : "
                        "(!t, !s, !s, !s) -> !t",
                        {{"%y", "!t"}});
  quarter.check(2);
}

// Uniform numbers have exactly the bits of runtime/core/Philox.h, normal ones are the quantiles of
// those.
TEST(Codegen, RandomTensors) {
  for (const char *shape : {"2x36x6x8", "2x20x16x33", "3x20x5x7", "3x5x3x7"})
    for (const char *layout : {"", "nhwc", "nChw16c"})
      for (const char *element : {"f32", "bf16"})
        for (const char *op : {"uniform", "normal"}) {
          SCOPED_TRACE(std::string(shape) + " " + layout + " " + element + " " + op);
          bool isExact = std::string(op) == "uniform" && std::string(element) == "f32";
          ClusterRunner runner({{"!t", tensor(shape, element, layout)}, {"!s", "tensor<i64>"}},
                               {{"!s", 0, 1e15}, {"!s", 0, 100000}, {"!s", 0, 1e9}},
                               std::string("%y = nn.") + op +
                                   " %0, %1, %2 {stream = 3735928559 : i64} : (!s, !s, !s) -> !t",
                               {{"%y", "!t"}});
          // Giles gives 3.5e-7 for his polynomial in exact arithmetic.
          runner.check(isExact ? 0 : std::string(element) == "f32" ? 12 : 1 << 16);
        }
}

TEST(Codegen, Movement) {
  struct {
    const char *from, *to, *op;
  } cases[] = {
      {"2x20x6x7xf64", "2x20x6x7xf64, #nn.layout<nChw16c>", "reorder %0"},
      {"2x20x6x7xi32, #nn.layout<nChw16c>", "2x20x6x7xi32", "reorder %0"},
      {"2x20x6x7xf32, #nn.layout<nChw16c>", "2x20x6x7xf32, #nn.layout<nhwc>", "reorder %0"},
      {"2x20x6x7xf32", "2x7x6x20xf32", "transpose %0 {permutation = array<i64: 0, 3, 2, 1>}"},
      {"2x20x6x7xf32", "2x16x3x5xf32",
       "slice %0 {start = array<i64: 0, 3, 2, 1>, size = array<i64: 2, 16, 3, 5>}"},
      {"2x20x6x7xf32, #nn.layout<nhwc>", "2x16x3x5xf32, #nn.layout<nhwc>",
       "slice %0 {start = array<i64: 0, 3, 2, 1>, size = array<i64: 2, 16, 3, 5>}"},
      {"2x48x6x7xf32, #nn.layout<nChw16c>", "2x16x3x5xf32, #nn.layout<nChw16c>",
       "slice %0 {start = array<i64: 0, 32, 2, 1>, size = array<i64: 2, 16, 3, 5>}"},
      {"2x48x6x7xf32, #nn.layout<nChw16c>", "2x18x3x5xf32, #nn.layout<nChw16c>",
       "slice %0 {start = array<i64: 0, 5, 2, 1>, size = array<i64: 2, 18, 3, 5>}"},
      {"2x5x6x7xf32", "2x5x9x10xf32",
       "pad %0 {low = array<i64: 0, 0, 1, 3>, high = array<i64: 0, 0, 2, 0>, value = 1.5 : f64}"},
      {"2x20x6x7xf32, #nn.layout<nChw16c>", "2x20x9x10xf32, #nn.layout<nChw16c>",
       "pad %0 {low = array<i64: 0, 0, 1, 3>, high = array<i64: 0, 0, 2, 0>}"},
      {"2x20x6x7xf32, #nn.layout<nChw16c>", "2x29x6x7xf32, #nn.layout<nChw16c>",
       "pad %0 {low = array<i64: 0, 4, 0, 0>, high = array<i64: 0, 5, 0, 0>}"},
  };
  for (auto &test : cases) {
    SCOPED_TRACE(test.op);
    std::string from = "tensor<" + std::string(test.from) + ">",
                to = "tensor<" + std::string(test.to) + ">";
    ClusterRunner runner({{"!x", from}, {"!y", to}}, {{"!x"}},
                         "%y = nn." + std::string(test.op) + " : (!x) -> !y", {{"%y", "!y"}});
    runner.check(0);
  }
}

// What is side by side in the operand is far apart in the result. On a GPU a block brings it
// through shared memory: several items a block, runs that are aligned and such that are not, more
// of f64 than there is room for.
TEST(Codegen, BetweenOrders) {
  for (auto [shape, element, order] : {std::tuple("2x20x6x7", "f32", "nhwc"),
                                       {"2x17x23x23", "bf16", "nhwc"},
                                       {"2x24x7x7", "bf16", "nhwc"},
                                       {"1x64x12x12", "f32", "nhwc"},
                                       {"1x256x7x7", "bf16", "nhwc"},
                                       {"2x40x9x9", "i8", "nhwc"},
                                       {"2x20x3x4x5", "f32", "ndhwc"},
                                       {"1x64x12x12", "f64", "nhwc"}})
    for (bool toRows : {false, true}) {
      SCOPED_TRACE(std::string(shape) + " " + element +
                   (toRows ? " to rows" : " to " + std::string(order)));
      ClusterRunner runner({{"!x", tensor(shape, element, toRows ? order : "")},
                            {"!y", tensor(shape, element, toRows ? "" : order)}},
                           {{"!x", 0, 200}}, "%y = nn.reorder %0 : (!x) -> !y", {{"%y", "!y"}});
      runner.check(0);
    }
}

// Two operands are brought; another one lies as the result does.
TEST(Codegen, ComputesAcrossOrders) {
  ClusterRunner runner(
      {{"!x", tensor("3x40x9x5", "bf16", "nhwc")}, {"!y", tensor("3x40x9x5", "bf16")}},
      {{"!x"}, {"!x"}, {"!y"}},
      R"(%a = nn.reorder %0 : (!x) -> !y
                          %b = nn.reorder %1 : (!x) -> !y
                          %c = nn.mul %a, %b : (!y, !y) -> !y
                          %d = nn.sub %c, %2 : (!y, !y) -> !y
                          %e = nn.relu %d : (!y) -> !y)",
      {{"%d", "!y"}, {"%e", "!y"}});
  runner.check(1 << 16);
}

TEST(Codegen, Concat) {
  for (auto [layout, channels] :
       {std::pair("", "20"), {"nhwc", "20"}, {"nChw16c", "32"}, {"nChw16c", "20"}}) {
    SCOPED_TRACE(std::string(layout) + " " + channels);
    std::string all = std::to_string(std::stoi(channels) + 21);
    ClusterRunner runner({{"!a", tensor("2x" + std::string(channels) + "x5x6", "f32", layout)},
                          {"!b", tensor("2x16x5x6", "f32", layout)},
                          {"!c", tensor("2x5x5x6", "f32", layout)},
                          {"!y", tensor("2x" + all + "x5x6", "f32", layout)}},
                         {{"!a"}, {"!b"}, {"!c"}},
                         R"(%r = nn.relu %1 : (!b) -> !b
                            %y = nn.concat %0, %r, %2 {dim = 1 : i64} : (!a, !b, !c) -> !y)",
                         {{"%y", "!y"}});
    runner.check(0);
    EXPECT_EQ(runner.plan().stages.size(),
              channels == std::string("20") && layout[0] == 'n' && layout[1] == 'C' ? 1u : 3u);
  }
}

// Inputs of one type are written beside each other in one pass.
TEST(Codegen, ConcatOfEqualInputs) {
  for (auto [layout, channels] : {std::pair("", 20), {"nhwc", 20}, {"nhwc", 32}, {"nChw16c", 16}})
    for (const char *element : {"f32", "bf16"}) {
      SCOPED_TRACE(std::string(layout) + " " + std::to_string(channels) + " " + element);
      auto type = [&, layout = layout](int64_t count) {
        return tensor("2x" + std::to_string(count) + "x9x7", element, layout);
      };
      ClusterRunner runner(
          {{"!a", type(channels)}, {"!b", type(5)}, {"!y", type(2 * channels + 5)}},
          {{"!a"}, {"!a"}, {"!b"}},
          R"(%r = nn.relu %1 : (!a) -> !a
                              %y = nn.concat %0, %r, %2 {dim = 1 : i64} : (!a, !a, !b) -> !y)",
          {{"%y", "!y"}});
      runner.check(0);
      EXPECT_EQ(runner.plan().stages.size(), 2u);
      EXPECT_EQ(runner.plan().stages[0].buffers.size(), 3u);
    }
}

// Tiles of an image, whole ones and what is left of one, in layouts that keep them.
TEST(Codegen, Subsample) {
  for (auto [layout, channels] : {std::pair("", 20), {"nhwc", 20}, {"nhwc", 64}, {"nChw16c", 20}})
    for (const char *element : {"f32", "bf16", "i8"}) {
      SCOPED_TRACE(std::string(layout) + " " + std::to_string(channels) + " " + element);
      std::string image = "2x" + std::to_string(channels);
      ClusterRunner runner(
          {{"!x", tensor(image + "x7x9", element, layout)},
           {"!p", tensor(image + "x7x6", element, layout)},
           {"!y", tensor(image + "x4x2", element, layout)}},
          {{"!x"}},
          R"(%p = nn.slice %0 {start = array<i64: 0, 0, 0, 3>, size = array<i64: 2, )" +
              std::to_string(channels) + R"(, 7, 6>} : (!x) -> !p
                              %y = nn.subsample %p {strides = array<i64: 1, 1, 2, 3>} : (!p) -> !y)",
          {{"%y", "!y"}});
      runner.check(0);
    }
}

TEST(Codegen, Repeat) {
  for (auto [layout, channels] : {std::pair("", 20), {"nhwc", 20}, {"nhwc", 64}, {"nChw16c", 20}})
    for (const char *element : {"f32", "bf16", "i8"}) {
      SCOPED_TRACE(std::string(layout) + " " + std::to_string(channels) + " " + element);
      std::string image = "2x" + std::to_string(channels);
      bool isFloat = element != std::string("i8");
      ClusterRunner runner({{"!x", tensor(image + "x4x5", element, layout)},
                            {"!y", tensor(image + "x8x15", element, layout)}},
                           {{"!x"}},
                           (isFloat ? "%r = nn.neg %0 : (!x) -> !x\n" : std::string()) +
                               "%y = nn.repeat " + (isFloat ? "%r" : "%0") +
                               " {times = array<i64: 1, 1, 2, 3>} : (!x) -> !y",
                           {{"%y", "!y"}});
      runner.check(0);
      EXPECT_EQ(runner.plan().stages.size(), 1u);
    }
}

// Vectors of 8 lanes and no masked registers, whatever this machine has.
TEST(Codegen, AvxTwo) {
  if (!rt::missingFeatures({"avx2", "fma"}).empty())
    GTEST_SKIP() << "this machine has no AVX2";
  CodeTarget target{"x86-64-v3", "", 32};
  for (auto [shape, layout] : places) {
    SCOPED_TRACE(std::string(shape) + " " + layout);
    std::string channels = std::string(shape).substr(std::string(shape).find('x') + 1);
    channels = channels.substr(0, channels.find('x'));
    ClusterRunner runner(
        {{"!t", tensor(shape, "f32", layout)}, {"!c", tensor(channels, "f32")}}, {{"!t"}, {"!c"}},
        R"(%a = nn.broadcast %1 {dims = array<i64: 1>} : (!c) -> !t
           %p = nn.mul %0, %a : (!t, !t) -> !t
           %e = nn.exp %p : (!t) -> !t
           %s = nn.reduce_sum %p {dims = array<i64: 0>} : (!t) -> tensor<)" +
            std::string(shape).substr(std::string(shape).find('x') + 1) + "xf32>",
        {{"%e", "!t"},
         {"%s", "tensor<" + std::string(shape).substr(std::string(shape).find('x') + 1) + "xf32>"}},
        target);
    runner.check(4, 1e-6);
  }
}
