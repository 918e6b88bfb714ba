// Ops that move, repeat or reduce elements.

#ifndef DLC_NN_SHAPE_OPS
#define DLC_NN_SHAPE_OPS

include "dialects/NN/NNBase.td"

def NN_ConstantOp : NN_Op<"constant", [Pure, ConstantLike, NN_CopiedToReaders, NN_Windows]> {
  let summary = "a constant tensor";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "attr-dict custom<ConstantValue>($value, type($result))";
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type, "double":$splat)>];
}

def NN_IotaOp : NN_TypedOp<"iota", [NN_CopiedToReaders, NN_Windows]> {
  let summary = "index along one dimension";
  let arguments = (ins I64Attr:$dim);
  let results = (outs NN_IntTensor:$y);
  let assemblyFormat = "attr-dict `:` type($y)";
  let hasVerifier = 1;
}

def NN_BroadcastOp : NN_TypedOp<"broadcast", [NN_Differentiable, NN_MovesElements, NN_CopiedToReaders, NN_Rows, NN_Windows]> {
  let summary = "repeats along the dimensions not in `dims`";
  let description = [{
    `dims[i]` is the result dimension of operand dimension i; increasing, extents equal. A scalar has dims = [].

    ```mlir
    %y = nn.broadcast %bias {dims = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16x4x4xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
  let hasFolder = 1;
}

class NN_ReduceOp<string mnemonic, string text, list<Trait> traits = []>
    : NN_InferredOp<mnemonic, !listconcat([NN_ReductionOpInterface, NN_Differentiable, NN_Rows, NN_Windows], traits)> {
  let summary = text;
  let description = "Reduces `dims` (increasing) and drops them. f32 sums are accumulated in f64 and rounded once.";
  let arguments = (ins NN_FloatTensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs NN_FloatTensor:$y);
  let hasVerifier = 1;
}
def NN_ReduceSumOp : NN_ReduceOp<"reduce_sum", "sum over dimensions", [NN_Composite]>;
def NN_ReduceMaxOp : NN_ReduceOp<"reduce_max", "maximum over dimensions; equal ones share the gradient">;

def NN_CountNonfiniteOp : NN_Op<"count_nonfinite", [Pure]> {
  let summary = "how many elements of sums over ranks are infinite or not a number once they are multiplied by a scalar";
  let description = [{
    Reads gradients where they lie, whatever their layouts: stage exec counts those at once that lie one behind the other
    in a bucket.
    ```mlir
    %n = nn.count_nonfinite %a, %b, %scale : (tensor<3xf32>, tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<NN_FloatTensor>:$gradients, NN_FloatTensor:$scale);
  let results = (outs NN_FloatTensor:$count);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def NN_ReshapeOp : NN_TypedOp<"reshape", [NN_Differentiable, NN_MovesElements, NN_Rows, NN_Windows]> {
  let summary = "same elements in logical row-major order";
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_TransposeOp : NN_InferredOp<"transpose", [NN_Differentiable, NN_MovesElements, NN_StaysAlone, NN_Rows, NN_Windows]> {
  let summary = "dimension i of the result is dimension permutation[i] of the operand";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
}

def NN_ConcatOp : NN_InferredOp<"concat",
    [NN_Differentiable, NN_Layer, NN_MovesElements, NN_StaysAlone, NN_Rows, NN_Windows, NN_Blocks]> {
  let summary = "joins tensors along a dimension";
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
}

def NN_SliceOp : NN_InferredOp<"slice",
    [NN_Differentiable, NN_MovesElements, NN_CopiedToReaders, NN_Rows, NN_Windows, NN_Blocks]> {
  let summary = "the box [start, start + size) of a tensor";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$start, DenseI64ArrayAttr:$size);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
}

def NN_SubsampleOp : NN_InferredOp<"subsample", [NN_MovesElements, NN_CopiedToReaders, NN_Blocks]> {
  let summary = "each strides[d]-th element along dimension d, from the first on";
  let description = [{
    ```mlir
    %y = nn.subsample %x {strides = array<i64: 1, 1, 2, 2>} : (tensor<8x16x5x4xf32>) -> tensor<8x16x3x2xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$strides);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
}

def NN_RepeatOp : NN_InferredOp<"repeat", [NN_MovesElements, NN_StaysAlone, NN_Blocks]> {
  let summary = "each element times[d] times in a row along dimension d";
  let description = [{
    ```mlir
    %y = nn.repeat %x {times = array<i64: 1, 1, 2, 2>} : (tensor<8x16x4x4xf32>) -> tensor<8x16x8x8xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$times);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
}

def NN_PadOp : NN_InferredOp<"pad", [NN_Differentiable, NN_CopiedToReaders, NN_Rows, NN_Windows, NN_Blocks]> {
  let summary = "adds `low` and `high` elements of `value` on each side";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
}

def NN_ReorderOp : NN_TypedOp<"reorder", [NN_MovesElements, NN_StaysAlone, NN_HasKernelRequest]> {
  let summary = "same tensor in another physical layout";
  let description = [{
    In a narrower float type, too, if the result has one: then it is an nn.cast whose result lies otherwise than its
    operand.
  }];
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_FusedOp : NN_Op<"fused", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a cluster that becomes one generated kernel";
  let description = [{
    The region's arguments are the operands; its ops are elementwise, broadcasts, reductions, gradients of pooling,
    convolutions in which each channel has a filter of its own, iota and constants over one iteration space, or one data
    movement (concat, slice, pad, transpose, repeat), pooling, gradient of such filters or matrix product. Behind
    reductions there may be elementwise ops over what these keep: their epilogue. Results are what nn.yield names.

    ```mlir
    %y = nn.fused (%a = %x, %b = %z) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> {
      %sum = nn.add %a, %b : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      nn.yield %sum : tensor<8x16xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<NN_StoredTensor>:$inputs);
  let results = (outs Variadic<NN_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def NN_YieldOp : NN_Op<"yield", [Pure, Terminator]> {
  let summary = "results of a cluster";
  let arguments = (ins Variadic<NN_Tensor>:$values);
  let builders = [OpBuilder<(ins)>];
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

#endif // DLC_NN_SHAPE_OPS
