// What the stages nn and train mean, by the reference evaluator: optimizers against their formulas,
// several ranks against one, evaluation of a padded batch against its valid rows alone.

#include "test/unit/passes/TrainedModel.h"

#include <cmath>

using namespace mlir;
using namespace dlc;
using namespace dlc::reference;

namespace {
using Model = test::TrainedModel;

//===- Optimizers -----------------------------------------------------------------------------===//

/// loss = mean of x * w over two rows, so that the gradient of w is the mean of x.
std::string linearModel(const std::string &optimizer) {
  return R"(nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {)" +
         optimizer + R"(}}} {
    nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 2.0, 0.0>}
    nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
      %w = nn.read @w : tensor<f32>
      %ws = nn.broadcast %w {dims = array<i64>} : (tensor<f32>) -> tensor<2xf32>
      %y = nn.mul %x, %ws : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %s = nn.reduce_sum %y {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
      %two = nn.constant dense<2.0> : tensor<f32>
      nn.loss %s, %two : tensor<f32>, tensor<f32>
    }
  })";
}

/// torch.optim in scalar form. State is kept between calls.
struct Expected {
  double w = 2, momentumBuffer = 0, first = 0, second = 0;

  void rmsprop(double lr, double g, double alpha, double eps, double momentum, double decay) {
    g += decay * w;
    second = alpha * second + (1 - alpha) * g * g;
    momentumBuffer = momentum * momentumBuffer + g / (std::sqrt(second) + eps);
    w -= lr * momentumBuffer;
  }

  void sgd(double lr, double g, double momentum, bool nesterov, double decay) {
    g += decay * w;
    momentumBuffer = momentum * momentumBuffer + g;
    if (momentum != 0)
      g = nesterov ? g + momentum * momentumBuffer : momentumBuffer;
    w -= lr * g;
  }

  void adam(double lr, double g, int step, double beta1, double beta2, double eps, double decay,
            bool decoupled) {
    if (decoupled)
      w *= 1 - lr * decay;
    else
      g += decay * w;
    first += (g - first) * (1 - beta1);
    second = beta2 * second + (1 - beta2) * g * g;
    double correction1 = 1 - std::pow(beta1, step + 1), correction2 = 1 - std::pow(beta2, step + 1);
    w -= lr / correction1 * first / (std::sqrt(second) / std::sqrt(correction2) + eps);
  }
};

/// Five steps on two ranks, whose gradients average to `gradient`. Returns what they make of w.
template <typename Update> double checkOptimizer(const std::string &optimizer, Update update) {
  Model model(linearModel(optimizer));
  Expected expected;
  for (int step = 0; step < 5; ++step) {
    double lr = 0.1 / (step + 1), gradient = std::cos(step);
    model.set("lr", lr);
    model.set("step", step);
    auto x = [&](double value) {
      return Tensors{{"x", Model::filled({2}, {value - 0.25, value + 0.25})}};
    };
    model.run("train", {x(gradient - 3), x(gradient + 3)});
    update(expected, lr, gradient, step);
    // The constants in the model are f32.
    EXPECT_NEAR(model.at("w"), expected.w, 1e-6 * std::abs(expected.w)) << "step " << step;
  }
  return model.at("w");
}

TEST(ApplyOptimizer, Sgd) {
  checkOptimizer(R"(name = "sgd")",
                 [](Expected &e, double lr, double g, int) { e.sgd(lr, g, 0, false, 0); });
}

TEST(ApplyOptimizer, SgdWithMomentumAndDecay) {
  checkOptimizer(R"(name = "sgd", momentum = 0.9 : f64, weight_decay = 0.1 : f64)",
                 [](Expected &e, double lr, double g, int) { e.sgd(lr, g, 0.9, false, 0.1); });
}

TEST(ApplyOptimizer, SgdWithNesterov) {
  checkOptimizer(R"(name = "sgd", momentum = 0.9 : f64, nesterov = true)",
                 [](Expected &e, double lr, double g, int) { e.sgd(lr, g, 0.9, true, 0); });
}

TEST(ApplyOptimizer, Adam) {
  checkOptimizer(R"(name = "adam", weight_decay = 0.1 : f64)",
                 [](Expected &e, double lr, double g, int step) {
                   e.adam(lr, g, step, 0.9, 0.999, 1e-8, 0.1, false);
                 });
}

TEST(ApplyOptimizer, AdamW) {
  checkOptimizer(R"(name = "adamw", beta1 = 0.8 : f64, beta2 = 0.99 : f64, eps = 1.0e-3 : f64)",
                 [](Expected &e, double lr, double g, int step) {
                   e.adam(lr, g, step, 0.8, 0.99, 1e-3, 0.01, true);
                 });
}

// The last number is PyTorch's, of these five gradients in f64.
TEST(ApplyOptimizer, Rmsprop) {
  double w = checkOptimizer(R"(name = "rmsprop")", [](Expected &e, double lr, double g, int) {
    e.rmsprop(lr, g, 0.99, 1e-8, 0, 0);
  });
  EXPECT_NEAR(w, 1.11436835647, 1e-6);
}

TEST(ApplyOptimizer, RmspropWithMomentumAndDecay) {
  double w = checkOptimizer(
      R"(name = "rmsprop", alpha = 0.9 : f64, eps = 1.0e-3 : f64, momentum = 0.5 : f64,
         weight_decay = 0.1 : f64)",
      [](Expected &e, double lr, double g, int) { e.rmsprop(lr, g, 0.9, 1e-3, 0.5, 0.1); });
  EXPECT_NEAR(w, 1.55581599822, 1e-6);
}

//===- Single parameters ----------------------------------------------------------------------===//

/// loss = mean over two rows of x * a + b with batch norm of x by its own statistics; `settings` of
/// the block train.
std::string normModel(const std::string &settings) {
  return R"(nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "sgd",
      momentum = 0.5 : f64, weight_decay = 0.25 : f64})" +
         settings + R"(}} {
    nn.variable @a : tensor<1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 2.0, 0.0>}
    nn.variable @b : tensor<1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
    nn.variable @mean : tensor<1xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
    nn.variable @var : tensor<1xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
    nn.program @train(%x: tensor<2x1xf32> {nn.input = "x"}) {
      %a = nn.read @a : tensor<1xf32>
      %b = nn.read @b : tensor<1xf32>
      %m = nn.read @mean : tensor<1xf32>
      %v = nn.read @var : tensor<1xf32>
      %y, %bm, %bv = nn.batch_norm %x, %a, %b, %m, %v {epsilon = 1.0e-5 : f64, training = true}
          : (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>)
      nn.assign @mean, %bm : tensor<1xf32>
      nn.assign @var, %bv : tensor<1xf32>
      %z = nn.mul %y, %y : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
      %s = nn.reduce_sum %z {dims = array<i64: 0, 1>} : (tensor<2x1xf32>) -> tensor<f32>
      %two = nn.constant dense<2.0> : tensor<f32>
      nn.loss %s, %two : tensor<f32>, tensor<f32>
    }
  })";
}

TEST(Freeze, LeavesParametersAndMovesStatistics) {
  Model free(normModel("")), frozen(normModel(R"(, freeze = ["a*"])"));
  for (Model *model : {&free, &frozen}) {
    model->set("lr", 0.125);
    model->run("train", {{{"x", Model::filled({2, 1}, {1, 3})}}});
  }
  EXPECT_TRUE(free.isAssigned("a"));
  EXPECT_FALSE(frozen.isAssigned("a"));
  EXPECT_TRUE(free.hasVariable("optimizer.momentum_buffer.a"));
  EXPECT_FALSE(frozen.hasVariable("optimizer.momentum_buffer.a"));
  // y = +-2 + b, so that the gradient of b is 2 b = 2, and with the decay 2.25.
  EXPECT_NEAR(frozen.at("b"), 1 - 0.125 * 2.25, 1e-6);
  EXPECT_EQ(frozen.at("b"), free.at("b"));
  EXPECT_EQ(frozen.at("mean"), 2);
  EXPECT_EQ(frozen.at("var"), free.at("var"));
}

/// loss = mean over two rows of x * (u + 2 v + 3 w), whose gradients are the mean of x, times 1,
/// 2, 3.
std::string threeParameters(const std::string &settings) {
  return R"(nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {)" + settings + R"(}} {
    nn.variable @u : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
    nn.variable @v : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
    nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
    nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
      %u = nn.read @u : tensor<f32>
      %v = nn.read @v : tensor<f32>
      %w = nn.read @w : tensor<f32>
      %two = nn.constant dense<2.0> : tensor<f32>
      %three = nn.constant dense<3.0> : tensor<f32>
      %v2 = nn.mul %v, %two : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %w3 = nn.mul %w, %three : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %a = nn.add %u, %v2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %b = nn.add %a, %w3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %bs = nn.broadcast %b {dims = array<i64>} : (tensor<f32>) -> tensor<2xf32>
      %y = nn.mul %x, %bs : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %s = nn.reduce_sum %y {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
      nn.loss %s, %two : tensor<f32>, tensor<f32>
    }
  })";
}

/// Steps on as many ranks as `gradients` has in each step: the means of their x.
void train(Model &model, double lr, ArrayRef<std::vector<double>> gradients) {
  model.set("lr", lr);
  for (auto [step, ranks] : llvm::enumerate(gradients)) {
    model.set("step", static_cast<double>(step));
    std::vector<Tensors> inputs;
    for (double gradient : ranks)
      inputs.push_back({{"x", Model::filled({2}, {gradient - 1, gradient + 1})}});
    model.run("train", inputs);
  }
}

TEST(LearningRateScale, TakesTheFirstMatch) {
  Model model(
      threeParameters(R"(optimizer = {name = "sgd"}, lr_scale = [["v", 10.0], ["[vw]", 0.5]])"));
  train(model, 0.125, {{1, 3}});
  EXPECT_NEAR(model.at("u"), 1 - 0.125 * 2, 1e-6);
  EXPECT_NEAR(model.at("v"), 1 - 0.125 * 10 * 4, 1e-6);
  EXPECT_NEAR(model.at("w"), 1 - 0.125 * 0.5 * 6, 1e-6);
}

/// PyTorch's numbers: parameter groups with lr = 0.1, 1 and 0.05, of gradients 1, -2, 3, 0.5, 1
/// times 1, 2, 3, in f64.
TEST(LearningRateScale, ScalesStepAndDecayOfAdamW) {
  Model model(threeParameters(R"(optimizer = {name = "adamw", weight_decay = 0.25 : f64},
                                 lr_scale = [["v", 10.0], ["[vw]", 0.5]])"));
  train(model, 0.1, {{1}, {-2}, {3}, {0.5}, {1}});
  EXPECT_NEAR(model.at("u"), 0.71430376881, 1e-6);
  EXPECT_NEAR(model.at("v"), -0.81495477712, 1e-6);
  EXPECT_NEAR(model.at("w"), 0.85330266544, 1e-6);
}

/// Gradients (g, 2 g, 3 g) have the norm sqrt(14) |g|, over two ranks as of one.
TEST(ClipNorm, ScalesGradientsOfAllRanksToTheNorm) {
  Model model(threeParameters(R"(optimizer = {name = "sgd"}, clip_norm = 2.0 : f64)"));
  train(model, 0.125, {{7, -1}});
  double factor = 2 / (3 * std::sqrt(14) + 1e-6);
  EXPECT_NEAR(model.at("u"), 1 - 0.125 * 3 * factor, 1e-6);
  EXPECT_NEAR(model.at("v"), 1 - 0.125 * 6 * factor, 1e-6);
  EXPECT_NEAR(model.at("w"), 1 - 0.125 * 9 * factor, 1e-6);
}

TEST(ClipNorm, LeavesGradientsOfASmallerNorm) {
  Model clipped(threeParameters(R"(optimizer = {name = "sgd"}, clip_norm = 2.0 : f64)"));
  Model free(threeParameters(R"(optimizer = {name = "sgd"})"));
  train(clipped, 0.125, {{0.5}});
  train(free, 0.125, {{0.5}});
  for (const char *name : {"u", "v", "w"})
    EXPECT_EQ(clipped.at(name), free.at(name));
}

TEST(ClipNorm, CountsNoFrozenParameter) {
  Model model(
      threeParameters(R"(optimizer = {name = "sgd"}, clip_norm = 2.0 : f64, freeze = ["v", "w"])"));
  train(model, 0.125, {{1.5}});
  EXPECT_NEAR(model.at("u"), 1 - 0.125 * 1.5, 1e-6);
}

/// PyTorch's numbers, of gradients 1, -2, 3, 0.5, 0.01 times 1, 2, 3 in f64: clipping comes before
/// decay.
TEST(ClipNorm, ComesBeforeDecayAndMomentum) {
  Model model(threeParameters(R"(clip_norm = 2.0 : f64,
      optimizer = {name = "sgd", momentum = 0.5 : f64, weight_decay = 0.25 : f64})"));
  train(model, 0.1, {{1}, {-2}, {3}, {0.5}, {0.01}});
  EXPECT_NEAR(model.at("u"), 0.64632546090, 1e-6);
  EXPECT_NEAR(model.at("v"), 0.48276538468, 1e-6);
  EXPECT_NEAR(model.at("w"), 0.31920530847, 1e-6);
}

/// PyTorch's numbers: get_ema_avg_fn(0.75) after each step of SGD, of gradients 1, -2, 3, 0.5, 1
/// times 1, 2, 3 in f64.
TEST(Ema, AveragesParametersAfterEachStep) {
  Model model(threeParameters(R"(optimizer = {name = "sgd"}, ema = 0.75 : f64, freeze = ["w"])"));
  model.set("optimizer.ema.u", 1);
  model.set("optimizer.ema.v", 1);
  train(model, 0.1, {{1}, {-2}, {3}, {0.5}, {1}});
  EXPECT_NEAR(model.at("optimizer.ema.u"), 0.84013671875, 1e-6);
  EXPECT_NEAR(model.at("optimizer.ema.v"), 0.68027343750, 1e-6);
  EXPECT_NEAR(model.at("u"), 1 - 0.1 * 3.5, 1e-6);
  EXPECT_FALSE(model.hasVariable("optimizer.ema.w"));
}

//===- Ranks ----------------------------------------------------------------------------------===//

/// loss = sum(mask * (x w)^2) / sum(mask): the count depends on data. `rows` per rank.
std::string maskedModel(int64_t rows) {
  std::string t = "tensor<" + std::to_string(rows) + "xf32>", tt = "(" + t + ", " + t + ") -> " + t;
  return "nn.model @m attributes {stage = \"nn\", batch = " + std::to_string(rows) +
         R"( : i64, train = {optimizer = {name = "sgd"}}} {
    nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 2.0, 0.0>}
    nn.program @train(%x: )" +
         t + R"( {nn.input = "x"}, %mask: )" + t + R"( {nn.input = "mask"}) {
      %w = nn.read @w : tensor<f32>
      %ws = nn.broadcast %w {dims = array<i64>} : (tensor<f32>) -> )" +
         t + "\n%y = nn.mul %x, %ws : " + tt + "\n%z = nn.mul %y, %y : " + tt +
         "\n%m = nn.mul %z, %mask : " + tt + "\n%s = nn.reduce_sum %m {dims = array<i64: 0>} : (" +
         t + ") -> tensor<f32>" + "\n%c = nn.reduce_sum %mask {dims = array<i64: 0>} : (" + t +
         ") -> tensor<f32>" + R"(
      nn.loss %s, %c : tensor<f32>, tensor<f32>
    }
  })";
}

TEST(InsertAllReduce, CountsOfDataAreThoseOfAllRanks) {
  std::vector<double> x = {1, 2, 3, -4, 5, 6}, mask = {1, 1, 1, 0, 0, 1};
  auto rows = [&](size_t begin, int64_t count) {
    auto part = [&](const std::vector<double> &all) {
      return Model::filled({count}, {all.begin() + begin, all.begin() + begin + count});
    };
    return Tensors{{"x", part(x)}, {"mask", part(mask)}};
  };
  Model one(maskedModel(6)), three(maskedModel(2));
  one.set("lr", 0.01);
  three.set("lr", 0.01);
  double loss = totalLoss(one.run("train", {rows(0, 6)}));
  EXPECT_NEAR(totalLoss(three.run("train", {rows(0, 2), rows(2, 2), rows(4, 2)})), loss, 1e-12);
  EXPECT_NE(one.at("w"), 2);
  EXPECT_NEAR(three.at("w"), one.at("w"), 1e-7);
}

TEST(InsertAllReduce, BatchStatisticsAreAveragedOverRanks) {
  Model model(
      R"(nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "sgd"}}} {
    nn.variable @scale : tensor<1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
    nn.variable @mean : tensor<1xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
    nn.variable @var : tensor<1xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
    nn.program @train(%x: tensor<2x1xf32> {nn.input = "x"}) {
      %scale = nn.read @scale : tensor<1xf32>
      %m = nn.read @mean : tensor<1xf32>
      %v = nn.read @var : tensor<1xf32>
      %y, %bm, %bv = nn.batch_norm %x, %scale, %m, %m, %v {epsilon = 1.0e-5 : f64, training = true}
          : (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>)
      nn.assign @mean, %bm : tensor<1xf32>
      nn.assign @var, %bv : tensor<1xf32>
      %s = nn.reduce_sum %y {dims = array<i64: 0, 1>} : (tensor<2x1xf32>) -> tensor<f32>
      %two = nn.constant dense<2.0> : tensor<f32>
      nn.loss %s, %two : tensor<f32>, tensor<f32>
    }
  })");
  model.set("lr", 0);
  model.run("train",
            {{{"x", Model::filled({2, 1}, {1, 3})}}, {{"x", Model::filled({2, 1}, {4, 10})}}});
  EXPECT_NEAR(model.at("mean"), (2 + 7) / 2.0, 1e-12);
  EXPECT_NEAR(model.at("var"), (1 + 9) / 2.0, 1e-12);
}

/// y = x * a + b normalised, loss = the mean of w y^3 over `rows` rows of two channels.
std::string synchronisedModel(int rows) {
  std::string row = std::to_string(rows);
  return R"(nn.model @m attributes {stage = "nn", batch = )" + row +
         R"( : i64, train = {optimizer = {name = "sgd"}}} {
    nn.variable @w : TC {kind = #nn<kind parameter>, init = #nn.init<constant, 2.0, 0.0>}
    nn.variable @a : TC {kind = #nn<kind parameter>, init = #nn.init<constant, 1.5, 0.0>}
    nn.variable @b : TC {kind = #nn<kind parameter>, init = #nn.init<constant, 0.5, 0.0>}
    nn.variable @mean : TC {kind = #nn<kind state>, init = #nn.init<constant, 0.5, 0.0>}
    nn.variable @var : TC {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
    nn.program @train(%x: TX {nn.input = "x"}) {
      %w = nn.read @w : TC
      %a = nn.read @a : TC
      %b = nn.read @b : TC
      %m = nn.read @mean : TC
      %v = nn.read @var : TC
      %ws = nn.broadcast %w {dims = array<i64: 1>} : (TC) -> TX
      %xs = nn.mul %x, %ws : (TX, TX) -> TX
      %y, %bm, %bv = nn.batch_norm %xs, %a, %b, %m, %v {epsilon = 1.0e-5 : f64, training = true, sync}
          : (TX, TC, TC, TC, TC) -> (TX, TC, TC)
      nn.assign @mean, %bm : TC
      nn.assign @var, %bv : TC
      %yy = nn.mul %y, %y : (TX, TX) -> TX
      %yyy = nn.mul %yy, %y : (TX, TX) -> TX
      %s = nn.reduce_sum %yyy {dims = array<i64: 0, 1>} : (TX) -> tensor<f32>
      %count = nn.constant dense<)" +
         row + R"(.0> : tensor<f32>
      nn.loss %s, %count : tensor<f32>, tensor<f32>
    }
  })";
}

// Four ranks of two rows each are one rank of eight rows: statistics, gradients, both with the mean
// far from the running one and near it.
TEST(InsertAllReduce, SynchronisedNormsTakeTheBatchOfAllRanks) {
  auto modelOf = [](int rows) {
    std::string text = synchronisedModel(rows);
    for (auto [alias, type] : {std::pair("TX", "tensor<" + std::to_string(rows) + "x2xf32>"),
                               std::pair("TC", std::string("tensor<2xf32>"))})
      for (size_t at; (at = text.find(alias)) != std::string::npos;)
        text.replace(at, 2, type);
    return text;
  };
  Model parts(modelOf(2)), whole(modelOf(8));
  std::vector<double> x{1, 30, 3, 10, 4, 10, -7, 20, 0.5, 15, 2, 70, 3, 3, 8, -9};
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    for (Model *model : {&parts, &whole})
      model->set("lr", 0.01);
    std::vector<Tensors> ranks;
    for (int rank = 0; rank < 4; ++rank)
      ranks.push_back(
          {{"x", Model::filled({2, 2}, {x.begin() + 4 * rank, x.begin() + 4 * rank + 4})}});
    parts.run("train", ranks);
    whole.run("train", {{{"x", Model::filled({8, 2}, x)}}});
    for (const char *name : {"mean", "var", "a", "b", "w"})
      for (size_t channel : {0, 1})
        EXPECT_NEAR(parts.at(name, channel), whole.at(name, channel),
                    1e-12 * (1 + std::abs(whole.at(name, channel))))
            << name;
    for (double &value : x)
      value += 0.25;
  }
  EXPECT_NE(whole.at("w"), 2);
}

//===- Evaluation -----------------------------------------------------------------------------===//

TEST(DerivePrograms, RowsThatPadABatchCountNothing) {
  Model model(maskedModel(4));
  const double nan = std::nan("");
  model.set("valid_rows", 3);
  Outcome outcome = model
                        .run("eval", {{{"x", Model::filled({4}, {1, 2, 3, nan})},
                                       {"mask", Model::filled({4}, {1, 0, 1, 1})}}})
                        .front();
  ASSERT_EQ(outcome.losses.size(), 1u);
  EXPECT_EQ(outcome.losses[0].sum, 4 * (1 + 9));
  EXPECT_EQ(outcome.losses[0].count, 2);
  EXPECT_TRUE(outcome.assigned.empty());
}

TEST(DerivePrograms, ConstantCountsFollowTheValidRows) {
  Model model(linearModel(R"(name = "sgd")"));
  model.set("valid_rows", 1);
  Outcome outcome = model.run("eval", {{{"x", Model::filled({2}, {5, 7})}}}).front();
  EXPECT_EQ(outcome.losses[0].sum, 10);
  EXPECT_EQ(outcome.losses[0].count, 1);
  model.set("valid_rows", 0);
  outcome = model.run("eval", {{{"x", Model::filled({2}, {5, 7})}}}).front();
  EXPECT_EQ(outcome.losses[0].sum, 0);
  EXPECT_EQ(outcome.losses[0].count, 0);
}

/// The loss of two rows of three channels, `ops` of %x: tensor<2x3xf32>.
std::string lossOf(const std::string &ops) {
  return R"(nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "sgd"}}} {
    nn.program @train(%x: tensor<2x3xf32> {nn.input = "x"}) {
      %one = nn.constant dense<1.0> : tensor<f32>
      %six = nn.constant dense<6.0> : tensor<f32>
)" + ops +
         "\n}\n}";
}

TEST(DerivePrograms, SumsAreFollowedThroughWhatIsLinear) {
  // The sum of each channel over the rows, then of all channels; 1 belongs to both rows alike.
  Model model(lossOf(R"(
      %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
      %n = nn.neg %s : (tensor<3xf32>) -> tensor<3xf32>
      %a = nn.reduce_sum %n {dims = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
      %l = nn.add %a, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
      nn.loss %l, %six : tensor<f32>, tensor<f32>)"));
  model.set("valid_rows", 1);
  Outcome outcome =
      model.run("eval", {{{"x", Model::filled({2, 3}, {1, 2, 3, NAN, 5, 6})}}}).front();
  EXPECT_EQ(outcome.losses[0].sum, -5.5);
  EXPECT_EQ(outcome.losses[0].count, 3);
}

TEST(DerivePrograms, ChannelsAreNoRows) {
  // Two sums over rows, which are as many as the rows themselves, but not linear in them.
  MLIRContext context;
  context.loadDialect<nn::NNDialect, comm::CommDialect>();
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(lossOf(R"(
      %h = nn.slice %x {start = array<i64: 0, 0>, size = array<i64: 2, 2>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
      %s = nn.reduce_sum %h {dims = array<i64: 0>} : (tensor<2x2xf32>) -> tensor<2xf32>
      %q = nn.mul %s, %s : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %l = nn.reduce_sum %q {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
      nn.loss %l, %six : tensor<f32>, tensor<f32>)"),
                                                             &context);
  ASSERT_TRUE(module);
  PassManager manager(&context, ModuleOp::getOperationName(), OpPassManager::Nesting::Implicit);
  addStagesUpTo(manager, nn::Stage::NN, ScheduleOptions());
  EXPECT_TRUE(failed(manager.run(*module)));
}
} // namespace
