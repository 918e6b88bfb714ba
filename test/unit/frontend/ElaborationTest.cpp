// What the programs of a model contain.
#include "test/unit/frontend/TestModel.h"

#include "frontend/operators/Operators.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <fstream>

using namespace dlc;
using namespace dlc::fe;

static std::string textOf(mlir::Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << attribute;
  return text;
}

//===- The models of the repository -----------------------------------------------------------===//

struct Models : testing::Test {
  mlir::OwningOpRef<mlir::ModuleOp> load(const char *file, std::vector<std::string> sets = {}) {
    std::string diagnostics;
    llvm::raw_string_ostream os(diagnostics);
    Options options;
    options.sets = std::move(sets);
    auto module = elaborateFile(std::string(DLC_MODELS "/") + file, options, context, os);
    EXPECT_TRUE(module) << diagnostics;
    return module;
  }

  static int64_t parameterCount(mlir::ModuleOp module) {
    int64_t count = 0;
    module.walk([&](nn::VariableOp variable) {
      if (variable.getKind() == nn::VariableKind::Parameter)
        count += mlir::cast<mlir::RankedTensorType>(variable.getType()).getNumElements();
    });
    return count;
  }

  mlir::MLIRContext context;
};

TEST_F(Models, MnistHas1199882Parameters) {
  auto module = load("mnist_cnn.dl");
  EXPECT_EQ(parameterCount(*module), 1'199'882);
}

TEST_F(Models, ClassifiersHaveTorchvisionsParameters) {
  struct {
    const char *file;
    std::vector<std::string> sets;
    int64_t parameters;
  } cases[] = {
      {"vgg16.dl", {}, 138'357'544},
      {"resnet50.dl", {}, 25'557'032},
      {"resnet101.dl", {}, 44'549'160},
      {"inception_v3.dl", {}, 27'161'264},
      {"inception_v3.dl", {"aux=false"}, 23'834'568},
      {"../test/networks/mobilenetv2.dl", {}, 3'504'872},
      {"../test/networks/densenet121.dl", {}, 7'978'856},
  };
  for (const auto &[file, sets, parameters] : cases) {
    auto module = load(file, sets);
    ASSERT_TRUE(module) << file;
    EXPECT_EQ(parameterCount(*module), parameters) << file;
  }
}

TEST_F(Models, UNetParametersAreNamedByTheirPath) {
  auto module = load("unet2d.dl", {"base=16", "size=64"});
  auto model = *module->getOps<nn::ModelOp>().begin();
  for (const char *name :
       {"down.0.conv.0.weight", "down.3.norm.1.running_var", "bottom.conv.1.weight",
        "up.0.expand.weight", "up.0.expand.bias", "up.2.norm.0.bias", "head.weight", "head.bias"})
    EXPECT_TRUE(model.lookupSymbol(name)) << name;
  EXPECT_FALSE(model.lookupSymbol("down.0.conv.0.bias"));
  // Per double_conv (i, o): 9 i o + 9 o o + 4 o; per expand 4 i o + o; head o + 1.
  EXPECT_EQ(parameterCount(*module), 1'942'289);
}

TEST_F(Models, UNetWithoutNormHasBiases) {
  auto module = load("unet2d.dl", {"norm=none"});
  auto model = *module->getOps<nn::ModelOp>().begin();
  EXPECT_TRUE(model.lookupSymbol("down.0.conv.0.bias"));
  EXPECT_FALSE(model.lookupSymbol("down.0.norm.0.weight"));
}

/// A U-Net with batch norm: per double_conv w i o + w o o + 4 o for kernels of w elements, per
/// expand 2^axes i o + o, and the head.
static int64_t unetParameters(int64_t axes, int64_t base, int64_t depth, int64_t inputs,
                              int64_t outputs) {
  int64_t kernel = axes == 2 ? 9 : 27, count = base * outputs + outputs;
  auto doubleConv = [&](int64_t i, int64_t o) { return kernel * (i * o + o * o) + 4 * o; };
  for (int64_t level = 0; level <= depth; ++level) {
    int64_t width = base << level;
    count += doubleConv(level ? width / 2 : inputs, width);
    if (level < depth)
      count += (1 << axes) * 2 * width * width + width + doubleConv(2 * width, width);
  }
  return count;
}

TEST_F(Models, UNetsOfMoreClassesAndAxesHaveTheParametersOfTheFormula) {
  struct {
    const char *file;
    std::vector<std::string> sets;
    int64_t parameters;
  } cases[] = {
      {"unet2d.dl", {"base=16", "size=64"}, unetParameters(2, 16, 4, 1, 1)},
      {"unet2d.dl", {"classes=5", "channels=3", "depth=3"}, unetParameters(2, 32, 3, 3, 5)},
      {"unet3d.dl", {}, unetParameters(3, 16, 3, 1, 1)},
      {"unet3d.dl", {"classes=4", "base=8", "depth=2"}, unetParameters(3, 8, 2, 1, 4)},
  };
  for (const auto &[file, sets, parameters] : cases)
    EXPECT_EQ(parameterCount(*load(file, sets)), parameters) << file;
}

/// A denoiser of `axes` axes: per unit k i o + 3 o for kernels of k elements (bias, weight and bias
/// of the norm), and the head. At the end of a level comes the width of the one above it.
static int64_t denoiserParameters(int64_t axes, int64_t base, int64_t depth, int64_t kernel,
                                  int64_t channels, bool skipsUppermost = true) {
  int64_t elements = axes == 2 ? kernel * kernel : kernel * kernel * kernel;
  int64_t count = base * channels + channels, last = channels;
  auto unit = [&](int64_t i, int64_t o) {
    count += elements * i * o + 3 * o;
    last = o;
  };
  for (int64_t level = 0; level < depth; ++level)
    for (int i = 0; i < 2; ++i)
      unit(last, base << level);
  unit(last, base << depth);
  unit(last, depth ? base << (depth - 1) : base);
  for (int64_t level = depth - 1; level >= 0; --level) {
    unit(last + (level || skipsUppermost ? base << level : 0), base << level);
    unit(last, level ? base << (level - 1) : base);
  }
  return count;
}

TEST_F(Models, DenoisersHaveTheParametersOfTheFormula) {
  struct {
    const char *file;
    std::vector<std::string> sets;
    int64_t parameters;
  } cases[] = {
      {"n2v2d.dl", {}, denoiserParameters(2, 32, 2, 3, 1)},
      {"n2v2d.dl", {"channels=3"}, 3 * denoiserParameters(2, 32, 2, 3, 1)},
      {"n2v2d.dl",
       {"channels=3", "single_net_per_channel=false"},
       denoiserParameters(2, 32, 2, 3, 3)},
      {"n2v2d.dl", {"blurpool=true", "residual=true"}, denoiserParameters(2, 32, 2, 3, 1)},
      {"n2v2d.dl", {"skip_skipone=true"}, denoiserParameters(2, 32, 2, 3, 1, false)},
      {"n2v2d.dl", {"depth=3", "base=8", "kernel=5"}, denoiserParameters(2, 8, 3, 5, 1)},
      {"n2v3d.dl", {}, denoiserParameters(3, 32, 2, 3, 1)},
      {"n2v3d.dl", {"channels=2", "error=mae"}, 2 * denoiserParameters(3, 32, 2, 3, 1)},
      {"n2v3d.dl", {"depth=1", "base=16", "kernel=5"}, denoiserParameters(3, 16, 1, 5, 1)},
  };
  for (const auto &[file, sets, parameters] : cases)
    EXPECT_EQ(parameterCount(*load(file, sets)), parameters) << file;
}

TEST_F(Models, UNetPredictsFromTheImageAlone) {
  auto module = load("unet2d.dl");
  auto model = *module->getOps<nn::ModelOp>().begin();
  auto predict = mlir::cast<nn::ProgramOp>(model.lookupSymbol("predict"));
  ASSERT_EQ(predict.getArgumentTypes().size(), 1u);
  EXPECT_EQ(predict.getInputName(0), "image");
  auto type = mlir::cast<mlir::RankedTensorType>(predict.getArgumentTypes()[0]);
  EXPECT_EQ(type.getShape(), (llvm::ArrayRef<int64_t>{1, 1, 512, 512}));
}

//===- Programs -------------------------------------------------------------------------------===//

TEST(Elaboration, TrainingSeesTheOtherBranch) {
  Elaborated result(withBody("  y = image\n  if training { y = relu(y) }"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<nn::ReluOp>("train"), 1u);
  EXPECT_EQ(result.count<nn::ReluOp>("eval"), 0u);
  EXPECT_EQ(result.count<nn::ReluOp>("predict"), 0u);
}

TEST(Elaboration, DropoutIsForTrainingAlone) {
  Elaborated result(withBody("  y = dropout(image, 0.5)"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<nn::DropoutOp>("train"), 1u);
  EXPECT_EQ(result.count<nn::DropoutOp>("eval"), 0u);
  EXPECT_TRUE(result.variable("seed"));
}

TEST(Elaboration, BatchNormUpdatesItsStatisticsInTraining) {
  Elaborated result(withBody("  y = batch_norm(image, name = \"bn\")"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<nn::AssignOp>("train"), 2u);
  EXPECT_EQ(result.count<nn::AssignOp>("eval"), 0u);
  EXPECT_TRUE(result.first<nn::BatchNormOp>("train").getTraining());
  EXPECT_FALSE(result.first<nn::BatchNormOp>("eval").getTraining());
  EXPECT_EQ(result.variable("bn.running_var").getKind(), nn::VariableKind::State);
}

TEST(Elaboration, EvaluationMasksRowsThatPad) {
  Elaborated result(withBody("  y = image"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<nn::SelectOp>("train"), 0u);
  EXPECT_EQ(result.count<nn::SelectOp>("eval"), 1u);
  EXPECT_TRUE(result.variable("valid_rows"));
}

TEST(Elaboration, WithoutOutputsThereIsNoPrediction) {
  Elaborated result("model m() { input x : f32[2, 3]; loss = mean(dense(x, 1)) }");
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_FALSE(result.program("predict"));
}

TEST(Elaboration, TermsOfTheLossKeepTheirWeights) {
  Elaborated result("model m() { input x : f32[2, 3]; y = dense(x, 1)\n"
                    "  loss = mean(y) + 0.4 * mse(y, 0.0) - mae(y, 1) / 2 }");
  ASSERT_TRUE(result.module) << result.diagnostics;
  std::vector<double> weights;
  for (auto loss : result.program("train").getBody().getOps<nn::LossOp>())
    weights.push_back(loss.getWeight().convertToDouble());
  EXPECT_EQ(weights, (std::vector<double>{1, 0.4, -0.5}));
}

TEST(Elaboration, MasksAreCounted) {
  Elaborated result("model m() { input x : f32[2, 3]; input m : f32[2, 3]\n"
                    "  loss = mse(x, 0.0, where = m > 0.5) }");
  ASSERT_TRUE(result.module) << result.diagnostics;
  auto loss = result.first<nn::LossOp>("train");
  EXPECT_TRUE(loss.getCount().getDefiningOp<nn::ReduceSumOp>());
}

TEST(Elaboration, MeansInArithmeticAreReduced) {
  Elaborated result("model m() { input x : f32[2, 3]; loss = mean(abs(x - mean(x))) }");
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<nn::DivOp>("train"), 1u);
}

// Channels are no rows, however many there are.
TEST(Elaboration, WhatLosesTheRowsCannotBeEvaluated) {
  for (const char *size : {"2", "3"}) {
    std::string text = "model m() { input x : f32[2, SIZE]; y = dense(x, SIZE)\n"
                       "  loss = mse(sum(y, axes = [0]), 1) }";
    for (size_t at; (at = text.find("SIZE")) != std::string::npos;)
      text.replace(at, 4, size);
    Elaborated result(text);
    EXPECT_FALSE(result.module);
    EXPECT_NE(result.diagnostics.find("no sum over the 2 rows of a batch"), std::string::npos)
        << result.diagnostics;
  }
}

TEST(Elaboration, PrintedTextIsReadBack) {
  Elaborated result(withBody("  y = dropout(batch_norm(conv(image, 1, kernel = 1)), 0.5)"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  auto print = [](mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os);
    return text;
  };
  std::string text = print(*result.module);
  auto again = mlir::parseSourceString<mlir::ModuleOp>(text, &result.context);
  ASSERT_TRUE(again);
  EXPECT_EQ(print(*again), text);
}

TEST(Elaboration, ImportsAddFunctionsOnce) {
  llvm::SmallString<128> directory;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("dlc-import", directory));
  auto write = [&](const char *file, const std::string &text) {
    std::ofstream((directory + "/" + file).str()) << text;
  };
  write("a.dl", "import \"b.dl\"\nfn a(x) { return b(x) }\n");
  write("b.dl", "import \"a.dl\"\nfn b(x) { return relu(x) }\n");
  write("model.dl", "model m() { input x : f32[1]; loss = mean(x) }\n");
  auto import = [&](const char *file) {
    return ("import \"" + directory + "/" + file + "\"\n").str();
  };
  Elaborated both(import("a.dl") + import("b.dl") + withBody("  y = a(b(image))"));
  EXPECT_TRUE(both.module) << both.diagnostics;
  Elaborated model(import("model.dl") + withBody("  y = image"));
  EXPECT_NE(model.diagnostics.find("model.dl' is a program of its own"), std::string::npos)
      << model.diagnostics;
  EXPECT_FALSE(llvm::sys::fs::remove_directories(directory));
}

//===- Names and locations --------------------------------------------------------------------===//

TEST(Elaboration, UnnamedCallsAreNumberedPerFunction) {
  Elaborated result(
      "fn block(x) { return conv(conv(x, 1, kernel = 1), 1, kernel = 1) }\n" +
      withBody("  x = block(block(image), name = \"b\")\n  y = conv(x, 1, kernel = 1)"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  for (const char *name : {"block.0.conv.0.weight", "block.0.conv.1.weight", "b.conv.0.bias",
                           "b.conv.1.weight", "conv.0.weight"})
    EXPECT_TRUE(result.variable(name)) << name;
}

/// A call with an empty name makes what it makes as if it stood where the call stands.
TEST(Elaboration, AnEmptyNameAddsNoComponent) {
  Elaborated result(
      "fn pair(x) { return conv(conv(x, 1, kernel = 1), 1, kernel = 1, name = \"last\") }\n"
      "fn stage(x) { return conv(pair(x, name = \"\"), 1, kernel = 1) }\n" +
      withBody("  x = stage(pair(image, name = \"\"), name = \"layer1.0\")\n"
               "  x = conv(x, 1, kernel = 1)\n  y = conv(x, 1, kernel = 1, name = \"\")"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  for (const char *name :
       {"conv.0.weight", "last.weight", "layer1.0.conv.0.weight", "layer1.0.last.bias",
        "layer1.0.conv.1.weight", "conv.1.weight", "weight", "bias"})
    EXPECT_TRUE(result.variable(name)) << name;
  Elaborated twice("fn f(x) { return conv(x, 1, kernel = 1, name = \"c\") }\n" +
                   withBody("  y = f(f(image, name = \"\"), name = \"\")"));
  EXPECT_NE(twice.diagnostics.find("a second variable named 'c.weight'"), std::string::npos)
      << twice.diagnostics;
}

TEST(Elaboration, ParametersHaveTheNameOfTheCall) {
  Elaborated result(
      "fn gain(x) { return x * parameter([1, 1, 1, 1], init = 0.5, name = \"g\") }\n" +
      withBody("  y = gain(gain(image), name = \"b\") + parameter([1, 1, 8, 8], init = zeros)"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  for (const char *name : {"gain.0.g", "b.g", "parameter.0"})
    ASSERT_TRUE(result.variable(name)) << name;
  EXPECT_EQ(result.variable("b.g").getInit().getA(), 0.5);
  EXPECT_EQ(result.variable("b.g").getKind(), nn::VariableKind::Parameter);
  EXPECT_EQ(result.variable("parameter.0").getInit().getA(), 0);
}

/// One parameter, read once; statistics go through both updates; masks differ.
TEST(Elaboration, ReusedCallsTakeTheFirstOnesParameters) {
  Elaborated result(
      "fn f(x) { return dropout(batch_norm(conv(x, 1, kernel = 1), name = \"n\"), 0.5) }\n" +
      withBody("  y = f(image, name = \"a\")\n  y = f(y, name = \"a\", reuse = true)"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_TRUE(result.variable("a.conv.0.weight"));
  size_t reads = 0;
  for (auto read : result.program("train").getBody().getOps<nn::ReadOp>())
    reads += read.getVariable() == "a.conv.0.weight";
  EXPECT_EQ(reads, 1u);
  EXPECT_EQ(result.count<nn::ConvOp>("train"), 2u);
  EXPECT_EQ(result.count<nn::AssignOp>("train"), 2u);
  for (auto assign : result.program("train").getBody().getOps<nn::AssignOp>()) {
    // kept + momentum * observed, where what is kept is the first use's sum.
    auto sum = assign.getValue().getDefiningOp<nn::AddOp>();
    auto kept = sum.getA().getDefiningOp<nn::MulOp>();
    EXPECT_TRUE(kept.getA().getDefiningOp<nn::AddOp>()) << assign.getVariable().str();
  }
  auto dropouts = llvm::to_vector(result.program("train").getBody().getOps<nn::DropoutOp>());
  ASSERT_EQ(dropouts.size(), 2u);
  EXPECT_NE(dropouts[0].getStream(), dropouts[1].getStream());
  // Evaluation reads the same statistics twice.
  auto norms = llvm::to_vector(result.program("eval").getBody().getOps<nn::BatchNormOp>());
  EXPECT_EQ(norms[0].getRunningMean(), norms[1].getRunningMean());
}

TEST(Elaboration, FrozenCallsAreNotTrained) {
  Elaborated result(
      "fn f(x) { return batch_norm(conv(x, 1, kernel = 1, name = \"c\"), name = \"n\") }\n" +
      withBody("  y = f(f(image, name = \"a\", trainable = false), name = \"b\")"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  auto isFrozen = [&](const char *name) {
    auto flag = result.variable(name)->getAttrOfType<mlir::BoolAttr>("trainable");
    return flag && !flag.getValue();
  };
  EXPECT_TRUE(isFrozen("a.c.weight") && isFrozen("a.n.bias"));
  EXPECT_FALSE(isFrozen("b.c.weight") || isFrozen("a.n.running_mean"));
  EXPECT_EQ(result.count<nn::AssignOp>("train"), 4u);
}

/// In evaluation, too; the rows of a purely random loss are counted.
TEST(Elaboration, RandomTensorsAreDrawnInAllPrograms) {
  Elaborated result(withBody("  y = image + normal(image.shape, std = 0.5)\n"
                             "  metric share = mean(bernoulli([batch, 3], 0.25))"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  for (const char *program : {"train", "eval", "predict"})
    EXPECT_EQ(result.count<nn::NormalOp>(program), 1u) << program;
  EXPECT_EQ(result.count<nn::UniformOp>("eval"), 1u);
  EXPECT_EQ(result.count<nn::SelectOp>("eval"), 2u); // of both means
}

TEST(Elaboration, NormsOfSamplesHaveNoState) {
  Elaborated result(
      withBody("  x = conv(image, 6, kernel = 1)\n"
               "  x = layer_norm(instance_norm(group_norm(x, 3, name = \"g\"), name = "
               "\"i\"), name = \"l\")\n  y = conv(x, 1, kernel = 1)"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<nn::GroupNormOp>("train"), 3u);
  EXPECT_EQ(result.count<nn::AssignOp>("train"), 0u);
  auto shapeOfVariable = [&](const char *name) {
    return llvm::to_vector(
        mlir::cast<mlir::RankedTensorType>(result.variable(name).getType()).getShape());
  };
  EXPECT_EQ(shapeOfVariable("g.weight"), (llvm::SmallVector<int64_t>{6}));
  EXPECT_EQ(shapeOfVariable("i.bias"), (llvm::SmallVector<int64_t>{6}));
  EXPECT_EQ(shapeOfVariable("l.weight"), (llvm::SmallVector<int64_t>{6, 8, 8}));
  auto groups = llvm::map_to_vector(result.program("train").getBody().getOps<nn::GroupNormOp>(),
                                    [](nn::GroupNormOp norm) { return norm.getGroups(); });
  EXPECT_EQ(groups, (llvm::SmallVector<uint64_t>{3, 6, 1}));
}

TEST(Elaboration, LocationsNameTheLayer) {
  Elaborated result("fn block(x) { return conv(x, 1, kernel = 1) }\n" +
                    withBody("  y = block(image, name = \"down\")"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  auto conv = result.first<nn::ConvOp>("train");
  EXPECT_EQ(nn::layerName(conv.getLoc()), "down.conv.0");
  auto name = mlir::cast<mlir::NameLoc>(conv.getLoc());
  auto place = mlir::cast<mlir::FileLineColLoc>(name.getChildLoc());
  EXPECT_EQ(place.getFilename(), "test.dl");
  EXPECT_EQ(place.getLine(), 1u);
  EXPECT_EQ(place.getColumn(), 22u);
}

//===- Shapes ---------------------------------------------------------------------------------===//

class ShapeOf : public testing::TestWithParam<std::pair<const char *, const char *>> {};
TEST_P(ShapeOf, IsAsDocumented) {
  auto [expression, shape] = GetParam();
  Elaborated result("model m(spatial = [9]) {\n  input a : f32[2, 4, spatial...]\n"
                    "  input b : f32[2, 4, 9, 8]\n  input c : f32[2, 4, 9, 8, 7]\n  r = " +
                    std::string(expression) + "\n  require r.shape == " + shape +
                    ", \"{r.shape}\"\n  loss = mean(r) + mean(a) + mean(b) + mean(c)\n}");
  EXPECT_TRUE(result.module) << result.diagnostics;
}

INSTANTIATE_TEST_SUITE_P(
    Rank, ShapeOf,
    testing::Values(
        std::pair("conv(a, 6, kernel = 3)", "[2, 6, 7]"),
        std::pair("conv(b, 6, kernel = 3, padding = 1, stride = 2)", "[2, 6, 5, 4]"),
        std::pair("conv(b, 6, kernel = [3, 1], padding = same, stride = 2)", "[2, 6, 5, 4]"),
        std::pair("conv(c, 6, kernel = 3, dilation = [1, 2, 3], groups = 2)", "[2, 6, 7, 4, 1]"),
        std::pair("max_pool(a, kernel = 2)", "[2, 4, 4]"),
        std::pair("max_pool(c, kernel = 3, stride = 2, padding = 1)", "[2, 4, 5, 4, 4]"),
        std::pair("max_pool(b, kernel = 2, padding = same)", "[2, 4, 5, 4]"),
        std::pair("avg_pool(a, kernel = 2)", "[2, 4, 4]"),
        std::pair("avg_pool(c, kernel = [3, 2, 1], stride = 2, padding = [1, 0, 0], "
                  "count_include_pad = false)",
                  "[2, 4, 5, 4, 4]"),
        std::pair("avg_pool(b, kernel = 3, stride = 2, padding = same)", "[2, 4, 5, 4]"),
        std::pair("upsample(a, 3)", "[2, 4, 27]"),
        std::pair("upsample(c, [1, 2, 3], mode = linear)", "[2, 4, 9, 16, 21]"),
        std::pair("conv_transpose(b, 3, kernel = 2, stride = 2)", "[2, 3, 18, 16]"),
        std::pair("conv_transpose(b, 3, kernel = 3, stride = 2, padding = 1, output_padding = 1)",
                  "[2, 3, 18, 16]"),
        std::pair("conv_transpose(c, 3, kernel = 3, stride = 2, padding = same)",
                  "[2, 3, 18, 16, 14]"),
        std::pair("conv_transpose(a, 3, kernel = 1, stride = 3, padding = same)", "[2, 3, 27]"),
        std::pair("batch_norm(c)", "[2, 4, 9, 8, 7]"), std::pair("flatten(b)", "[2, 288]"),
        std::pair("dense(flatten(a), 5)", "[2, 5]"),
        std::pair("reshape(b, [2, -1, 8])", "[2, 36, 8]"),
        std::pair("concat(b, b, conv(b, 1, kernel = 1))", "[2, 9, 9, 8]"),
        std::pair("concat([b, b], axis = -1)", "[2, 4, 9, 16]"),
        std::pair("sum(b, axes = 2)", "[2, 4, 8]"),
        std::pair("mean(c, axes = [2, 3, 4], keep = true)", "[2, 4, 1, 1, 1]"),
        std::pair("b - mean(b, axes = [-1, -2], keep = true)", "[2, 4, 9, 8]"),
        std::pair("softmax(b)", "[2, 4, 9, 8]"), std::pair("max(b, 0.5)", "[2, 4, 9, 8]"),
        std::pair("log_softmax(a)", "[2, 4, 9]"), std::pair("clamp(a, 0, 1)", "[2, 4, 9]"),
        std::pair("where(b > 0.0, mean(b, axes = 1, keep = true), 0)", "[2, 4, 9, 8]"),
        std::pair("where(mean(b, axes = 1, keep = true) > 0.0, 1, b)", "[2, 4, 9, 8]"),
        std::pair("where(mean(b, axes = 1, keep = true) > 0.0, 1, 2)", "[2, 1, 9, 8]"),
        std::pair("where(true, mean(b, axes = 1, keep = true), b)", "[2, 4, 9, 8]"),
        std::pair("mean(a, axes = [1, 2]) ** 3", "[2]"), std::pair("a ** 0", "[2, 4, 9]"),
        std::pair("amax(b, axes = [1, -1])", "[2, 9]"),
        std::pair("amax(b, axes = 1, keep = true)", "[2, 1, 9, 8]"),
        std::pair("var(b, axes = [2, 3])", "[2, 4]"),
        std::pair("var(b, axes = 2, keep = true, correction = 0)", "[2, 4, 1, 8]"),
        std::pair("argmax(b, 1)", "[2, 9, 8]"), std::pair("argmax(a, axis = -1)", "[2, 4]")));

//===- Pointwise ------------------------------------------------------------------------------===//

/// The ops that a function of x, or i, becomes in prediction, without constants.
class OpsOf : public testing::TestWithParam<std::pair<const char *, const char *>> {};
TEST_P(OpsOf, AreFew) {
  auto [expression, expected] = GetParam();
  Elaborated result("model m() {\n  input x : f32[2, 4]\n  input i : i32[2, 4]\n  y = " +
                    std::string(expression) + "\n  output p = y\n  loss = mean(x) + mean(i) }");
  ASSERT_TRUE(result.module) << result.diagnostics;
  std::string ops;
  for (mlir::Operation &op : result.program("predict").getBody().front())
    if (!mlir::isa<nn::ConstantOp, nn::OutputOp>(op))
      ops += (ops.empty() ? "" : " ") + op.getName().stripDialect().str();
  EXPECT_EQ(ops, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Powers, OpsOf,
    testing::Values(std::pair("x ** 1", ""), std::pair("x ** 2", "mul"),
                    std::pair("x ** 3.0", "mul mul"), std::pair("x ** 8", "mul mul mul"),
                    std::pair("x ** 9", "pow"), std::pair("x ** -2", "mul div"),
                    std::pair("x ** 0.5", "sqrt"), std::pair("x ** -0.5", "rsqrt"),
                    std::pair("x ** 1.5", "pow"), std::pair("-x ** 2", "mul neg")));

INSTANTIATE_TEST_SUITE_P(
    Others, OpsOf,
    testing::Values(std::pair("stop_gradient(x)", ""), std::pair("clamp(x, 0, 1)", "max min"),
                    std::pair("where(i == 3, 0, i)", "broadcast compare broadcast select"),
                    std::pair("where(i > 3, x, i)", "broadcast compare cast select")));

TEST(Elaboration, StopGradientIsForTrainingAlone) {
  Elaborated result(withBody("  y = stop_gradient(image) * image"));
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(result.count<nn::StopGradientOp>("train"), 1u);
  EXPECT_EQ(result.count<nn::StopGradientOp>("eval"), 0u);
}

//===- Configuration --------------------------------------------------------------------------===//

static const char *const small =
    "model m(batch = 2, patch = [4, 4], norm = \"a\") {\n  require norm != \"\", \"no\"\n"
    "  input x : f32[batch, 1, patch...]\n  loss = mean(conv(x, 1, kernel = 1))\n"
    "  metric level = mean(x)\n}\n";

TEST(Configuration, SettingsReachParametersAndBlocks) {
  Options options;
  options.sets = {"batch=3",
                  "patch=8,6",
                  "norm=batch",
                  "train.epochs=7",
                  "train.optimizer=sgd(lr=0.5, momentum=0.9, no_decay=[\"*.bias\"])",
                  "train.monitor=max(level)"};
  Elaborated result(std::string(small) + "train { epochs = 2 }", options);
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(textOf(result.model()->getAttr("config")),
            "{batch = 3 : i64, norm = \"batch\", patch = [8, 6]}");
  EXPECT_EQ(textOf(result.model()->getAttr("batch")), "3 : i64");
  EXPECT_EQ(
      textOf(result.model()->getAttr("train")),
      "{epochs = 7 : i64, monitor = {goal = \"max\", name = \"level\"}, optimizer = {lr = "
      "5.000000e-01 : f64, "
      "momentum = 9.000000e-01 : f64, name = \"sgd\", nesterov = false, no_decay = [\"*.bias\"], "
      "weight_decay = 0.000000e+00 : f64}, schedule = [], steps_per_epoch = 0 : "
      "i64}");
}

/// A bare name has the direction of its metric, which a negative factor turns over.
TEST(Configuration, MonitorsKnowTheirDirection) {
  struct {
    const char *metric, *monitor, *goal;
  } cases[] = {
      {"accuracy(y, label)", "watched", "max"},
      {"100 * accuracy(y, label)", "watched", "max"},
      {"-accuracy(y, label)", "watched", "min"},
      {"iou(y > 0.0, x > 0.5)", "watched", "max"},
      {"softmax_cross_entropy(y, label)", "watched", "min"},
      {"bce_with_logits(y, x)", "watched", "min"},
      {"mae(y, x)", "watched", "min"},
      {"mse(y, x)", "watched", "min"},
      {"mse(y, x) * -1.0", "watched", "max"},
      {"iou(label, label, classes = 3)", "watched", "max"},
      {"-100 * dice(label, label, classes = 3)", "watched", "min"},
      {"psnr(y, x, range = 1)", "watched", "max"},
      {"1 - accuracy(y, label)", "min(watched)", "min"},
      {"mean(y)", "max(watched)", "max"},
      {"mean(y)", "min(watched)", "min"},
      {"mse(y, x)", "max(watched)", "max"},
  };
  for (const auto &each : cases) {
    Elaborated result(
        std::string(
            "model m() {\n  input x : f32[2, 3]\n  input label : i32[2]\n"
            "  y = dense(x, 3)\n  loss = softmax_cross_entropy(y, label)\n  metric watched = ") +
        each.metric + "\n}\ntrain { monitor = " + each.monitor + " }");
    ASSERT_TRUE(result.module) << result.diagnostics;
    auto train = result.model()->getAttrOfType<mlir::DictionaryAttr>("train");
    EXPECT_EQ(textOf(train.get("monitor")),
              std::string("{goal = \"") + each.goal + "\", name = \"watched\"}")
        << each.metric;
  }
}

/// The monitor is a figure of the validation.
TEST(Configuration, MonitorsWatchEvaluation) {
  std::string model = "model m() {\n  input x : f32[2, 3]\n  y = dense(x, 1)\n  loss = mean(y)\n"
                      "  if training { metric a = mse(y, 0) } else { metric b = mse(y, 0) }\n}\n";
  Elaborated good(model + "train { monitor = b }"), bad(model + "train { monitor = a }");
  EXPECT_TRUE(good.module) << good.diagnostics;
  EXPECT_NE(bad.diagnostics.find("of a metric of the model or of the loss: 'b', 'loss'"),
            std::string::npos)
      << bad.diagnostics;
}

TEST(Configuration, DataChainsAreWritten) {
  Elaborated result(
      std::string(small) +
      "data {\n  source file : axes = \"NYX\"\n  file -> normalize(mean = 1, std = [2, 3])\n"
      "    -> flip\n    -> x\n  validation = 0.25\n}");
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(textOf(result.model()->getAttr("data")),
            "{chains = [{inputs = [\"file\"], outputs = [\"x\"], steps = [{mean = "
            "1.000000e+00 : f64, name = \"normalize\", std = [2.000000e+00, 3.000000e+00]}, "
            "{name = \"flip\"}]}], sources = [{axes = \"NYX\", name = "
            "\"file\"}], validation = 2.500000e-01 : f64}");
}

TEST(Configuration, DataStepsKeepTheirArguments) {
  for (auto [step, written] :
       {std::pair("flip(axes = \"X\")", "{axes = \"X\", name = \"flip\"}"),
        std::pair("normalize", "{mean = \"dataset\", name = \"normalize\"}"),
        std::pair("normalize(percentile = [1, 99.5])",
                  "{mean = \"dataset\", name = \"normalize\", percentile = [1.000000e+00, "
                  "9.950000e+01]}"),
        std::pair("random_crop([3, 3], padding = 1)",
                  "{name = \"random_crop\", padding = 1 : i64, size = [3, 3]}"),
        std::pair("random_resized_crop(3)",
                  "{name = \"random_resized_crop\", ratio = [7.500000e-01, 1.330000e+00], scale = "
                  "[8.000000e-02, 1.000000e+00], size = 3 : i64}"),
        std::pair("normalize(per_image)", "{mean = \"per_image\", name = \"normalize\"}"),
        std::pair("normalize(1, 2)", "{mean = 1.000000e+00 : f64, name = \"normalize\", std = "
                                     "2.000000e+00 : f64}")}) {
    Elaborated result(std::string(small) + "data { x -> " + step + " -> x }");
    ASSERT_TRUE(result.module) << result.diagnostics;
    std::string data = textOf(result.model()->getAttr("data"));
    EXPECT_NE(data.find(written), std::string::npos) << data;
  }
}

/// A chain of three inputs, with words that are operators, too; and one of an output.
TEST(Configuration, Noise2VoidIsWritten) {
  std::string model = "model m() {\n  input a : f32[2, 1, 8, 8]\n  input b : f32[2, 1, 8, 8]\n"
                      "  input c : f32[2, 1, 8, 8]\n  y = conv(a, 1, kernel = 1)\n"
                      "  output out = y\n  loss = mse(y, b, where = c)\n}\n";
  Elaborated result(model + "data { source v : axes = \"YX\"\n  v -> normalize -> patches(8) -> "
                            "blind_spot(replace = mean) -> a, b, c\n"
                            "  out -> denormalize(v) -> out }");
  ASSERT_TRUE(result.module) << result.diagnostics;
  std::string data = textOf(result.model()->getAttr("data"));
  EXPECT_NE(data.find("outputs = [\"a\", \"b\", \"c\"]"), std::string::npos) << data;
  EXPECT_NE(data.find("{axis = \"X\", box = \"exact\", name = \"blind_spot\", percent = "
                      "1.980000e-01 : f64, radius = 5 : i64, replace = \"mean\", sigma = "
                      "1.000000e+00 : f64}"),
            std::string::npos)
      << data;
  EXPECT_NE(data.find("{inputs = [\"out\"], outputs = [\"out\"], steps = [{name = "
                      "\"denormalize\", source = \"v\"}]}"),
            std::string::npos)
      << data;
  auto message = [&](const std::string &chains) {
    return Elaborated(model + "data { source v : axes = \"YX\"\n  " + chains + " }").diagnostics;
  };
  EXPECT_NE(message("v -> flip -> a\n out -> denormalize(v) -> out").find("'v' has none"),
            std::string::npos);
  EXPECT_NE(message("v -> normalize -> a\n oat -> denormalize(v) -> oat")
                .find("no output 'oat'; it has 'out'; did you mean 'out'?"),
            std::string::npos);
  EXPECT_NE(message("v -> normalize -> a\n out -> denormalize(v) -> flip -> out")
                .find("denormalize has a chain of its own"),
            std::string::npos);
}

TEST(Configuration, EarlyStopIsACallOfItsOwn) {
  Elaborated result(std::string(small) + "train { early_stop(patience = 4) }");
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_NE(textOf(result.model()->getAttr("train"))
                .find("early_stop = {name = \"early_stop\", patience = 4 : i64}"),
            std::string::npos);
}

TEST(Configuration, ScalesAreFloats) {
  Elaborated result("model m(batch = 2) { input x : f32[batch, 3]; loss = mean(dense(x, 1)) }\n"
                    "train { lr_scale = [[\"*.bias\", 2], [\"*\", 0.5]] }");
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_NE(textOf(result.model()->getAttr("train"))
                .find("lr_scale = [[\"*.bias\", 2.000000e+00], [\"*\", 5.000000e-01]]"),
            std::string::npos);
}

TEST(Configuration, FreezeIsAListOfPatterns) {
  Elaborated result("model m(batch = 2) { input x : f32[batch, 3]; loss = mean(dense(x, 1)) }\n"
                    "train { freeze = [\"dense.?.bias\"] }");
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_NE(textOf(result.model()->getAttr("train")).find("freeze = [\"dense.?.bias\"]"),
            std::string::npos);
}

TEST(Configuration, DefaultsFollowEarlierParameters) {
  Options options;
  options.sets = {"size=16"};
  Elaborated result(
      "model m(size = 8, half = size / 2) { input x : f32[half, size]; loss = mean(x) }", options);
  ASSERT_TRUE(result.module) << result.diagnostics;
  EXPECT_EQ(textOf(result.model()->getAttr("config")), "{half = 8 : i64, size = 16 : i64}");
}
