#include "tools/dlc/Progress.h"

#include "dialects/NN/NN.h"
#include "tools/dlc/InspectArtifact.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

void dlc::PassProgress::runBeforePass(Pass *pass, Operation *op) {
  // Passes without a name only run others.
  if (pass->getArgument().empty())
    return;
  while (Operation *parent = op->getParentOp())
    op = parent;
  llvm::StringRef stage;
  if (auto module = dyn_cast<ModuleOp>(op))
    for (auto model : module.getOps<nn::ModelOp>())
      stage = model.getStage();
  progress.show(llvm::formatv("compiling: {0}: {1}", stage, pass->getArgument()).str());
}

std::string dlc::closingLine(const rt::Artifact &artifact) {
  nlohmann::ordered_json description = describeArtifact(artifact, {});
  std::string line = llvm::formatv("{0}: {1:N} parameters, {2:F2} MB planned", artifact.name(),
                                   description["parameter_count"].get<uint64_t>(),
                                   description["memory"]["bytes"].get<double>() * 1e-6);
  for (const auto &program : description["programs"])
    if (program["name"] == "train")
      line += llvm::formatv(", forecast of a step {0:F2} ms",
                            program["forecast"]["step_ns"].get<double>() * 1e-6);
  return line;
}
