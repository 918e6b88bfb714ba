// Passes of the stage that ends at `--emit=schedule`, in pipeline order.

#ifndef DLC_SCHEDULE_PASSES
#define DLC_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def LowerComposites : Pass<"dlc-lower-composites", "::dlc::nn::ModelOp"> {
  let summary = "normalisation and losses as elementwise ops and reductions";
  let description = [{
    Precondition: no layouts yet. Effect: batch_norm, batch_norm_grad, softmax_cross_entropy and its gradient become elementwise ops,
    broadcasts and reductions, which dlc-fuse gathers into clusters. Statistics are formed in f64 and rounded once.

    ```mlir
    %y, %mean, %var = nn.batch_norm %x, ...
    // becomes
    %sum = nn.reduce_sum (cast %x to f64), %square = nn.reduce_sum (x * x), ... %y = nn.add (nn.mul %x, %a), %b
    ```
  }];
}

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

def CombineAllReduces : Pass<"dlc-combine-all-reduces", "::dlc::nn::ModelOp"> {
  let summary = "joins all-reduces to buckets";
  let description = [{
    Precondition: kernels planned. Effect: one variadic comm.all_reduce per bucket, right behind the producer of its last operand.
    Buckets are runs of the operands in the order in which they become ready; the last is at most 1 MB. Operands that depend on another
    all-reduce are never in its bucket. An operand that has other users, or that no kernel writes, is copied by a cluster,
    so that every operand can be computed in place.

    ```mlir
    %0 = comm.all_reduce %a : tensor<3xf32>
    %1 = comm.all_reduce %b : tensor<4xf32>
    // becomes
    %0:2 = comm.all_reduce %a, %b : tensor<3xf32>, tensor<4xf32>
    ```
  }];
  let options = [
    Option<"bucketSize", "bucket-size", "uint64_t", "0", "bytes of a bucket; 0: from the link, 4 to 25 MB">,
    Option<"link", "link", "std::string", "\"10:30\"", "GBIT[:US] or shm">];
  let statistics = [Statistic<"buckets", "buckets", "collectives left">,
                    Statistic<"copies", "copies", "operands copied into their bucket">];
  let dependentDialects = ["::dlc::comm::CommDialect"];
}

#endif // DLC_SCHEDULE_PASSES
