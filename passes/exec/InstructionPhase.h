// What the artifact calls an instruction and its phase, which say when it runs
// (runtime/artifact/StepPass.h).
#pragma once

#include "dialects/Exec/Exec.h"
#include "runtime/artifact/artifact_generated.h"

namespace dlc {

artifact::Operation operationOf(mlir::Operation *instruction);
artifact::Phase phaseOf(mlir::Operation *instruction);

} // namespace dlc
