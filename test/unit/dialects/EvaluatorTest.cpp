// The reference evaluator against values computed by hand, and its simulation of ranks.

#include "test/reference/Evaluator.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;
using namespace dlc::reference;

namespace {
Tensor tensor(Shape shape, std::vector<double> values) {
  Tensor result(shape);
  result.data = std::move(values);
  return result;
}

/// Evaluates the body of @train of a model with a batch of 2 on one rank per value of input x.
class EvaluatorTest : public testing::Test {
protected:
  EvaluatorTest() { context.loadDialect<NNDialect, comm::CommDialect>(); }

  std::vector<Outcome> run(const std::string &inputType, const std::string &body,
                           ArrayRef<Tensor> xs, const std::string &variables = "") {
    std::string text = "nn.model @m attributes {stage = \"train\", batch = 2 : i64} {\n" +
                       variables + "nn.program @train(%x: tensor<" + inputType +
                       "> {nn.input = \"x\"}) {\n" + body + "\n}\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return {};
    std::vector<Tensors> inputs;
    for (const Tensor &x : xs)
      inputs.push_back({{"x", x}});
    ModelOp model = *module->getOps<ModelOp>().begin();
    FailureOr<std::vector<Outcome>> outcomes =
        evaluate(*model.getBody().getOps<ProgramOp>().begin(), {}, inputs);
    return succeeded(outcomes) ? *outcomes : std::vector<Outcome>();
  }

  /// The one output "y" of a body on one rank.
  std::vector<double> output(const std::string &inputType, const std::string &body,
                             const Tensor &x) {
    std::vector<Outcome> outcomes = run(inputType, body, x);
    return outcomes.empty() ? std::vector<double>() : outcomes.front().outputs["y"].data;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

using Values = std::vector<double>;

//===- Ranks ----------------------------------------------------------------------------------===//

TEST_F(EvaluatorTest, AllReduceSumsOverRanks) {
  std::vector<Outcome> outcomes =
      run("2xf32",
          "%s = comm.all_reduce %x : tensor<2xf32>\n"
          "nn.output \"y\", %s : tensor<2xf32>",
          {tensor({2}, {1, 10}), tensor({2}, {2, 20}), tensor({2}, {4, 40})});
  ASSERT_EQ(outcomes.size(), 3u);
  for (Outcome &rank : outcomes)
    EXPECT_EQ(rank.outputs["y"].data, Values({7, 70}));
}

TEST_F(EvaluatorTest, WaitDeliversWhatStartSent) {
  std::vector<Outcome> outcomes =
      run("2xf32",
          "%n = nn.neg %x : (tensor<2xf32>) -> tensor<2xf32>\n"
          "%f = comm.start %x, %n {bucket = 0 : i64} : tensor<2xf32>, tensor<2xf32> -> "
          "!comm.future<tensor<2xf32>, tensor<2xf32>>\n"
          "%c = nn.constant dense<1.0> : tensor<2xf32>\n"
          "%r:2 = comm.wait %f : !comm.future<tensor<2xf32>, tensor<2xf32>> -> "
          "tensor<2xf32>, tensor<2xf32>\n"
          "%y = nn.sub %c, %r#1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
          "nn.output \"y\", %y : tensor<2xf32>\nnn.output \"x\", %r#0 : tensor<2xf32>",
          {tensor({2}, {1, 2}), tensor({2}, {3, 4})});
  ASSERT_EQ(outcomes.size(), 2u);
  for (Outcome &rank : outcomes) {
    EXPECT_EQ(rank.outputs["x"].data, Values({4, 6}));
    EXPECT_EQ(rank.outputs["y"].data, Values({5, 7}));
  }
}

const char *const scalars =
    "nn.variable @seed : tensor<i64> {kind = #nn<kind scalar>, init = #nn.init<constant, 5.0, "
    "0.0>}\n"
    "nn.variable @first_row : tensor<i64> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, "
    "0.0>}\n"
    "nn.variable @inverse_world : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<constant, "
    "1.0, 0.0>}\n";

TEST_F(EvaluatorTest, ScalarsDescribeTheRank) {
  std::vector<Outcome> outcomes = run("f32",
                                      "%r = nn.read @first_row : tensor<i64>\n"
                                      "nn.output \"first_row\", %r : tensor<i64>\n"
                                      "%w = nn.read @inverse_world : tensor<f32>\n"
                                      "nn.output \"inverse_world\", %w : tensor<f32>",
                                      {Tensor(), Tensor(), Tensor(), Tensor()}, scalars);
  ASSERT_EQ(outcomes.size(), 4u);
  EXPECT_EQ(outcomes[3].outputs["first_row"].scalar(), 6);
  EXPECT_EQ(outcomes[3].outputs["inverse_world"].scalar(), 0.25);
}

TEST_F(EvaluatorTest, DropoutIsThatOfTheGlobalBatch) {
  auto body = [](const std::string &type) {
    return "%s = nn.read @seed : tensor<i64>\n%r = nn.read @first_row : tensor<i64>\n"
           "%y = nn.dropout %x, %s, %s, %r {rate = 0.5 : f64, stream = 3 : i64} : (" +
           type + ", tensor<i64>, tensor<i64>, tensor<i64>) -> " + type +
           "\nnn.output \"y\", %y : " + type;
  };
  Tensor half({2, 5}, 1), whole({4, 5}, 1);
  std::vector<Outcome> two = run("2x5xf32", body("tensor<2x5xf32>"), {half, half}, scalars);
  std::vector<Outcome> one = run("4x5xf32", body("tensor<4x5xf32>"), whole, scalars);
  ASSERT_EQ(two.size(), 2u);
  Values parts = two[0].outputs["y"].data;
  llvm::append_range(parts, two[1].outputs["y"].data);
  EXPECT_EQ(parts, one[0].outputs["y"].data);
  EXPECT_TRUE(llvm::is_contained(parts, 0) && llvm::is_contained(parts, 2));
}

TEST_F(EvaluatorTest, LossDividesSumsOverRanksByCountsOverRanks) {
  std::vector<Outcome> outcomes =
      run("f32",
          "%two = nn.constant dense<2.0> : tensor<f32>\n"
          "nn.loss %x, %two : tensor<f32>, tensor<f32>\n"
          "nn.loss %two, %x {weight = 0.5 : f64} : tensor<f32>, tensor<f32>",
          {Tensor({}, 1), Tensor({}, 3)});
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_DOUBLE_EQ(totalLoss(outcomes), (1 + 3) / 4.0 + 0.5 * 4 / (1 + 3));
}

//===- Ops ------------------------------------------------------------------------------------===//

TEST_F(EvaluatorTest, Convolution) {
  Values y =
      output("1x1x4xf32",
             "%w = nn.constant dense<[[[1.0, -2.0]]]> : tensor<1x1x2xf32>\n"
             "%b = nn.constant dense<[10.0]> : tensor<1xf32>\n"
             "%y = nn.conv %x, %w, %b {strides = array<i64: 2>, padding_low = array<i64: 1>, "
             "padding_high = array<i64: 1>, dilations = array<i64: 1>} : (tensor<1x1x4xf32>, "
             "tensor<1x1x2xf32>, tensor<1xf32>) -> tensor<1x1x3xf32>\n"
             "nn.output \"y\", %y : tensor<1x1x3xf32>",
             tensor({1, 1, 4}, {1, 2, 3, 4}));
  EXPECT_EQ(y, Values({10 - 2 * 1, 10 + 2 - 2 * 3, 10 + 4}));
}

TEST_F(EvaluatorTest, TransposedConvolution) {
  Values y =
      output("1x1x3xf32",
             "%w = nn.constant dense<[[[1.0, 10.0, 100.0]]]> : tensor<1x1x3xf32>\n"
             "%y = nn.conv_transpose %x, %w {strides = array<i64: 2>, padding_low = array<i64: "
             "1>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : "
             "(tensor<1x1x3xf32>, tensor<1x1x3xf32>) -> tensor<1x1x6xf32>\n"
             "nn.output \"y\", %y : tensor<1x1x6xf32>",
             tensor({1, 1, 3}, {1, 2, 3}));
  EXPECT_EQ(y, Values({10, 100 + 2, 20, 200 + 3, 30, 300}));
}

TEST_F(EvaluatorTest, MaxPoolTakesTheFirstMaximumAndNeverPadding) {
  std::vector<Outcome> outcomes =
      run("1x1x6xf32",
          "%y, %i = nn.max_pool %x {kernel = array<i64: 3>, strides = array<i64: 3>, padding_low = "
          "array<i64: 1>, padding_high = array<i64: 2>} : (tensor<1x1x6xf32>) -> "
          "(tensor<1x1x3xf32>, tensor<1x1x3xi8>)\n"
          "nn.output \"y\", %y : tensor<1x1x3xf32>\nnn.output \"i\", %i : tensor<1x1x3xi8>",
          tensor({1, 1, 6}, {-1, -1, -5, NAN, 7, -2}));
  ASSERT_EQ(outcomes.size(), 1u);
  const Values &y = outcomes[0].outputs["y"].data;
  EXPECT_EQ(y[0], -1);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], -2);
  EXPECT_EQ(outcomes[0].outputs["i"].data, Values({1, 1, 0}));
}

TEST_F(EvaluatorTest, BatchNormUsesBiasedVarianceOrRunningStatistics) {
  auto body = [](const std::string &training) {
    return "%s = nn.constant dense<2.0> : tensor<1xf32>\n"
           "%b = nn.constant dense<1.0> : tensor<1xf32>\n"
           "%v = nn.constant dense<9.0> : tensor<1xf32>\n"
           "%y:3 = nn.batch_norm %x, %s, %b, %b, %v {epsilon = 1.0e-30 : f64, training = " +
           training +
           "} : (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> "
           "(tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>)\nnn.output \"y\", %y#0 : "
           "tensor<2x1xf32>";
  };
  Tensor x = tensor({2, 1}, {4, 10});
  EXPECT_EQ(output("2x1xf32", body("true"), x), Values({-1, 3}));
  EXPECT_EQ(output("2x1xf32", body("false"), x), Values({3, 7}));
}

TEST_F(EvaluatorTest, SmoothedCrossEntropy) {
  Values y = output("1x2xf32",
                    "%l = nn.constant dense<1> : tensor<1xi32>\n"
                    "%y = nn.softmax_cross_entropy %x, %l {smoothing = 0.5 : f64} : "
                    "(tensor<1x2xf32>, tensor<1xi32>) -> tensor<1xf32>\n"
                    "nn.output \"y\", %y : tensor<1xf32>",
                    tensor({1, 2}, {0, std::log(3)}));
  ASSERT_EQ(y.size(), 1u);
  EXPECT_NEAR(y[0], -0.25 * std::log(0.25) - 0.75 * std::log(0.75), 1e-15);
}

TEST_F(EvaluatorTest, ClusterIsItsBody) {
  Values y =
      output("2xf32",
             "%y = nn.fused (%a = %x) : (tensor<2xf32>) -> tensor<f32> {\n"
             "%e = nn.mul %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
             "%s = nn.reduce_sum %e {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>\n"
             "nn.yield %s : tensor<f32>\n}\nnn.output \"y\", %y : tensor<f32>",
             tensor({2}, {3, 4}));
  EXPECT_EQ(y, Values({25}));
}

//===- Errors ---------------------------------------------------------------------------------===//

TEST_F(EvaluatorTest, MissingVariableAndWrongShapeAreErrors) {
  const char *random = "nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = "
                       "#nn.init<normal, 0.0, 1.0>}\n";
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  EXPECT_TRUE(run("f32", "%w = nn.read @w : tensor<f32>", Tensor(), random).empty());
  EXPECT_EQ(message, "no value for variable @w");
  EXPECT_TRUE(run("2xf32", "nn.output \"y\", %x : tensor<2xf32>", Tensor({3})).empty());
  EXPECT_EQ(message, "input 'x' has shape [3], expected 'tensor<2xf32>'");
}
} // namespace
