// Passes of the stage that ends at `--emit=schedule`, in pipeline order.

#ifndef DLC_SCHEDULE_PASSES
#define DLC_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def LowerComposites : Pass<"dlc-lower-composites", "::dlc::nn::ModelOp"> {
  let summary = "says composite ops by elementwise ops, moves and sums";
  let description = [{
    Precondition: no layouts yet. Effect: batch_norm, softmax_cross_entropy, avg_pool and upsample, the gradients of
    these, and convolutions to one channel with windows of one element become elementwise ops, movements of elements
    and reductions, which dlc-fuse gathers into clusters. A reduce_sum also sums over dimensions of one element, so that
    equal sums look alike. Statistics are formed in f64 and rounded once.

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
    Precondition: stage train, composites lowered, no layouts. Effect: types of variables and values carry layouts that
    the target's kernels accept; nn.reorder stands where two disagree; inputs and sinks stay row-major; a parameter, its
    slots and its gradient share the filter gradient's layout. Constants and broadcasts are made anew instead of
    reordered. Copies in 16 bits that are only ever reordered are dropped: the reorders narrow the parameter.
    First, what no kernel of the target does beside its product is taken from ops: a bias is rounded to 16 bits or becomes
    a sum, an f32 result of 16-bit operands is theirs, widened; and groups of few channels of a convolution become fewer,
    larger ones, with zeros in the weight, where the target's kernels cost less for these. The model gets `target`,
    `threads` and `math`, and its stage becomes schedule.

    ```mlir
    %y = nn.conv %x, %w ... : (tensor<8x32x9x9xf32>, tensor<64x32x3x3xf32>) -> tensor<8x64x9x9xf32>
    // becomes
    %y = nn.conv %x, %w ... : (tensor<8x32x9x9xf32, #nn.layout<nChw16c>>, ...) -> tensor<8x64x9x9xf32, #nn.layout<nChw16c>>
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu:native\"", "cpu:native|avx2|avx512|avx512-bf16|zen4|amx, cpu:FILE.json or test:rules">,
    Option<"threads", "threads", "unsigned", "1", "plan for teams of 1..threads">,
    Option<"math", "math", "std::string", "\"fast\"", "strict: direct algorithms only; fast: Winograd too">];
}

def Fuse : Pass<"dlc-fuse", "::dlc::nn::ModelOp"> {
  let summary = "library epilogues, then clusters of everything else";
  let description = [{
    Precondition: layouts assigned, composites lowered. Effect: a relu that alone reads a convolution or matrix product
    becomes its epilogue if a kernel takes it for less than a pass; every op that generated code runs, by price where a
    library could, goes into an nn.fused. A cluster has one iteration space and may end in reductions over common
    dimensions, and, where the target's emitter knows that, in what is computed with their results; constants, iotas, broadcasts, slices and pads are copied into every cluster that uses them. Pooling
    whose windows tile channels-innermost memory is generated: its gradient is pointwise then.

    ```mlir
    %0 = nn.sub %a, %b : ...
    %1 = nn.exp %0 : ...
    // becomes
    %1 = nn.fused (%x = %a, %y = %b) : ... { %0 = nn.sub %x, %y ... nn.yield %1 }
    ```
  }];
}

def RematerializeProducers : Pass<"dlc-rematerialize-producers", "::dlc::nn::ModelOp"> {
  let summary = "computes in clusters what costs more to read";
  let description = [{
    Precondition: clusters formed. Effect: a cluster that reads the result of another one, a pointwise function of what
    it reads anyway, computes it from that: the producer is *rematerialized* in its consumer. A tensor that all its
    readers can compute for less than it takes to write and read it is not written. The price is bytes moved, arithmetic
    included. Bits do not change, since the same ops run on the same operands; but what is not stored is not rounded to
    16 bits.

    ```mlir
    %y = nn.fused (%a = %x) : ... { nn.yield (relu %a) }
    %z = nn.fused (%a = %x, %b = %y) : ... { nn.yield (mul %a, %b) }
    // becomes, next to the first one if something else reads it
    %z = nn.fused (%a = %x) : ... { nn.yield (mul %a, (relu %a)) }
    ```
  }];
}

def SplitGradients : Pass<"dlc-split-gradients", "::dlc::nn::ModelOp"> {
  let summary = "computes, reduces and applies large weight gradients by rows";
  let description = [{
    Precondition: clusters formed. Effect: a matrix product that is only all-reduced and then only applied, elementwise,
    to variables of its size becomes one for each group of its rows, each with a reduction and an update of its own, so
    that a piece's memory can serve the next one. Bits do not change. Gradients whose rows have no equal groups of a
    multiple of the target's lanes stay whole.

    ```mlir
    %g = nn.matmul %dy, %x {transpose_a} : ... -> tensor<4096x25088xf32>
    %r = comm.all_reduce %g : tensor<4096x25088xf32>
    // becomes, for each group
    %a = nn.fused (%dy) { nn.slice ... }
    %g = nn.matmul %a, %x {transpose_a} : ... -> tensor<128x25088xf32>
    %r = comm.all_reduce %g : tensor<128x25088xf32>
    ... nn.assign @w, %new {row = 256 : i64} : tensor<128x25088xf32>
    ```
  }];
  let options = [
    Option<"pieceBytes", "piece-bytes", "int64_t", "16777216", "bytes of a piece at most">];
  let dependentDialects = ["::dlc::comm::CommDialect"];
}

def PlanKernels : Pass<"dlc-plan-kernels", "::dlc::nn::ModelOp"> {
  let summary = "chooses the implementation of every kernel";
  let description = [{
    Precondition: stage schedule, layouts assigned. Effect: attribute `nn.kernel` (implementation, workspace, FLOPs,
    bytes, forecast) on every library op, from the cheapest candidate for its layouts whose workspace raises the peak of
    the plan (variables and live tensors) by a tenth at most, and on every nn.fused, which also gets its plan:
    `nn.plan` (stages, memory between them, and what may be written in place), `nn.tiles` (for each stage, an item's
    iterations of each of its loops, contiguous ones being one) and `nn.sums` (the type in which reductions add). A matrix product whose generated kernel
    costs less becomes a nn.fused of its own. An op for which the library has only reference code is an error that says
    so.
  }];
}

def RecomputeKernels : Pass<"dlc-recompute-kernels", "::dlc::nn::ModelOp"> {
  let summary = "runs cheap kernels twice instead of keeping their results";
  let description = [{
    Precondition: kernels planned. Effect: a kernel or cluster whose result lies in memory, unread, while the program is
    at its peak is *recomputed*: it runs once more before the next op that reads the result, if the peak falls by more
    than the time is worth (passes/planning/MemoryPrice.h): a normalisation and its relu, whose operand is kept for its
    own gradient, or a convolution of few channels, the first one of a network. The kernel is the same, so bits do not change. Attribute `nn.recomputed` on the second one:
    the bytes by which the peak falls. Repeated until nothing pays. Where the target has memory of its own, which nobody
    else could use, only plans that it would not hold are lowered, until it does.

    ```mlir
    %y = nn.conv %x, %w ...
    ... // %y is held here, where most bytes are live
    %dw = nn.conv_grad_filter %y, %dz ...
    // becomes
    %y = nn.conv %x, %w ...
    ...
    %again = nn.conv %x, %w {nn.recomputed = 102760448 : i64} ...
    %dw = nn.conv_grad_filter %again, %dz ...
    ```
  }];
  let options = [Option<"memoryLimit", "memory-limit", "uint64_t", "0",
                        "bytes that a plan may take of a device's own memory; 0: what it has">];
}

def CombineAllReduces : Pass<"dlc-combine-all-reduces", "::dlc::nn::ModelOp"> {
  let summary = "joins all-reduces to buckets";
  let description = [{
    Precondition: kernels planned. Effect: one variadic comm.all_reduce per bucket, right behind the producer of its
    last operand. Buckets are runs of the operands in the order in which they become ready; the last is at most 1 MB.
    Operands that depend on another all-reduce are never in its bucket. An operand that has other users, or that no
    kernel writes, is copied by a cluster, so that every operand can be computed in place. The model gets `bucket_size`.

    ```mlir
    %0 = comm.all_reduce %a : tensor<3xf32>
    %1 = comm.all_reduce %b : tensor<4xf32>
    // becomes
    %0:2 = comm.all_reduce %a, %b : tensor<3xf32>, tensor<4xf32>
    ```
  }];
  let options = [
    Option<"bucketSize", "bucket-size", "uint64_t", "0", "bytes of a bucket; 0: from the link, 1 to 25 MB">,
    Option<"link", "link", "std::string", "\"\"", "GBIT[:US], shm, nvlink or pcie; empty: the target's">];
  let dependentDialects = ["::dlc::comm::CommDialect"];
}

def OverlapAllReduces : Pass<"dlc-overlap-all-reduces", "::dlc::nn::ModelOp"> {
  let summary = "hides communication behind compute";
  let description = [{
    Precondition: all-reduces combined, kernels planned. Effect: comm.start right behind the last producer of a bucket,
    comm.wait in front of its first user, optimizer updates at the end in the order of the buckets, or where their
    bucket has arrived. Weight gradients stand before or behind the data gradient of their layer, whichever exposes less
    in the simulator; those that take far more memory than what they are computed from stand where the wire would run
    dry, as few at a time as possible. Neither may delay the step by more than the memory of gradients that it saves is
    worth (passes/planning/MemoryPrice.h), whether the wire is as fast beside compute as forecast or up to four times as
    fast. Buckets are numbered in the order of their starts. Each program gets its `forecast` {compute_ns,
    communication_ns, exposed_ns} for many ranks on the given link, the model its `link` and `no_overlap`. Remarks of
    the category dlc-overlap say for each bucket whether it is hidden, and why not.

    ```mlir
    %0:2 = comm.all_reduce %a, %b : tensor<3xf32>, tensor<4xf32>
    // becomes
    %f = comm.start %a, %b {bucket = 0 : i64} : tensor<3xf32>, tensor<4xf32> -> !comm.future<tensor<3xf32>, tensor<4xf32>>
    ...
    %0:2 = comm.wait %f : !comm.future<tensor<3xf32>, tensor<4xf32>> -> tensor<3xf32>, tensor<4xf32>
    ```
  }];
  let options = [
    Option<"noOverlap", "no-overlap", "bool", "false", "wait right behind every start, to measure what overlap gains">,
    Option<"link", "link", "std::string", "\"\"", "GBIT[:US], shm, nvlink or pcie; empty: the target's">];
  let dependentDialects = ["::dlc::comm::CommDialect"];
}

def VerifySchedule : Pass<"dlc-verify-schedule", "::dlc::nn::ModelOp"> {
  let summary = "checks the schedule stage (read-only)";
  let description = [{
    1. The stage is schedule and the model has a target. 2. Every library op and every nn.fused has a kernel. 3. No
    comm.all_reduce is left; starts are numbered consecutively in program order. 4. No operand of a start is used behind
    it: the memory holds sums from then on. 5. Operands of a start are results of kernels, used once. 6. Inputs and
    sinks are row-major. 7. A slot has its owner's layout. 8. Concat, slice and pad cut no block; reshape and transpose
    are row-major; an index of pooling has its value's layout. 9. What no library runs is in a cluster. 10. Attributes,
    variables, inputs and sinks are as dlc-verify-nn demands. 11. Each cluster has a plan whose buffers are its own. 12.
    Roles as dlc-verify-train demands.
  }];
}

#endif // DLC_SCHEDULE_PASSES
