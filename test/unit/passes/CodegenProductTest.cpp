// Generated matrix products of few rows against the reference evaluator: sizes that leave a rest of
// every loop, both orders of the second operand, and every instruction set that this machine has.

#include "test/unit/passes/ClusterRunner.h"

#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::test;

namespace {
struct Product {
  int64_t rows, inner, columns;
  bool transposed = false, bias = false, relu = false;
  std::string element = "f32", result = "f32";
};

std::string matrix(int64_t rows, int64_t columns, const std::string &element) {
  return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "x" + element + ">";
}

/// The target's vectors, and no instructions but those that `kept` names.
CodeTarget targetWith(unsigned vectorBytes, llvm::StringRef kept) {
  CodeTarget target = hostCodeTarget();
  target.cpu = "x86-64";
  target.features = kept.str();
  target.vectorBytes = vectorBytes;
  return target;
}

std::vector<CodeTarget> targets() {
  CodeTarget host = hostCodeTarget();
  std::vector<CodeTarget> found{targetWith(32, "+avx2,+fma,+f16c,+bmi2")};
  std::string wide = "+avx2,+fma,+f16c,+bmi2,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl";
  if (host.has("avx512vl"))
    found.push_back(targetWith(64, wide));
  if (host.has("avx512bf16"))
    found.push_back(targetWith(64, wide + ",+avx512vnni,+avx512bf16"));
  return found;
}

std::unique_ptr<ClusterRunner> runnerOf(const Product &p, const CodeTarget &target) {
  std::string a = matrix(p.rows, p.inner, p.element);
  std::string b =
      p.transposed ? matrix(p.columns, p.inner, p.element) : matrix(p.inner, p.columns, p.element);
  std::string y = matrix(p.rows, p.columns, p.result);
  std::string bias = "tensor<" + std::to_string(p.columns) + "x" + p.element + ">";
  std::vector<Argument> arguments{{a}, {b}};
  std::string operands = "%0, %1", types = a + ", " + b, attributes;
  if (p.bias) {
    arguments.push_back({bias});
    operands += ", %2";
    types += ", " + bias;
  }
  if (p.transposed)
    attributes += "transpose_b";
  if (p.relu)
    attributes += std::string(attributes.empty() ? "" : ", ") + "relu";
  std::string op = "%y = nn.matmul " + operands +
                   (attributes.empty() ? "" : " {" + attributes + "}") + " : (" + types + ") -> " +
                   y;
  return std::make_unique<ClusterRunner>(
      Aliases{}, arguments, op, std::vector<std::pair<std::string, std::string>>{{"%y", y}},
      target);
}

// Units in the last place of the largest result; terms are up to 4 each.
void check(const Product &p) {
  for (const CodeTarget &target : targets()) {
    SCOPED_TRACE(target.features);
    SCOPED_TRACE(std::to_string(p.rows) + " x " + std::to_string(p.inner) + " x " +
                 std::to_string(p.columns) + (p.transposed ? " transposed " : " ") + p.element);
    runnerOf(p, target)->check(p.result == "bf16" ? 1 << 16 : 64, 1e-3);
  }
}
} // namespace

TEST(CodegenProduct, RowsByRows) {
  check({8, 64, 24, true});
  check({8, 70, 25, true, true, true}); // a rest of the row, and of the columns
  check({5, 33, 13, true, true});
  check({1, 7, 1, true});
  check({19, 50, 30, true, false, true}); // several tiles of rows
  check({4, 1100, 100, true, true});      // several blocks of a row, several items
}

TEST(CodegenProduct, RowsAddedUp) {
  check({8, 64, 96});
  check({8, 21, 100, false, true, true}); // a rest of the panel, and of the vectors
  check({5, 16, 1600, false, true});      // several items, the last one shorter
  check({1, 3, 5});
  check({19, 9, 770});
  check({32, 40, 48});
}

TEST(CodegenProduct, BFloat16) {
  for (std::string result : {"bf16", "f32"}) {
    check({8, 128, 24, true, true, true, "bf16", result});
    check({5, 45, 14, true, false, false, "bf16", result});
    check({2, 2100, 50, true, false, false, "bf16", result});
    check({8, 64, 128, false, false, false, "bf16", result});
    check({5, 22, 780, false, true, true, "bf16", result});
    check({3, 21, 75, false, false, false, "bf16", result}); // no pairs of rows
    check({17, 18, 16, false, false, false, "bf16", result});
  }
}

// Chunks are of the shape alone, and more than one thread has work.
TEST(CodegenProduct, PlanOfALargeProduct) {
  GeneratedKernel kernel = runnerOf({8, 96, 4096, true}, hostCodeTarget())->plan();
  ASSERT_EQ(kernel.stages.size(), 1u);
  const GeneratedStage &stage = kernel.stages[0];
  EXPECT_EQ(stage.extent, 86); // of 48 columns, the last one of 16
  EXPECT_EQ(stage.chunk, 1);
  EXPECT_EQ(stage.flops, 2u * 8 * 96 * 4096);
  EXPECT_EQ(stage.bytes, 4u * (8 * 96 + 96 * 4096 + 8 * 4096));
  EXPECT_EQ(llvm::ArrayRef(stage.access),
            llvm::ArrayRef({exec::Access::Read, exec::Access::Read, exec::Access::Write}));
  EXPECT_EQ(runnerOf({8, 4096, 25088}, hostCodeTarget())->plan().stages[0].extent, 33);
}
