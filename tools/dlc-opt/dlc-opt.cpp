// dlc-opt: every pass and pipeline on textual IR, for tests and debugging.

#include "dialects/Comm/Comm.h"
#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "passes/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<dlc::nn::NNDialect, dlc::comm::CommDialect, dlc::exec::ExecDialect>();
  mlir::registerTransformsPasses();
  dlc::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "dlc's optimizer driver\n", registry));
}
