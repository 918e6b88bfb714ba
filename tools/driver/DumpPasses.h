// --dump-passes: the model after each pass, as DIR/07-dlc-simplify.mlir and so on.
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/Pass/PassInstrumentation.h"

#include <string>

namespace dlc {

class DumpPasses : public mlir::PassInstrumentation {
public:
  /// The directory exists.
  explicit DumpPasses(std::string directory) : directory(std::move(directory)) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override { dump(pass, op); }
  /// What a failing pass left behind is what one wants to see.
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override { dump(pass, op); }

private:
  void dump(mlir::Pass *pass, mlir::Operation *op);

  std::string directory;
  unsigned count = 0;
};

} // namespace dlc
