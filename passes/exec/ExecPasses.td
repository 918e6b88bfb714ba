// Passes of the stage that ends at `--emit=exec`, in pipeline order.

#ifndef DLC_EXEC_PASSES
#define DLC_EXEC_PASSES

include "mlir/Pass/PassBase.td"

def ConvertNNToExec : Pass<"dlc-convert-nn-to-exec", "::dlc::nn::ModelOp"> {
  let summary = "destination-passing: tensors become buffers, ops become dispatches";
  let description = [{
    Precondition: stage schedule; every op is a sink, a library op with a kernel, an nn.fused, a reshape that moves
    nothing, or a collective. Effect: nn.programs become exec.programs; kernels and clusters are collected and shared;
    gradients are written in place into their bucket where their producer can; variables are updated in place where no
    other reader comes later. Buffers have no offsets yet.
  }];
  let dependentDialects = ["::dlc::exec::ExecDialect"];
}

def CombineUpdates : Pass<"dlc-combine-updates", "::dlc::nn::ModelOp"> {
  let summary = "one kernel updates all variables of a bucket that are updated alike";
  let description = [{
    Updates that read a slice of one bucket, the same scalars and variables in place, by the same elementwise formula
    that turns zeros into zeros, become one kernel over a flat range: their slices move together in the bucket, and each
    of their variables' kinds (parameters, each slot) becomes one buffer in which the variables lie in the order of the
    slices. Other programs find a variable at the same place. What is updated in another way (no decay, running
    statistics) has a range of its own; a single update stays.
  }];
}

def CheckGradients : Pass<"dlc-check-gradients", "::dlc::nn::ModelOp"> {
  let summary = "counts what is not finite in slices that lie one behind the other by one kernel";
  let description = [{
    Slices have their final places. Each exec.check becomes a reduction over every run of slices without a gap, whatever
    their shapes, and a kernel that adds up what those count.
  }];
}

def AccumulateGradients : Pass<"dlc-accumulate-gradients", "::dlc::nn::ModelOp"> {
  let summary = "gives every bucket a sum over the micro-batches of a step";
  let description = [{
    Before a collective starts, what its bucket holds is added up in a buffer of the arena of sums, which a run without
    micro-batches does not allocate. Buckets have their final sizes. What is counted over the whole batch ahead of the
    first forward pass is recalled from its sum behind the wait.
  }];
}

def AssignStreams : Pass<"dlc-assign-streams", "::dlc::nn::ModelOp"> {
  let summary = "puts instructions on streams and orders streams by events";
  let description = [{
    Collectives go to comm, all else but inputs to compute. Before a collective starts, comm waits for an event that
    compute records behind the bucket's last writer; waiting for a collective is itself the order between comm and
    compute. Inputs go up on copy, and compute waits for the event behind them.
  }];
}

def PlanMemory : Pass<"dlc-plan-memory", "::dlc::nn::ModelOp"> {
  let summary = "gives every buffer its offset and every arena its size";
  let description = [{
    Variables and slots lie one behind the other, those of one buffer in its order. Inputs, transient and gradient
    buffers are placed per program by best fit over live intervals; a bucket in flight lives until its wait, results
    until the end, sums over the whole step. Programs share the arenas.
  }];
}

def AssignNontemporalStores : Pass<"dlc-assign-nontemporal-stores", "::dlc::nn::ModelOp"> {
  let summary = "decides what generated kernels store non-temporally";
  let description = [{
    A result that nothing touches until more bytes have moved than the target's cache holds is gone from it by then.
    Non-temporal stores go past the caches: their lines are not read first, and what is still needed stays. Results that
    take an operand's memory are left alone, since their lines were read anyway; so are clusters of whose dispatches in
    a training step not all agree. Without a size of the cache in the target's table nothing is changed.
  }];
}

def VerifyExec : Pass<"dlc-verify-exec", "::dlc::nn::ModelOp"> {
  let summary = "checks an exec program before export (read-only)";
  let description = [{
    1. Every buffer has an offset, aligned, and lies inside its arena; a view begins at a whole element. 2. Buffers
    live at the same time do not overlap, views excepted. 3. Every byte is written before it is read, unless it is a
    variable that keeps its value from step to step; of a buffer that several kernels write together, all have. A
    variable is written once in a step, by what runs once in a step, unless it is a state; what is of phase count
    depends on inputs and scalars alone. 4. Collectives start in
    the order of their numbers and are waited for once. 5. No instruction touches a bucket in flight. 6. Every
    instruction has a stream. 7. A buffer of several variables is as large as they are, none of them is in another
    one, and each lies at its place in it; a view of it is one of them, rows of one, or several as a vector. 8. The
    model holds variables, arenas, clusters, kernels and programs, and a program buffers and instructions;
    attributes and variables are as dlc-verify-nn demands; dimension 0 of all inputs and outputs of a program is one
    batch, inputs lie in the arena inputs and are there once, as outputs and metrics are; losses and metrics are
    pairs of f32, and losses alone are called loss; no program is empty. 9. An arena ends where what lies in it
    ends; there is one of a kind. 10. Each variable has a place of its own, and its buffers are there. 11. A
    generated kernel has the function, extent, chunk, part, types and accesses of its stage of its cluster. 12.
    Events are recorded once, and before they are waited for; instructions whose memory meets, one writing, are
    ordered by streams, events and collectives (runtime/artifact/OrderProof.h), in each pass that a step of several
    micro-batches has (runtime/artifact/StepPass.h). 13. Buckets lie in the arena gradients, their slices where
    a bucket's layout can place them, hold as much as their members, and are sent as the model's attribute wire
    says. 14. An upload writes either inputs or scalars, none twice. 15. A sum is a buffer of the arena of sums that
    one instruction alone uses, by a generated kernel that works in place, and nothing else uses the bucket from
    there to its start. 16. What the host has taken is not written again. 17. Behind the wait for a collective of phase
    count, and behind no other, its bucket is recalled from its sum, before anything else uses it.
  }];
}

#endif // DLC_EXEC_PASSES
