// Passes of the stage that ends at `--emit=train`, in pipeline order.

#ifndef DLC_TRAIN_PASSES
#define DLC_TRAIN_PASSES

include "mlir/Pass/PassBase.td"

def Differentiate : Pass<"dlc-differentiate", "::dlc::nn::ModelOp"> {
  let summary = "appends the gradients of all parameters to @train";
  let description = [{
    Precondition: stage nn. Effect: behind the ops of @train follow the gradients of sum over losses of weight * sum / count, by the
    ops' own rules (DifferentiableOpInterface), then one nn.gradient per parameter; the stage becomes train. A count is a constant to
    the gradient: it enters as `nn.div %weight, %count` or, if it is a constant, folded. A parameter without influence on a loss gets
    a warning and no gradient, one with `trainable = false` neither. An op without a rule on the way is an error.
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

#endif // DLC_TRAIN_PASSES
