// All passes of dlc, for tablegen: one file per stage. None has statistics: LLVM as distributions ship
// it counts nothing, and lays a pass's counters out in another way than code with assertions.
include "passes/NNPasses.td"
include "passes/TrainPasses.td"
include "passes/SchedulePasses.td"
include "passes/ExecPasses.td"
