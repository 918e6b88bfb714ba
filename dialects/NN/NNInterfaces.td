// Interfaces and traits of nn ops.

#ifndef DLC_NN_INTERFACES
#define DLC_NN_INTERFACES

include "mlir/IR/OpBase.td"

def NN_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::dlc::nn";
  let description = [{
    Reverse-mode rule of an op (vector-Jacobian product). `gradients` holds one gradient per result, null where the
    result has none; `operandGradients` (one null value per operand on entry) receives the gradient of each operand,
    left null where the operand is not differentiable or `wanted` says that nobody needs it. A gradient has its
    operand's logical type; that of a bf16 or f16 operand may be f32 where it is computed so, and is rounded when an op
    takes it. The rule builds only nn ops at the builder's insertion point and reads only operands and results of the
    op.
  }];
  let methods = [InterfaceMethod<"Builds the gradients of the wanted operands.", "void", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$gradients, "::llvm::ArrayRef<bool>":$wanted,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandGradients)>];
}

def NN_RowsOpInterface : OpInterface<"RowsOpInterface"> {
  let cppNamespace = "::dlc::nn";
  let description = [{
    How rows, the indices of dimension 0, one a sample, go through an op. Elementwise ops keep them and need no rule; an
    op without a rule mixes them. A result of another extent in dimension 0 has lost them in any case.
  }];
  let methods = [InterfaceMethod<
      "True if row i of the results is computed from row i of the operands that have rows; one at least has.", "bool", "keepsRows",
      (ins "::llvm::function_ref<bool(::mlir::Value)>":$hasRows)>];
}

def NN_WindowsOpInterface : OpInterface<"WindowsOpInterface"> {
  let cppNamespace = "::dlc::nn";
  let description = [{
    Which window of the image an element of the first result depends on, given those of the operands. Elementwise ops
    need no rule; an op without one reads the whole image.
  }];
  let methods = [InterfaceMethod<"The axes of the first result; nothing after WindowQuery::refuse.",
      "::std::optional<::dlc::nn::Axes>", "followWindows", (ins "::dlc::nn::WindowQuery &":$windows)>];
}

def NN_BlocksOpInterface : OpInterface<"BlocksOpInterface"> {
  let cppNamespace = "::dlc::nn";
  let description = [{
    Movements that can be done in a blocked layout, common to operands and result, if they cut none of its blocks.
  }];
  let methods = [InterfaceMethod<"True if no block is cut.", "bool", "canMoveIn", (ins "const ::dlc::rt::Layout &":$layout)>];
}

def NN_CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::dlc::nn";
  let description = [{
    Ops that other ops say as well: those become part of clusters, and no kernel has to be written for the op.
  }];
  let methods = [
    InterfaceMethod<"Builds the same from other ops at the builder's insertion point; nothing for an op that stays as it is.",
        "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder)>,
    StaticInterfaceMethod<"What the op is for, which its arithmetic will not tell.", "::dlc::nn::LayerKind", "layerKind", (ins), "",
        "return ::dlc::nn::LayerKind::Other;">
  ];
}

def NN_ReductionOpInterface : OpInterface<"ReductionOpInterface"> {
  let cppNamespace = "::dlc::nn";
  let description = [{
    Ops that combine all elements along some dimensions of their only operand and drop these. A cluster's loops run over
    the operand, and the result is complete when they have ended.
  }];
  let methods = [InterfaceMethod<"The reduced dimensions, increasing.", "::llvm::ArrayRef<int64_t>", "getDims">];
}

def NN_EpilogueOpInterface : OpInterface<"EpilogueOpInterface"> {
  let cppNamespace = "::dlc::nn";
  let description = [{
    Ops whose kernels may finish the result in place: add a bias, a number for each index of dimension 1, then apply a
    ReLU. Whether a kernel does is the target's to say.
  }];
  let methods = [
    InterfaceMethod<"The bias, or null.", "::mlir::Value", "getBias">,
    InterfaceMethod<"The same, to be removed.", "::mlir::MutableOperandRange", "getBiasMutable">,
    InterfaceMethod<"True if a ReLU follows.", "bool", "getRelu">,
    InterfaceMethod<"Lets a ReLU follow.", "void", "setRelu", (ins "bool":$relu)>
  ];
}

def NN_RandomOpInterface : OpInterface<"RandomOpInterface"> {
  let cppNamespace = "::dlc::nn";
  let description = [{
    Elementwise ops that draw a number for each element of the result. The last three operands are the i64 scalars seed,
    step and first_row, the rows of the global batch before this rank's.
  }];
  let methods = [InterfaceMethod<"Distinguishes the op from others of the model; 32 bits.", "uint64_t", "getStream">];
}

// Implementers, as a library's kernels, are asked what they offer for the op (passes/planning/KernelRequests.h).
def NN_HasKernelRequest : NativeOpTrait<"HasKernelRequest"> { let cppNamespace = "::dlc::nn"; }

// Each element of the result is an element of an operand.
def NN_MovesElements : NativeOpTrait<"MovesElements"> { let cppNamespace = "::dlc::nn"; }

// Generated code computes an element of the result where it is read, at no cost: each cluster that reads the result has
// a copy of the op, and memory need not hold the result.
def NN_CopiedToReaders : NativeOpTrait<"CopiedToReaders"> { let cppNamespace = "::dlc::nn"; }

// Generated code moves the elements in a cluster of their own.
def NN_StaysAlone : NativeOpTrait<"StaysAlone"> { let cppNamespace = "::dlc::nn"; }

// An element costs a function, as e^x, and not only some instructions of arithmetic.
def NN_FunctionPerElement : NativeOpTrait<"FunctionPerElement"> { let cppNamespace = "::dlc::nn"; }

// The result is zero or an element of an operand, perhaps negated, so nothing is rounded.
def NN_Exact : NativeOpTrait<"Exact"> { let cppNamespace = "::dlc::nn"; }

// Sums up products of the elements of the first two operands in f32, also where these are of 16 bits.
def NN_SumsInF32 : NativeOpTrait<"SumsInF32"> { let cppNamespace = "::dlc::nn"; }

// Differentiation takes the results for constants.
def NN_ConstantToGradient : NativeOpTrait<"ConstantToGradient"> { let cppNamespace = "::dlc::nn"; }

// A layer of the network, as reports list them.
def NN_Layer : NativeOpTrait<"Layer"> { let cppNamespace = "::dlc::nn"; }

// The host reads the operands when the program has run.
def NN_ReadByHost : NativeOpTrait<"ReadByHost"> { let cppNamespace = "::dlc::nn"; }

// Operands and results have one shape and layout; element i of a result depends on elements i of the operands only.
def NN_Elementwise : NativeOpTrait<"Elementwise"> { let cppNamespace = "::dlc::nn"; }

#endif // DLC_NN_INTERFACES
