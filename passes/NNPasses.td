// Passes of the stage that ends at `--emit=nn`, in pipeline order.

#ifndef DLC_NN_PASSES
#define DLC_NN_PASSES

include "mlir/Pass/PassBase.td"

#endif // DLC_NN_PASSES
