// The exec dialect: the scheduled program, one-to-one with the artifact.

#ifndef DLC_EXEC
#define DLC_EXEC

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let summary = "Arenas, buffers, kernels and instructions of a planned program";
  let description = [{
    Lives inside an nn.model of stage exec. No op of the network survives here by name: an exec.dispatch refers to a
    kernel (a library plan or a generated cluster) and its buffers. The order of instructions is the order of execution.
  }];
  let cppNamespace = "::dlc::exec";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class Exec_Enum<string name, string text, list<I32EnumAttrCase> cases> : I32EnumAttr<name, text, cases> {
  let cppNamespace = "::dlc::exec";
  let genSpecializedAttr = 0;
}

// Values equal the artifact's enums of the same names.
def Exec_ArenaKind : Exec_Enum<"ArenaKind", "what an arena holds", [
    I32EnumAttrCase<"Variables", 0, "variables">, I32EnumAttrCase<"Slots", 1, "slots">,
    I32EnumAttrCase<"Inputs", 2, "inputs">, I32EnumAttrCase<"Transient", 3, "transient">,
    I32EnumAttrCase<"Gradients", 4, "gradients">, I32EnumAttrCase<"Sums", 5, "sums">]>;
def Exec_ArenaKindAttr : EnumAttr<Exec_Dialect, Exec_ArenaKind, "arena_kind">;

def Exec_Stream : Exec_Enum<"Stream", "logical stream of an instruction", [
    I32EnumAttrCase<"Compute", 0, "compute">, I32EnumAttrCase<"Comm", 1, "comm">,
    I32EnumAttrCase<"Copy", 2, "copy">]>;
def Exec_StreamAttr : EnumAttr<Exec_Dialect, Exec_Stream, "stream">;

def Exec_Phase : Exec_Enum<"Phase", "part of the step", [
    I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
    I32EnumAttrCase<"Optimizer", 2, "optimizer">, I32EnumAttrCase<"Communication", 3, "communication">,
    I32EnumAttrCase<"Count", 4, "count">]>;
def Exec_PhaseAttr : EnumAttr<Exec_Dialect, Exec_Phase, "phase">;

def Exec_Access : Exec_Enum<"Access", "what a kernel does with an operand", [
    I32EnumAttrCase<"Read", 1, "read">, I32EnumAttrCase<"Write", 2, "write">,
    I32EnumAttrCase<"ReadWrite", 3, "readwrite">]>;

def Exec_ResultKind : Exec_Enum<"ResultKind", "what the host reads", [
    I32EnumAttrCase<"Loss", 0, "loss">, I32EnumAttrCase<"Metric", 1, "metric">,
    I32EnumAttrCase<"Output", 2, "output">]>;
def Exec_ResultKindAttr : EnumAttr<Exec_Dialect, Exec_ResultKind, "result">;

def Exec_BufferType : TypeDef<Exec_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "a place in an arena that holds a tensor";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
  let genVerifyDecl = 1;
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

def Exec_ArenaOp : Exec_Op<"arena", [Symbol]> {
  let summary = "one allocation, made before the first step";
  let description = "`bytes` and `lower_bound` (most bytes live at one time) are set by dlc-plan-memory.";
  let arguments = (ins SymbolNameAttr:$sym_name, Exec_ArenaKindAttr:$kind, OptionalAttr<I64Attr>:$bytes,
                       OptionalAttr<I64Attr>:$lower_bound);
  let assemblyFormat = "$sym_name attr-dict";
}

def Exec_ClusterOp : Exec_Op<"cluster", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "the body of a generated kernel";
  let description = [{
    The region of one nn.fused; kernels of all its stages refer to it. The results in `nontemporal` are stored past the
    caches.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<DenseI64ArrayAttr>:$nontemporal);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name $body attr-dict";
}

def Exec_KernelOp : Exec_Op<"kernel", [Symbol]> {
  let summary = "what a dispatch runs";
  let description = [{
    A library kernel has a `plan`, the bytes from which the device rebuilds it. A generated one is stage `stage` of
    `cluster`: function `function`, called for consecutive chunks of `chunk` iterations of [0, extent). Kernels that
    write a buffer together each say of how many elements, `part`; 0 where a kernel writes all that it writes. 1.
    Exactly one of plan and cluster. 2. One access per operand. 3. Operands are tensors that a buffer can hold.

    ```mlir
    exec.kernel @k [tensor<8xf32>, tensor<8xf32>] access [1, 2] {category = "pointwise", plan = array<i8: 1, 2>,
      implementation = "jit", flops = 8 : i64, bytes = 64 : i64, nanoseconds = 10 : i64}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeArrayAttr:$types, DenseI32ArrayAttr:$access, StrAttr:$category,
      StrAttr:$implementation, OptionalAttr<DenseI8ArrayAttr>:$plan, OptionalAttr<FlatSymbolRefAttr>:$cluster,
      DefaultValuedAttr<I64Attr, "0">:$stage, OptionalAttr<StrAttr>:$function, DefaultValuedAttr<I64Attr, "1">:$extent,
      DefaultValuedAttr<I64Attr, "1">:$chunk, DefaultValuedAttr<I64Attr, "0">:$part, I64Attr:$flops, I64Attr:$bytes,
      I64Attr:$nanoseconds);
  let assemblyFormat = "$sym_name $types `access` $access attr-dict";
  let hasVerifier = 1;
}

def Exec_ProgramOp : Exec_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "the instructions of one step, in order";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Exec_BufferOp : Exec_Op<"buffer", [Pure]> {
  let summary = "a tensor's place";
  let description = [{
    `variable` or `input` say what it holds, if it is one; `label` names the layer for messages. `offset` in bytes is
    set by dlc-plan-memory. `variables` lie one behind the other in the buffer, each from the next multiple of 32
    elements on; views give access to them one by one.
  }];
  let arguments = (ins Exec_ArenaKindAttr:$arena, OptionalAttr<I64Attr>:$offset, OptionalAttr<StrAttr>:$label,
                       OptionalAttr<FlatSymbolRefAttr>:$variable, OptionalAttr<StrAttr>:$input,
                       OptionalAttr<FlatSymbolRefArrayAttr>:$variables);
  let results = (outs Exec_BufferType:$buffer);
  let assemblyFormat = "attr-dict `:` type($buffer)";
}

def Exec_ViewOp : Exec_Op<"view", [Pure]> {
  let summary = "a tensor at a byte offset inside another buffer";
  let description = "Bucket slices and in-place results. The view lies inside its source.";
  let arguments = (ins Exec_BufferType:$source, DefaultValuedAttr<I64Attr, "0">:$offset, OptionalAttr<StrAttr>:$label);
  let results = (outs Exec_BufferType:$view);
  let assemblyFormat = "$source `[` $offset `]` attr-dict `:` type($source) `->` type($view)";
  let hasVerifier = 1;
}

// Becomes an instruction of the artifact; buffers and views do not.
def Exec_IsInstruction : NativeOpTrait<"Instruction"> { let cppNamespace = "::dlc::exec"; }
class Exec_Instruction<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, !listconcat([Exec_IsInstruction], traits)>;

// Of a collective or an event.
def Exec_Number : ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<1048576>]>;

def Exec_DispatchOp : Exec_Instruction<"dispatch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel on buffers";
  let description = [{
    `recomputed`, if it computes again what was not kept: by how many bytes that lowers the peak of memory. `variables`,
    if it computes a part of their gradients or statistics or updates them.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Exec_BufferType>:$buffers, Exec_PhaseAttr:$phase,
                       OptionalAttr<Exec_StreamAttr>:$stream, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$recomputed,
                       OptionalAttr<FlatSymbolRefArrayAttr>:$variables);
  let assemblyFormat = "$kernel `(` $buffers `)` attr-dict `:` type($buffers)";
}

def Exec_AccumulateOp : Exec_Instruction<"accumulate", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                                        AllTypesMatch<["bucket", "sum"]>]> {
  let summary = "adds up what a bucket holds over the micro-batches of a step";
  let description = [{
    In a step of several micro-batches the first one's bucket becomes the sum, further ones are added to it, and the
    last one's bucket takes it: `kernel` adds its second operand to its first, in place. A step of one does nothing
    here, and has no memory for sums. `phase` is that of the collective that follows.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Exec_BufferType:$bucket, Exec_BufferType:$sum,
                       OptionalAttr<Exec_PhaseAttr>:$phase, OptionalAttr<Exec_StreamAttr>:$stream);
  let assemblyFormat = "$kernel `(` $bucket `,` $sum `)` attr-dict `:` type($bucket)";
}

def Exec_CheckOp : Exec_Instruction<"check"> {
  let summary = "counts what is not finite in slices of buckets, once it is multiplied by a scalar";
  let description = [{
    Stands for dispatches until the slices have their final places: dlc-check-gradients puts those there, and no model
    leaves stage exec with one. Slices are f32 and lie in buckets.
  }];
  let arguments = (ins Variadic<Exec_BufferType>:$slices, Exec_BufferType:$scale, Exec_BufferType:$count);
  let assemblyFormat = "$slices `by` $scale `into` $count attr-dict `:` qualified(type($slices)) `by` qualified(type($scale)) `into` qualified(type($count))";
  let hasVerifier = 1;
}

def Exec_RecallOp : Exec_Instruction<"recall", [AllTypesMatch<["bucket", "sum"]>]> {
  let summary = "keeps what a bucket holds after its all-reduce for all micro-batches of a step";
  let description = [{
    Stands behind the wait for a collective of phase count. In a step of several micro-batches that collective runs once,
    ahead: then the sum keeps what the bucket holds, and in every micro-batch the bucket takes it from there.
  }];
  let arguments = (ins Exec_BufferType:$bucket, Exec_BufferType:$sum, OptionalAttr<Exec_StreamAttr>:$stream);
  let assemblyFormat = "$bucket `,` $sum attr-dict `:` type($bucket)";
}

def Exec_StartOp : Exec_Instruction<"start", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "starts the all-reduce of a bucket";
  let description = [{
    The bucket holds f32; `wire`, f32 or bf16, is what the message holds. `members` are the variables whose gradients or
    statistics it carries, by symbol, or in words what else. `phase` is count if what it sums up depends on inputs alone
    and the backward pass needs it.
  }];
  let hasVerifier = 1;
  let arguments = (ins Exec_BufferType:$bucket, Exec_Number:$collective, TypeAttr:$wire, ArrayAttr:$members,
                       OptionalAttr<Exec_PhaseAttr>:$phase, OptionalAttr<Exec_StreamAttr>:$stream);
  let assemblyFormat = "$bucket attr-dict `:` type($bucket)";
}

def Exec_WaitOp : Exec_Instruction<"wait"> {
  let summary = "the all-reduce is complete from here on";
  let arguments = (ins Exec_Number:$collective, OptionalAttr<Exec_PhaseAttr>:$phase,
                       OptionalAttr<Exec_StreamAttr>:$stream);
  let assemblyFormat = "$collective attr-dict";
}

def Exec_RecordOp : Exec_Instruction<"record"> {
  let summary = "records an event on a stream";
  let arguments = (ins Exec_Number:$event, Exec_StreamAttr:$stream);
  let assemblyFormat = "$event attr-dict";
}

def Exec_WaitEventOp : Exec_Instruction<"wait_event"> {
  let summary = "a stream waits for an event";
  let arguments = (ins Exec_Number:$event, Exec_StreamAttr:$stream);
  let assemblyFormat = "$event attr-dict";
}

def Exec_CopyOp : Exec_Instruction<"copy", [AllTypesMatch<["source", "destination"]>]> {
  let summary = "copies a tensor of the same type and layout";
  let arguments = (ins Exec_BufferType:$source, Exec_BufferType:$destination, Exec_PhaseAttr:$phase,
                       OptionalAttr<Exec_StreamAttr>:$stream);
  let assemblyFormat = "$source `,` $destination attr-dict `:` type($source)";
}

def Exec_UploadOp : Exec_Instruction<"upload"> {
  let summary = "copies the host's values for this run into buffers";
  let description = [{
    Either inputs, which lie in the arena of inputs and may be copied while the run before is still under way, or
    scalars, which are variables.
  }];
  let arguments = (ins Variadic<Exec_BufferType>:$buffers, OptionalAttr<Exec_StreamAttr>:$stream);
  let assemblyFormat = "`(` $buffers `)` attr-dict `:` type($buffers)";
}

def Exec_DownloadOp : Exec_Instruction<"download"> {
  let summary = "a result of the program is final and goes to the host";
  let description = [{
    Losses and metrics are (sum, count), an output is one tensor, which the host may fetch until the next run.
  }];
  let arguments = (ins StrAttr:$result, Exec_ResultKindAttr:$kind, Variadic<Exec_BufferType>:$buffers,
                       DefaultValuedAttr<F64Attr, "1.0">:$weight,
                       OptionalAttr<Exec_StreamAttr>:$stream);
  let assemblyFormat = "$result `(` $buffers `)` attr-dict `:` type($buffers)";
  let hasVerifier = 1;
}

#endif // DLC_EXEC
