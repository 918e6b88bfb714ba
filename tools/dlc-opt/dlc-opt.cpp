// dlc-opt: every pass and pipeline on textual IR, for tests and debugging.

#include "passes/Passes.h"
#include "tools/driver/ModelSource.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  dlc::registerDialects(registry);
  mlir::registerTransformsPasses();
  dlc::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "dlc's optimizer driver\n", registry));
}
