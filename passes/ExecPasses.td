// Passes of the stage that ends at `--emit=exec`, in pipeline order.

#ifndef DLC_EXEC_PASSES
#define DLC_EXEC_PASSES

include "mlir/Pass/PassBase.td"

#endif // DLC_EXEC_PASSES
