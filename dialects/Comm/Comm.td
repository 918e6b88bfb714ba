// The comm dialect: collectives on tensors with SPMD semantics.

#ifndef DLC_COMM
#define DLC_COMM

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Comm_Dialect : Dialect {
  let name = "comm";
  let summary = "Collectives between the ranks of a run";
  let description = [{
    Every rank executes the same program; a collective combines the ranks' values of its operands. A variadic op is one
    bucket: one contiguous message, its operands' slices in order, each 64-byte aligned, padding zero. Sums are formed
    in rank order in f32. Equivalents: MPI_Allreduce, ncclAllReduce.
  }];
  let cppNamespace = "::dlc::comm";
  let useDefaultTypePrinterParser = 1;
}

def Comm_FutureType : TypeDef<Comm_Dialect, "Future"> {
  let mnemonic = "future";
  let summary = "tensors in flight";
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$types);
  let assemblyFormat = "`<` $types `>`";
}

class Comm_Op<string mnemonic, list<Trait> traits = []> : Op<Comm_Dialect, mnemonic, traits>;
def Comm_Tensor : RankedTensorOf<[F64, F32, BF16, F16], [CPred<"::dlc::nn::isBounded($_self)">]>;

def Comm_AllReduceOp : Comm_Op<"all_reduce", [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "sum over ranks";
  let description = [{
    Result i is the sum over all ranks of operand i. `wire` is the element type of the message (f32 unless given).
    `members` names, for each operand, the variable whose gradient or statistic it is, or says in words what else.

    ```mlir
    %0:2 = comm.all_reduce %a, %b : tensor<3xf32>, tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, OptionalAttr<TypeAttr>:$wire, OptionalAttr<ArrayAttr>:$members);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs)";
  let hasVerifier = 1;
}

def Comm_StartOp : Comm_Op<"start"> {
  let summary = "starts an all-reduce of one bucket";
  let description = [{
    The operands may not be used between here and the wait. `bucket` numbers the message in the fixed order of all
    ranks.

    ```mlir
    %f = comm.start %a, %b {bucket = 0 : i64} : tensor<3xf32>, tensor<4xf32> -> !comm.future<tensor<3xf32>, tensor<4xf32>>
    %0:2 = comm.wait %f : !comm.future<tensor<3xf32>, tensor<4xf32>> -> tensor<3xf32>, tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, I64Attr:$bucket, OptionalAttr<TypeAttr>:$wire,
                       OptionalAttr<ArrayAttr>:$members);
  let results = (outs Comm_FutureType:$future);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs) `->` type($future)";
  let hasVerifier = 1;
}

def Comm_WaitOp : Comm_Op<"wait"> {
  let summary = "the reduced tensors of a bucket";
  let arguments = (ins Comm_FutureType:$future);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = "$future attr-dict `:` type($future) `->` type($outputs)";
  let hasVerifier = 1;
}

#endif // DLC_COMM
