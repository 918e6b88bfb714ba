// What follows reductions in their kernel, on the emulated GPU beside the CPU, which runs it as
// another one.

#include "dialects/Exec/Exec.h"
#include "test/unit/passes/SplitCluster.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dlc;
using namespace dlc::test;
using reference::Tensor;

namespace {
/// What is reduced, over which dimensions, to what.
struct Case {
  const char *shape, *element, *layout, *dims, *kept;
};

std::string tensor(const std::string &shape, const std::string &element,
                   const std::string &layout = "") {
  return "tensor<" + shape + (shape.empty() ? "" : "x") + element +
         (layout.empty() ? "" : ", #nn.layout<" + layout + ">") + ">";
}

/// Sums of x and of its squares, of which the second is yielded, too; behind them the first times
/// an operand over the second plus one, and that; beside them what is as large as x.
std::string clusterText(const Case &test) {
  std::string x = tensor(test.shape, test.element, test.layout),
              wide = tensor(test.shape, "f64", test.layout), sum = tensor(test.kept, "f64"),
              weight = tensor(test.kept, "f32"),
              reduce = std::string(" {dims = array<i64: ") + test.dims + ">} : (" + wide + ") -> " +
                       sum + "\n",
              sums = " : (" + sum + ", " + sum + ") -> " + sum + "\n";
  return "nn.model @m attributes {stage = \"exec\"} {\nexec.cluster @c {\n^bb0(%x: " + x +
         ", %w: " + weight + "):\n%wide = nn.cast %x : (" + x + ") -> " + wide +
         "\n%square = nn.mul %wide, %wide : (" + wide + ", " + wide + ") -> " + wide +
         "\n%s = nn.reduce_sum %wide" + reduce + "%q = nn.reduce_sum %square" + reduce +
         "%v = nn.cast %w : (" + weight + ") -> " + sum + "\n%a = nn.mul %s, %v" + sums +
         "%one = nn.constant dense<1.0> : " + sum + "\n%b = nn.add %q, %one" + sums +
         "%c = nn.div %a, %b" + sums + "%d = nn.cast %c : (" + sum + ") -> " + weight +
         "\n%e = nn.cast %b : (" + sum + ") -> " + tensor(test.kept, "bf16") +
         "\n%y = nn.relu %x : (" + x + ") -> " + x + "\nnn.yield %d, %q, %y, %e : " + weight +
         ", " + sum + ", " + x + ", " + tensor(test.kept, "bf16") + "\n}\n}\n";
}

Tensor drawn(RankedTensorType type, std::mt19937 &random) {
  Tensor tensor(type.getShape());
  // Multiples of 1/16: exact in any type, and so are their sums.
  for (double &value : tensor.data)
    value = static_cast<double>(static_cast<int>(random() % 64) - 32) / 16;
  return tensor;
}

class Epilogue : public testing::TestWithParam<Case> {};
} // namespace

TEST_P(Epilogue, ComputesWhatASecondClusterDoes) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, exec::ExecDialect>();
  auto module = parseSourceString<ModuleOp>(clusterText(GetParam()), ParserConfig(&context));
  ASSERT_TRUE(module) << clusterText(GetParam());
  auto model = *module->getOps<nn::ModelOp>().begin();
  Region &body = model.lookupSymbol<exec::ClusterOp>("c").getBody();
  std::mt19937 random(1);
  std::vector<Tensor> operands;
  for (BlockArgument argument : body.getArguments())
    operands.push_back(drawn(nn::tensorType(argument), random));
  std::vector<Tensor> got = ClusterRunner::runOnGpu(body, operands),
                      want = SplitCluster(body).run(operands);
  ASSERT_EQ(got.size(), want.size());
  for (size_t result = 0; result < want.size(); ++result)
    EXPECT_EQ(got[result].data, want[result].data) << "result " << result;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Epilogue,
    testing::Values(Case{"2x20x7x9", "f32", "nhwc", "0, 2, 3", "20"},
                    Case{"8x64x28x28", "bf16", "nhwc", "0, 2, 3", "64"}, // partial sums
                    Case{"2x20x7x9", "f32", "", "0, 2, 3", "20"},
                    Case{"2x20x7x9", "bf16", "nhwC8c", "0, 2, 3", "20"}, // padding
                    Case{"2x20x7x9", "f32", "", "2, 3", "2x20"},
                    Case{"2x20x7x9", "f32", "nhwc", "1", "2x7x9"},
                    Case{"9000x37", "f32", "", "1", "9000"}, // many that are kept
                    Case{"9000x37", "f32", "", "0", "37"}, Case{"9000x37", "f32", "", "0, 1", ""},
                    Case{"3x1", "f32", "", "0", "1"}));
