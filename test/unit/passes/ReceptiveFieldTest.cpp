// What the analysis promises, by the reference evaluator in f64: a tile's result is the whole
// image's, `overlap` off every edge that is not the image's.

#include "passes/nn/ReceptiveField.h"
#include "frontend/Frontend.h"
#include "passes/Passes.h"
#include "test/reference/Evaluator.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;
using namespace dlc::reference;

namespace {

constexpr int64_t wholeSize = 96, tileSize = 64;

struct Network {
  const char *name, *body; // from image [1, 1, size] to y
  int64_t overlap, alignment;
};

/// @predict of the network for images of a size.
struct Program {
  Program(const Network &network, int64_t size) {
    context.loadDialect<NNDialect>();
    std::string text = "model m(batch = 1) {\n"
                       "  input image : f32[batch, 1, " +
                       std::to_string(size) + "]\n  " + network.body +
                       "\n  output p = sigmoid(y)\n  loss = mean(y * y)\n}\n";
    std::string diagnostics;
    llvm::raw_string_ostream os(diagnostics);
    module = fe::elaborateText(text, "test.dl", {}, context, os);
    EXPECT_TRUE(module) << diagnostics;
    PassManager manager(&context, ModuleOp::getOperationName(), OpPassManager::Nesting::Implicit);
    buildNNPipeline(manager, {});
    EXPECT_TRUE(succeeded(manager.run(*module)));
    model = *module->getOps<ModelOp>().begin();
    predict = cast<ProgramOp>(SymbolTable::lookupSymbolIn(model, "predict"));
  }

  std::vector<double> run(const Tensors &variables, ArrayRef<double> image) {
    Tensors inputs;
    inputs["image"] = Tensor({1, 1, static_cast<int64_t>(image.size())});
    std::copy(image.begin(), image.end(), inputs["image"].data.begin());
    FailureOr<std::vector<Outcome>> outcome = evaluate(predict, variables, {inputs});
    EXPECT_TRUE(succeeded(outcome));
    const Tensor &p = outcome->front().outputs.at("p");
    return {p.data.begin(), p.data.end()};
  }

  MLIRContext context;
  OwningOpRef<mlir::ModuleOp> module;
  nn::ModelOp model;
  ProgramOp predict;
};

class ReceptiveFieldTest : public testing::TestWithParam<Network> {};

TEST_P(ReceptiveFieldTest, TilesGiveTheWholeImage) {
  Program whole(GetParam(), wholeSize), part(GetParam(), tileSize);
  std::variant<Tiling, TilingObstacle> found = tilingOf(part.predict);
  const auto *tiling = std::get_if<Tiling>(&found);
  ASSERT_TRUE(tiling) << std::get<TilingObstacle>(found).text;
  EXPECT_EQ(tiling->overlap.front(), GetParam().overlap);
  EXPECT_EQ(tiling->alignment.front(), GetParam().alignment);

  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Tensors variables;
  for (auto variable : whole.model.getBody().getOps<VariableOp>())
    if (variable.getKind() == VariableKind::Parameter) {
      Tensor &values = variables[variable.getSymName().str()];
      values = Tensor(cast<RankedTensorType>(variable.getType()).getShape());
      for (double &value : values.data)
        value = uniform(random);
    }
  std::vector<double> image(wholeSize);
  for (double &pixel : image)
    pixel = uniform(random);

  std::vector<double> expected = whole.run(variables, image);
  int64_t scale = wholeSize / static_cast<int64_t>(expected.size());
  for (int64_t start = 0; start <= wholeSize - tileSize; start += GetParam().alignment) {
    std::vector<double> got =
        part.run(variables, ArrayRef<double>(image).slice(static_cast<size_t>(start), tileSize));
    int64_t begin = start ? GetParam().overlap : 0;
    int64_t end = start + tileSize < wholeSize ? tileSize - GetParam().overlap : tileSize;
    ASSERT_LT(begin, end);
    for (int64_t i = begin / scale; i < end / scale; ++i)
      EXPECT_NEAR(got[static_cast<size_t>(i)], expected[static_cast<size_t>(start / scale + i)],
                  1e-12)
          << "element " << i << " of the tile at " << start;
  }
}

const Network networks[] = {
    {"Dilated", "y = conv(image, 1, kernel = 5, padding = 4, dilation = 2, name = \"a\")", 4, 1},
    // TensorFlow's rule pads an even kernel more behind.
    {"EvenKernel",
     "y = conv(conv(image, 2, kernel = 4, padding = same, name = \"a\"), 1, kernel = 4, "
     "padding = same, name = \"b\")",
     4, 1},
    {"HalfSize", "y = conv(image, 1, kernel = 3, stride = 2, padding = 1, name = \"a\")", 2, 2},
    {"WideTranspose",
     "x = conv(image, 2, kernel = 3, stride = 2, padding = 1, name = \"a\")\n"
     "  y = conv_transpose(x, 1, kernel = 4, stride = 2, padding = 1, name = \"b\")",
     4, 2},
    {"UNet",
     "a = relu(conv(image, 2, kernel = 3, padding = 1, name = \"a\"))\n"
     "  b = relu(conv(max_pool(a, kernel = 2), 2, kernel = 3, padding = 1, name = \"b\"))\n"
     "  c = relu(conv(max_pool(b, kernel = 2), 2, kernel = 3, padding = 1, name = \"c\"))\n"
     "  u = concat(b, conv_transpose(c, 2, kernel = 2, stride = 2, name = \"d\"))\n"
     "  u = relu(batch_norm(conv(u, 2, kernel = 3, padding = 1, name = \"e\"), name = \"n\"))\n"
     "  v = concat(a, conv_transpose(u, 2, kernel = 2, stride = 2, name = \"f\"))\n"
     "  y = conv(v, 1, kernel = 3, padding = 1, name = \"g\")",
     16, 4},
    {"AveragesAndNearest",
     "a = avg_pool(conv(image, 2, kernel = 3, padding = 1, name = \"a\"), kernel = 2)\n"
     "  y = upsample(conv(a, 1, kernel = 3, padding = 1, name = \"b\"), 2)",
     4, 2},
    {"PixelShuffle",
     "a = conv(image, 8, kernel = 3, stride = 2, padding = 1, name = \"a\")\n"
     "  y = conv(pixel_shuffle(a, 2), 1, kernel = 3, padding = 1, name = \"b\")",
     4, 2},
    {"BlurAndEveryOther",
     "a = slice(blur_pool(image), axis = -1, from = 0, step = 2)\n"
     "  y = upsample(a, 4)",
     4, 4},
    {"ClassOfEachPixel",
     "a = conv(image, 3, kernel = 3, padding = 1, name = \"a\")\n"
     "  y = slice(a, axis = 1, from = 0, to = 1) + 0.5 * reshape(argmax(a, 1), image.shape)",
     1, 1},
    {"OverlappingAverages", "y = avg_pool(image, kernel = 3, stride = 1, padding = 1)", 1, 1},
    {"Linear",
     "a = conv(image, 2, kernel = 2, stride = 2, name = \"a\")\n"
     "  y = upsample(conv(a, 1, kernel = 1, name = \"b\"), 2, mode = linear)",
     2, 2},
    // Oktay et al. 2018: a gate of one channel, made at half resolution, for all channels.
    {"AttentionGate",
     "a = relu(conv(image, 4, kernel = 3, padding = 1, name = \"a\"))\n"
     "  b = relu(conv(max_pool(a, kernel = 2), 4, kernel = 3, padding = 1, name = \"b\"))\n"
     "  both = relu(conv(a, 2, kernel = 2, stride = 2, name = \"theta\") +\n"
     "              conv(b, 2, kernel = 1, name = \"phi\"))\n"
     "  gate = sigmoid(conv(both, 1, kernel = 1, name = \"psi\"))\n"
     "  gate = conv_transpose(gate, 1, kernel = 2, stride = 2, name = \"up\")\n"
     "  y = conv(a * gate, 1, kernel = 3, padding = 1, name = \"c\")",
     6, 2},
    {"ReductionsOverChannels",
     "a = conv(image, 4, kernel = 3, padding = 1, name = \"a\")\n"
     "  a = softmax(a) * (a - mean(a, axes = [1], keep = true))\n"
     "  y = sum(a, axes = [1], keep = true) * image",
     1, 1},
    // Element i reads the image from i - 3 to i + 1.
    {"ZerosAround", "y = conv(pad(image, [[3, 1]]), 1, kernel = 5, name = \"a\")", 3, 1},
    // Element i reads the elements i - 2 to i of `a`, and so the image from 2 i - 4 to 2 i + 1.
    {"ZerosAtHalfSize",
     "a = conv(image, 2, kernel = 2, stride = 2, name = \"a\")\n"
     "  y = conv(pad(a, [[2, 0]]), 1, kernel = 3, name = \"b\")",
     4, 2},
    // Whole factors are those of an upsample. Element i reads i - 2, whose block of four begins up
    // to 3 ahead; with linear a pair of two, which begins 2 ahead of an even one.
    {"ResizeByFour",
     "a = resize(conv(image, 2, kernel = 4, stride = 4, name = \"a\"), image.spatial)\n"
     "  y = conv(pad(a, [[2, 0]]), 1, kernel = 3, name = \"b\")",
     8, 4},
    {"ResizeByTwoLinear",
     "a = conv(image, 2, kernel = 2, stride = 2, name = \"a\")\n"
     "  a = resize(a, image.spatial, mode = linear)\n"
     "  y = conv(pad(a, [[2, 0]]), 1, kernel = 3, name = \"b\")",
     4, 2},
    {"NoChannelsLeft", "y = sum(conv(image, 3, kernel = 5, padding = 2, name = \"a\"), axes = [1])",
     2, 1},
};

INSTANTIATE_TEST_SUITE_P(All, ReceptiveFieldTest, testing::ValuesIn(networks),
                         [](const auto &info) { return info.param.name; });

//===- Obstacles ------------------------------------------------------------------------------===//

TEST(ReceptiveField, NormsOfSamplesReadTheWholeImage) {
  for (const char *norm : {"group_norm(a, 2", "instance_norm(a", "layer_norm(a"}) {
    std::string body =
        "a = conv(image, 4, kernel = 3, padding = 1, name = \"a\")\n  y = " + std::string(norm) +
        ", name = \"norm\")";
    Program program({"", body.c_str(), 0, 0}, tileSize);
    std::variant<Tiling, TilingObstacle> found = tilingOf(program.predict);
    ASSERT_TRUE(std::holds_alternative<TilingObstacle>(found)) << norm;
    const auto &obstacle = std::get<TilingObstacle>(found);
    EXPECT_EQ(obstacle.text, "takes statistics over the whole image");
    EXPECT_EQ(layerName(obstacle.loc), "norm");
  }
}

/// What a pixel becomes depends on where the edges are.
TEST(ReceptiveField, OtherSizesAndMirroredEdgesCutTheImage) {
  for (const char *body :
       {"y = resize(resize(image, 24), image.spatial)",
        "y = resize(resize(image, 24, mode = linear), image.spatial, mode = linear)",
        "y = conv(pad(image, [[1, 1]], mode = reflect), 1, kernel = 3, name = \"a\")",
        "y = conv(pad(image, [[1, 1]], mode = edge), 1, kernel = 3, name = \"a\")"}) {
    Program program({"", body, 0, 0}, tileSize);
    std::variant<Tiling, TilingObstacle> found = tilingOf(program.predict);
    ASSERT_TRUE(std::holds_alternative<TilingObstacle>(found)) << body;
    EXPECT_EQ(std::get<TilingObstacle>(found).text, "cuts the image along axis 2") << body;
  }
}

TEST(ReceptiveField, RandomTensorsHaveTheirPlace) {
  Program program({"", "y = image + normal(image.shape, name = \"noise\")", 0, 0}, tileSize);
  std::variant<Tiling, TilingObstacle> found = tilingOf(program.predict);
  ASSERT_TRUE(std::holds_alternative<TilingObstacle>(found));
  EXPECT_EQ(std::get<TilingObstacle>(found).text,
            "combines pixels with values that have fixed places in the image");
}

} // namespace
