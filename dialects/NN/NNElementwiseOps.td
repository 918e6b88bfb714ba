// Elementwise ops: one shape and layout for all operands and results. Broadcasting is explicit (nn.broadcast).

#ifndef DLC_NN_ELEMENTWISE_OPS
#define DLC_NN_ELEMENTWISE_OPS

include "dialects/NN/NNBase.td"

class NN_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : NN_InferredOp<mnemonic, !listconcat([NN_Elementwise], traits)>;

class NN_UnaryOp<string mnemonic, string text, list<Trait> traits = []>
    : NN_ElementwiseOp<mnemonic, !listconcat([NN_Differentiable], traits)> {
  let summary = text;
  let arguments = (ins NN_FloatTensor:$x);
  let results = (outs NN_FloatTensor:$y);
}

def NN_NegOp : NN_UnaryOp<"neg", "-x", [NN_Exact]>;
def NN_AbsOp : NN_UnaryOp<"abs", "|x|; gradient 0 at 0", [NN_Exact]>;
def NN_ExpOp : NN_UnaryOp<"exp", "e^x", [NN_FunctionPerElement]>;
def NN_LogOp : NN_UnaryOp<"log", "natural logarithm", [NN_FunctionPerElement]>;
def NN_SqrtOp : NN_UnaryOp<"sqrt", "square root">;
def NN_RsqrtOp : NN_UnaryOp<"rsqrt", "1 / sqrt(x)">;
def NN_TanhOp : NN_UnaryOp<"tanh", "hyperbolic tangent", [NN_Layer, NN_FunctionPerElement]>;
def NN_ReluOp : NN_UnaryOp<"relu", "max(x, 0); gradient 0 at 0; NaN stays NaN", [NN_Layer, NN_Exact]>;
def NN_SigmoidOp : NN_UnaryOp<"sigmoid", "1 / (1 + e^-x)", [NN_Layer, NN_FunctionPerElement]>;
def NN_SoftplusOp : NN_UnaryOp<"softplus", "log(1 + e^x) = max(x, 0) + log1p(e^-|x|)", [NN_FunctionPerElement]>;
def NN_ErfOp : NN_UnaryOp<"erf", "error function, 2 / sqrt(pi) times the integral of e^-t^2", [NN_FunctionPerElement]>;

def NN_StopGradientOp : NN_ElementwiseOp<"stop_gradient", [NN_Exact, NN_Composite, NN_ConstantToGradient]> {
  let summary = "x, a constant to differentiation";
  let description = "Lowering composites leaves the operand.";
  let arguments = (ins NN_FloatTensor:$x);
  let results = (outs NN_FloatTensor:$y);
}

class NN_BinaryOp<string mnemonic, string text, list<Trait> traits = []>
    : NN_ElementwiseOp<mnemonic, !listconcat([NN_Differentiable], traits)> {
  let summary = text;
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b);
  let results = (outs NN_FloatTensor:$y);
}

def NN_AddOp : NN_BinaryOp<"add", "a + b", [Commutative]> { let hasFolder = 1; }
def NN_SubOp : NN_BinaryOp<"sub", "a - b"> { let hasFolder = 1; }
def NN_MulOp : NN_BinaryOp<"mul", "a * b", [Commutative]> { let hasFolder = 1; }
def NN_DivOp : NN_BinaryOp<"div", "a / b"> { let hasFolder = 1; }
def NN_MaxOp : NN_BinaryOp<"max", "the larger; gradient to a where a >= b, else to b", [NN_Exact]>;
def NN_MinOp : NN_BinaryOp<"min", "the smaller; gradient to a where a <= b, else to b", [NN_Exact]>;
def NN_PowOp : NN_BinaryOp<"pow", "a^b; not differentiable in b", [NN_FunctionPerElement]>;

def NN_CompareOp : NN_ElementwiseOp<"compare"> {
  let summary = "ordered comparison, false with NaN except ne";
  let arguments = (ins NN_ComparisonAttr:$predicate, NN_Tensor:$a, NN_Tensor:$b);
  let results = (outs NN_BoolTensor:$y);
  let assemblyFormat = "`` $predicate $a `,` $b attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

class NN_LogicalOp<string mnemonic, string text> : NN_ElementwiseOp<mnemonic, [Commutative]> {
  let summary = text;
  let arguments = (ins NN_BoolTensor:$a, NN_BoolTensor:$b);
  let results = (outs NN_BoolTensor:$y);
}
def NN_AndOp : NN_LogicalOp<"and", "both">;
def NN_OrOp : NN_LogicalOp<"or", "either">;
def NN_NotOp : NN_ElementwiseOp<"not"> {
  let summary = "negation";
  let arguments = (ins NN_BoolTensor:$x);
  let results = (outs NN_BoolTensor:$y);
}

def NN_SelectOp : NN_ElementwiseOp<"select", [NN_Differentiable]> {
  let summary = "a where the condition holds, else b";
  let arguments = (ins NN_BoolTensor:$condition, NN_Tensor:$a, NN_Tensor:$b);
  let results = (outs NN_Tensor:$y);
}

def NN_CastOp : NN_TypedOp<"cast", [NN_Elementwise, NN_Differentiable]> {
  let summary = "conversion of the element type";
  let description = [{
    Float to float rounds to nearest even; i1 becomes 0 or 1; integers become the nearest float; float to integer
    truncates.
  }];
  let arguments = (ins NN_StoredTensor:$x);
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
}

def NN_DropoutOp : NN_ElementwiseOp<"dropout", [NN_Differentiable, NN_Layer, NN_Random, NN_FunctionPerElement]> {
  let summary = "x / (1 - rate) where kept, else 0";
  let description = [{
    An element is kept iff its uniform number (nn.uniform) is >= rate. The gradient is the same op on dy, so the mask is
    recomputed.
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_IntTensor:$seed, NN_IntTensor:$step, NN_IntTensor:$first_row,
                       F64Attr:$rate, I64Attr:$stream);
  let results = (outs NN_FloatTensor:$y);
  let hasVerifier = 1;
}

class NN_RandomTensorOp<string mnemonic, string text>
    : NN_TypedOp<mnemonic, [NN_Elementwise, NN_Random, NN_FunctionPerElement]> {
  let summary = text;
  let arguments = (ins NN_IntTensor:$seed, NN_IntTensor:$step, NN_IntTensor:$first_row, I64Attr:$stream);
  let results = (outs NN_FloatTensor:$y);
  let hasVerifier = 1;
}

def NN_UniformOp : NN_RandomTensorOp<"uniform", "random numbers from 0 to below 1"> {
  let description = [{
    An element is uniform01(philoxBits(seed, stream, step, element)) (runtime/core/Philox.h), where element is the
    logical row-major index in the global batch: `first_row` rows come before this rank's. `seed`, `step`, `first_row`
    are i64 scalars; `stream` is the hash of the op's name path.

    ```mlir
    %u = nn.uniform %seed, %step, %row {stream = 7 : i64} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8x16xf32>
    ```
  }];
}

def NN_NormalOp : NN_RandomTensorOp<"normal", "random numbers of the standard normal distribution"> {
  let description = [{
    An element is the normal distribution's quantile of u + 2^-25, computed in f32, where u is the element of nn.uniform.
    So no number lies further than 5.42 from 0.

    ```mlir
    %z = nn.normal %seed, %step, %row {stream = 7 : i64} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8x16xf32>
    ```
  }];
}

#endif // DLC_NN_ELEMENTWISE_OPS
