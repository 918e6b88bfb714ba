// All passes of dlc, for tablegen: one file per stage.
include "passes/NNPasses.td"
include "passes/TrainPasses.td"
include "passes/SchedulePasses.td"
include "passes/ExecPasses.td"
