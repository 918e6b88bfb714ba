// Convolution, pooling, normalisation, matrix product, losses: the ops that a library implements as one kernel, and the
// gradient ops among them.

#ifndef DLC_NN_NETWORK_OPS
#define DLC_NN_NETWORK_OPS

include "dialects/NN/NNBase.td"

defvar NN_ConvAttributes = (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding_low,
    DenseI64ArrayAttr:$padding_high, DenseI64ArrayAttr:$dilations, DefaultValuedAttr<I64Attr, "1">:$groups);

def NN_ConvOp : NN_InferredOp<"conv", [NN_Differentiable, NN_Layer, NN_SumsInF32, NN_Rows, NN_Windows, NN_Composite,
                                       NN_HasKernelRequest, NN_Epilogue]> {
  let summary = "convolution (cross-correlation)";
  let description = [{
    x [N, C, S...], weight [O, C/groups, K...], bias [O] -> [N, O, S'...] with S' = (S + low + high - dilation (K - 1) -
    1) / stride + 1, rounded down. 1. C = groups * weight dim 1. 2. groups divides O. 3. Attribute lists have one entry
    per spatial dimension, strides and dilations >= 1, padding >= 0. 4. S' >= 1. `relu` (set by dlc-fuse) applies max(.,
    0) to the result. Source: torch.nn.ConvNd.

    ```mlir
    %y = nn.conv %x, %w, %b {strides = array<i64: 2, 2>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>,
      dilations = array<i64: 1, 1>} : (tensor<8x3x32x32xf32>, tensor<16x3x3x3xf32>, tensor<16xf32>) -> tensor<8x16x16x16xf32>
    ```
  }];
  let arguments = !con((ins NN_FloatTensor:$x, NN_FloatTensor:$weight, Optional<NN_FloatTensor>:$bias), NN_ConvAttributes,
                       (ins UnitAttr:$relu));
  let results = (outs NN_FloatTensor:$y);
  let hasVerifier = 1;
}

def NN_ConvTransposeOp : NN_TypedOp<"conv_transpose", [NN_Differentiable, NN_Layer, NN_SumsInF32, NN_Rows,
                                                       NN_Windows, NN_HasKernelRequest, NN_Epilogue]> {
  let summary = "transposed convolution";
  let description = [{
    x [N, C, S...], weight [C, O/groups, K...], bias [O] -> y [N, O, S'...]: the data gradient of the convolution that
    maps y to x. The result's shape is stated (output padding): convolving it gives x's shape. Source:
    torch.nn.ConvTransposeNd.

    ```mlir
    %y = nn.conv_transpose %x, %w {strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>,
      dilations = array<i64: 1, 1>} : (tensor<8x16x8x8xf32>, tensor<16x4x2x2xf32>) -> tensor<8x4x16x16xf32>
    ```
  }];
  let arguments = !con((ins NN_FloatTensor:$x, NN_FloatTensor:$weight, Optional<NN_FloatTensor>:$bias), NN_ConvAttributes,
                       (ins UnitAttr:$relu));
  let results = (outs NN_FloatTensor:$y);
  let hasVerifier = 1;
}

def NN_ConvGradDataOp : NN_TypedOp<"conv_grad_data", [NN_Differentiable, NN_Composite, NN_HasKernelRequest]> {
  let summary = "gradient of a convolution's x";
  let arguments = !con((ins NN_FloatTensor:$dy, NN_FloatTensor:$weight), NN_ConvAttributes);
  let results = (outs NN_FloatTensor:$dx);
  let hasVerifier = 1;
}

def NN_ConvGradFilterOp : NN_TypedOp<"conv_grad_filter", [NN_Composite, NN_HasKernelRequest]> {
  let summary = "gradient of a convolution's weight";
  let arguments = !con((ins NN_FloatTensor:$x, NN_FloatTensor:$dy), NN_ConvAttributes);
  let results = (outs NN_FloatTensor:$dw);
  let hasVerifier = 1;
}

def NN_MatmulOp : NN_InferredOp<"matmul", [NN_Differentiable, NN_Layer, NN_SumsInF32, NN_Rows, NN_HasKernelRequest,
                                           NN_Epilogue]> {
  let summary = "matrix product a b + bias";
  let description = [{
    a [M, K] (transpose_a: [K, M]), b [K, N] (transpose_b: [N, K]), bias [N] -> [M, N]. `relu` as for conv. The result
    has a's element type, or f32 where that is bf16 or f16.
  }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b, Optional<NN_FloatTensor>:$bias, UnitAttr:$transpose_a,
                       UnitAttr:$transpose_b, UnitAttr:$relu);
  let results = (outs NN_FloatTensor:$y);
  let hasVerifier = 1;
  let extraClassDefinition = [{
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::dlc::nn::haveSameLogicalTypes(inferred, actual) ||
             ::dlc::nn::isSumOf(inferred, actual);
    }
  }];
}

defvar NN_PoolAttributes = (ins DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding_low,
                                DenseI64ArrayAttr:$padding_high);

def NN_MaxPoolOp : NN_InferredOp<"max_pool", [NN_Differentiable, NN_Layer, NN_Rows, NN_Windows, NN_HasKernelRequest]> {
  let summary = "maximum over windows, and where it was";
  let description = [{
    y [N, C, S'...] with S' = (S + low + high - K) / stride + 1; index: position of the first maximum in the window,
    row-major, i8 (the window has at most 127 elements). Padding never wins; NaN wins.

    ```mlir
    %y, %index = nn.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>,
      padding_high = array<i64: 0, 0>} : (tensor<8x16x32x32xf32>) -> (tensor<8x16x16x16xf32>, tensor<8x16x16x16xi8>)
    ```
  }];
  let arguments = !con((ins NN_FloatTensor:$x), NN_PoolAttributes);
  let results = (outs NN_FloatTensor:$y, NN_TensorOf<[I8]>:$index);
  let hasVerifier = 1;
}

def NN_MaxPoolGradOp : NN_TypedOp<"max_pool_grad", [NN_HasKernelRequest]> {
  let summary = "gradient of max_pool's x";
  let arguments = !con((ins NN_FloatTensor:$dy, NN_TensorOf<[I8]>:$index), NN_PoolAttributes);
  let results = (outs NN_FloatTensor:$dx);
  let hasVerifier = 1;
}

defvar NN_AveragePoolAttributes = !con(NN_PoolAttributes, (ins BoolAttr:$count_padding));

def NN_AvgPoolOp : NN_InferredOp<"avg_pool", [NN_Differentiable, NN_Layer, NN_Rows, NN_Windows, NN_Composite]> {
  let summary = "mean over windows";
  let description = [{
    y [N, C, S'...] with S' = (S + low + high - K) / stride + 1. Padding is zeros, which count as elements of the window
    if `count_padding`; else a window has only the elements that exist, of which there must be one. With `adaptive`
    windows are parts of a fixed number, larger ones of a larger image. Source: torch.nn.AvgPoolNd.

    ```mlir
    %y = nn.avg_pool %x {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>,
      padding_high = array<i64: 1, 1>, count_padding = true} : (tensor<8x16x32x32xf32>) -> tensor<8x16x32x32xf32>
    ```
  }];
  let arguments = !con((ins NN_FloatTensor:$x), NN_AveragePoolAttributes, (ins UnitAttr:$adaptive));
  let results = (outs NN_FloatTensor:$y);
  let hasVerifier = 1;
}

def NN_AvgPoolGradOp : NN_TypedOp<"avg_pool_grad", [NN_Composite]> {
  let summary = "gradient of avg_pool's x";
  let arguments = !con((ins NN_FloatTensor:$dy), NN_AveragePoolAttributes);
  let results = (outs NN_FloatTensor:$dx);
  let hasVerifier = 1;
}

def NN_UpsampleOp : NN_InferredOp<"upsample", [NN_Differentiable, NN_Layer, NN_Rows, NN_Windows, NN_Composite]> {
  let summary = "images enlarged by whole factors";
  let description = [{
    y [N, C, S scale...]. Repeats elements; with `linear` interpolates between their centres, and repeats beyond the
    outermost ones. Source: torch.nn.Upsample (align_corners = false).

    ```mlir
    %y = nn.upsample %x {scale = array<i64: 2, 2>, linear} : (tensor<8x16x4x4xf32>) -> tensor<8x16x8x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, DenseI64ArrayAttr:$scale, UnitAttr:$linear);
  let results = (outs NN_FloatTensor:$y);
  let hasVerifier = 1;
}

def NN_UpsampleGradOp : NN_TypedOp<"upsample_grad", [NN_Composite]> {
  let summary = "gradient of upsample's x";
  let arguments = (ins NN_FloatTensor:$dy, DenseI64ArrayAttr:$scale, UnitAttr:$linear);
  let results = (outs NN_FloatTensor:$dx);
  let hasVerifier = 1;
}

def NN_PixelShuffleOp : NN_InferredOp<"pixel_shuffle", [NN_Differentiable, NN_Layer, NN_MovesElements, NN_Rows,
                                                        NN_Windows, NN_Composite]> {
  let summary = "channels as the pixels of an image larger by a whole factor";
  let description = [{
    x [N, C f^d, S...] -> y [N, C, S f...] for d spatial dimensions: the places within a pixel, row-major, are the minor
    part of x's channels. `inverse` goes back. The gradient is the inverse on dy. Source: Shi et al. 2016;
    torch.nn.PixelShuffle, PixelUnshuffle.

    ```mlir
    %y = nn.pixel_shuffle %x {factor = 2 : i64} : (tensor<8x16x4x4xf32>) -> tensor<8x4x8x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, I64Attr:$factor, UnitAttr:$inverse);
  let results = (outs NN_FloatTensor:$y);
  let hasVerifier = 1;
}

def NN_BatchNormOp : NN_InferredOp<"batch_norm", [NN_Differentiable, NN_Layer, NN_Rows, NN_Windows, NN_KindComposite]> {
  let summary = "normalisation per channel";
  let description = [{
    y = scale (x - mean) / sqrt(var + epsilon) + bias over all dimensions but 1. Training: mean and (biased) var of this
    rank's batch, also results. Inference: the running statistics, passed through as results. The statistics results are
    stop-gradient. With `sync`, training takes mean and var over the batches of all ranks, which are of one size
    (dlc-insert-all-reduce writes that with sums over ranks). Source: Ioffe, Szegedy 2015; torch.nn.BatchNormNd,
    SyncBatchNorm.

    ```mlir
    %y, %mean, %var = nn.batch_norm %x, %scale, %bias, %running_mean, %running_var {epsilon = 1.0e-5, training = true}
      : (tensor<8x16x4x4xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
      -> (tensor<8x16x4x4xf32>, tensor<16xf32>, tensor<16xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale, NN_FloatTensor:$bias, NN_FloatTensor:$running_mean,
                       NN_FloatTensor:$running_var, F64Attr:$epsilon, BoolAttr:$training, UnitAttr:$sync);
  let results = (outs NN_FloatTensor:$y, NN_FloatTensor:$mean, NN_FloatTensor:$var);
  let hasVerifier = 1;
}

def NN_BatchNormGradOp : NN_InferredOp<"batch_norm_grad", [NN_KindComposite]> {
  let summary = "gradients of training batch_norm";
  let description = "With `sync`, dx heeds the sums over all ranks; dscale and dbias are a rank's own.";
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x, NN_FloatTensor:$scale, NN_FloatTensor:$mean,
                       NN_FloatTensor:$var, F64Attr:$epsilon, UnitAttr:$sync);
  let results = (outs NN_FloatTensor:$dx, NN_FloatTensor:$dscale, NN_FloatTensor:$dbias);
}

def NN_GroupNormOp : NN_InferredOp<"group_norm", [NN_Differentiable, NN_Layer, NN_Rows, NN_Windows, NN_KindComposite]> {
  let summary = "normalisation of a sample's groups of channels";
  let description = [{
    y = scale (x - mean) / sqrt(var + epsilon) + bias; mean and (biased) var [N, groups] are those of the C / groups
    channels of a group in one sample, also results, and stop-gradient. 1. groups divides C. 2. scale and bias have one
    element per channel, or, with one group, the shape of a sample. Sources: Wu, He 2018; torch.nn.GroupNorm,
    InstanceNormNd (groups = C), LayerNorm (one group, scale of a sample's shape).

    ```mlir
    %y, %mean, %var = nn.group_norm %x, %scale, %bias {groups = 4 : i64, epsilon = 1.0e-5}
      : (tensor<8x16x4x4xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8x16x4x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale, NN_FloatTensor:$bias, I64Attr:$groups, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$y, NN_FloatTensor:$mean, NN_FloatTensor:$var);
  let hasVerifier = 1;
}

def NN_GroupNormGradOp : NN_InferredOp<"group_norm_grad", [NN_KindComposite]> {
  let summary = "gradients of group_norm";
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x, NN_FloatTensor:$scale, NN_FloatTensor:$mean,
                       NN_FloatTensor:$var, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$dx, NN_FloatTensor:$dscale, NN_FloatTensor:$dbias);
}

def NN_SoftmaxCrossEntropyOp : NN_InferredOp<"softmax_cross_entropy", [NN_Differentiable, NN_Rows, NN_KindComposite, NN_Windows]> {
  let summary = "cross entropy of softmax(logits) and a class";
  let description = [{
    logits [N, C, spatial...], label [N, spatial...] in [0, C) -> loss per row (image, or pixel of it), of label's
    shape. With smoothing s the target is (1 - s) at the label plus s / C everywhere. Source: torch.nn.CrossEntropyLoss.

    ```mlir
    %loss = nn.softmax_cross_entropy %logits, %label {smoothing = 0.1} : (tensor<8x10xf32>, tensor<8xi32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$label, DefaultValuedAttr<F64Attr, "0.0">:$smoothing);
  let results = (outs NN_FloatTensor:$loss);
  let hasVerifier = 1;
}

def NN_SoftmaxCrossEntropyGradOp : NN_InferredOp<"softmax_cross_entropy_grad", [NN_KindComposite]> {
  let summary = "gradient of softmax_cross_entropy's logits";
  let description = "(softmax(logits) - target) * dloss, row by row.";
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$label, NN_FloatTensor:$dloss,
                       DefaultValuedAttr<F64Attr, "0.0">:$smoothing);
  let results = (outs NN_FloatTensor:$dlogits);
  let hasVerifier = 1;
}

#endif // DLC_NN_NETWORK_OPS
