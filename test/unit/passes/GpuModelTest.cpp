// Every cluster of the models, planned for a GPU and at small sizes, on the emulator beside the
// CPU and the reference evaluator.

#include "test/unit/passes/Elements.h"
#include "test/unit/passes/GpuModels.h"
#include "test/unit/passes/SplitCluster.h"

#include <cmath>

using namespace mlir;
using namespace dlc;
using namespace dlc::test;
using reference::Tensor;

namespace {
struct Case : GpuCase {
  unsigned tooLarge = 0; // clusters
};

void PrintTo(const Case &test, std::ostream *os) {
  PrintTo(static_cast<const GpuCase &>(test), os);
}

class GpuModel : public GpuModelFixture<Case> {};

/// What operands hold: values of which no function of a step makes an infinity, such of both signs,
/// which open some masks and shut others, or these, zeros, and what is no finite number.
enum class Values : uint8_t { Tame, Signed, Wild };

double drawn(std::mt19937 &random, Values values) {
  double size = std::uniform_real_distribution<double>(0.25, 1.5)(random);
  if (values == Values::Tame)
    return size;
  if (values == Values::Signed)
    return random() % 2 ? size : -size;
  constexpr double special[] = {
      0,       -0.0,     INFINITY, -INFINITY,
      NAN,     0x1p-130, -0x1p120, // zero and infinite in f16, where these are subnormal:
      0x1p-20, -0x1p-20};
  return random() % 16 ? (random() % 2 ? size : -size) : special[random() % std::size(special)];
}

// In windows of 3 x 3.
constexpr unsigned positions = 9;

/// Integers are labels, and positions in a window.
std::vector<Tensor> operandsOf(Block &cluster, Values values, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tensor> operands;
  for (BlockArgument argument : cluster.getArguments()) {
    auto type = nn::tensorType(argument);
    Type element = type.getElementType();
    Tensor tensor(type.getShape());
    for (double &value : tensor.data) {
      value = isa<FloatType>(element) ? drawn(random, values)
              : element.isInteger(1)  ? random() % 2
              : element.isInteger(8)  ? random() % positions
                                      : random() % 4;
      char stored[8];
      storeElement(element, stored, value);
      value = loadElement(element, stored);
    }
    operands.push_back(std::move(tensor));
  }
  return operands;
}

bool isSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Narrowing to bf16 flushes denormals on the CPU and keeps them on a GPU.
int64_t countDifferent(const Tensor &got, const Tensor &want, Type element) {
  auto flushed = [&](double x) {
    return element.isBF16() && std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x;
  };
  int64_t count = 0;
  for (int64_t i = 0; i < want.size(); ++i)
    count += !isSame(flushed(got.data[i]), flushed(want.data[i]));
  return count;
}

bool is16Bits(Type element) { return isa<FloatType>(element) && nn::elementBytes(element) == 2; }

/// How far sums in another order may be apart, in terms of the largest.
double roundingOf(Type element, Values values) {
  bool isTame = values == Values::Tame;
  return is16Bits(element) ? (isTame ? 0x1p-8 : 0x1p-6) : (isTame ? 0x1p-20 : 0x1p-16);
}

/// How far results in a cluster may be from exact arithmetic's, in terms of the largest: where that
/// is rounded to one of two numbers of 16 bits, f32 may be to the other, once or twice.
double roundingOf(Block &cluster) {
  double rounding = 0x1p-20;
  for (Operation &op : cluster.without_terminator())
    for (Value value : op.getResults()) {
      Type element = getElementTypeOrSelf(value.getType());
      if (is16Bits(element))
        rounding = std::max(rounding, element.isBF16() ? 0x1p-7 : 0x1p-9);
    }
  return rounding;
}

/// Sums in another order: as close as their rounding, of results that are finite, as most are of
/// positive operands. Of both signs terms cancel, so that a sum may be smaller than its terms, and
/// some elements may lie where rounding opens a mask.
void expectClose(const Tensor &got, const Tensor &want, double tolerance, Values values) {
  double largest = 0;
  int64_t finite = 0, apart = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    double a = got.data[i], b = want.data[i];
    if (!std::isfinite(b)) {
      EXPECT_TRUE(isSame(a, b)) << a << " instead of " << b;
      continue;
    }
    ++finite;
    largest = std::max(largest, std::fabs(b));
  }
  for (auto [a, b] : llvm::zip(got.data, want.data))
    apart += std::isfinite(b) && !(std::fabs(a - b) <= tolerance * largest);
  if (values == Values::Tame)
    EXPECT_GT(finite, want.size() / 2);
  EXPECT_LE(apart, values == Values::Tame ? 0 : want.size() / 10000);
}

/// True of a cluster in which a value decides whether another one is taken.
bool hasMask(Block &cluster) {
  return llvm::any_of(cluster, [](Operation &op) {
    return isa<nn::CompareOp, nn::SelectOp, nn::ReluOp, nn::MaxOp, nn::MinOp>(op);
  });
}

// Emulating more takes long.
constexpr int64_t mostElements = 1 << 18;

int64_t largestOf(Block &cluster) {
  int64_t most = 0;
  for (Operation &op : cluster)
    for (Value value : op.getOperands())
      most = std::max(most, nn::tensorType(value).getNumElements());
  return most;
}
} // namespace

TEST_P(GpuModel, ClustersComputeWhatTheCpuAndTheEvaluatorDo) {
  unsigned seed = 0, run = 0, tooLarge = 0;
  for (auto cluster : model().getOps<exec::ClusterOp>()) {
    Block &body = cluster.getBody().front();
    if (largestOf(body) > mostElements) {
      ++tooLarge;
      continue;
    }
    SCOPED_TRACE(cluster.getSymName().str());
    SplitCluster runner(cluster.getBody());
    for (Values values : {Values::Tame, Values::Signed, Values::Wild}) {
      if (values == Values::Signed && !hasMask(body))
        continue;
      std::vector<Tensor> operands = operandsOf(body, values, seed++);
      std::vector<Tensor> onCpu = runner.run(operands),
                          onGpu = ClusterRunner::runOnGpu(cluster.getBody(), operands);
      std::vector<Tensor> exact;
      if (values == Values::Tame)
        exact = ClusterRunner::evaluate(cluster.getBody(), operands);
      for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
        const Tensor &got = onGpu[i], &want = onCpu[i];
        Type element = nn::tensorType(value).getElementType();
        if (!exact.empty())
          expectClose(got, exact[i], roundingOf(body), values);
        if (!ClusterRunner::mayDifferOnGpu(value))
          EXPECT_EQ(countDifferent(got, want, element), 0) << "of " << want.size();
        else if (values != Values::Wild)
          expectClose(got, want, roundingOf(element, values), values);
      }
    }
    ++run;
  }
  EXPECT_GT(run, tooLarge);
  EXPECT_EQ(tooLarge, GetParam().tooLarge);
}

// An eighth of their channels.
static const Edits narrowVgg{{"relu(conv(x, width,", "relu(conv(x, width >> 3,"}, {"4096", "256"}};
static const Edits narrowResNet{{"64, 7, stride", "8, 7, stride"},
                                {"64, 3, padding", "8, 3, padding"},
                                {"64 << level", "8 << level"}};
// For the second classifier, in addition, windows that are larger than what is left of the image.
static const Edits narrowInception{{"conv(x, width, kernel", "conv(x, width >> 3, kernel"},
                                   {"!aux || size >= 299", "!aux || size >= 107"},
                                   {"unit(x, 768, 5,", "unit(x, 768, 5, padding = 2,"}};
static constexpr uint64_t smallBucket = mostElements * sizeof(float) / 2;

INSTANTIATE_TEST_SUITE_P(
    Models, GpuModel,
    testing::Values(
        Case{{"mnist_cnn", {"batch=2", "size=12"}, "f32"}},
        Case{{"mnist_cnn", {"batch=2", "size=12"}, "bf16"}},
        Case{{"mnist_cnn", {"batch=2", "size=12"}, "f16"}},
        Case{{"unet2d", {"batch=2", "size=32", "base=8", "depth=2", "predict.size=32"}, "bf16"}},
        Case{{"unet2d", {"batch=2", "size=32", "base=8", "depth=2", "predict.size=32"}, "f16"}},
        Case{{"unet2d", {"batch=2", "size=32", "base=8", "depth=2", "predict.size=32"}, "f32"}},
        Case{{"unet3d",
              {"batch=1", "patch=[4, 16, 16]", "base=8", "depth=2", "predict.patch=[4, 16, 16]"},
              "f16"}},
        Case{{"vgg16", {"batch=1", "size=32", "classes=10"}, "bf16", narrowVgg}},
        Case{{"vgg16", {"batch=1", "size=32", "classes=10"}, "f16", narrowVgg}},
        Case{{"resnet50",
              {"batch=2", "size=16", "stem=small", "classes=10"},
              "bf16",
              narrowResNet,
              smallBucket}},
        Case{{"resnet50",
              {"batch=2", "size=16", "stem=small", "classes=10"},
              "f16",
              narrowResNet,
              smallBucket}},
        Case{{"resnet101", {"batch=2", "size=32", "classes=10"}, "f32", narrowResNet, smallBucket}},
        Case{{"resnet50_svhn", {"batch=1", "size=16"}, "f16", narrowResNet, smallBucket}},
        Case{{"inception_v3", {"batch=2", "size=107", "classes=10"}, "f32", narrowInception}},
        Case{{"n2v2d", {"batch=1", "predict.size=64"}, "f16"}},
        Case{{"n2v3d",
              {"batch=1", "patch=[4, 16, 16]", "base=8", "predict.patch=[4, 16, 16]"},
              "bf16"}},
        Case{{"n2v3d",
              {"batch=1", "patch=[4, 16, 16]", "base=8", "predict.patch=[4, 16, 16]"},
              "f16"}},
        Case{{"n2v3d",
              {"batch=1", "patch=[4, 16, 16]", "base=8", "predict.patch=[4, 16, 16]"},
              "f32"}},
        Case{{"../test/networks/mobilenetv2",
              {"batch=2", "size=32", "classes=10", "widths=[16, 24, 32]", "counts=[1, 2, 1]",
               "strides=[1, 2, 2]"},
              "bf16"}},
        Case{{"../test/networks/atrous_pyramid", {}, "bf16"}},
        Case{{"../test/networks/attention_unet", {}, "f16"}},
        Case{{"../test/networks/densenet121",
              {"batch=2", "size=32", "classes=10", "blocks=[2, 2]", "growth=8", "start=16"},
              "bf16"}},
        Case{{"../test/networks/siamese", {}, "f16"}},
        Case{{"../test/networks/squeeze_excitation", {}, "bf16"}},
        Case{{"../test/networks/super_resolution", {}, "f16"}},
        Case{{"../test/networks/variational_autoencoder", {}, "bf16"}},
        // Of as many channels as they have, but for what is too large.
        Case{{"vgg16", {"batch=1", "size=32", "classes=10"}, "bf16"}, 13},
        Case{{"resnet50", {"batch=2", "size=32", "stem=small", "classes=10"}, "bf16"}, 18},
        Case{{"inception_v3", {"batch=1", "size=107", "classes=10", "aux=false"}, "f32"}, 8}));
