// Every gradient rule against central differences in f64: a program with one op, differentiated by
// the pass, evaluated by the reference evaluator.

#include "passes/Passes.h"
#include "test/reference/Evaluator.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;
using namespace dlc::reference;

namespace {
/// An operand: a parameter to differentiate by, with values drawn from [low, high], or something
/// fixed.
struct Operand {
  std::string type; // "2x3xf64"
  double low = -2, high = 2;
  bool isParameter = true;

  Operand(const char *type) : type(type) {}
  Operand(const char *type, double low, double high) : type(type), low(low), high(high) {}
};

Operand fixed(const char *type, double low, double high) {
  Operand operand(type, low, high);
  operand.isParameter = false;
  return operand;
}

struct Case {
  std::string name;
  std::string op;
  std::string attributes;
  std::vector<Operand> operands;
  std::vector<std::string> results; // the loss depends on the first
};

void PrintTo(const Case &test, std::ostream *os) { *os << test.name; }

std::string tensorText(const std::string &type) { return "tensor<" + type + ">"; }

std::string variableText(const std::string &name, const std::string &type, bool isParameter) {
  return "nn.variable @" + name + " : " + tensorText(type) + " {kind = #nn<kind " +
         (isParameter ? "parameter" : "state") + ">, init = #nn.init<constant, 0.0, 0.0>}\n";
}

std::string join(const std::vector<std::string> &items) { return llvm::join(items, ", "); }

/// loss = sum(factor * op(operands)), so that the gradient of the result is the variable `factor`.
std::string programText(const Case &test) {
  std::string y = test.results.front();
  std::string element = y.substr(y.rfind('x') == std::string::npos ? 0 : y.rfind('x') + 1);
  int64_t rank = llvm::count(y, 'x');
  std::string variables = variableText("factor", y, false), reads, dims;
  std::vector<std::string> names, types, results;
  for (auto [i, operand] : llvm::enumerate(test.operands)) {
    std::string name = "p" + std::to_string(i), type = tensorText(operand.type);
    variables += variableText(name, operand.type, operand.isParameter);
    reads += "%" + name + " = nn.read @" + name + " : " + type + "\n";
    names.push_back("%" + name);
    types.push_back(type);
  }
  for (const std::string &result : test.results)
    results.push_back(tensorText(result));
  for (int64_t dim = 0; dim < rank; ++dim)
    dims += (dim ? ", " : ": ") + std::to_string(dim);
  std::string t = tensorText(y), scalar = tensorText(element);
  return "nn.model @m attributes {stage = \"nn\", batch = 2 : i64} {\n" + variables +
         "nn.program @train() {\n" + reads + "%y:" + std::to_string(results.size()) + " = " +
         test.op + " " + join(names) + " {" + test.attributes + "} : (" + join(types) + ") -> (" +
         join(results) + ")\n%f = nn.read @factor : " + t + "\n%m = nn.mul %y#0, %f : (" + t +
         ", " + t + ") -> " + t + "\n%s = nn.reduce_sum %m {dims = array<i64" + dims + ">} : (" +
         t + ") -> " + scalar + "\n%one = nn.constant dense<1.0> : " + scalar +
         "\nnn.loss %s, %one : " + scalar + ", " + scalar + "\n}\n}\n";
}

class GradientTest : public testing::TestWithParam<Case> {
protected:
  GradientTest() {
    context.loadDialect<NNDialect, comm::CommDialect>();
    module = parseSourceString<ModuleOp>(programText(GetParam()), &context);
  }

  ProgramOp program() {
    ModelOp model = *module->getOps<ModelOp>().begin();
    return *model.getBody().getOps<ProgramOp>().begin();
  }

  /// Random values of all variables; integers where the type is one.
  Tensors drawVariables() {
    std::mt19937 random(7);
    Tensors variables;
    program().walk([&](ReadOp read) {
      auto type = tensorType(read.getValue());
      StringRef name = read.getVariable();
      Operand range = name == "factor" ? Operand("", 0.5, 2)
                                       : GetParam().operands[std::stoi(name.drop_front().str())];
      Tensor tensor(type.getShape());
      for (double &value : tensor.data) {
        value = std::uniform_real_distribution<double>(range.low, range.high)(random);
        if (isa<IntegerType>(type.getElementType()))
          value = std::floor(value);
      }
      variables[name.str()] = tensor;
    });
    return variables;
  }

  double loss(const Tensors &variables) {
    FailureOr<std::vector<Outcome>> outcomes = evaluate(program(), variables, Tensors());
    return succeeded(outcomes) ? totalLoss(*outcomes) : NAN;
  }

  Tensor centralDifferences(Tensors variables, const std::string &name) {
    constexpr double step = 1e-5;
    Tensor &variable = variables[name];
    Tensor gradient(variable.shape);
    for (auto [x, dx] : llvm::zip(variable.data, gradient.data)) {
      double at = x;
      x = at + step;
      double above = loss(variables);
      x = at - step;
      dx = (above - loss(variables)) / (2 * step);
      x = at;
    }
    return gradient;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

double norm(const Tensor &tensor) {
  double sum = 0;
  for (double value : tensor.data)
    sum += value * value;
  return std::sqrt(sum);
}

TEST_P(GradientTest, MatchesCentralDifferences) {
  ASSERT_TRUE(module) << programText(GetParam());
  Tensors variables = drawVariables();
  PassManager manager(&context);
  manager.addNestedPass<ModelOp>(createDifferentiate());
  ASSERT_TRUE(succeeded(manager.run(*module)));
  FailureOr<std::vector<Outcome>> outcomes = evaluate(program(), variables, Tensors());
  ASSERT_TRUE(succeeded(outcomes));
  for (auto [i, operand] : llvm::enumerate(GetParam().operands)) {
    if (!operand.isParameter)
      continue;
    std::string name = "p" + std::to_string(i);
    ASSERT_EQ(outcomes->front().gradients.count(name), 1u) << name;
    const Tensor &gradient = outcomes->front().gradients[name];
    Tensor expected = centralDifferences(variables, name), error = gradient;
    ASSERT_EQ(gradient.shape, expected.shape);
    for (auto [e, x] : llvm::zip(error.data, expected.data))
      e -= x;
    EXPECT_GT(norm(expected), 1e-3) << name << ": the case tests nothing";
    EXPECT_LT(norm(error), 1e-6 * norm(expected)) << name;
  }
}

//===- Cases ----------------------------------------------------------------------------------===//

std::vector<Case> unaryCases() {
  std::vector<Case> cases;
  for (const char *op : {"neg", "abs", "exp", "tanh", "relu", "sigmoid", "softplus", "erf"})
    cases.push_back({op, std::string("nn.") + op, "", {"3x4xf64"}, {"3x4xf64"}});
  for (const char *op : {"log", "sqrt", "rsqrt"})
    cases.push_back({op, std::string("nn.") + op, "", {{"3x4xf64", 0.2, 3}}, {"3x4xf64"}});
  return cases;
}

std::vector<Case> binaryCases() {
  std::vector<Case> cases;
  for (const char *op : {"add", "sub", "mul", "max", "min"})
    cases.push_back({op, std::string("nn.") + op, "", {"3x4xf64", "3x4xf64"}, {"3x4xf64"}});
  cases.push_back({"div", "nn.div", "", {"5xf64", {"5xf64", 0.5, 2}}, {"5xf64"}});
  cases.push_back({"pow", "nn.pow", "", {{"5xf64", 0.5, 2}, fixed("5xf64", -2, 3)}, {"5xf64"}});
  return cases;
}

std::vector<Case> otherElementwiseCases() {
  return {
      {"select", "nn.select", "", {fixed("3x4xi1", 0, 2), "3x4xf64", "3x4xf64"}, {"3x4xf64"}},
      {"cast", "nn.cast", "", {"7xf64"}, {"7xf32"}},
      {"dropout",
       "nn.dropout",
       "rate = 0.4 : f64, stream = 77 : i64",
       {"8x9xf64", fixed("i64", 3, 4), fixed("i64", 5, 6), fixed("i64", 8, 9)},
       {"8x9xf64"}},
  };
}

std::vector<Case> shapeCases() {
  return {
      {"broadcast_scalar", "nn.broadcast", "dims = array<i64>", {"f64"}, {"2x3xf64"}},
      {"broadcast_channel", "nn.broadcast", "dims = array<i64: 1>", {"3xf64"}, {"2x3x4xf64"}},
      {"broadcast_two", "nn.broadcast", "dims = array<i64: 0, 2>", {"2x4xf64"}, {"2x3x4xf64"}},
      {"reduce_sum_all", "nn.reduce_sum", "dims = array<i64: 0, 1>", {"3x4xf64"}, {"f64"}},
      {"reduce_sum_inner", "nn.reduce_sum", "dims = array<i64: 0, 2>", {"2x3x4xf64"}, {"3xf64"}},
      {"reduce_max_all", "nn.reduce_max", "dims = array<i64: 0, 1>", {"3x4xf64"}, {"f64"}},
      {"reduce_max_inner", "nn.reduce_max", "dims = array<i64: 0, 2>", {"2x3x4xf64"}, {"3xf64"}},
      {"reshape", "nn.reshape", "", {"2x6xf64"}, {"3x4xf64"}},
      {"transpose",
       "nn.transpose",
       "permutation = array<i64: 2, 0, 1>",
       {"2x3x4xf64"},
       {"4x2x3xf64"}},
      {"concat", "nn.concat", "dim = 1 : i64", {"2x3xf64", "2x1xf64", "2x2xf64"}, {"2x6xf64"}},
      {"slice",
       "nn.slice",
       "start = array<i64: 1, 2>, size = array<i64: 2, 3>",
       {"4x6xf64"},
       {"2x3xf64"}},
      {"pad",
       "nn.pad",
       "low = array<i64: 1, 0>, high = array<i64: 2, 3>, value = 0.5 : f64",
       {"2x3xf64"},
       {"5x6xf64"}},
  };
}

std::string convAttributes(const std::string &strides, const std::string &low,
                           const std::string &high, const std::string &dilations, int groups = 1,
                           const std::string &more = "") {
  return "strides = array<i64: " + strides + ">, padding_low = array<i64: " + low +
         ">, padding_high = array<i64: " + high + ">, dilations = array<i64: " + dilations +
         ">, groups = " + std::to_string(groups) + " : i64" + more;
}

std::vector<Case> convCases() {
  return {
      {"conv_1d",
       "nn.conv",
       convAttributes("1", "0", "0", "1"),
       {"2x3x6xf64", "4x3x2xf64"},
       {"2x4x5xf64"}},
      {"conv_2d_bias_padded",
       "nn.conv",
       convAttributes("1, 1", "1, 0", "2, 1", "1, 1"),
       {"2x2x4x3xf64", "3x2x3x2xf64", "3xf64"},
       {"2x3x5x3xf64"}},
      {"conv_2d_strided_dilated_grouped",
       "nn.conv",
       convAttributes("2, 3", "2, 1", "1, 2", "2, 1", 2),
       {"2x4x7x6xf64", "6x2x3x2xf64", "6xf64"},
       {"2x6x3x3xf64"}},
      {"conv_2d_depthwise",
       "nn.conv",
       convAttributes("1, 1", "1, 1", "1, 1", "1, 1", 3),
       {"1x3x4x4xf64", "3x1x3x3xf64"},
       {"1x3x4x4xf64"}},
      // Rows that the last window does not reach get a gradient of zero.
      {"conv_2d_rest",
       "nn.conv",
       convAttributes("2, 2", "0, 0", "0, 0", "1, 1"),
       {"1x2x4x6xf64", "2x2x1x3xf64"},
       {"1x2x2x2xf64"}},
      {"conv_3d",
       "nn.conv",
       convAttributes("1, 2, 1", "1, 0, 1", "0, 1, 1", "1, 1, 2"),
       {"1x2x3x4x5xf64", "2x2x2x2x2xf64", "2xf64"},
       {"1x2x3x2x5xf64"}},
      {"conv_relu",
       "nn.conv",
       convAttributes("1", "1", "1", "1", 1, ", relu"),
       {"2x2x5xf64", "3x2x3xf64", "3xf64"},
       {"2x3x5xf64"}},
      {"conv_transpose_1d",
       "nn.conv_transpose",
       convAttributes("2", "0", "0", "1"),
       {"2x3x4xf64", "3x2x2xf64"},
       {"2x2x8xf64"}},
      {"conv_transpose_2d_grouped",
       "nn.conv_transpose",
       convAttributes("2, 1", "1, 0", "1, 1", "1, 2", 2),
       {"2x4x3x3xf64", "4x3x3x2xf64", "6xf64"},
       {"2x6x6x4xf64"}},
      {"conv_transpose_3d",
       "nn.conv_transpose",
       convAttributes("2, 2, 2", "0, 0, 0", "0, 0, 0", "1, 1, 1"),
       {"1x2x2x1x2xf64", "2x2x2x2x2xf64", "2xf64"},
       {"1x2x4x2x4xf64"}},
      {"conv_transpose_relu",
       "nn.conv_transpose",
       convAttributes("2", "0", "0", "1", 1, ", relu"),
       {"2x3x4xf64", "3x2x2xf64", "2xf64"},
       {"2x2x8xf64"}},
      {"conv_grad_data",
       "nn.conv_grad_data",
       convAttributes("2, 1", "1, 0", "1, 1", "1, 2", 2),
       {"2x4x3x3xf64", "4x3x3x2xf64"},
       {"2x6x6x4xf64"}},
  };
}

std::vector<Case> matmulCases() {
  std::vector<Case> cases;
  for (const char *a : {"", ", transpose_a"})
    for (const char *b : {"", ", transpose_b"})
      for (const char *relu : {"", ", relu"}) {
        std::string attributes = std::string(a) + b + relu, name = "matmul";
        for (char c : attributes)
          name += std::isalpha(c) ? std::string(1, c) : c == ',' ? "_" : "";
        cases.push_back({name,
                         "nn.matmul",
                         attributes.empty() ? attributes : attributes.substr(2),
                         {*a ? "4x3xf64" : "3x4xf64", *b ? "2x4xf64" : "4x2xf64", "2xf64"},
                         {"3x2xf64"}});
      }
  return cases;
}

std::string poolAttributes(const std::string &kernel, const std::string &strides,
                           const std::string &low, const std::string &high) {
  return "kernel = array<i64: " + kernel + ">, strides = array<i64: " + strides +
         ">, padding_low = array<i64: " + low + ">, padding_high = array<i64: " + high + ">";
}

std::vector<Case> poolingCases() {
  return {
      {"max_pool_1d",
       "nn.max_pool",
       poolAttributes("2", "2", "0", "0"),
       {"2x2x6xf64"},
       {"2x2x3xf64", "2x2x3xi8"}},
      // Windows overlap, so an element may be the maximum of several.
      {"max_pool_2d_overlapping",
       "nn.max_pool",
       poolAttributes("3, 3", "2, 1", "1, 1", "1, 0"),
       {"1x2x6x5xf64"},
       {"1x2x3x4xf64", "1x2x3x4xi8"}},
      {"max_pool_3d",
       "nn.max_pool",
       poolAttributes("2, 2, 2", "2, 2, 2", "0, 0, 0", "0, 0, 0"),
       {"1x2x2x4x4xf64"},
       {"1x2x1x2x2xf64", "1x2x1x2x2xi8"}},
      {"avg_pool_1d",
       "nn.avg_pool",
       poolAttributes("2", "2", "0", "0") + ", count_padding = true",
       {"2x2x7xf64"},
       {"2x2x3xf64"}},
      {"avg_pool_2d_overlapping",
       "nn.avg_pool",
       poolAttributes("3, 4", "2, 1", "1, 2", "1, 0") + ", count_padding = false",
       {"1x2x6x5xf64"},
       {"1x2x3x4xf64"}},
      {"avg_pool_2d_counting_padding",
       "nn.avg_pool",
       poolAttributes("3, 2", "1, 3", "1, 0", "1, 1") + ", count_padding = true",
       {"1x2x3x5xf64"},
       {"1x2x3x2xf64"}},
      {"avg_pool_3d",
       "nn.avg_pool",
       poolAttributes("1, 2, 3", "2, 2, 3", "0, 0, 1", "0, 0, 1") + ", count_padding = false",
       {"1x2x3x4x4xf64"},
       {"1x2x2x2x2xf64"}},
      {"upsample_nearest",
       "nn.upsample",
       "scale = array<i64: 2, 3>",
       {"1x2x3x2xf64"},
       {"1x2x6x6xf64"}},
      {"upsample_linear",
       "nn.upsample",
       "scale = array<i64: 2, 3>, linear",
       {"1x2x3x2xf64"},
       {"1x2x6x6xf64"}},
      {"upsample_linear_3d",
       "nn.upsample",
       "scale = array<i64: 1, 4, 2>, linear",
       {"1x2x2x3x1xf64"},
       {"1x2x2x12x2xf64"}},
      {"pixel_shuffle", "nn.pixel_shuffle", "factor = 2", {"2x8x3x2xf64"}, {"2x2x6x4xf64"}},
      {"pixel_shuffle_3d", "nn.pixel_shuffle", "factor = 2", {"1x8x2x1x3xf64"}, {"1x1x4x2x6xf64"}},
      {"pixel_unshuffle",
       "nn.pixel_shuffle",
       "factor = 3, inverse",
       {"1x2x3x6xf64"},
       {"1x18x1x2xf64"}},
  };
}

std::vector<Case> normalisationAndLossCases() {
  std::vector<Operand> norm{"4x3x5xf64", "3xf64", "3xf64", fixed("3xf64", -1, 1),
                            fixed("3xf64", 0.5, 2)};
  std::vector<std::string> normResults{"4x3x5xf64", "3xf64", "3xf64"};
  return {
      {"batch_norm_training", "nn.batch_norm", "epsilon = 1.0e-2 : f64, training = true", norm,
       normResults},
      {"batch_norm_inference", "nn.batch_norm", "epsilon = 1.0e-2 : f64, training = false", norm,
       normResults},
      {"batch_norm_rank_2",
       "nn.batch_norm",
       "epsilon = 1.0e-2 : f64, training = true",
       {"6x2xf64", "2xf64", "2xf64", fixed("2xf64", -1, 1), fixed("2xf64", 0.5, 2)},
       {"6x2xf64", "2xf64", "2xf64"}},
      {"group_norm",
       "nn.group_norm",
       "epsilon = 1.0e-2 : f64, groups = 3 : i64",
       {"2x6x2x3xf64", "6xf64", "6xf64"},
       {"2x6x2x3xf64", "2x3xf64", "2x3xf64"}},
      {"group_norm_of_channels",
       "nn.group_norm",
       "epsilon = 1.0e-2 : f64, groups = 3 : i64",
       {"2x3x5xf64", "3xf64", "3xf64"},
       {"2x3x5xf64", "2x3xf64", "2x3xf64"}},
      {"group_norm_of_samples",
       "nn.group_norm",
       "epsilon = 1.0e-2 : f64, groups = 1 : i64",
       {"2x3x2x2xf64", "3x2x2xf64", "3x2x2xf64"},
       {"2x3x2x2xf64", "2x1xf64", "2x1xf64"}},
      {"group_norm_rank_2",
       "nn.group_norm",
       "epsilon = 1.0e-2 : f64, groups = 2 : i64",
       {"3x6xf64", "6xf64", "6xf64"},
       {"3x6xf64", "3x2xf64", "3x2xf64"}},
      {"softmax_cross_entropy",
       "nn.softmax_cross_entropy",
       "",
       {"4x5xf64", fixed("4xi32", 0, 5)},
       {"4xf64"}},
      {"softmax_cross_entropy_smoothed",
       "nn.softmax_cross_entropy",
       "smoothing = 0.1 : f64",
       {"4x5xf64", fixed("4xi32", 0, 5)},
       {"4xf64"}},
      {"softmax_cross_entropy_of_pixels",
       "nn.softmax_cross_entropy",
       "smoothing = 0.1 : f64",
       {"2x5x2x3xf64", fixed("2x2x3xi32", 0, 5)},
       {"2x2x3xf64"}},
  };
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (auto part : {unaryCases, binaryCases, otherElementwiseCases, shapeCases, convCases,
                    matmulCases, poolingCases, normalisationAndLossCases})
    llvm::append_range(cases, part());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, testing::ValuesIn(allCases()),
                         [](const auto &info) { return info.param.name; });

/// A new differentiable op fails this until it has a case.
TEST(GradientCoverage, EveryDifferentiableOpHasACase) {
  MLIRContext context;
  context.loadDialect<NNDialect>();
  std::vector<Case> cases = allCases();
  for (RegisteredOperationName op : context.getRegisteredOperations())
    if (op.hasInterface<DifferentiableOpInterface>())
      EXPECT_TRUE(llvm::any_of(cases, [&](const Case &c) { return c.op == op.getStringRef(); }))
          << op.getStringRef().str();
}
} // namespace
