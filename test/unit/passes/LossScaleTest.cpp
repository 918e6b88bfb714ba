// Training steps in f16, by the reference evaluator: what the loss scale is after each, and that a
// step whose gradients are not finite leaves no trace but in the scale.

#include "test/unit/passes/TrainedModel.h"

#include <cmath>
#include <limits>

using namespace dlc;
using namespace dlc::reference;

namespace {
using Model = test::TrainedModel;

constexpr double inf = std::numeric_limits<double>::infinity();

/// loss = mean over two rows of (w x + b)^2, x normalised by its own statistics; all that a step
/// may change is there: parameters, slots, an average, running statistics.
std::string normModel(const std::string &optimizer, const std::string &settings = "") {
  return R"(nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {)" +
         optimizer + "}, ema = 0.75 : f64" + settings + R"(}} {
    nn.variable @w : tensor<1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 2.0, 0.0>}
    nn.variable @b : tensor<1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
    nn.variable @mean : tensor<1xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
    nn.variable @var : tensor<1xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
    nn.program @train(%x: tensor<2x1xf32> {nn.input = "x"}, %y: tensor<2x1xf32> {nn.input = "y"}) {
      %w = nn.read @w : tensor<1xf32>
      %b = nn.read @b : tensor<1xf32>
      %m = nn.read @mean : tensor<1xf32>
      %v = nn.read @var : tensor<1xf32>
      %n, %bm, %bv = nn.batch_norm %x, %w, %b, %m, %v {epsilon = 1.0e-5 : f64, training = true}
          : (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>)
      nn.assign @mean, %bm : tensor<1xf32>
      nn.assign @var, %bv : tensor<1xf32>
      %d = nn.sub %n, %y : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
      %z = nn.mul %d, %d : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
      %s = nn.reduce_sum %z {dims = array<i64: 0, 1>} : (tensor<2x1xf32>) -> tensor<f32>
      %two = nn.constant dense<2.0> : tensor<f32>
      nn.loss %s, %two : tensor<f32>, tensor<f32>
    }
  })";
}

const char *const adam = R"(name = "adam", weight_decay = 0.25 : f64)";

struct Training {
  explicit Training(const std::string &text, const std::string &precision)
      : model(text, precision) {
    model.set("lr", 0.125);
    model.set("optimizer.ema.w", {1}, {2});
    model.set("optimizer.ema.b", {1}, {1});
  }

  /// On as many ranks as there are values of x.
  void step(const std::vector<double> &x, double y = -1) {
    model.set("step", steps++);
    std::vector<Tensors> inputs;
    for (double value : x)
      inputs.push_back(
          {{"x", Model::filled({2, 1}, {value, 1})}, {"y", Model::filled({2, 1}, {0.5, y})}});
    model.run("train", inputs);
  }

  double scale() { return model.at("optimizer.loss_scale"); }
  double skipped() { return model.at("optimizer.skipped_steps"); }

  Model model;
  double steps = 0;
};

/// Of all that both have.
void expectEqual(const Training &a, const Training &b, double tolerance) {
  for (const auto &[name, tensor] : a.model.all()) {
    if (!b.model.all().contains(name) || name == "step" || name == "optimizer.loss_scale" ||
        name == "optimizer.skipped_steps" || name == "optimizer.good_steps")
      continue;
    double expected = b.model.all().at(name).data[0];
    EXPECT_NEAR(tensor.data[0], expected, tolerance * std::abs(expected)) << name;
  }
}

TEST(LossScale, ChangesNoUpdate) {
  for (const char *optimizer : {adam, R"(name = "sgd", momentum = 0.5 : f64)"})
    for (const char *settings : {"", ", clip_norm = 0.125 : f64"}) {
      Training scaled(normModel(optimizer, settings), "f16"),
          plain(normModel(optimizer, settings), "f32");
      for (double x : {3.0, -2.0, 5.0, 0.5, 7.0}) {
        scaled.step({x, 2 * x});
        plain.step({x, 2 * x});
      }
      expectEqual(plain, scaled, 1e-12);
      EXPECT_EQ(scaled.scale(), 65536);
      EXPECT_EQ(scaled.skipped(), 0);
      EXPECT_FALSE(plain.model.hasVariable("optimizer.loss_scale"));
    }
}

/// Of one rank's infinite input all gradients and statistics are no numbers; Adam's step counts
/// only steps that were taken.
TEST(LossScale, AStepWithoutFiniteGradientsChangesNothing) {
  for (const char *settings : {"", ", clip_norm = 0.125 : f64"}) {
    Training broken(normModel(adam, settings), "f16"), whole(normModel(adam, settings), "f16");
    std::vector<std::vector<double>> steps = {{3, 4}, {inf, 2}, {-2, 5}, {1, -inf}, {6, 7}};
    for (auto [number, x] : llvm::enumerate(steps)) {
      auto y = static_cast<double>(number);
      broken.step(x, y);
      if (std::isfinite(x[0]) && std::isfinite(x[1]))
        whole.step(x, y);
    }
    expectEqual(broken, whole, 0);
    EXPECT_EQ(broken.skipped(), 2);
    EXPECT_EQ(broken.scale(), 65536 / 4);
    EXPECT_TRUE(std::isfinite(broken.model.at("w")));
    EXPECT_EQ(whole.skipped(), 0);
  }
}

/// torch.amp.GradScaler's rules.
TEST(LossScale, DoublesAfterGoodStepsAndHalvesAfterABadOne) {
  Training run(normModel(R"(name = "sgd")"), "f16");
  run.step({3});
  EXPECT_EQ(run.scale(), 65536);
  EXPECT_EQ(run.model.at("optimizer.good_steps"), 1);
  run.model.set("optimizer.good_steps", 1998);
  run.step({3});
  EXPECT_EQ(run.scale(), 65536);
  run.step({3});
  EXPECT_EQ(run.scale(), 131072);
  EXPECT_EQ(run.model.at("optimizer.good_steps"), 0);
  run.model.set("optimizer.good_steps", 1999);
  run.step({inf});
  EXPECT_EQ(run.scale(), 65536);
  EXPECT_EQ(run.model.at("optimizer.good_steps"), 0);
  EXPECT_EQ(run.skipped(), 1);
}

/// However often it is halved or doubled, it and its inverse stay normal numbers.
TEST(LossScale, StaysWithinBounds) {
  Training run(normModel(R"(name = "sgd")"), "f16");
  run.model.set("optimizer.loss_scale", 0x1.0p-126);
  run.step({inf});
  EXPECT_EQ(run.scale(), 0x1.0p-126);
  run.model.set("optimizer.loss_scale", 0x1.0p126);
  run.model.set("optimizer.good_steps", 1999);
  run.step({3});
  EXPECT_EQ(run.scale(), 0x1.0p126);
}

/// loss = mean of the squares of x w, a product in f16: its gradient leaves f16 if the loss is
/// scaled by much, and vanishes in f16 if it is not scaled.
std::string productModel() {
  return R"(nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "sgd"}}} {
    nn.variable @w : tensor<1x1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
    nn.program @train(%x: tensor<2x1xf32> {nn.input = "x"}) {
      %w = nn.read @w : tensor<1x1xf32>
      %y = nn.matmul %x, %w : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
      %z = nn.mul %y, %y : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
      %s = nn.reduce_sum %z {dims = array<i64: 0, 1>} : (tensor<2x1xf32>) -> tensor<f32>
      %count = nn.constant dense<1048576.0> : tensor<f32>
      nn.loss %s, %count : tensor<f32>, tensor<f32>
    }
  })";
}

TEST(LossScale, KeepsSmallGradientsAndBacksOffFromLargeOnes) {
  Training run(productModel(), "f16");
  auto step = [&](double x) { run.model.run("train", {{{"x", Model::filled({2, 1}, {x, x})}}}); };
  // d loss / d y = 2 x / 2^20 = 2^-29 is no number of f16, the gradient of w is 2 x^2 / 2^19.
  run.model.set("w.f16", {1, 1}, {1});
  run.model.set("lr", 0x1.0p30);
  step(0x1.0p-10);
  EXPECT_EQ(run.skipped(), 0);
  EXPECT_NEAR(run.model.at("w"), 1 - 0x1.0p30 * 0x1.0p-38, 1e-9);
  // 2 x w / 2^20 times the scale leaves f16 until that was halved once.
  double w = run.model.at("w");
  run.model.set("optimizer.loss_scale", 0x1.0p23);
  run.model.set("lr", 0x1.0p-40);
  step(0x1.0p13);
  EXPECT_EQ(run.model.at("w"), w);
  EXPECT_EQ(run.scale(), 0x1.0p22);
  EXPECT_EQ(run.skipped(), 1);
  step(0x1.0p13);
  EXPECT_LT(run.model.at("w"), w);
  EXPECT_EQ(run.skipped(), 1);
}

} // namespace
