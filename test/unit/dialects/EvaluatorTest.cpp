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
        evaluate(*model.getBody().getOps<ProgramOp>().begin(), {}, inputs, arithmetic);
    return succeeded(outcomes) ? *outcomes : std::vector<Outcome>();
  }

  /// The one output "y" of a body on one rank.
  std::vector<double> output(const std::string &inputType, const std::string &body,
                             const Tensor &x) {
    std::vector<Outcome> outcomes = run(inputType, body, x);
    return outcomes.empty() ? std::vector<double>() : outcomes.front().outputs["y"].data;
  }

  Arithmetic arithmetic;
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

//===- Norms ----------------------------------------------------------------------------------===//

/// A norm of x [2, 4, 2], and what torch.nn.functional of PyTorch 2.15 computes of the same in f64:
/// y, and the gradients of sum(y dy) in x, weight and bias.
struct Norm {
  const char *groups, *statistics, *shape, *weight, *bias; // groups and types' extents; elements
  Values y, dx, dw, db;
};

TEST_F(EvaluatorTest, NormsAreTorchs) {
  const char *const channels = "[0.5, 1.0, 1.5, -2.0]", *const shifts = "[0.25, -0.5, 0.0, 1.0]";
  Tensor x = tensor({2, 4, 2}, {-2.25, 2.75, -1.75, 0.75, -0.75, -0.75, 0.75, -1.75, //
                                -3, 0, 1.5, 1.5, 0, -3, -1, -0.5});
  const std::string dy = "[[[-2.5, 0.5], [3.5, -0.5], [2.5, -1.5], [1.5, -2.5]], "
                         "[[-4.0, 1.0], [-3.0, 2.0], [-2.0, 3.0], [-1.0, 4.0]]]";
  const Norm norms[] = {
      // group_norm(x, 2, weight, bias)
      {"2",
       "2x2",
       "4",
       channels,
       shifts,
       {-0.2781636485, 0.964574348, -1.307779698, -0.0650417012, -0.2100406947, -0.2100406947,
        -2.080596856, 3.520488336, -0.5664953713, 0.25, 0.3164953713, 0.3164953713, 1.481811797,
        -2.469686328, 0.7804723264, -0.09763836805},
       {-1.04936944, 0.1185153403, 1.354056952, -0.4232028517, 2.784074294, -3.937227936,
        0.4612055784, 0.6919480635, -0.2041254557, 0.6123715285, -1.564948655, 1.156702582,
        1.507575366, -0.3173488739, 3.094544022, -4.284770514},
       {9.887355561, -3.861203463, -7.055148848, 7.546570962},
       {-5, 2, 2, 2}},
      // instance_norm(x, weight, bias)
      {"4",
       "2x4",
       "4",
       channels,
       shifts,
       {-0.2499996, 0.7499996, -1.4999968, 0.4999968, 0, 0, -0.9999936, 2.9999936, -0.2499988889,
        0.7499988889, -0.5, -0.5, 1.499996667, -1.499996667, 2.999840019, -0.9998400192},
       {-4.79998848e-07, 4.79998848e-07, 1.02399017e-05, -1.02399017e-05, 948.6832981, -948.6832981,
        -2.047980339e-05, 2.047980339e-05, -3.703679012e-06, 3.703679012e-06, -790.569415,
        790.569415, -1.111103704e-05, 1.111103704e-05, 0.003199232154, -0.003199232154},
       {7.999986489, -3.9999872, -4.999988889, 8.999587248},
       {-5, 2, 2, 2}},
      // layer_norm(x, (4, 2), weight, bias)
      {"1",
       "2x1",
       "4x2",
       "[[0.5, 1.0], [1.5, -2.0], [0.75, -0.25], [1.25, 3.0]]",
       "[[-0.25, 0.0], [0.25, -1.5], [-0.125, -0.625], [0.125, 1.0]]",
       {-0.8447874922, 1.982624974, -1.058532483, -2.927489981, -0.3034362477, -0.5655212508,
        1.017181238, -1.617064966, -0.9983399068, 0.3453876493, 2.149632071, -4.032842762,
        0.134040737, -0.2508300466, -0.2107935479, 1.115129216},
       {-0.3995198986, -0.7880584833, 3.57445919, 0.1286849406, 1.133462504, 0.1818025169,
        0.6838199334, -4.514650704, -1.84342131, 0.8504974091, -2.100700645, -1.793689401,
        -0.6845588101, -1.0758932, -0.8150036067, 7.462769564},
       {8.960656716, 1.336700136, -6.852506602, 2.175970266, -1.285562791, -4.133166946,
        1.339252324, 2.334393093},
       {-6.5, 1.5, 0.5, 1.5, 0.5, 1.5, 0.5, 1.5}},
  };
  for (const Norm &norm : norms) {
    SCOPED_TRACE(norm.groups);
    auto type = [](const std::string &shape) { return "tensor<" + shape + "xf64>"; };
    std::string t = type("2x4x2"), w = type(norm.shape), m = type(norm.statistics);
    std::string body =
        "%w = nn.constant dense<" + std::string(norm.weight) + "> : " + w +
        "\n%b = nn.constant dense<" + norm.bias + "> : " + w + "\n%d = nn.constant dense<" + dy +
        "> : " + t +
        "\n%y, %m, %v = nn.group_norm %x, %w, %b {epsilon = 1.0e-5 : f64, groups = " + norm.groups +
        " : i64} : (" + t + ", " + w + ", " + w + ") -> (" + t + ", " + m + ", " + m +
        ")\n%dx, %dw, %db = nn.group_norm_grad %d, %x, %w, %m, %v {epsilon = 1.0e-5 : f64} : (" +
        t + ", " + t + ", " + w + ", " + m + ", " + m + ") -> (" + t + ", " + w + ", " + w + ")";
    for (auto [name, element] :
         {std::pair("y", t), std::pair("dx", t), std::pair("dw", w), std::pair("db", w)})
      body += "\nnn.output \"" + std::string(name) + "\", %" + name + " : " + element;
    std::vector<Outcome> outcomes = run("2x4x2xf64", body, x);
    ASSERT_EQ(outcomes.size(), 1u);
    Tensors &outputs = outcomes.front().outputs;
    for (auto [name, expected] : {std::pair("y", norm.y), std::pair("dx", norm.dx),
                                  std::pair("dw", norm.dw), std::pair("db", norm.db)}) {
      ASSERT_EQ(outputs[name].data.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) // ten digits are written down
        EXPECT_NEAR(outputs[name].data[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i])))
            << name << " " << i;
    }
  }
}

//===- Random numbers -------------------------------------------------------------------------===//

TEST_F(EvaluatorTest, RandomTensorsAreThoseOfTheGlobalBatch) {
  for (const char *op : {"nn.uniform", "nn.normal"}) {
    auto body = [&](const std::string &type) {
      return "%s = nn.read @seed : tensor<i64>\n%r = nn.read @first_row : tensor<i64>\n%y = " +
             std::string(op) +
             " %s, %s, %r {stream = 3 : i64} : (tensor<i64>, tensor<i64>, tensor<i64>) -> " + type +
             "\nnn.output \"y\", %y : " + type;
    };
    Tensor half({2, 5}, 1), whole({4, 5}, 1);
    std::vector<Outcome> two = run("2x5xf32", body("tensor<2x5xf32>"), {half, half}, scalars);
    std::vector<Outcome> one = run("4x5xf32", body("tensor<4x5xf32>"), whole, scalars);
    Values parts = two[0].outputs["y"].data;
    llvm::append_range(parts, two[1].outputs["y"].data);
    EXPECT_EQ(parts, one[0].outputs["y"].data) << op;
    EXPECT_NE(parts[0], parts[10]) << op;
  }
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

/// Both factors are rounded, ties away from zero, the result is not.
TEST_F(EvaluatorTest, FactorsInTf32) {
  const char *const square = "%y = nn.matmul %x, %x : (tensor<1x1xf32>, tensor<1x1xf32>) -> "
                             "tensor<1x1xf32>\nnn.output \"y\", %y : tensor<1x1xf32>";
  const char *const sum = "%y = nn.add %x, %x : (tensor<1x1xf32>, tensor<1x1xf32>) -> "
                          "tensor<1x1xf32>\nnn.output \"y\", %y : tensor<1x1xf32>";
  for (double sign : {1, -1}) {
    Tensor tie = tensor({1, 1}, {sign * (1 + 0x1p-11)}),
           less = tensor({1, 1}, {sign * (1 + 0x1p-11 - 0x1p-23)}), zero({1, 1});
    arithmetic.isTf32 = true;
    EXPECT_EQ(output("1x1xf32", square, tie), Values({(1 + 0x1p-10) * (1 + 0x1p-10)}));
    EXPECT_EQ(output("1x1xf32", square, less), Values({1}));
    EXPECT_EQ(output("1x1xf32", square, zero), Values({0}));
    EXPECT_EQ(output("1x1xf32", sum, tie), Values({sign * (2 + 0x1p-10)}));
    arithmetic.isTf32 = false;
    EXPECT_EQ(output("1x1xf32", square, tie), Values({(1 + 0x1p-11) * (1 + 0x1p-11)}));
  }
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
