// A model at stage train, step by step in the reference evaluator.
#pragma once

#include "passes/Passes.h"
#include "test/reference/Evaluator.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace dlc::test {

/// A model at stage train, and its variables from step to step.
class TrainedModel {
public:
  explicit TrainedModel(const std::string &text, const std::string &precision = "f32") {
    context.loadDialect<nn::NNDialect, comm::CommDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    mlir::PassManager manager(&context, mlir::ModuleOp::getOperationName(),
                              mlir::OpPassManager::Nesting::Implicit);
    ScheduleOptions options;
    options.precision = precision;
    addStagesUpTo(manager, nn::Stage::Train, options);
    EXPECT_TRUE(mlir::succeeded(manager.run(*module)));
  }

  /// One step of a program on as many ranks as there are inputs; all ranks assign the same.
  std::vector<reference::Outcome> run(mlir::StringRef program,
                                      mlir::ArrayRef<reference::Tensors> inputs) {
    nn::ModelOp model = *module->getOps<nn::ModelOp>().begin();
    auto op = llvm::cast<nn::ProgramOp>(mlir::SymbolTable::lookupSymbolIn(model, program));
    mlir::FailureOr<std::vector<reference::Outcome>> outcomes =
        reference::evaluate(op, variables, inputs);
    EXPECT_TRUE(mlir::succeeded(outcomes));
    for (const reference::Outcome &outcome : *outcomes)
      for (const auto &[name, tensor] : outcome.assigned)
        EXPECT_EQ(tensor.data, outcomes->front().assigned.at(name).data) << name;
    for (const auto &[name, tensor] : outcomes->front().assigned)
      variables[name] = tensor;
    return *outcomes;
  }

  const reference::Tensors &all() const { return variables; }
  double &at(const std::string &name, size_t i = 0) { return variables.at(name).data[i]; }
  bool isAssigned(const std::string &name) const { return variables.count(name) > 0; }
  bool hasVariable(mlir::StringRef name) {
    return mlir::SymbolTable::lookupSymbolIn(*module->getOps<nn::ModelOp>().begin(), name) !=
           nullptr;
  }
  void set(const std::string &name, double value) { variables[name] = scalar(value); }
  void set(const std::string &name, mlir::ArrayRef<int64_t> shape, std::vector<double> data) {
    variables[name] = filled(shape, std::move(data));
  }
  static reference::Tensor scalar(double value) { return filled({}, {value}); }
  static reference::Tensor filled(mlir::ArrayRef<int64_t> shape, std::vector<double> data) {
    reference::Tensor tensor(shape);
    tensor.data = std::move(data);
    return tensor;
  }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  reference::Tensors variables;
};

} // namespace dlc::test
