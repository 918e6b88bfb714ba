// Passes of the stage that ends at `--emit=schedule`, in pipeline order.

#ifndef DLC_SCHEDULE_PASSES
#define DLC_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

#endif // DLC_SCHEDULE_PASSES
