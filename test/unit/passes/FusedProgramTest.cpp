// Whole programs without library kernels: lowering composites and fusing keep their meaning, and
// the compiled clusters, run one after the other, compute it.

#include "passes/Passes.h"
#include "passes/planning/PlanningTarget.h"
#include "test/unit/passes/ClusterRunner.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace dlc;
using namespace dlc::test;
using reference::Tensor;
using reference::Tensors;

namespace {
class FusedProgram : public testing::Test {
protected:
  FusedProgram() { context.loadDialect<nn::NNDialect, comm::CommDialect, exec::ExecDialect>(); }

  void parse(const std::string &arguments, const std::string &ops) {
    module = parseSourceString<ModuleOp>(
        "nn.model @m attributes {stage = \"train\", batch = 4 : i64} {\n"
        "nn.program @predict(" +
            arguments + ") {\n" + ops + "\n}\n}",
        ParserConfig(&context));
    ASSERT_TRUE(module);
    std::mt19937 random(3);
    std::normal_distribution<double> draw(0.5, 1);
    for (BlockArgument argument : program().getArguments()) {
      auto type = nn::tensorType(argument);
      Tensor tensor(type.getShape());
      for (double &element : tensor.data) {
        element = static_cast<float>(draw(random));
        if (!isa<FloatType>(type.getElementType()))
          element = static_cast<double>(random() % 5);
      }
      inputs[program().getInputName(argument.getArgNumber()).str()] = tensor;
    }
  }
  nn::ModelOp model() { return *module->getOps<nn::ModelOp>().begin(); }
  nn::ProgramOp program() { return *model().getOps<nn::ProgramOp>().begin(); }

  Tensors evaluate() {
    FailureOr<std::vector<reference::Outcome>> outcome =
        reference::evaluate(program(), {}, {inputs});
    EXPECT_TRUE(succeeded(outcome));
    return succeeded(outcome) ? (*outcome)[0].outputs : Tensors();
  }
  void fuse() {
    PassManager lowering(&context), fusion(&context);
    lowering.addNestedPass<nn::ModelOp>(createLowerComposites());
    ASSERT_TRUE(succeeded(lowering.run(*module)));
    model().setStage("schedule"); // all layouts stay row-major
    PlanningTarget{"test:rules"}.writeTo(model());
    fusion.addNestedPass<nn::ModelOp>(createFuse());
    ASSERT_TRUE(succeeded(fusion.run(*module)));
  }

  /// Runs the fused program's clusters.
  Tensors execute() {
    llvm::DenseMap<Value, Tensor> values;
    for (BlockArgument argument : program().getArguments())
      values[argument] = inputs[program().getInputName(argument.getArgNumber()).str()];
    Tensors outputs;
    for (Operation &op : program().getBody().front()) {
      if (auto output = dyn_cast<nn::OutputOp>(op)) {
        outputs[output.getOutput().str()] = values[output.getValue()];
        continue;
      }
      if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) { // the same memory
        Tensor tensor = values[reshape.getX()];
        tensor.shape = reference::Shape(reshape.getType().getShape());
        values[reshape.getY()] = std::move(tensor);
        continue;
      }
      auto fused = dyn_cast<nn::FusedOp>(op);
      EXPECT_TRUE(fused) << op.getName().getStringRef().str() << " is in no cluster";
      if (!fused)
        return outputs;
      std::vector<Tensor> operands;
      for (Value operand : fused.getInputs())
        operands.push_back(values[operand]);
      ClusterRunner runner(fused.getBody());
      std::vector<Tensor> results = runner.run(operands);
      expectSame(runner.runOnGpu(operands), results);
      for (auto [result, tensor] : llvm::zip(fused.getResults(), results))
        values[result] = tensor;
    }
    return outputs;
  }

  /// What a GPU computes is what the CPU does.
  static void expectSame(const std::vector<Tensor> &onGpu, const std::vector<Tensor> &onCpu) {
    Tensors got, want;
    for (auto [i, pair] : llvm::enumerate(llvm::zip(onGpu, onCpu))) {
      std::string name = "on a GPU, result " + std::to_string(i);
      got[name] = std::get<0>(pair);
      want[name] = std::get<1>(pair);
    }
    expectClose(got, want, 2e-6);
  }

  static void expectClose(const Tensors &got, const Tensors &want, double relative) {
    ASSERT_EQ(got.size(), want.size());
    for (auto &[name, tensor] : want) {
      const Tensor &other = got.find(name)->second;
      double largest = 0, error = 0;
      for (int64_t i = 0; i < tensor.size(); ++i) {
        largest = std::max(largest, std::fabs(tensor.data[i]));
        double distance = std::fabs(tensor.data[i] - other.data[i]);
        error = std::isnan(distance) ? INFINITY : std::max(error, distance);
      }
      EXPECT_LE(error, relative * largest) << name;
    }
  }

  /// The three meanings agree; `exact` is for the two in f64.
  void check(double exact = 1e-12) {
    Tensors want = evaluate();
    fuse();
    expectClose(evaluate(), want, exact);
    expectClose(execute(), want, 2e-6);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Tensors inputs;
};
} // namespace

TEST_F(FusedProgram, BatchNormTraining) {
  parse(
      R"(%x: tensor<4x20x6x5xf32> {nn.input = "x"}, %dy: tensor<4x20x6x5xf32> {nn.input = "dy"},
           %s: tensor<20xf32> {nn.input = "s"}, %b: tensor<20xf32> {nn.input = "b"})",
      R"(%y, %mean, %var = nn.batch_norm %x, %s, %b, %b, %s {epsilon = 1.0e-5 : f64, training = true}
             : (tensor<4x20x6x5xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>)
             -> (tensor<4x20x6x5xf32>, tensor<20xf32>, tensor<20xf32>)
           %r = nn.relu %y : (tensor<4x20x6x5xf32>) -> tensor<4x20x6x5xf32>
           %dx, %ds, %db = nn.batch_norm_grad %dy, %x, %s, %mean, %var {epsilon = 1.0e-5 : f64}
             : (tensor<4x20x6x5xf32>, tensor<4x20x6x5xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>)
             -> (tensor<4x20x6x5xf32>, tensor<20xf32>, tensor<20xf32>)
           nn.output "r", %r : tensor<4x20x6x5xf32>
           nn.output "mean", %mean : tensor<20xf32>
           nn.output "var", %var : tensor<20xf32>
           nn.output "dx", %dx : tensor<4x20x6x5xf32>
           nn.output "ds", %ds : tensor<20xf32>
           nn.output "db", %db : tensor<20xf32>)");
  check();
}

// The variance survives a mean that is large against it.
TEST_F(FusedProgram, BatchNormOfShiftedData) {
  parse(
      R"(%x: tensor<4x3x8x8xf32> {nn.input = "x"}, %s: tensor<3xf32> {nn.input = "s"})",
      R"(%y, %mean, %var = nn.batch_norm %x, %s, %s, %s, %s {epsilon = 1.0e-5 : f64, training = true}
             : (tensor<4x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
             -> (tensor<4x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>)
           nn.output "var", %var : tensor<3xf32>)");
  for (double &element : inputs["x"].data)
    element = static_cast<float>(element + 1000);
  // 1e6 times the variance, in f64.
  check(1e-8);
}

// Groups of channels, single channels, whole samples with parameters of channels and of elements.
TEST_F(FusedProgram, GroupNorm) {
  for (auto [groups, scale] : {std::pair("4", "20"), std::pair("20", "20"), std::pair("1", "20"),
                               std::pair("1", "20x6x5")}) {
    SCOPED_TRACE(std::string(groups) + " groups, scale " + scale);
    inputs.clear();
    std::string
        ops =
            R"(%y, %mean, %var = nn.group_norm %x, %s, %b {epsilon = 1.0e-5 : f64, groups = GROUPS : i64}
             : (!x, !s, !s) -> (!x, !m, !m)
           %dx, %ds, %db = nn.group_norm_grad %dy, %x, %s, %mean, %var {epsilon = 1.0e-5 : f64}
             : (!x, !x, !s, !m, !m) -> (!x, !s, !s)
           nn.output "y", %y : !x
           nn.output "mean", %mean : !m
           nn.output "var", %var : !m
           nn.output "dx", %dx : !x
           nn.output "ds", %ds : !s
           nn.output "db", %db : !s)",
        arguments = R"(%x: !x {nn.input = "x"}, %dy: !x {nn.input = "dy"},
           %s: !s {nn.input = "s"}, %b: !s {nn.input = "b"})";
    for (std::string *text : {&ops, &arguments})
      for (const auto &[alias, type] :
           {std::pair("GROUPS", std::string(groups)),
            std::pair("!x", std::string("tensor<4x20x6x5xf32>")),
            std::pair("!s", "tensor<" + std::string(scale) + "xf32>"),
            std::pair("!m", "tensor<4x" + std::string(groups) + "xf32>")})
        for (size_t at; (at = text->find(alias)) != std::string::npos;)
          text->replace(at, StringRef(alias).size(), type);
    parse(arguments, ops);
    check();
  }
}

// The variance survives a mean that is large against it.
TEST_F(FusedProgram, GroupNormOfShiftedData) {
  parse(R"(%x: tensor<4x6x8x8xf32> {nn.input = "x"}, %s: tensor<6xf32> {nn.input = "s"})",
        R"(%y, %mean, %var = nn.group_norm %x, %s, %s {epsilon = 1.0e-5 : f64, groups = 2 : i64}
             : (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>)
             -> (tensor<4x6x8x8xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
           nn.output "var", %var : tensor<4x2xf32>)");
  for (double &element : inputs["x"].data)
    element = static_cast<float>(element + 1000);
  // 1e6 times the variance, in f64.
  check(1e-8);
}

TEST_F(FusedProgram, SoftmaxCrossEntropy) {
  for (const char *smoothing : {"0.0", "0.1"}) {
    inputs.clear();
    std::string attributes = std::string(" {smoothing = ") + smoothing + " : f64} ";
    parse(
        R"(%x: tensor<33x10xf32> {nn.input = "x"}, %l: tensor<33xi32> {nn.input = "l"}, %d: tensor<33xf32> {nn.input = "d"})",
        "%y = nn.softmax_cross_entropy %x, %l" + attributes +
            ": (tensor<33x10xf32>, tensor<33xi32>) -> tensor<33xf32>\n"
            "%g = nn.softmax_cross_entropy_grad %x, %l, %d" +
            attributes +
            ": (tensor<33x10xf32>, tensor<33xi32>, tensor<33xf32>) -> tensor<33x10xf32>\n"
            "nn.output \"y\", %y : tensor<33xf32>\n"
            "nn.output \"g\", %g : tensor<33x10xf32>");
    // Far beyond what exp could take.
    for (int64_t i = 0; i < 10; ++i)
      inputs["x"].data[i] = 100.0 * static_cast<double>(i);
    // Constants of the lowered form are f32.
    check(1e-7);
  }
}

TEST_F(FusedProgram, SoftmaxCrossEntropyOfPixels) {
  parse(
      R"(%x: tensor<2x5x4x6xf32> {nn.input = "x"}, %l: tensor<2x4x6xi32> {nn.input = "l"}, %d: tensor<2x4x6xf32> {nn.input = "d"})",
      R"(%y = nn.softmax_cross_entropy %x, %l : (tensor<2x5x4x6xf32>, tensor<2x4x6xi32>) -> tensor<2x4x6xf32>
         %g = nn.softmax_cross_entropy_grad %x, %l, %d : (tensor<2x5x4x6xf32>, tensor<2x4x6xi32>, tensor<2x4x6xf32>) -> tensor<2x5x4x6xf32>
         nn.output "y", %y : tensor<2x4x6xf32>
         nn.output "g", %g : tensor<2x5x4x6xf32>)");
  check(1e-6);
}

// A value that is reduced, broadcast back and used again; siblings; a movement in between.
TEST_F(FusedProgram, ChainsOfClusters) {
  parse(R"(%x: tensor<6x40xf32> {nn.input = "x"}, %z: tensor<6x40xf32> {nn.input = "z"})",
        R"(%one = nn.constant dense<1.0> : tensor<6x40xf32>
           %e = nn.exp %x : (tensor<6x40xf32>) -> tensor<6x40xf32>
           %sum = nn.reduce_sum %e {dims = array<i64: 1>} : (tensor<6x40xf32>) -> tensor<6xf32>
           %max = nn.reduce_max %z {dims = array<i64: 0>} : (tensor<6x40xf32>) -> tensor<40xf32>
           %sums = nn.broadcast %sum {dims = array<i64: 0>} : (tensor<6xf32>) -> tensor<6x40xf32>
           %maxima = nn.broadcast %max {dims = array<i64: 1>} : (tensor<40xf32>) -> tensor<6x40xf32>
           %p = nn.div %e, %sums : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
           %q = nn.add %p, %maxima : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
           %h = nn.slice %q {start = array<i64: 1, 3>, size = array<i64: 4, 30>} : (tensor<6x40xf32>) -> tensor<4x30xf32>
           %t = nn.transpose %h {permutation = array<i64: 1, 0>} : (tensor<4x30xf32>) -> tensor<30x4xf32>
           %u = nn.concat %t, %t {dim = 1 : i64} : (tensor<30x4xf32>, tensor<30x4xf32>) -> tensor<30x8xf32>
           %all = nn.reduce_sum %u {dims = array<i64: 0, 1>} : (tensor<30x8xf32>) -> tensor<f32>
           %c = nn.sub %one, %q : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
           nn.output "u", %u : tensor<30x8xf32>
           nn.output "all", %all : tensor<f32>
           nn.output "c", %c : tensor<6x40xf32>)");
  check();
}

// A chain of any length becomes kernels of bounded length; what compiles them recurses.
TEST_F(FusedProgram, ALongChain) {
  std::string ops, last = "%x";
  for (int i = 0; i < 4000; ++i) {
    std::string next = "%v" + std::to_string(i);
    ops += next + (i % 2 ? " = nn.neg " + last + " : (" : " = nn.add " + last + ", %x : (!t, ") +
           "!t) -> !t\n";
    last = next;
  }
  const std::string type = "tensor<2x40xf32>";
  ops += "nn.output \"y\", " + last + " : !t";
  for (size_t at; (at = ops.find("!t")) != std::string::npos;)
    ops.replace(at, 2, type);
  parse("%x: " + type + " {nn.input = \"x\"}", ops);
  check();
  for (auto fused : program().getOps<nn::FusedOp>())
    EXPECT_LE(fused.getBody().front().getOperations().size(), 160U);
}
