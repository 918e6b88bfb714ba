// Every cluster of the models, planned for a GPU and at small sizes, on the emulator beside the
// CPU.

#include "runtime/core/BackEnd.h"
#include "test/unit/passes/ClusterRunner.h"
#include "test/unit/passes/Elements.h"
#include "tools/driver/Compilation.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace mlir;
using namespace dlc;
using namespace dlc::test;
using reference::Tensor;

namespace {
struct Case {
  const char *model;
  std::vector<std::string> sets;
  const char *precision;
};

void PrintTo(const Case &test, std::ostream *os) { *os << test.model << " " << test.precision; }

class GpuModel : public testing::TestWithParam<Case> {};

/// Values that no function of a step makes infinite; integers, labels and positions in a window.
std::vector<Tensor> operandsOf(Block &cluster, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> draw(0.25, 1.5);
  std::vector<Tensor> operands;
  for (BlockArgument argument : cluster.getArguments()) {
    auto type = nn::tensorType(argument);
    Type element = type.getElementType();
    Tensor tensor(type.getShape());
    for (double &value : tensor.data) {
      value = isa<FloatType>(element) ? draw(random)
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

/// Equal bits, or, where sums are in another order, as close as their rounding.
void expectSame(const Tensor &got, const Tensor &want, bool isExact, Type element) {
  double largest = 0, error = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    double a = got.data[i], b = want.data[i];
    if (std::isnan(a) && std::isnan(b))
      continue;
    largest = std::max(largest, std::fabs(b));
    double distance = a == b ? 0 : std::fabs(a - b);
    error = std::isnan(distance) ? INFINITY : std::max(error, distance);
  }
  double relative = isExact ? 0 : nn::elementBytes(element) == 2 ? 0x1p-7 : 4e-6;
  EXPECT_LE(error, relative * largest);
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
  std::string reason;
  const rt::BackEnd *cuda = rt::findBackEnd("cuda:h200", reason);
  ASSERT_TRUE(cuda) << reason;
  if (!cuda->makePlanner("cuda:h200", 1, reason)) {
    ASSERT_FALSE(std::getenv("DLC_REQUIRE_CUDA")) << reason;
    GTEST_SKIP() << reason;
  }
  CompileOptions options;
  options.target = "cuda:h200";
  options.precision = GetParam().precision;
  options.sets = GetParam().sets;
  Compilation compilation(options, llvm::errs());
  ASSERT_TRUE(compilation.load(sourceOf(DLC_MODELS "/" + std::string(GetParam().model) + ".dl")));
  ASSERT_TRUE(compilation.lower(nn::Stage::Exec));
  unsigned seed = 0, run = 0, all = 0;
  for (auto cluster : compilation.model().getOps<exec::ClusterOp>()) {
    Block &body = cluster.getBody().front();
    ++all;
    if (largestOf(body) > mostElements)
      continue;
    SCOPED_TRACE(cluster.getSymName().str());
    ClusterRunner runner(cluster.getBody());
    std::vector<Tensor> operands = operandsOf(body, seed++);
    std::vector<Tensor> onCpu = runner.run(operands), onGpu = runner.runOnGpu(operands);
    for (auto [got, want, value] : llvm::zip(onGpu, onCpu, body.getTerminator()->getOperands()))
      expectSame(got, want, !runner.mayDifferOnGpu(), nn::tensorType(value).getElementType());
    ++run;
  }
  EXPECT_GT(run, all / 2) << "of " << all;
  RecordProperty("clusters", std::to_string(run) + " of " + std::to_string(all));
}

INSTANTIATE_TEST_SUITE_P(
    Models, GpuModel,
    testing::Values(Case{"mnist_cnn", {"batch=2"}, "f32"}, Case{"mnist_cnn", {"batch=2"}, "bf16"},
                    Case{"unet2d", {"batch=2", "size=32", "base=8", "depth=2"}, "bf16"},
                    Case{"resnet50", {"batch=2", "size=32", "stem=small", "classes=10"}, "bf16"},
                    Case{"inception_v3", {"batch=1", "size=107", "classes=10", "aux=false"}, "f32"},
                    Case{"n2v2d", {"batch=1"}, "bf16"}));
