// All passes of dlc, for tablegen: one file per stage. None has statistics: LLVM as distributions ship
// it counts nothing, and lays a pass's counters out in another way than code with assertions.
include "passes/nn/NNPasses.td"
include "passes/train/TrainPasses.td"
include "passes/schedule/SchedulePasses.td"
include "passes/exec/ExecPasses.td"
