// Values and gradients of the language's functions where they are special: where a derivative
// jumps, or where the branch that is not taken is no number. What is expected is what torch
// computes, unless the case says otherwise.

#include "frontend/Frontend.h"
#include "passes/Passes.h"
#include "test/reference/Evaluator.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>
#include <limits>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;
using namespace dlc::reference;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity(), nan = NAN;

struct Point {
  double x, y, gradient; // of the sum of y
};

struct Case {
  const char *expression; // of x
  std::vector<Point> points;
};

void PrintTo(const Case &test, std::ostream *os) { *os << test.expression; }

class OperatorTest : public testing::TestWithParam<Case> {};

/// The bias of a layer whose weights are zero is a parameter of any values.
TEST_P(OperatorTest, ValuesAndGradients) {
  const std::vector<Point> &points = GetParam().points;
  std::string count = std::to_string(points.size());
  std::string text = "model m() {\n  input one : f32[1, 1]\n  x = dense(one, " + count +
                     ", name = \"x\")\n  y = " + GetParam().expression +
                     "\n  loss = mean(y)\n  output p = y\n}";
  MLIRContext context;
  std::string diagnostics;
  llvm::raw_string_ostream os(diagnostics);
  OwningOpRef<ModuleOp> module = fe::elaborateText(text, "test.dl", {}, context, os);
  ASSERT_TRUE(module) << diagnostics;
  PassManager manager(&context);
  manager.addNestedPass<ModelOp>(createDifferentiate());
  ASSERT_TRUE(succeeded(manager.run(*module)));
  auto program = [&](StringRef name) {
    ModelOp model = *module->getOps<ModelOp>().begin();
    return cast<ProgramOp>(SymbolTable::lookupSymbolIn(model, name));
  };
  Tensors variables{{"x.weight", Tensor({static_cast<int64_t>(points.size()), 1}, 0)}};
  Tensor &x = variables["x.bias"] = Tensor({static_cast<int64_t>(points.size())});
  for (auto [value, point] : llvm::zip(x.data, points))
    value = point.x;
  Tensors inputs{{"one", Tensor({1, 1}, 1)}};
  auto values = evaluate(program("predict"), variables, inputs);
  auto gradients = evaluate(program("train"), variables, inputs);
  ASSERT_TRUE(succeeded(values) && succeeded(gradients));
  const Tensor &result = (*values)[0].outputs.at("p");
  Tensors &gradient = (*gradients)[0].gradients;
  gradient.try_emplace("x.bias", x.shape); // zeros
  for (auto [i, point] : llvm::enumerate(points)) {
    double y = result.data[result.size() == 1 ? 0 : i];
    double derivative = gradient["x.bias"].data[i] * static_cast<double>(result.size());
    for (auto [actual, expected] : {std::pair(y, point.y), {derivative, point.gradient}})
      if (std::isfinite(expected))
        EXPECT_NEAR(actual, expected, 1e-6 * std::fabs(expected) + 1e-12) << "x = " << point.x;
      else
        EXPECT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected)))
            << "x = " << point.x << ": " << actual;
  }
}

const double e = std::exp(-1);

INSTANTIATE_TEST_SUITE_P(
    Activations, OperatorTest,
    testing::Values(
        Case{"silu(x)", {{0, 0, 0.5}, {100, 100, 1}, {-100, 0, 0}, {1, 0.731058579, 0.927670512}}},
        Case{"gelu(x)",
             {{0, 0, 0.5},
              {100, 100, 1},
              {-100, 0, 0},
              {1, 0.841344746, 1.083315471},
              {-1e30, 0, 0}}},
        Case{"leaky_relu(x)", {{0, 0, 0.01}, {2, 2, 1}, {-2, -0.02, 0.01}, {nan, nan, 0.01}}},
        Case{"leaky_relu(x, slope = -0.5)", {{-2, 1, -0.5}, {3, 3, 1}}},
        Case{"elu(x)", {{0, 0, 1}, {100, 100, 1}, {1e30, 1e30, 1}, {-1, e - 1, e}, {-inf, -1, 0}}},
        Case{"softplus(x)", {{0, std::log(2.0), 0.5}, {100, 100, 1}, {-800, 0, 0}}},
        Case{"hardswish(x)",
             {{-3, 0, 0}, {3, 3, 1}, {0, 0, 0.5}, {1, 4.0 / 6, 5.0 / 6}, {-4, 0, 0}, {4, 4, 1}}},
        Case{"log10(x)",
             {{100, 2, 0.01 / std::log(10.0)}, {0, -inf, inf}, {-1, nan, -0.434294482}}}));

INSTANTIATE_TEST_SUITE_P(
    Powers, OperatorTest,
    testing::Values(
        Case{"x ** 0 + 0 * x", {{0, 1, 0}, {-2, 1, 0}}}, Case{"x ** 1", {{0, 0, 1}, {-2, -2, 1}}},
        Case{"x ** 2", {{0, 0, 0}, {-3, 9, -6}}}, Case{"x ** 3", {{0, 0, 0}, {-2, -8, 12}}},
        Case{"x ** 5", {{0, 0, 0}, {-2, -32, 80}}}, Case{"x ** 7", {{-1, -1, 7}, {2, 128, 448}}},
        Case{"x ** 9", {{-1, -1, 9}, {0, 0, 0}}},
        Case{"x ** -1", {{2, 0.5, -0.25}, {0, inf, -inf}}}, Case{"x ** -2", {{-2, 0.25, 0.25}}},
        Case{"x ** 0.5", {{4, 2, 0.25}, {0, 0, inf}, {-1, nan, nan}}},
        Case{"x ** -0.5", {{4, 0.5, -0.0625}}},
        Case{"x ** 1.5", {{4, 8, 3}, {0, 0, 0}, {-1, nan, nan}}}, Case{"-x ** 2", {{3, -9, -6}}}));

INSTANTIATE_TEST_SUITE_P(
    Choices, OperatorTest,
    testing::Values(
        // At its bounds clamp passes the gradient.
        Case{"clamp(x, -1, 2)", {{-1, -1, 1}, {2, 2, 1}, {-2, -1, 0}, {3, 2, 0}, {0, 0, 1}}},
        Case{"where(x > 1, x ** 2, 3 * x)", {{1, 3, 3}, {2, 4, 4}, {-1, -3, 3}, {nan, nan, nan}}},
        // What is not taken may overflow, but its derivative must be a number.
        Case{"where(x > 0, x, exp(min(x, 0)))", {{1000, 1000, 1}, {-1, e, e}}},
        Case{"where(x > 0, log(max(x, 1e-6)), 0.0)",
             {{0, 0, 0}, {-5, 0, 0}, {2, std::log(2.0), 0.5}}},
        // The first of equals takes all of the gradient; torch halves it.
        Case{"max(x, 2 * x)", {{0, 0, 1}, {1, 2, 2}, {-1, -1, 1}}},
        Case{"max(2 * x, x)", {{0, 0, 2}, {1, 2, 2}, {-1, -1, 1}}},
        Case{"min(x, 2 * x)", {{0, 0, 1}, {1, 1, 1}, {-1, -2, 2}}},
        Case{"min(2 * x, x)", {{0, 0, 2}, {1, 1, 1}, {-1, -2, 2}}},
        Case{"max(3, x) + 10 * min(x, 3)", {{3, 33, 10}}}, Case{"where(true, x, 5)", {{2, 2, 1}}},
        Case{"stop_gradient(x) * x", {{3, 9, 3}, {-2, 4, -2}}},
        Case{"x if training else 2 * x", {{3, 6, 1}}}));

INSTANTIATE_TEST_SUITE_P(
    Reductions, OperatorTest,
    testing::Values(Case{"amax(x, axes = 1)", {{1, 3, 0}, {3, 3, 0.5}, {3, 3, 0.5}}},
                    Case{"var(x, axes = 1)", {{1, 7, -2}, {2, 7, -1}, {6, 7, 3}}},
                    Case{"var(x, axes = 1)", {{1e6 + 1, 2, -2}, {1e6 + 3, 2, 2}}},
                    Case{"var(x, axes = 1, correction = 0)", {{5, 0, 0}}},
                    Case{"argmax(x, 1)", {{1, 1, 0}, {3, 1, 0}, {3, 1, 0}, {2, 1, 0}}},
                    Case{"argmax(x, 1)", {{-inf, 0, 0}, {-inf, 0, 0}}},
                    // The first that is no number is the largest.
                    Case{"argmax(x, 1)", {{1, 1, 0}, {nan, 1, 0}, {inf, 1, 0}, {nan, 1, 0}}},
                    Case{"log_softmax(x)", {{1000, 0, -1}, {0, -1000, 1}}}));
} // namespace
