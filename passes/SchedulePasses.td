// Passes of the stage that ends at `--emit=schedule`, in pipeline order.

#ifndef DLC_SCHEDULE_PASSES
#define DLC_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def AssignLayouts : Pass<"dlc-assign-layouts", "::dlc::nn::ModelOp"> {
  let summary = "gives every tensor its physical layout";
  let description = [{
    Precondition: stage train, composites lowered, no layouts. Effect: types of variables and values carry layouts that the target's
    kernels accept; nn.reorder stands where two disagree; inputs and sinks stay row-major; a parameter, its slots and its gradient
    share the filter gradient's layout. Constants and broadcasts are made anew instead of reordered. The model gets `target`,
    `threads` and `math`, and its stage becomes schedule.

    ```mlir
    %y = nn.conv %x, %w ... : (tensor<8x32x9x9xf32>, tensor<64x32x3x3xf32>) -> tensor<8x64x9x9xf32>
    // becomes
    %y = nn.conv %x, %w ... : (tensor<8x32x9x9xf32, #nn.layout<nChw16c>>, ...) -> tensor<8x64x9x9xf32, #nn.layout<nChw16c>>
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu:native\"", "cpu:native|avx2|avx512|avx512-bf16|amx, cpu:FILE.json or test">,
    Option<"threads", "threads", "unsigned", "1", "plan for teams of 1..threads">,
    Option<"math", "math", "std::string", "\"fast\"", "strict: direct algorithms only; fast: Winograd too">];
  let statistics = [Statistic<"reorders", "reorders", "reorders inserted">];
}

def PlanKernels : Pass<"dlc-plan-kernels", "::dlc::nn::ModelOp"> {
  let summary = "chooses the implementation of every kernel";
  let description = [{
    Precondition: stage schedule, layouts assigned. Effect: attribute `nn.kernel` (implementation, workspace, FLOPs, bytes, forecast) on every
    library op, from the cheapest candidate for its layouts, and on every nn.fused. An op for which the library has only reference
    code is an error that says so.
  }];
}

#endif // DLC_SCHEDULE_PASSES
