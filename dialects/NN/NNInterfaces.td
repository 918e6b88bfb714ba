// Interfaces and traits of nn ops.

#ifndef DLC_NN_INTERFACES
#define DLC_NN_INTERFACES

include "mlir/IR/OpBase.td"

def NN_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::dlc::nn";
  let description = [{
    Reverse-mode rule of an op (vector-Jacobian product). `gradients` holds one gradient per result, null where the result has
    none; `operandGradients` (one null value per operand on entry) receives the gradient of each operand, left null where the
    operand is not differentiable or `wanted` says that nobody needs it. A gradient has its operand's logical type; that of a
    bf16 or f16 operand may be f32 where it is computed so, and is rounded when an op takes it. The rule builds only nn ops at the
    builder's insertion point and reads only operands and results of the op.
  }];
  let methods = [InterfaceMethod<"Builds the gradients of the wanted operands.", "void", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$gradients, "::llvm::ArrayRef<bool>":$wanted,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandGradients)>];
}

// Operands and results have one shape and layout; element i of a result depends on elements i of the operands only.
def NN_Elementwise : NativeOpTrait<"Elementwise"> { let cppNamespace = "::dlc::nn"; }

#endif // DLC_NN_INTERFACES
