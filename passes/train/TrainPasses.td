// Passes of the stage that ends at `--emit=train`, in pipeline order.

#ifndef DLC_TRAIN_PASSES
#define DLC_TRAIN_PASSES

include "mlir/Pass/PassBase.td"

def Differentiate : Pass<"dlc-differentiate", "::dlc::nn::ModelOp"> {
  let summary = "appends the gradients of all parameters to @train";
  let description = [{
    Precondition: stage nn. Effect: behind the ops of @train follow the gradients of sum over losses of weight * sum /
    count, by the ops' own rules (DifferentiableOpInterface), then one nn.gradient per parameter; the stage becomes
    train. A count is a constant to the gradient: it enters as `nn.div %weight, %count` or, if it is a constant, folded.
    A parameter without influence on a loss gets a warning and no gradient, one with `trainable = false`, or that
    `train.freeze` names, neither. An op without a rule on the way is an error.
    ```mlir
    %w = nn.read @w : tensor<3xf32>
    %s = nn.reduce_sum %w {dims = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    nn.loss %s, %three : tensor<f32>, tensor<f32>
    // is followed by
    %ds = nn.constant dense<0.333333> : tensor<f32>
    %dw = nn.broadcast %ds {dims = array<i64>} : (tensor<f32>) -> tensor<3xf32>
    nn.gradient @w, %dw : tensor<3xf32>
    ```
  }];
}

def InsertAllReduce : Pass<"dlc-insert-all-reduce", "::dlc::nn::ModelOp"> {
  let summary = "reduces gradients, batch statistics and counts over ranks";
  let description = [{
    Precondition: differentiated. Effect on @train: each gradient is the sum over ranks (the optimizer divides by their
    number); a norm with `sync` becomes sums over ranks and elementwise ops; other norms' batch statistics on their way
    to a variable are the mean over ranks; a loss count that depends on data is
    the mean over ranks where the backward pass divides by it, so that the sum of the ranks' gradients over their number
    is exact. `wire` is the type in which gradients travel; statistics and counts travel in f32. The model gets `wire`.
    ```mlir
    nn.gradient @w, %g : tensor<3xf32>
    // becomes
    %s = comm.all_reduce %g : tensor<3xf32>
    nn.gradient @w, %s : tensor<3xf32>
    ```
  }];
  let options = [Option<"wire", "wire", "std::string", "\"f32\"", "f32 or bf16">];
  let dependentDialects = ["::dlc::comm::CommDialect"];
}

def ApplyOptimizer : Pass<"dlc-apply-optimizer", "::dlc::nn::ModelOp"> {
  let summary = "turns gradients into updates of parameters and slots";
  let description = [{
    Precondition: gradients are sums over ranks; the model's `train` attribute names the optimizer. Effect: every
    nn.gradient becomes elementwise ops and nn.assign; slot variables `optimizer.<slot>.<parameter>` are added. Learning
    rate, step and 1/ranks are scalar variables, so that neither a schedule nor another number of ranks needs another
    artifact. Formulas are those of torch.optim (SGD, Adam, AdamW, RMSprop), except that 1 - beta^t is formed without
    cancellation. With `train.clip_norm`, gradients are multiplied by torch.nn.utils.clip_grad_norm_'s factor, which
    needs all of them: no update starts before the last gradient is reduced. With `train.ema`, each
    parameter has a slot `ema`, to which 1 - ema of the difference to the new value is added.
  }];
}

def Insert16BitWeights : Pass<"dlc-insert-16-bit-weights", "::dlc::nn::ModelOp"> {
  let summary = "keeps parameters that kernels read in 16 bits from step to step";
  let description = [{
    Precondition: gradients are applied. Effect: for every parameter that a program reads through an nn.cast to a
    narrower type there is a variable of kind copy, which all programs read instead; where @train assigns the parameter,
    it assigns the copy the same value rounded. So the update, which has the value at hand, writes what the next step's
    kernels read. A parameter that nobody trains is rounded when it is loaded.
    Runs once more in stage schedule, for what kernels of the target want in 16 bits besides.
    ```mlir
    %w = nn.read @w : tensor<3xf32>
    %narrow = nn.cast %w : (tensor<3xf32>) -> tensor<3xbf16>
    nn.assign @w, %new : tensor<3xf32>
    // becomes
    %narrow = nn.read @w.bf16 : tensor<3xbf16>
    nn.assign @w, %new : tensor<3xf32>
    %rounded = nn.cast %new : (tensor<3xf32>) -> tensor<3xbf16>
    nn.assign @w.bf16, %rounded : tensor<3xbf16>
    ```
  }];
}

def VerifyTrain : Pass<"dlc-verify-train", "::dlc::nn::ModelOp"> {
  let summary = "checks that ranks stay equal at the end of stage train (read-only)";
  let description = [{
    1. No nn.gradient is left. 2. An assigned value derives only from values that are equal on all ranks: variables (but
    first_row and valid_rows), constants and all-reduced values. 3. Only @train communicates, and that by
    all-reduces alone: no norm has `sync`. 4. Attributes, variables,
    inputs and sinks are as dlc-verify-nn demands, programs hold nn ops and all-reduces only. 5. Roles name variables;
    assignments are updates, and only updates read what an update computes.
  }];
}

#endif // DLC_TRAIN_PASSES
