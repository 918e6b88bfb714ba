// The container, variables, programs, and the sinks of a program.

#ifndef DLC_NN_STRUCTURE_OPS
#define DLC_NN_STRUCTURE_OPS

include "dialects/NN/NNBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"

def NN_ModelOp : NN_Op<"model", [IsolatedFromAbove, Symbol, SymbolTable, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "one model: variables and programs";
  let description = [{
    The container of every stage. `stage` is nn, train, schedule or exec and says how far it has been lowered; `dlc
    compile` resumes from there. Attributes: `batch` (rows per rank), `config` (model parameters as set), `train`
    (optimizer, epochs, schedule, monitor), `data` (sources, chains, validation) and, from the schedule stage on,
    `target`.

    `train` and `data` are dictionaries; a call is the dictionary of its arguments and its `name`. Optimizers are sgd,
    adam, adamw and rmsprop (lr, momentum, nesterov, beta1, beta2, alpha, eps, weight_decay, no_decay); what is absent
    has torch.optim's default. `train = {optimizer = {name = "sgd", lr = 0.01, momentum = 0.9, nesterov = false,
    weight_decay = 0.0, no_decay = ["*.bias"]}, epochs = 20, steps_per_epoch = 0, schedule = [warm-up's call], monitor =
    {name = "iou", goal = "max"}, early_stop = its call, freeze = ["features.*"], lr_scale = [["head.*", 10.0]],
    clip_norm = 1.0, ema = 0.999}`. `freeze` has patterns of parameters without gradient, slot and update; `lr_scale`
    has patterns with a factor of the learning rate, of which the first match counts; each pattern matches some
    parameter. `clip_norm` bounds the norm of all gradients together. `ema` is the decay of an average of each trained
    parameter, a slot of it. The monitor is a metric of @eval or "loss"; its goal, "max" or "min", says which of two
    epochs is the better one. `data = {sources = [ {name = "image", axes = "NYX"} ], chains = [ {inputs = ["image"],
    steps = [flip's call], outputs = ["image"]} ], validation = 0.2}`.

    ```mlir
    nn.model @m attributes {stage = "nn", batch = 2 : i64} {
      nn.variable @w : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
      nn.program @predict(%x: tensor<3xf32> {nn.input = "x"}) {
        %w = nn.read @w : tensor<3xf32>
        %y = nn.add %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
        nn.output "y", %y : tensor<3xf32>
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$stage);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def NN_VariableOp : NN_Op<"variable", [Symbol, HasParent<"ModelOp">]> {
  let summary = "state of the model between steps";
  let description = [{
    Invariant: bitwise equal on all ranks after every step (scalars are set by the host instead). `owner` and `slot`
    name the parameter and role of an optimizer slot; one without an owner is of the step as a whole. `trainable = false`
    freezes a parameter. A variable of kind copy is its owner's value rounded to a narrower type, before and after every
    step: the runtime makes it wherever it writes the owner, a program assigns both or neither, and nothing saves it.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<NN_Tensor>:$type, NN_VariableKindAttr:$kind,
                       NN_InitializerAttr:$init, OptionalAttr<FlatSymbolRefAttr>:$owner, OptionalAttr<StrAttr>:$slot);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let hasVerifier = 1;
}

def NN_ProgramOp : NN_Op<"program", [FunctionOpInterface, IsolatedFromAbove, SingleBlock, NoTerminator,
                                     HasParent<"ModelOp">]> {
  let summary = "one step: train, eval or predict";
  let description = [{
    Arguments are the inputs of a step (`nn.input` names them). Results leave through nn.loss, nn.metric, nn.output and
    nn.assign. The attribute `formulas` lists metrics that are functions of others, {name, means, expression}: of nn.metric
    name.0 to name.(means - 1), by what these are over all rows and ranks (runtime/artifact/Formula.h).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// Name of an input (`nn.input`).
    ::llvm::StringRef getInputName(unsigned index);
    /// Sets the types of the entry block's arguments into the function type.
    void updateFunctionType();
  }];
}

def NN_ReadOp : NN_Op<"read", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "value of a variable at step start";
  let description = [{
    With `row`, only as many rows (places in the first dimension) as the type has, from there on. Those lie behind each
    other in the variable's memory. Made by dlc-split-gradients.

    ```mlir
    nn.model @m attributes {stage = "schedule"} {
      nn.variable @w : tensor<256x32xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
      nn.program @train() {
        %w = nn.read @w {row = 128} : tensor<64x32xf32>
        nn.assign @w, %w {row = 0} : tensor<64x32xf32>
      }
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, OptionalAttr<I64Attr>:$row);
  let results = (outs NN_Tensor:$value);
  let assemblyFormat = "$variable attr-dict `:` type($value)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$variable), [{
    build($_builder, $_state, type, variable, ::mlir::IntegerAttr());
  }]>];
}

def NN_AssignOp : NN_Op<"assign", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "value of a variable after the step";
  let description = [{
    At most one per variable, or per row of it (`row` as in nn.read), and program; of the variable's type including
    layout.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, NN_Tensor:$value, OptionalAttr<I64Attr>:$row);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$variable, "::mlir::Value":$value), [{
    build($_builder, $_state, variable, value, ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "$variable `,` $value attr-dict `:` type($value)";
}

def NN_GradientOp : NN_Op<"gradient", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the gradient of a parameter";
  let description = [{
    Made by dlc-differentiate, consumed by dlc-apply-optimizer. Mean over the rank's own rows until reduced.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, NN_FloatTensor:$value);
  let assemblyFormat = "$variable `,` $value attr-dict `:` type($value)";
}

def NN_LossOp : NN_Op<"loss", [NN_ReadByHost]> {
  let summary = "one term of the loss: weight * sum / count";
  let description = "Sum and count are f32 scalars of this rank's valid rows; ranks add both.";
  let arguments = (ins NN_FloatTensor:$sum, NN_FloatTensor:$count, DefaultValuedAttr<F64Attr, "1.0">:$weight);
  let assemblyFormat = "$sum `,` $count attr-dict `:` type($sum) `,` type($count)";
  let hasVerifier = 1;
}

def NN_MetricOp : NN_Op<"metric", [NN_ReadByHost]> {
  let summary = "a metric: sum / count over rows and ranks";
  let arguments = (ins StrAttr:$metric, NN_FloatTensor:$sum, NN_FloatTensor:$count);
  let assemblyFormat = "$metric `,` $sum `,` $count attr-dict `:` type($sum) `,` type($count)";
  let hasVerifier = 1;
}

def NN_OutputOp : NN_Op<"output", [NN_ReadByHost]> {
  let summary = "a result of prediction";
  let arguments = (ins StrAttr:$output, NN_Tensor:$value);
  let assemblyFormat = "$output `,` $value attr-dict `:` type($value)";
}

#endif // DLC_NN_STRUCTURE_OPS
