// Base classes of nn ops.

#ifndef DLC_NN_BASE
#define DLC_NN_BASE

include "dialects/NN/NNDialect.td"
include "dialects/NN/NNInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class NN_Op<string mnemonic, list<Trait> traits = []> : Op<NN_Dialect, mnemonic, traits>;

def NN_Rows : DeclareOpInterfaceMethods<NN_RowsOpInterface>;
def NN_Windows : DeclareOpInterfaceMethods<NN_WindowsOpInterface>;
// Of ops with `bias` and `relu`, whose accessors are the methods.
defvar NN_Epilogue = NN_EpilogueOpInterface;
// Of ops with `stream`, whose accessor is the method.
defvar NN_Random = NN_RandomOpInterface;
def NN_Blocks : DeclareOpInterfaceMethods<NN_BlocksOpInterface>;
def NN_Composite : DeclareOpInterfaceMethods<NN_CompositeOpInterface>;
// With layerKind, too.
def NN_KindComposite : DeclareOpInterfaceMethods<NN_CompositeOpInterface, ["layerKind"]>;
def NN_Differentiable : DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>;

// A pure op whose logical result types follow from its operands. Layouts are decided later: inference yields row-major,
// and any layout is compatible.
class NN_InferredOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([Pure, InferTypeOpAdaptorWithIsCompatible], traits)> {
  let extraClassDefinition = [{
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::dlc::nn::haveSameLogicalTypes(inferred, actual);
    }
  }];
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// A pure op whose result type is stated.
class NN_TypedOp<string mnemonic, list<Trait> traits = []> : NN_Op<mnemonic, !listconcat([Pure], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif // DLC_NN_BASE
