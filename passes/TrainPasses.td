// Passes of the stage that ends at `--emit=train`, in pipeline order.

#ifndef DLC_TRAIN_PASSES
#define DLC_TRAIN_PASSES

include "mlir/Pass/PassBase.td"

#endif // DLC_TRAIN_PASSES
