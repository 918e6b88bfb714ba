// What losses and metrics are: their values beside PyTorch's, their gradients beside central
// differences, and that it is one whatever the ranks are and however much of a batch is padding.
// All by the reference evaluator, in f64.
#include "TestModel.h"

#include "passes/Passes.h"
#include "runtime/artifact/Formula.h"
#include "test/reference/Evaluator.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>

namespace dlc::fe {
namespace {
using namespace reference;

/// Inputs of a batch of two, by the names that expressions use.
struct Input {
  const char *name, *type, *rest; // rest: the shape without the batch
  std::vector<double> values;
};

const std::vector<Input> inputs = {
    {"x", "f32", "3, 2", {0.5, -1.25, 2, 0.75, -0.25, -3, 1.5, 0.25, -2, 3.5, 0.125, -0.5}},
    {"target", "f32", "3, 2", {1, 0, 0, 0.25, 1, 0.5, 0, 1, 0.75, 1, 0, 0}},
    {"shares", "f32", "3, 2", {0.5, 1, 0.25, 0, 0.25, 0, 0.125, 0, 0.625, 0.5, 0.25, 0.5}},
    {"mask", "f32", "1, 2", {1, 0.5, 0, 2}},
    {"rows", "f32", "2", {1, 0, 1, 1}},
    {"label", "i32", "2", {1, 0, 2, 1}},
    {"far", "i32", "2", {255, 0, 2, 255}},
    {"guess", "i32", "2", {1, 1, 2, 0}},
};

/// `z` is x: a convolution by one, whose weight there are derivatives by.
std::string modelOf(const std::string &statements, int batch) {
  std::string text = "model m() {\n";
  for (const Input &input : inputs)
    if (input.name == std::string("x") || statements.find(input.name) != std::string::npos)
      text += "  input " + std::string(input.name) + " : " + input.type + "[" +
              std::to_string(batch) + ", " + input.rest + "]\n";
  return text + "  z = conv(x, 3, kernel = 1, bias = false, name = \"w\")\n" + statements + "\n}\n";
}

Tensors weights() {
  Tensor weight({3, 3, 1});
  weight.data = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  return {{"w.weight", weight}};
}

/// `count` samples from `first` on.
Tensors samples(size_t first, size_t count) {
  Tensors tensors;
  for (const Input &input : inputs) {
    std::string shape = "[" + std::to_string(count) + ", " + input.rest + "]";
    llvm::SmallVector<int64_t> extents;
    for (llvm::StringRef part : llvm::split(llvm::StringRef(shape).drop_front().drop_back(), ", "))
      extents.push_back(std::stoll(part.str()));
    size_t size = input.values.size() / 2;
    Tensor tensor(extents);
    tensor.data.assign(input.values.begin() + first * size,
                       input.values.begin() + (first + count) * size);
    tensors[input.name] = tensor;
  }
  return tensors;
}

std::vector<Outcome> run(Elaborated &model, llvm::StringRef program, const Tensors &variables,
                         llvm::ArrayRef<Tensors> ranks) {
  llvm::FailureOr<std::vector<Outcome>> outcomes =
      evaluate(model.program(program), variables, ranks);
  EXPECT_TRUE(llvm::succeeded(outcomes));
  return llvm::succeeded(outcomes) ? *outcomes : std::vector<Outcome>(ranks.size());
}

struct LossCase {
  const char *name, *loss;
  double value; // of `torch`, in f64
  const char *torch;
};
void PrintTo(const LossCase &test, std::ostream *os) { *os << test.loss << " = " << test.torch; }

class LossTest : public testing::TestWithParam<LossCase> {
protected:
  std::string statements() const { return std::string("  loss = ") + GetParam().loss; }
};

// Constants of a model are f32.
constexpr double rounding = 1e-7;

TEST_P(LossTest, IsThatOfPyTorch) {
  Elaborated model(modelOf(statements(), 2));
  ASSERT_TRUE(model.module) << model.diagnostics;
  double loss = totalLoss(run(model, "train", weights(), samples(0, 2)));
  EXPECT_NEAR(loss, GetParam().value, rounding * std::abs(GetParam().value));
}

TEST_P(LossTest, CountsOverAllRanks) {
  Elaborated whole(modelOf(statements(), 2)), half(modelOf(statements(), 1));
  ASSERT_TRUE(whole.module && half.module);
  double loss = totalLoss(run(whole, "train", weights(), samples(0, 2)));
  double both = totalLoss(run(half, "train", weights(), {samples(0, 1), samples(1, 1)}));
  EXPECT_NEAR(both, loss, 1e-12 * std::abs(loss));
}

TEST_P(LossTest, LeavesOutPadding) {
  Elaborated whole(modelOf(statements(), 2)), half(modelOf(statements(), 1));
  ASSERT_TRUE(whole.module && half.module);
  Tensors padded = samples(0, 2), variables = weights();
  for (auto &[name, tensor] : padded)
    if (name != "label" && name != "far" && name != "guess")
      std::fill(tensor.data.begin() + tensor.data.size() / 2, tensor.data.end(), NAN);
  variables["valid_rows"] = Tensor({}, 1);
  double loss = totalLoss(run(half, "train", weights(), samples(0, 1)));
  EXPECT_NEAR(totalLoss(run(whole, "eval", variables, padded)), loss, 1e-12 * std::abs(loss));
}

TEST_P(LossTest, HasTheGradientOfCentralDifferences) {
  Elaborated model(modelOf(statements(), 2));
  ASSERT_TRUE(model.module) << model.diagnostics;
  mlir::PassManager manager(&model.context);
  manager.addNestedPass<nn::ModelOp>(createDifferentiate());
  ASSERT_TRUE(llvm::succeeded(manager.run(*model.module)));
  Tensors variables = weights(), data = samples(0, 2);
  Tensor gradient = run(model, "train", variables, data)[0].gradients["w.weight"];
  ASSERT_EQ(gradient.data.size(), 9u);
  double error = 0, norm = 0;
  for (size_t i = 0; i < 9; ++i) {
    constexpr double step = 1e-5;
    auto lossAt = [&](double offset) {
      Tensors moved = variables;
      moved["w.weight"].data[i] += offset;
      return totalLoss(run(model, "train", moved, data));
    };
    double expected = (lossAt(step) - lossAt(-step)) / (2 * step);
    error += std::pow(gradient.data[i] - expected, 2);
    norm += expected * expected;
  }
  EXPECT_GT(norm, 1e-6) << "the case tests nothing";
  EXPECT_LT(std::sqrt(error), 1e-6 * std::sqrt(norm));
}

// Computed with PyTorch 2 in f64 from the inputs above: z is x, t target, q shares, y label, f far,
// m mask in the shape of z, r rows, p = sigmoid(z), w = [0.5, 2, 1.25]; mean(l, m) = (l m).sum() /
// m.sum(); bce, ce, huber are those of torch.nn.functional, none is reduction="none", focal is
// torchvision's sigmoid_focal_loss, dice(p, t, s = 1) = (1 - (2 (p t).sum(2) + s) / (p.sum(2) +
// t.sum(2) + s)).mean().
INSTANTIATE_TEST_SUITE_P(
    Losses, LossTest,
    testing::Values(
        LossCase{"Dice", "dice_loss(sigmoid(z), target)", 0.354170826946685, "dice(p, t)"},
        LossCase{"DiceSmoothed", "dice_loss(sigmoid(z), target, smooth = 0.25)", 0.49500478751909,
                 "dice(p, t, 0.25)"},
        LossCase{"Huber", "huber(z, target)", 0.992838541666667, "huber(z, t)"},
        LossCase{"HuberDelta", "huber(z, target, delta = 1.75)", 1.33658854166667,
                 "huber(z, t, delta=1.75)"},
        LossCase{"HuberWhere", "huber(z, target, where = mask)", 0.869047619047619,
                 "mean(huber(z, t, **none), m)"},
        LossCase{"MseWhere", "mse(z, target, where = mask)", 2.56845238095238,
                 "mean((z - t)**2, m)"},
        LossCase{"MaeWhere", "mae(z, target, where = mask > 0.75)", 1.25,
                 "mean((z - t).abs(), m > 0.75)"},
        LossCase{"Bce", "bce_with_logits(z, target)", 0.945211583400867, "bce(z, t)"},
        LossCase{"BceWhere", "bce_with_logits(z, target, where = mask)", 0.662992550407816,
                 "mean(bce(z, t, **none), m)"},
        LossCase{"BcePositive", "bce_with_logits(z, target, pos_weight = 2.5)", 1.5854507931269,
                 "bce(z, t, pos_weight=T(2.5))"},
        LossCase{"BcePositiveFar",
                 "bce_with_logits(64.0 * z, target, pos_weight = 0.5, where = mask)",
                 16.9523809684574, "mean(bce(64 * z, t, pos_weight=T(0.5), **none), m)"},
        LossCase{"Focal", "focal_with_logits(z, target)", 0.25927460100465, "focal(z, t)"},
        LossCase{"FocalWhere", "focal_with_logits(z, target, gamma = 1, where = mask)",
                 0.223846933645228, "mean(focal(z, t, gamma=1, **none), m)"},
        LossCase{"FocalUnweighted", "focal_with_logits(z, target, alpha = -1, gamma = 3.5)",
                 0.266109969299964, "focal(z, t, -1, 3.5)"},
        LossCase{"FocalWithoutFocus", "focal_with_logits(z, target, alpha = 0.5, gamma = 0)",
                 0.472605791700433, "focal(z, t, 0.5, 0)"},
        LossCase{"FocalRootFar", "focal_with_logits(64.0 * z, target, gamma = 0.5)",
                 21.8835713999386, "focal(64 * z, t, gamma=0.5)"},
        LossCase{"CrossEntropy", "softmax_cross_entropy(z, label)", 1.02781324130431, "ce(z, y)"},
        LossCase{"CrossEntropyWhere", "softmax_cross_entropy(z, label, where = rows > 0.5)",
                 0.654607405758714, "mean(ce(z, y, **none), r)"},
        LossCase{"CrossEntropySmoothed", "softmax_cross_entropy(z, label, smoothing = 0.125)",
                 1.14760490797098, "ce(z, y, label_smoothing=0.125)"},
        LossCase{"CrossEntropyWeights", "softmax_cross_entropy(z, label, weights = [0.5, 2, 1.25])",
                 0.657945630914411, "ce(z, y, w)"},
        LossCase{"CrossEntropyWeightsWhere",
                 "softmax_cross_entropy(z, label, weights = [0.5, 2, 1.25], where = rows)",
                 0.516089905483298, "(ce(z, y, w, **none) * r).sum() / (w[y] * r).sum()"},
        LossCase{"CrossEntropyIgnore", "softmax_cross_entropy(z, label, ignore = 1)",
                 1.88583032781386, "ce(z, y, ignore_index=1)"},
        LossCase{"CrossEntropyIgnoreFar",
                 "softmax_cross_entropy(z, far, ignore = 255, smoothing = 0.125)", 1.89624699448053,
                 "ce(z, f, ignore_index=255, label_smoothing=0.125)"},
        LossCase{"CrossEntropyIgnoreWeights",
                 "softmax_cross_entropy(z, far, ignore = 255, weights = [0.5, 2, 1.25])",
                 1.77371586204505, "ce(z, f, w, ignore_index=255)"},
        LossCase{"CrossEntropySmoothedWeights",
                 "softmax_cross_entropy(z, label, smoothing = 0.125, weights = [0.5, 2, 1.25])",
                 0.773924880815071, "ce(z, y, w, label_smoothing=0.125)"},
        LossCase{"CrossEntropyAll",
                 "softmax_cross_entropy(z, far, 0.125, [0.5, 2, 1.25], ignore = 255)",
                 1.93042346163713, "ce(z, f, w, ignore_index=255, label_smoothing=0.125)"},
        LossCase{"CrossEntropyShares", "softmax_cross_entropy(64.0 * z, shares)", 125.5,
                 "ce(64 * z, q)"},
        LossCase{"CrossEntropySharesSmoothed",
                 "softmax_cross_entropy(z, shares, smoothing = 0.125)", 2.12514397047098,
                 "ce(z, q, label_smoothing=0.125)"},
        LossCase{"CrossEntropySharesWeights",
                 "softmax_cross_entropy(z, shares, 0.125, [0.5, 2, 1.25])", 2.52791390098582,
                 "ce(z, q, w, label_smoothing=0.125)"},
        LossCase{"CrossEntropySharesWhere", "softmax_cross_entropy(z, shares, where = rows)",
                 2.14419073909205, "mean(ce(z, q, **none), r)"}),
    [](const testing::TestParamInfo<LossCase> &info) { return info.param.name; });

//===- Metrics --------------------------------------------------------------------------------===//

struct MetricCase {
  const char *name, *metric;
  double value;
};
void PrintTo(const MetricCase &test, std::ostream *os) { *os << test.metric; }

class MetricTest : public testing::TestWithParam<MetricCase> {};

/// Of a rank for each sample, of which the second one's batch has a row of padding.
TEST_P(MetricTest, IsTakenOfSumsOverAllRows) {
  Elaborated model(modelOf(std::string("  loss = mean(z)\n  metric m = ") + GetParam().metric, 2));
  ASSERT_TRUE(model.module) << model.diagnostics;
  std::map<std::string, rt::Pair> pooled;
  for (int64_t sample : {0, 1}) {
    Tensors padded = samples(0, 2), one = samples(sample, 1), variables = weights();
    for (auto &[name, tensor] : padded)
      std::copy(one[name].data.begin(), one[name].data.end(), tensor.data.begin());
    variables["valid_rows"] = Tensor({}, 1);
    std::vector<Outcome> outcomes = run(model, "eval", variables, padded);
    for (const Outcome::Fraction &f : outcomes[0].metrics) {
      pooled[f.name].sum += f.sum;
      pooled[f.name].count += f.count;
    }
  }
  double value = pooled["m"].sum / pooled["m"].count;
  if (auto formulas = model.program("eval")->getAttrOfType<mlir::ArrayAttr>("formulas")) {
    auto formula = mlir::cast<mlir::DictionaryAttr>(formulas[0]);
    EXPECT_EQ(formula.getAs<mlir::StringAttr>("name").getValue(), "m");
    std::vector<rt::Pair> means;
    for (int64_t i = 0; i < formula.getAs<mlir::IntegerAttr>("means").getInt(); ++i)
      means.push_back(pooled.at("m." + std::to_string(i)));
    EXPECT_EQ(means.size(), pooled.size() - 1);
    std::string expression = formula.getAs<mlir::StringAttr>("expression").str();
    value = rt::Formula::parse(expression, means.size())->evaluate(means);
  }
  EXPECT_NEAR(value, GetParam().value, rounding * std::abs(GetParam().value));
}

// By hand: x > 0 holds for 7 of 12 elements, target > 0.5 for 5, both for 3. Of label and guess,
// class 0 has 0 in common of 2, class 1 has 1 of 3 (2 and 2 elements), class 2 its one, class 3
// none at all. Without what is labelled 0 class 1 has 1 of 2, class 2 its one; of far, classes 0
// and 1 have nothing of 1, class 2 its one. x is largest at classes 1, 1, 0, 1. The sum of (x -
// target)^2 is 36.765625, that of |x - target| 17.125.
INSTANTIATE_TEST_SUITE_P(
    Metrics, MetricTest,
    testing::Values(
        MetricCase{"Iou", "iou(z > 0.0, target > 0.5)", 3.0 / 9},
        MetricCase{"Dice", "dice(z > 0.0, target > 0.5)", 6.0 / 12},
        MetricCase{"IouOfClasses", "iou(guess, label, classes = 4)", 4.0 / 9},
        MetricCase{"DiceOfClasses", "dice(guess, label, classes = 4)", 0.5},
        MetricCase{"IouIgnore", "iou(guess, label, classes = 4, ignore = 0)", 0.75},
        MetricCase{"DiceIgnore", "dice(guess, label, classes = 4, ignore = 0)", (2.0 / 3 + 1) / 2},
        MetricCase{"IouIgnoreNoClass", "iou(guess, far, classes = 3, ignore = 255)", 1.0 / 3},
        MetricCase{"Accuracy", "accuracy(z, label)", 2.0 / 4},
        MetricCase{"AccuracyIgnore", "accuracy(z, label, ignore = 0)", 2.0 / 3},
        MetricCase{"AccuracyIgnoreNoClass", "accuracy(z, far, ignore = 255) + 1", 1},
        MetricCase{"ScaledIou", "100 * iou(guess, label, classes = 4)", 400.0 / 9},
        MetricCase{"IouOfClassesAndOther",
                   "iou(guess, label, classes = 4) - 0.5 * accuracy(z, label)", 4.0 / 9 - 0.25},
        MetricCase{"OtherAndIouOfClasses", "accuracy(z, label) / dice(guess, label, classes = 4)",
                   1},
        MetricCase{"TwoOfClasses",
                   "iou(guess, label, classes = 4) + iou(guess, label, classes = 4, ignore = 0)",
                   4.0 / 9 + 0.75},
        MetricCase{"Psnr", "psnr(z, target, range = 4)", 10 * std::log10(16 / (36.765625 / 12))},
        MetricCase{"Sum", "mse(z, target) - 2 * mae(z, target)", (36.765625 - 2 * 17.125) / 12},
        MetricCase{"Quotient", "mae(z, target) / mse(z, target)", 17.125 / 36.765625},
        MetricCase{"Function", "-10 * log(1 / (2 * mse(z, target))) + 1",
                   10 * std::log(2 * 36.765625 / 12) + 1},
        MetricCase{"Harmonic",
                   "2 / (1 / iou(z > 0.0, target > 0.5) + 1 / dice(z > 0.0, target > "
                   "0.5)) - iou(z > 0.0, target > 0.5)",
                   2 / (9.0 / 3 + 2) - 3.0 / 9}),
    [](const testing::TestParamInfo<MetricCase> &info) { return info.param.name; });

/// In arithmetic with tensors a function of means has the value of this rank's batch.
TEST(Metrics, FunctionsOfMeansAreValues) {
  Elaborated model(
      modelOf("  loss = mean(abs(x) * (1 / exp(mse(z, target)) - mae(z, target) / 4))", 2));
  ASSERT_TRUE(model.module) << model.diagnostics;
  double sum = 0;
  for (double x : inputs[0].values)
    sum += std::abs(x);
  double factor = 1 / std::exp(36.765625 / 12) - 17.125 / 12 / 4;
  EXPECT_NEAR(totalLoss(run(model, "train", weights(), samples(0, 2))), sum / 12 * factor, 1e-6);
}

TEST(Metrics, FunctionsOfMeansAreNoLosses) {
  expectError("model m() { input x : f32[2, 3]; loss = mean(x) / mean(x * x) }",
              {"", "test.dl:1:49",
               "a loss is a weighted sum of means, such as mean(x) or mse(a, b), "
               "got a function of means"});
  expectError("model m() { input x : f32[2, 3]; loss = 1 - iou(x > 0, x > 1) }",
              {"", "test.dl:1:43", "iou has no gradient"});
}

/// What repeats in a function is pooled once.
TEST(Metrics, TermsOfAFunctionAreThereOnce) {
  Elaborated model(modelOf("  a = mse(z, target)\n  loss = mean(z)\n  metric m = a / (a + 1)", 2));
  ASSERT_TRUE(model.module) << model.diagnostics;
  EXPECT_EQ(model.count<nn::MetricOp>("eval"), 1u);
}

} // namespace
} // namespace dlc::fe
