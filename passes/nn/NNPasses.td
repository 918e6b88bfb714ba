// Passes of the stage that ends at `--emit=nn`, in pipeline order.

#ifndef DLC_NN_PASSES
#define DLC_NN_PASSES

include "mlir/Pass/PassBase.td"

def DerivePrograms : Pass<"dlc-derive-programs", "::dlc::nn::ModelOp"> {
  let summary = "completes @eval and @predict, sets modes, prunes";
  let description = [{
    Precondition: stage nn. Effect: a model with @train alone gets @eval, its copy whose losses and metrics count only
    the rows below `valid_rows`, and, if it has nn.output, @predict. Outputs leave the other programs. In eval and
    predict batch_norm uses the running statistics and dropout is the identity. Ops, inputs and variables (but state)
    that nothing uses disappear.

    A per-row value is what the last nn.reduce_sum over the rows reads; a constant count means so many per row:
    ```mlir
    %s = nn.reduce_sum %loss {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    // in @eval, with %valid [4] true below valid_rows:
    %l = nn.select %valid, %loss, %zero : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = nn.reduce_sum %l {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    ```
  }];
}

def Simplify : Pass<"dlc-simplify", "::dlc::nn::ModelOp"> {
  let summary = "folds constants, merges casts and data movements, drops what has no effect";
  let description = [{
    Effect: folders of the dialect, splat arithmetic, pairs of cast, broadcast, reshape and transpose, ops that are the
    identity, equal subexpressions, dead code. No rewrite changes a rounding.
  }];
}

def CombineEqual : Pass<"dlc-combine-equal", "::dlc::nn::ModelOp"> {
  let summary = "leaves the first of equal ops";
  let description = [{
    Effect: common subexpressions and dead code are gone. Roles are no difference: the first op keeps its own.
  }];
}

def PlanTiling : Pass<"dlc-plan-tiling", "::dlc::nn::ModelOp"> {
  let summary = "says how images larger than @predict's input are put together";
  let description = [{
    Precondition: stage nn, programs derived. Effect: if every output element of @predict depends on a window of the
    input alone, the model gets `tiling`, per spatial dimension: tiles start at multiples of `alignment`, the total
    stride; what lies `overlap` pixels (the receptive field's reach, rounded up to the alignment) off an edge inside the
    image is exact. `parameters` names the model's parameters that set a tile's extents, where they are known. Else the
    model gets `untiled`, a text that names the op that prevents it, also as a remark (dlc-tiling).

    ```mlir
    // one 3 x 3 convolution between a max_pool and a conv_transpose of stride 2
    tiling = {alignment = array<i64: 2, 2>, overlap = array<i64: 4, 4>}
    // a sum over all pixels
    untiled = "gate.dl:12:9: gate reads the whole image along axis 2"
    ```
  }];
}

def TileEvaluation : Pass<"dlc-tile-evaluation", "::dlc::nn::ModelOp"> {
  let summary = "lets @eval count the pixels of a tile that are exact";
  let description = [{
    Precondition: stage nn, programs derived. Effect: if every loss and metric of @eval is linear in sums over all pixels
    of values that depend on a window of the input alone, these sums leave out the first `skip_low_D` and the last
    `skip_high_D` pixels of spatial dimension D, scalars that the host writes, 0 by default; constant counts shrink in
    proportion. The model gets `eval_tiling`: alignment and overlap as in `tiling`. Else @eval stays as it is. A model
    that has `eval_tiling` stays, too.

    ```mlir
    %s = nn.reduce_sum %x {dims = array<i64: 0, 1, 2>} : (tensor<4x1x8xf32>) -> tensor<f32>
    // becomes, with %counted [4x1x8] true from %skip_low_0 up to 8 - %skip_high_0
    %y = nn.select %counted, %x, %zero : (tensor<4x1x8xi1>, tensor<4x1x8xf32>, tensor<4x1x8xf32>) -> tensor<4x1x8xf32>
    %s = nn.reduce_sum %y {dims = array<i64: 0, 1, 2>} : (tensor<4x1x8xf32>) -> tensor<f32>
    ```
  }];
}

def MixedPrecision : Pass<"dlc-mixed-precision", "::dlc::nn::ModelOp"> {
  let summary = "stores activations in 16 bits where convolutions and products read them";
  let description = [{
    Precondition: stage nn, programs derived. Effect with `precision=bf16` or f16 (f32: none): convolutions and matrix
    products read and write that type, and so do the ops between them that only select or move elements (relu, pooling,
    concat, slice, pad, reshape, transpose, broadcast); nn.cast stands where f32 begins and ends. A value that is rounded
    for one of its users is read rounded by all, inputs, variables and constants excepted. Biases, normalisation, losses,
    metrics and variables stay f32. The model gets `precision`.

    ```mlir
    %y = nn.conv %x, %w, %b ... : (tensor<4x3x8x8xf32>, tensor<16x3x3x3xf32>, tensor<16xf32>) -> tensor<4x16x8x8xf32>
    %z = nn.tanh %y : (tensor<4x16x8x8xf32>) -> tensor<4x16x8x8xf32>
    // becomes
    %x16 = nn.cast %x : (tensor<4x3x8x8xf32>) -> tensor<4x3x8x8xbf16>
    %w16 = nn.cast %w : (tensor<16x3x3x3xf32>) -> tensor<16x3x3x3xbf16>
    %y16 = nn.conv %x16, %w16, %b ... : (tensor<4x3x8x8xbf16>, tensor<16x3x3x3xbf16>, tensor<16xf32>) -> tensor<4x16x8x8xbf16>
    %y = nn.cast %y16 : (tensor<4x16x8x8xbf16>) -> tensor<4x16x8x8xf32>
    %z = nn.tanh %y : (tensor<4x16x8x8xf32>) -> tensor<4x16x8x8xf32>
    ```
  }];
  let options = [Option<"precision", "precision", "std::string", "\"f32\"", "f32, bf16 or f16">];
}

def StoreInputs : Pass<"dlc-store-inputs", "::dlc::nn::ModelOp"> {
  let summary = "takes inputs as the files of their sources hold them";
  let description = [{
    Precondition: stage nn, programs derived. Effect with `sources=image=u8,mask=u8` (empty: none): f32 inputs of @train
    and @eval that the data block makes of these sources without computing become ui8 or ui16. What normalize would
    compute, if it is the last step that does, the program computes of two more inputs, [rows, channels]; bits are those
    of the host. Others stay, with a warning. The model gets `sources`.

    ```mlir
    // image -> normalize(per_image) -> flip -> image
    nn.program @train(%x: tensor<4x3x8x8xf32> {nn.input = "image"})
    // becomes
    nn.program @train(%x: tensor<4x3x8x8xui8> {nn.input = "image"}, %shift: tensor<4x3xf32> {nn.input = "image.shift"},
                      %scale: tensor<4x3xf32> {nn.input = "image.scale"})
    %0 = nn.cast %x : (tensor<4x3x8x8xui8>) -> tensor<4x3x8x8xf32>
    %1 = nn.broadcast %shift {dims = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<4x3x8x8xf32>
    %2 = nn.sub %0, %1 : (tensor<4x3x8x8xf32>, tensor<4x3x8x8xf32>) -> tensor<4x3x8x8xf32>
    %3 = nn.broadcast %scale {dims = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<4x3x8x8xf32>
    %4 = nn.mul %2, %3 : (tensor<4x3x8x8xf32>, tensor<4x3x8x8xf32>) -> tensor<4x3x8x8xf32>
    ```
  }];
  let options = [Option<"sources", "sources", "std::string", "\"\"", "NAME=u8|u16, divided by commas">];
}

def VerifyNN : Pass<"dlc-verify-nn", "::mlir::ModuleOp"> {
  let summary = "checks a model at the beginning or the end of stage nn (read-only)";
  let description = [{
    1. There is exactly one model, of stage nn, and it has a program. 2. `batch` is positive and the extent of dimension
    0 of all inputs of train and eval. 3. An input has one type in train and eval, and one rank and element type in all
    programs. 4. Programs hold nn ops only, and none of later stages. 5. Scalars have the well-known names and types,
    which nothing else has; nothing assigns to them. 6. train has a loss; only train assigns, only predict has outputs
    (as written, train has them for a prediction that is still to be derived), and predict has nothing else. 7. The
    model's attributes have the entries and types with which they are read.
  }];
  let options = [Option<"written", "written", "bool", "false", "before dlc-derive-programs">];
}

#endif // DLC_NN_PASSES
