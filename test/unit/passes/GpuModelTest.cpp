// Every cluster of the models, planned for a GPU and at small sizes, on the emulator beside the
// CPU.

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
  unsigned run, all; // clusters: those small enough, of how many
};

void PrintTo(const Case &test, std::ostream *os) {
  PrintTo(static_cast<const GpuCase &>(test), os);
}

class GpuModel : public GpuModelFixture<Case> {};

/// What operands hold: values of which no function of a step makes an infinity, or of both signs,
/// zeros, and what is no finite number.
enum class Values : uint8_t { Tame, Wild };

double drawn(std::mt19937 &random, Values values) {
  double size = std::uniform_real_distribution<double>(0.25, 1.5)(random);
  if (values == Values::Tame)
    return size;
  constexpr double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-130, -0x1p120};
  return random() % 16 ? (random() % 2 ? size : -size) : special[random() % std::size(special)];
}

/// Integers are labels and positions in a window.
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

/// Sums in another order: as close as their rounding, of results that are finite, as most are.
void expectClose(const Tensor &got, const Tensor &want, Type element) {
  double largest = 0, error = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    double a = got.data[i], b = want.data[i];
    if (!std::isfinite(b)) {
      EXPECT_TRUE(isSame(a, b)) << a << " where the CPU has " << b;
      continue;
    }
    ++finite;
    largest = std::max(largest, std::fabs(b));
    double distance = std::fabs(a - b);
    error = std::isnan(distance) ? INFINITY : std::max(error, distance);
  }
  EXPECT_GT(finite, want.size() / 2);
  EXPECT_LE(error, (nn::elementBytes(element) == 2 ? 0x1p-8 : 0x1p-20) * largest);
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

TEST_P(GpuModel, ClustersComputeWhatTheCpuDoes) {
  unsigned seed = 0, run = 0, all = 0;
  for (auto cluster : model().getOps<exec::ClusterOp>()) {
    Block &body = cluster.getBody().front();
    ++all;
    if (largestOf(body) > mostElements)
      continue;
    SCOPED_TRACE(cluster.getSymName().str());
    SplitCluster runner(cluster.getBody());
    for (Values values : {Values::Tame, Values::Wild}) {
      std::vector<Tensor> operands = operandsOf(body, values, seed++);
      std::vector<Tensor> onCpu = runner.run(operands),
                          onGpu = ClusterRunner::runOnGpu(cluster.getBody(), operands);
      for (auto [got, want, value] : llvm::zip(onGpu, onCpu, body.getTerminator()->getOperands())) {
        Type element = nn::tensorType(value).getElementType();
        if (!ClusterRunner::mayDifferOnGpu(value))
          EXPECT_EQ(countDifferent(got, want, element), 0) << "of " << want.size();
        else if (values == Values::Tame)
          expectClose(got, want, element);
      }
    }
    ++run;
  }
  EXPECT_EQ(run, GetParam().run);
  EXPECT_EQ(all, GetParam().all);
}

INSTANTIATE_TEST_SUITE_P(
    Models, GpuModel,
    testing::Values(
        Case{{"mnist_cnn", {"batch=2"}, "f32"}, 25, 27},
        Case{{"mnist_cnn", {"batch=2"}, "bf16"}, 27, 29},
        Case{{"mnist_cnn", {"batch=2"}, "f16"}, 33, 36},
        Case{{"unet2d", {"batch=2", "size=32", "base=8", "depth=2"}, "bf16"}, 57, 67},
        Case{{"unet3d", {"batch=1", "patch=[4, 16, 16]", "base=8", "depth=2"}, "f16"}, 65, 75},
        Case{{"vgg16", {"batch=1", "size=32", "classes=10"}, "bf16"}, 55, 68},
        Case{{"resnet50", {"batch=2", "size=32", "stem=small", "classes=10"}, "bf16"}, 113, 131},
        Case{{"inception_v3", {"batch=1", "size=107", "classes=10", "aux=false"}, "f32"}, 188, 196},
        Case{{"n2v2d", {"batch=1"}, "f16"}, 78, 89},
        Case{{"../test/networks/mobilenetv2",
              {"batch=2", "size=32", "classes=10", "widths=[16, 24, 32]", "counts=[1, 2, 1]",
               "strides=[1, 2, 2]"},
              "bf16"},
             85,
             85}));
