// Large gradients beside a chain of kernels: the wire is kept busy also where it or the kernels
// are not as fast as forecast, with few gradients in memory.

#include "passes/Passes.h"
#include "passes/planning/ProgramScheduler.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dlc;

namespace {
constexpr unsigned kernels = 100, gradients = 16;
constexpr uint64_t kernelTime = 40'000, gradientTime = 1'000;
constexpr uint64_t gradientBytes = uint64_t{128} * 128 * sizeof(float);

/// Gradients that can be computed at once, and `kernels` one after the other, beside a variable
/// that takes `held` bytes.
std::string programText(uint64_t held) {
  auto kernel = [](uint64_t time) {
    return llvm::formatv(
               "nn.kernel = #nn.kernel<\"k\", workspace = 0, flops = 0, bytes = 0, ns = {0}>", time)
        .str();
  };
  std::string variables = llvm::formatv("nn.variable @held : tensor<{0}xf32> {{kind = #nn<kind "
                                        "parameter>, init = #nn.init<constant, 1.0, 0.0>}\n",
                                        held / sizeof(float));
  std::string ops, chain;
  for (unsigned i = 0; i < kernels; ++i)
    chain += llvm::formatv("%m{0} = nn.matmul %y, {1} {{{2}} : (tensor<16x16xf32>, "
                           "tensor<16x16xf32>) -> tensor<16x16xf32>\n",
                           i, i ? "%m" + std::to_string(i - 1) : "%y", kernel(kernelTime));
  chain += llvm::formatv("nn.output \"m\", %m{0} : tensor<16x16xf32>\n", kernels - 1);
  for (unsigned i = 0; i < gradients; ++i) {
    variables += llvm::formatv("nn.variable @w{0} : tensor<128x128xf32> {{kind = #nn<kind "
                               "parameter>, init = #nn.init<constant, 1.0, 0.0>}\n",
                               i);
    ops += llvm::formatv(
        "%g{0} = nn.matmul %x, %x {{transpose_a, {1}} : (tensor<2x128xf32>, tensor<2x128xf32>) -> "
        "tensor<128x128xf32>\n"
        "%r{0} = comm.all_reduce %g{0} : tensor<128x128xf32>\n"
        "%n{0} = nn.fused (%a = %r{0}) : (tensor<128x128xf32>) -> tensor<128x128xf32> attributes "
        "{{{1}, nn.role = #nn.role<update>} {{\nnn.yield %a : tensor<128x128xf32>\n}\n"
        "nn.assign @w{0}, %n{0} {{nn.role = #nn.role<update>} : tensor<128x128xf32>\n",
        i, kernel(gradientTime));
  }
  return "nn.model @m attributes {stage = \"schedule\", target = \"test:rules\", threads = 1 : "
         "i64, "
         "math = \"fast\"} {\n" +
         variables +
         "nn.program @train(%x: tensor<2x128xf32> {nn.input = \"x\"}, "
         "%y: tensor<16x16xf32> {nn.input = \"y\"}) {\n" +
         ops + chain + "}\n}";
}

class InterleaverTest : public testing::Test {
protected:
  InterleaverTest() { context.loadDialect<nn::NNDialect, comm::CommDialect>(); }

  std::vector<Operation *> schedule(const std::string &link, uint64_t held = sizeof(float)) {
    module = parseSourceString<ModuleOp>(programText(held), ParserConfig(&context));
    PassManager manager(&context);
    manager.addNestedPass<nn::ModelOp>(createOverlapAllReduces({/*noOverlap=*/false, link}));
    if (!module || failed(manager.run(*module)))
      return {};
    nn::ModelOp model = *module->getOps<nn::ModelOp>().begin();
    std::vector<Operation *> order;
    for (Operation &op : (*model.getOps<nn::ProgramOp>().begin()).getBody().front())
      order.push_back(&op);
    return order;
  }

  static unsigned mostInFlight(ArrayRef<Operation *> order) {
    unsigned now = 0, most = 0;
    for (Operation *op : order) {
      now += isa<comm::StartOp>(op);
      now -= isa<comm::WaitOp>(op);
      most = std::max(most, now);
    }
    return most;
  }

  static std::vector<ScheduleItem> itemsOf(ArrayRef<Operation *> order) {
    return ProgramScheduler(*order.front()->getBlock(), /*overlap=*/true).itemsOf(order);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(InterleaverTest, KeepsTheWireBusyAtAnyPace) {
  std::vector<Operation *> order = schedule("1:10");
  ASSERT_FALSE(order.empty());
  for (double pace : {0.5, 1.0, 1.5, 2.0, 3.0, 4.0}) {
    OverlapSimulator simulator(Link{pace, 10 / pace});
    uint64_t wire = gradients * simulator.transferTime(gradientBytes);
    uint64_t compute = kernels * kernelTime + 2 * gradients * gradientTime;
    OverlapForecast forecast = simulator.run(itemsOf(order));
    EXPECT_LE(forecast.total(), 1.01 * std::max(wire, compute)) << pace;
  }
  EXPECT_LE(mostInFlight(order), 4u);
}

TEST_F(InterleaverTest, HoldsTwoGradientsWhereTheLinkIsFast) {
  std::vector<Operation *> order = schedule("100:1");
  ASSERT_FALSE(order.empty());
  EXPECT_EQ(mostInFlight(order), 2u);
  EXPECT_LE(OverlapSimulator(Link{100, 1}).run(itemsOf(order)).exposed, kernelTime);
}

TEST_F(InterleaverTest, WeighsGradientsAgainstTheWholePlan) {
  EXPECT_EQ(mostInFlight(schedule("2:30")), 2u);
  // Of a plan of which all gradients are a thousandth, fewer are not worth a bubble on the wire.
  EXPECT_GT(mostInFlight(schedule("2:30", 1024 * gradients * gradientBytes)), 2u);
}

} // namespace
