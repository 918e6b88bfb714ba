// The nn dialect: the pure, statically shaped tensor graph of a model, forward and gradient ops.
//
// Tensors are builtin; logical dimensions are always N, C, spatial...; the physical layout is an encoding on the type.
// All ops are written over spatial rank (1 to 3). Invariant: every op has static shapes, and only read/assign touch
// variables.

#ifndef DLC_NN_DIALECT
#define DLC_NN_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let summary = "Convolutional networks as pure tensor graphs, with their gradients";
  let cppNamespace = "::dlc::nn";
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
}

class NN_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<NN_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def NN_LayoutAttr : NN_Attr<"Layout", "layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "physical layout: permutation plus inner blocks";
  let description = [{
    The text of dlc::rt::Layout, the struct that the artifact stores: `#nn.layout<nhwc>`, `#nn.layout<nChw16c>`,
    `#nn.layout<OIhw16i16o>` (printed with n and c for o and i). A tensor type without it is row-major.
  }];
  let parameters = (ins StringRefParameter<"canonical text">:$text);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static LayoutAttr get(::mlir::MLIRContext *context, const ::dlc::rt::Layout &layout);
    ::dlc::rt::Layout getLayout() const;
  }];
}

def NN_VariableKind : I32EnumAttr<"VariableKind", "what a variable is to the training step", [
    I32EnumAttrCase<"Parameter", 0, "parameter">, // trained
    I32EnumAttrCase<"State", 1, "state">,         // running and data statistics
    I32EnumAttrCase<"Slot", 2, "slot">,           // optimizer state of a parameter
    I32EnumAttrCase<"Scalar", 3, "scalar">,       // written by the host: lr, step, seed, inverse_world, first_row, valid_rows
    I32EnumAttrCase<"Copy", 4, "copy">]> {        // a parameter's value in a narrower type
  let cppNamespace = "::dlc::nn";
  let genSpecializedAttr = 0;
}
def NN_VariableKindAttr : EnumAttr<NN_Dialect, NN_VariableKind, "kind">;

def NN_Comparison : I32EnumAttr<"Comparison", "ordered comparison", [
    I32EnumAttrCase<"LT", 0, "lt">, I32EnumAttrCase<"LE", 1, "le">, I32EnumAttrCase<"GT", 2, "gt">,
    I32EnumAttrCase<"GE", 3, "ge">, I32EnumAttrCase<"EQ", 4, "eq">, I32EnumAttrCase<"NE", 5, "ne">]> {
  let cppNamespace = "::dlc::nn";
  let genSpecializedAttr = 0;
}
def NN_ComparisonAttr : EnumAttr<NN_Dialect, NN_Comparison, "comparison">;

def NN_InitializerAttr : NN_Attr<"Initializer", "init"> {
  let summary = "start value of a variable";
  let description = [{
    `#nn.init<constant, 1.0, 0.0>` fills; `#nn.init<normal, MEAN, DEVIATION>` and `#nn.init<uniform, LOW, HIGH>` draw
    from Philox with key = seed and stream = hash of the variable's name. He and Glorot initialisers are resolved to
    these by the frontend.
  }];
  let parameters = (ins "::dlc::nn::InitializerKind":$kind, APFloatParameter<"first parameter">:$first,
                        APFloatParameter<"second parameter">:$second);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    static InitializerAttr get(::mlir::MLIRContext *context, ::dlc::nn::InitializerKind kind, double a, double b) {
      return get(context, kind, ::llvm::APFloat(a), ::llvm::APFloat(b));
    }
    double getA() const { return getFirst().convertToDouble(); }
    double getB() const { return getSecond().convertToDouble(); }
  }];
}

def NN_InitializerKind : I32EnumAttr<"InitializerKind", "distribution of a start value", [
    I32EnumAttrCase<"Constant", 0, "constant">, I32EnumAttrCase<"Normal", 1, "normal">,
    I32EnumAttrCase<"Uniform", 2, "uniform">]> {
  let cppNamespace = "::dlc::nn";
  let genSpecializedAttr = 0;
}

def NN_KernelAttr : NN_Attr<"Kernel", "kernel"> {
  let summary = "planned implementation of an op";
  let description = [{
    Written by dlc-plan-kernels as `nn.kernel` on every op that a library runs and on every nn.fused. `implementation`
    is the library's name or "generated"; the workspace is one more buffer of the dispatch; `nanoseconds` is the
    forecast on the target.
  }];
  let parameters = (ins StringRefParameter<>:$implementation, "uint64_t":$workspace, "uint64_t":$flops,
                        "uint64_t":$bytes, "uint64_t":$nanoseconds);
  let assemblyFormat = "`<` $implementation `,` `workspace` `=` $workspace `,` `flops` `=` $flops `,` `bytes` `=` $bytes `,` `ns` `=` $nanoseconds `>`";
}

def NN_StagePlanAttr : NN_Attr<"StagePlan", "stage"> {
  let summary = "one loop nest of a cluster's plan";
  let description = [{
    A function that is called for consecutive chunks of `chunk` iterations of [0, extent). `buffers` are its operands,
    as positions among the cluster's operands, results and scratch: the first `reads` are read, the others written.
    Of a result that several stages write together, this one writes `part` elements; 0 where it writes all.
  }];
  let parameters = (ins "int64_t":$extent, "int64_t":$chunk, "::mlir::DenseI64ArrayAttr":$buffers, "int64_t":$reads,
                        "uint64_t":$bytes, "uint64_t":$flops, DefaultValuedParameter<"uint64_t", "0">:$part);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def NN_ClusterPlanAttr : NN_Attr<"ClusterPlan", "plan"> {
  let summary = "how a cluster becomes generated kernels";
  let description = [{
    The attribute `nn.plan` of nn.fused, written by dlc-plan-kernels with the loop limits of the target, and of
    exec.cluster: the stages that run one after the other, the types of the memory between them, and `shares`, pairs of
    an operand and a result that may lie in its memory, since each element is read before it is written.
  }];
  let parameters = (ins "::mlir::ArrayAttr":$stages, "::mlir::ArrayAttr":$scratch, "::mlir::DenseI64ArrayAttr":$shares);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def NN_Phase : I32EnumAttr<"Phase", "part of a training step", [
    I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
    I32EnumAttrCase<"Update", 2, "update">]> { // once a step, of variables, from what all ranks have summed
  let cppNamespace = "::dlc::nn";
  let genSpecializedAttr = 0;
}

def NN_LayerKind : I32EnumAttr<"LayerKind", "what a layer is for, where its arithmetic does not tell", [
    I32EnumAttrCase<"Other", 0, "other">, I32EnumAttrCase<"Norm", 1, "norm">, I32EnumAttrCase<"Loss", 2, "loss">]> {
  let cppNamespace = "::dlc::nn";
  let genSpecializedAttr = 0;
}

def NN_RoleAttr : NN_Attr<"Role", "role"> {
  let summary = "what an op is in a training step";
  let description = [{
    The attribute `nn.role` of any op: `#nn.role<backward>`, `#nn.role<forward, loss>`, `#nn.role<update,
    @conv.weight>`. The symbol is the variable of whose gradient, statistic or update the op computes a part. An op
    without the attribute is of the forward pass.
  }];
  let parameters = (ins "::dlc::nn::Phase":$phase, "::dlc::nn::LayerKind":$kind, "::mlir::FlatSymbolRefAttr":$variable);
  let hasCustomAssemblyFormat = 1;
}

// Types of operands. What every stage counts on for each tensor is decided here: a static shape within nn::isBounded.
class NN_TensorOf<list<Type> elements>
    : RankedTensorOf<elements, [CPred<"::dlc::nn::isBounded($_self)">],
                     "ranked tensor (static shape, at most 5 dimensions of at least 1, at most 2^40 elements)">;
def NN_Tensor : NN_TensorOf<[F64, F32, BF16, F16, I1, I8, I32, I64]>;
// What inputs may hold, which nn.cast alone computes with.
def NN_StoredTensor : NN_TensorOf<[F64, F32, BF16, F16, I1, I8, I32, I64, UI8, UI16]>;
def NN_FloatTensor : NN_TensorOf<[F64, F32, BF16, F16]>;
def NN_IntTensor : NN_TensorOf<[I1, I8, I32, I64]>;
def NN_BoolTensor : NN_TensorOf<[I1]>;

#endif // DLC_NN_DIALECT
