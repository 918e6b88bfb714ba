// Passes of the stage that ends at `--emit=nn`, in pipeline order.

#ifndef DLC_NN_PASSES
#define DLC_NN_PASSES

include "mlir/Pass/PassBase.td"

def DerivePrograms : Pass<"dlc-derive-programs", "::dlc::nn::ModelOp"> {
  let summary = "completes @eval and @predict, sets modes, prunes";
  let description = [{
    Precondition: stage nn. Effect: a model with @train alone gets @eval, its copy whose losses and metrics count only the rows below
    `valid_rows`, and, if it has nn.output, @predict. Outputs leave the other programs. In eval and predict batch_norm uses the
    running statistics and dropout is the identity. Ops, inputs and variables (but state) that nothing uses disappear.

    A per-row value is what the last nn.reduce_sum over the rows reads; a constant count means so many per row:
    ```mlir
    %s = nn.reduce_sum %loss {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    // in @eval, with %valid [4] true below valid_rows:
    %l = nn.select %valid, %loss, %zero : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = nn.reduce_sum %l {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    ```
  }];
}

def Simplify : Pass<"dlc-simplify", "::dlc::nn::ModelOp"> {
  let summary = "folds constants, merges casts and data movements, drops what has no effect";
  let description = [{
    Effect: folders of the dialect, splat arithmetic, pairs of cast, broadcast, reshape and transpose, ops that are the identity,
    equal subexpressions, dead code. No rewrite changes a rounding.
  }];
}

def VerifyNN : Pass<"dlc-verify-nn", "::mlir::ModuleOp"> {
  let summary = "checks a model at the end of stage nn (read-only)";
  let description = [{
    1. There is exactly one model, and it has a program. 2. `batch` is positive and the extent of dimension 0 of all inputs of train and
    eval. 3. An input has one type in train and eval, and one rank and element type in all programs. 4. Programs hold nn ops of static
    shape only, and none of later stages. 5. Scalars have the well-known names and types, which nothing else
    has; nothing assigns to them. 6. train has a loss; only
    train assigns, only predict has outputs, and predict has nothing else.
  }];
}

#endif // DLC_NN_PASSES
