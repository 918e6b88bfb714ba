// The operators. Arguments, defaults and formulas follow torch.nn unless stated.
#include "frontend/operators/Emission.h"

using namespace llvm;

namespace dlc::fe {

#define DLC_INITIALISERS "he_normal he_uniform glorot_normal glorot_uniform zeros"
static constexpr StringLiteral initDoc =
    "start of the weight; a number is the deviation of a normal distribution";
static constexpr StringLiteral imageDoc = "tensor [N, C, spatial...], one to three spatial axes";
static constexpr StringLiteral epsDoc = "added to the variance";
static constexpr StringLiteral windowDoc = "int for all spatial axes, or a list";

static constexpr ArgumentSpec common[] = {
    {"name", Text, "=numbered", "",
     "component of the path that names the call's parameters; \"\" adds none"},
    {"reuse", Bool, "false", "",
     "whether it takes the parameters that a call made under that name"},
    {"trainable", Bool, "true", "", "whether training changes the parameters made in it"},
};

//===- Layers ---------------------------------------------------------------------------------===//

static constexpr ArgumentSpec convArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"channels", Int, "", "", "channels of the result"},
    {"kernel", Int | IntList, "", "", windowDoc},
    {"stride", Int | IntList, "1", "", windowDoc},
    {"padding", Int | IntList, "0", "valid same",
     "zeros on both sides; valid is 0, same gives ceil(input / stride) (TensorFlow's rule)"},
    {"dilation", Int | IntList, "1", "", windowDoc},
    {"groups", Int, "1", "", "independent groups of channels"},
    {"bias", Bool, "true", "", "whether a bias is added"},
    {"init", Float, "he_normal", DLC_INITIALISERS, initDoc},
};

static constexpr ArgumentSpec convTransposeArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"channels", Int, "", "", "channels of the result"},
    {"kernel", Int | IntList, "", "", windowDoc},
    {"stride", Int | IntList, "1", "", windowDoc},
    {"padding", Int | IntList, "0", "valid same",
     "taken off both sides of the result; same gives input * stride"},
    {"output_padding", Int | IntList, "0", "", "added to the end of the result, below the stride"},
    {"dilation", Int | IntList, "1", "", windowDoc},
    {"groups", Int, "1", "", "independent groups of channels"},
    {"bias", Bool, "true", "", "whether a bias is added"},
    {"init", Float, "he_normal", DLC_INITIALISERS, initDoc},
};

static constexpr ArgumentSpec denseArguments[] = {
    {"x", Tensor, "", "", "tensor [N, features]"},
    {"channels", Int, "", "", "features of the result"},
    {"bias", Bool, "true", "", "whether a bias is added"},
    {"init", Float, "he_normal", DLC_INITIALISERS, initDoc},
};

static constexpr ArgumentSpec maxPoolArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"kernel", Int | IntList, "", "", "window of at most 127 elements"},
    {"stride", Int | IntList, "=kernel", "", windowDoc},
    {"padding", Int | IntList, "0", "valid same", "on both sides; padding never wins"},
};

static constexpr ArgumentSpec avgPoolArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"kernel", Int | IntList, "", "", windowDoc},
    {"stride", Int | IntList, "=kernel", "", windowDoc},
    {"padding", Int | IntList, "0", "valid same", "zeros on both sides"},
    {"count_include_pad", Bool, "true", "", "whether padding counts as elements of a window"},
};

static constexpr ArgumentSpec upsampleArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"scale", Int | IntList, "", "", "whole factor from 1 on, one or per axis"},
    {"mode", Word, "nearest", "nearest linear",
     "repeats elements, or interpolates between their centres (in 1-D to 3-D)"},
};

static constexpr ArgumentSpec adaptivePoolArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"size", Int | IntList, "", "", "extent of the result, for all spatial axes or one per axis"},
};

static constexpr ArgumentSpec resizeArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"size", Int | IntList, "", "", "extent of the result, for all spatial axes or one per axis"},
    {"mode", Word, "nearest", "nearest linear",
     "the element that lies there, or a mixture of those around"},
};

static constexpr ArgumentSpec blurPoolArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"stride", Int | IntList, "2", "", windowDoc},
};

static constexpr ArgumentSpec batchNormArguments[] = {
    {"x", Tensor, "", "", "tensor [N, C, spatial...]"},
    {"eps", Float, "1e-5", "", epsDoc},
    {"momentum", Float, "0.1", "", "share of the new value in the running statistics"},
    {"scale", Bool, "true", "", "whether the result is scaled by a parameter (weight)"},
    {"init_scale", Float, "1.0", "", "start of that parameter"},
    {"sync", Bool, "false", "", "whether training takes mean and variance over all ranks' batches"},
};

static constexpr ArgumentSpec groupNormArguments[] = {
    {"x", Tensor, "", "", "tensor [N, C, spatial...]"},
    {"groups", Int, "", "", "equal parts of the channels, each normalised alone"},
    {"eps", Float, "1e-5", "", epsDoc},
};

static constexpr ArgumentSpec instanceNormArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"eps", Float, "1e-5", "", epsDoc},
};

static constexpr ArgumentSpec layerNormArguments[] = {
    {"x", Tensor, "", "", "tensor [N, C, spatial...]"},
    {"eps", Float, "1e-5", "", epsDoc},
};

static constexpr ArgumentSpec parameterArguments[] = {
    {"shape", IntList, "", "", "extents"},
    {"init", Float, "zeros", DLC_INITIALISERS, "start; a number fills the tensor"},
};

static constexpr StringLiteral randomShapeDoc = "extents; the first is the batch";

static constexpr ArgumentSpec uniformArguments[] = {
    {"shape", IntList, "", "", randomShapeDoc},
    {"low", Float, "0.0", "", "the least number"},
    {"high", Float, "1.0", "", "above all numbers, but for rounding"},
};

static constexpr ArgumentSpec normalArguments[] = {
    {"shape", IntList, "", "", randomShapeDoc},
    {"mean", Float, "0.0", "", "of the distribution"},
    {"std", Float, "1.0", "", "its standard deviation"},
};

static constexpr ArgumentSpec bernoulliArguments[] = {
    {"shape", IntList, "", "", randomShapeDoc},
    {"p", Float, "", "", "probability of true, 0 to 1"},
};

static constexpr ArgumentSpec dropoutArguments[] = {
    {"x", Tensor, "", "", "tensor whose first axis is the batch"},
    {"rate", Float, "0.5", "", "share of elements that become 0"},
};

//===- Functions ------------------------------------------------------------------------------===//

static constexpr ArgumentSpec pointwiseArguments[] = {
    {"x", Tensor | Float, "", "", "tensor, or a number at compile time"},
};

static constexpr ArgumentSpec leakyReluArguments[] = {
    {"x", Tensor | Float, "", "", "tensor, or a number at compile time"},
    {"slope", Float, "0.01", "", "factor of what is not positive"},
};

static constexpr ArgumentSpec clampArguments[] = {
    {"x", Tensor | Float, "", "", "tensor, or a number at compile time"},
    {"low", Float, "", "", "the smallest result"},
    {"high", Float, "", "", "the largest result"},
};

static constexpr ArgumentSpec whereArguments[] = {
    {"condition", Tensor | Bool, "", "", "bool tensor, such as x > 0.0"},
    {"a", Tensor | Float, "", "", "the result where it holds"},
    {"b", Tensor | Float, "", "", "the result elsewhere"},
};

static constexpr ArgumentSpec softmaxArguments[] = {
    {"x", Tensor, "", "", "tensor [N, C, ...]"},
};

static constexpr ArgumentSpec extremumArguments[] = {
    {"values", Anything | Rest, "", "", "numbers and tensors, or one list of them"},
};

static constexpr ArgumentSpec concatArguments[] = {
    {"inputs", Tensor | TensorList | Rest, "", "", "tensors, or one list of them"},
    {"axis", Int, "1", "", "axis along which they are joined"},
};

static constexpr ArgumentSpec flattenArguments[] = {
    {"x", Tensor, "", "", "tensor [N, ...]"},
};

static constexpr ArgumentSpec reshapeArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"shape", IntList, "", "", "extents; one may be -1"},
};

static constexpr ArgumentSpec sliceArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"axis", Int, "", "", "axis, negative from the last"},
    {"from", Int, "", "", "first element, negative from the end"},
    {"to", Int, "=end", "", "element behind the last one, negative from the end"},
    {"step", Int, "1", "", "takes every so many-th element"},
};

static constexpr ArgumentSpec transposeArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"order", IntList, "", "", "for each axis of the result, the axis of x"},
};

static constexpr ArgumentSpec padArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"pads", Anything, "", "", "pairs [low, high], one per spatial axis"},
    {"mode", Word, "zero", "zero reflect edge",
     "zeros, the image mirrored about its outermost elements, or these repeated"},
};

static constexpr ArgumentSpec pixelShuffleArguments[] = {
    {"x", Tensor, "", "", imageDoc},
    {"factor", Int, "", "", "whole factor of the spatial axes"},
};

static constexpr ArgumentSpec broadcastArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"shape", IntList, "", "", "extents, as many; axes of size 1 repeat"},
};

static constexpr ArgumentSpec reduceArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"axes", Int | IntList, "=all", "", "axes to reduce"},
    {"keep", Bool, "false", "", "whether they stay as axes of size 1"},
};

static constexpr ArgumentSpec varArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"axes", Int | IntList, "=all", "", "axes to reduce"},
    {"keep", Bool, "false", "", "whether they stay as axes of size 1"},
    {"correction", Int, "1", "", "taken off the number of elements that the sum is divided by"},
};

static constexpr ArgumentSpec argmaxArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"axis", Int, "", "", "axis along which indices count"},
};

//===- Losses and metrics ---------------------------------------------------------------------===//

static constexpr ArgumentSpec whereArgument = {
    "where", Tensor, "=everywhere", "",
    "mask of the loss's elements, axes of size 1 repeat; elements are weighted by it"};

static constexpr ArgumentSpec ignoreArgument = {"ignore", Int, "=none", "",
                                                "label of what does not count"};

static constexpr ArgumentSpec softmaxCrossEntropyArguments[] = {
    {"logits", Tensor, "", "", "tensor [N, classes, ...]"},
    {"label", Tensor, "", "",
     "i32[N, ...], 0 to classes - 1, or f32 of the shape of logits: a share of each class"},
    {"smoothing", Float, "0.0", "", "share of the target spread evenly over all classes"},
    {"weights", FloatList, "=equal", "", "weight of each class"},
    ignoreArgument,
    whereArgument,
};

static constexpr ArgumentSpec bceArguments[] = {
    {"logits", Tensor, "", "", "tensor"},
    {"target", Tensor | Float, "", "", "tensor of the same shape, 0 to 1"},
    {"pos_weight", Float, "1.0", "", "weight of positives"},
    whereArgument,
};

static constexpr ArgumentSpec focalArguments[] = {
    {"logits", Tensor, "", "", "tensor"},
    {"target", Tensor | Float, "", "", "tensor of the same shape, 0 to 1"},
    {"alpha", Float, "0.25", "",
     "weight of positives, 1 - alpha that of the others; -1: no weights"},
    {"gamma", Float, "2.0", "", "how much less counts what is nearly right; 0: as much"},
    whereArgument,
};

static constexpr ArgumentSpec diceLossArguments[] = {
    {"p", Tensor, "", "", "probabilities [N, C, spatial...]"},
    {"target", Tensor | Float, "", "", "tensor of the same shape, 0 to 1"},
    {"smooth", Float, "1.0", "", "added above and below the fraction"},
};

static constexpr ArgumentSpec distanceArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"target", Tensor | Float, "", "", "tensor of the same shape"},
    whereArgument,
};

static constexpr ArgumentSpec huberArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"target", Tensor | Float, "", "", "tensor of the same shape"},
    {"delta", Float, "1.0", "", "from this difference on the loss is linear"},
    whereArgument,
};

static constexpr ArgumentSpec accuracyArguments[] = {
    {"logits", Tensor, "", "", "tensor [N, classes, ...]"},
    {"label", Tensor, "", "", "i32[N, ...], 0 to classes - 1"},
    {"k", Int, "1", "", "a row is right if its label is among the k largest"},
    ignoreArgument,
};

static constexpr ArgumentSpec overlapArguments[] = {
    {"prediction", Tensor, "", "", "bool tensor, such as logits > 0.0, or i32 tensor of classes"},
    {"truth", Tensor, "", "", "tensor of the same shape and type"},
    {"classes", Int, "=none", "", "number of classes of i32 tensors"},
    ignoreArgument,
};

static constexpr ArgumentSpec psnrArguments[] = {
    {"x", Tensor, "", "", "tensor"},
    {"target", Tensor | Float, "", "", "tensor of the same shape"},
    {"range", Float, "", "", "distance from the least to the largest value that a target may have"},
};

//===- Numbers and lists ----------------------------------------------------------------------===//

static constexpr ArgumentSpec numberArguments[] = {
    {"x", Float | Bool, "", "", "number at compile time"},
};
static constexpr ArgumentSpec lenArguments[] = {{"x", Anything, "", "", "list or string"}};
static constexpr ArgumentSpec listArguments[] = {{"list", Anything, "", "", "list or range"}};

//===- The table ------------------------------------------------------------------------------===//

static constexpr CallKind op = CallKind::Operator;

#define DLC_RANDOM_DOC                                                                             \
  "Training draws by seed, step, name and the row's place in the batch of all ranks; evaluation "  \
  "and prediction by the row's place in all that is evaluated, so every evaluation draws the "     \
  "same."

static constexpr CallSpec operators[] = {
    {"conv", op, "convolution in 1-D to 3-D", convArguments,
     "Parameters weight [channels, C / groups, kernel...] and bias [channels]. Each spatial extent "
     "becomes (S + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down.",
     emitConv},
    {"conv_transpose", op, "transposed convolution in 1-D to 3-D", convTransposeArguments,
     "Parameters weight [C, channels / groups, kernel...] and bias [channels]. Each spatial extent "
     "becomes (S - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.",
     emitConvTranspose},
    {"dense", op, "fully connected layer", denseArguments,
     "Parameters weight [channels, features] and bias [channels].", emitDense},
    {"max_pool", op, "maximum over windows", maxPoolArguments, "", emitMaxPool},
    {"avg_pool", op, "mean over windows", avgPoolArguments, "Source: torch.nn.AvgPool2d.",
     emitAvgPool},
    {"upsample", op, "images enlarged by whole factors", upsampleArguments,
     "Linear interpolation has half-pixel centres (align_corners = false in torch.nn.Upsample) and "
     "repeats the outermost elements beyond them.",
     emitUpsample},
    {"adaptive_avg_pool", op, "mean over as many parts as wanted", adaptivePoolArguments,
     "Part i of n of an axis of S elements is [floor(i S / n), ceil((i + 1) S / n)). Source: "
     "torch.nn.AdaptiveAvgPool2d.",
     emitAdaptiveAvgPool},
    {"resize", op, "images of another size", resizeArguments,
     "Element i comes from floor(i S / size), or with linear from around (i + 1/2) S / size - 1/2; "
     "beyond the outermost elements these repeat, and nothing is averaged where an image becomes "
     "smaller. Source: torch.nn.functional.interpolate (align_corners = false).",
     emitResize},
    {"blur_pool", op, "low-pass filter and every other element", blurPoolArguments,
     "[1 2 1] / 4 along each spatial axis, zeros outside as padding = same has them (at stride 2 "
     "one behind an even extent, one on both sides of an odd one); each extent becomes ceil(S / "
     "stride). "
     "Source: Zhang 2019.",
     emitBlurPool},
    {"batch_norm", op, "normalisation per channel", batchNormArguments,
     "Parameters weight and bias, states running_mean and running_var, all [C]. Training uses the "
     "statistics of the rank's own batch and updates the running ones (variance over n - 1, mean "
     "over ranks); evaluation uses the running ones. With sync, N ranks train as one rank with "
     "the whole batch would, at the price of two small messages a layer that compute waits for, "
     "and not with --accumulate. Sources: Ioffe and Szegedy 2015, torch.nn.SyncBatchNorm.",
     emitBatchNorm},
    {"group_norm", op, "normalisation of groups of channels, sample by sample", groupNormArguments,
     "Parameters weight and bias, both [C]. Mean and variance (over n) are those of a sample, in "
     "training and evaluation alike. Sources: Wu and He 2018, torch.nn.GroupNorm.",
     emitGroupNorm},
    {"instance_norm", op, "normalisation of each channel of each sample", instanceNormArguments,
     "Parameters weight and bias, both [C]. As group_norm with as many groups as channels. "
     "Sources: "
     "Ulyanov et al. 2016, torch.nn.InstanceNorm2d with affine = true.",
     emitInstanceNorm},
    {"layer_norm", op, "normalisation of each sample", layerNormArguments,
     "Parameters weight and bias of a sample's shape [C, spatial...]. As group_norm with one "
     "group, "
     "but for the parameters. Sources: Ba et al. 2016, torch.nn.LayerNorm over all axes but N.",
     emitLayerNorm},
    {"dropout", op, "zeroes a random share while training", dropoutArguments,
     "What is kept is divided by 1 - rate. Source: Srivastava et al. 2014.", emitDropout},
    {"parameter", op, "a trained tensor", parameterArguments,
     "Named by its path, so by name = \"...\" in a function that was called under a name.",
     emitParameter},
    {"uniform", op, "random numbers, all equally likely", uniformArguments, DLC_RANDOM_DOC,
     emitUniform},
    {"normal", op, "random numbers of a normal distribution", normalArguments,
     DLC_RANDOM_DOC " Numbers lie within 5.42 std of the mean.", emitNormal},
    {"bernoulli", op, "bool tensor, true with a probability", bernoulliArguments, DLC_RANDOM_DOC,
     emitBernoulli},

    {"relu", op, "max(x, 0)", pointwiseArguments, "", emitRelu},
    {"sigmoid", op, "1 / (1 + e^-x)", pointwiseArguments, "", emitSigmoid},
    {"tanh", op, "hyperbolic tangent", pointwiseArguments, "", emitTanh},
    {"silu", op, "x sigmoid(x)", pointwiseArguments, "Source: torch.nn.SiLU.", emitSilu},
    {"gelu", op, "x times the share of a normal distribution below x", pointwiseArguments,
     "x / 2 (1 + erf(x / sqrt(2))). Source: torch.nn.GELU.", emitGelu},
    {"leaky_relu", op, "x where it is positive, else slope x", leakyReluArguments,
     "Source: torch.nn.LeakyReLU.", emitLeakyRelu},
    {"elu", op, "x where it is positive, else e^x - 1", pointwiseArguments,
     "Source: torch.nn.ELU with alpha = 1.", emitElu},
    {"softplus", op, "log(1 + e^x)", pointwiseArguments, "Source: torch.nn.Softplus.",
     emitSoftplus},
    {"hardswish", op, "x min(max(x + 3, 0), 6) / 6", pointwiseArguments,
     "Source: torch.nn.Hardswish.", emitHardswish},
    {"exp", op, "e^x", pointwiseArguments, "", emitExp},
    {"log", op, "natural logarithm", pointwiseArguments, "", emitLog},
    {"log10", op, "logarithm to base 10", pointwiseArguments, "", emitLog10},
    {"sqrt", op, "square root", pointwiseArguments, "", emitSqrt},
    {"abs", op, "absolute value", pointwiseArguments, "", emitAbs},
    {"max", op, "the largest, elementwise", extremumArguments, "", emitMax},
    {"min", op, "the smallest, elementwise", extremumArguments, "", emitMin},
    {"clamp", op, "x, but no less than low and no more than high", clampArguments,
     "The gradient passes where low <= x <= high.", emitClamp},
    {"where", op, "a where a condition holds, else b", whereArguments,
     "All three are repeated along axes of size 1. What is not chosen has gradient 0; as in torch, "
     "a function whose own derivative is infinite there still makes NaN of it: write "
     "where(x > 0, log(max(x, 1e-6)), 0.0).",
     emitWhere},
    {"stop_gradient", op, "x, which differentiation takes for a constant", pointwiseArguments, "",
     emitStopGradient},
    {"softmax", op, "e^x, scaled to a sum of 1 along axis 1", softmaxArguments, "", emitSoftmax},
    {"log_softmax", op, "logarithm of softmax(x), without its overflow", softmaxArguments, "",
     emitLogSoftmax},

    {"concat", op, "joins tensors", concatArguments, "", emitConcat},
    {"flatten", op, "[N, ...] to [N, features]", flattenArguments, "", emitFlatten},
    {"reshape", op, "same elements in another shape", reshapeArguments, "", emitReshape},
    {"slice", op, "a part of a tensor", sliceArguments,
     "Elements from, from + step, ... below to, as x[from:to:step] of that axis.", emitSlice},
    {"transpose", op, "axes in another order", transposeArguments, "Source: torch.permute.",
     emitTranspose},
    {"pad", op, "a larger image around an image", padArguments,
     "Only mode = zero lets larger images be predicted by tiles: reflect and edge would take a "
     "tile's edge for the image's. With them compile for the images' own size (--set "
     "predict.size=N, where the model has a size), or let conv pad by zeros. Source: "
     "torch.nn.functional.pad (constant, reflect, replicate).",
     emitPad},
    {"pixel_shuffle", op, "channels as pixels of a larger image", pixelShuffleArguments,
     "[N, C factor^d, S...] to [N, C, factor S...] for d spatial axes. Source: Shi et al. 2016; "
     "torch.nn.PixelShuffle.",
     emitPixelShuffle},
    {"broadcast", op, "repeats axes of size 1", broadcastArguments, "", emitBroadcast},
    {"sum", op, "sum over axes", reduceArguments, "", emitSum},
    {"mean", op, "mean over axes", reduceArguments,
     "The mean of everything can be a loss or a metric; it is then taken over all rows of all "
     "ranks.",
     emitMean},
    {"amax", op, "maximum over axes", reduceArguments, "Equal elements share the gradient.",
     emitAmax},
    {"var", op, "variance over axes", varArguments,
     "The sum of squared deviations from the mean, divided by the number of elements less "
     "correction. Source: torch.var.",
     emitVar},
    {"argmax", op, "index of the maximum along an axis, as i32", argmaxArguments,
     "Of equal elements the first; one that is NaN counts as the largest. It has no gradient.",
     emitArgmax},

    {"softmax_cross_entropy", op, "cross entropy of softmax(logits) and a class",
     softmaxCrossEntropyArguments,
     "A loss: the mean over rows, each weighted as its class is. Shares of classes count once "
     "each, "
     "whatever the weights. Source: torch.nn.CrossEntropyLoss.",
     emitSoftmaxCrossEntropy, Better::Lower},
    {"bce_with_logits", op, "binary cross entropy of sigmoid(logits) and a target", bceArguments,
     "A loss: the mean over elements. Source: torch.nn.BCEWithLogitsLoss.", emitBceWithLogits,
     Better::Lower},
    {"focal_with_logits", op, "binary cross entropy that counts what is wrong the most",
     focalArguments,
     "A loss: the mean over elements of (1 - p)^gamma times the cross entropy, p the probability "
     "of the target. Source: Lin et al. 2017, torchvision.ops.sigmoid_focal_loss.",
     emitFocalWithLogits, Better::Lower},
    {"dice_loss", op, "1 - the overlap of probabilities and a target", diceLossArguments,
     "A loss: the mean over samples and channels of 1 - (2 sum(p t) + smooth) / (sum(p) + sum(t) + "
     "smooth), sums over the spatial axes. Multiply both by a mask to leave elements out.",
     emitDiceLoss, Better::Lower},
    {"mse", op, "mean squared difference", distanceArguments,
     "A loss: the sum over the mask divided by the mask's sum.", emitMse, Better::Lower},
    {"mae", op, "mean absolute difference", distanceArguments,
     "A loss: the sum over the mask divided by the mask's sum.", emitMae, Better::Lower},
    {"huber", op, "squared difference, linear from delta on", huberArguments,
     "A loss: the mean of d^2 / 2 where |d| < delta, else of delta (|d| - delta / 2). Source: "
     "torch.nn.HuberLoss.",
     emitHuber, Better::Lower},
    {"accuracy", op, "share of rows whose class is right", accuracyArguments,
     "A metric. Of equal logits the first counts as the largest.", emitAccuracy, Better::Higher},
    {"iou", op, "intersection over union", overlapArguments,
     "A metric: pooled over the whole evaluation and all ranks. With `classes` NAME is the mean "
     "over the classes that occur and are not ignored, NAME.0 and so on that of each.",
     emitIou, Better::Higher},
    {"dice", op, "twice the intersection over the sum of both", overlapArguments,
     "A metric: pooled over the whole evaluation and all ranks. With `classes` NAME is the mean "
     "over the classes that occur and are not ignored, NAME.0 and so on that of each.",
     emitDice, Better::Higher},
    {"psnr", op, "peak signal-to-noise ratio in dB", psnrArguments,
     "A metric: 10 log10(range^2 / mse), of the mse over the whole evaluation and all ranks, which "
     "is NAME.0.",
     emitPsnr, Better::Higher},

    {"int", op, "a number without its digits behind the point", numberArguments, "", emitInt},
    {"round", op, "the nearest int", numberArguments,
     "Of two as near the even one, as in Python: round(2.5) is 2.", emitRound},
    {"floor", op, "the largest int that is not above a number", numberArguments, "", emitFloor},
    {"len", op, "number of values of a list", lenArguments, "", emitLen},
    {"enumerate", op, "pairs [index, value] of a list", listArguments, "", emitEnumerate},
    {"reversed", op, "a list from its end", listArguments, "", emitReversed},
};

ArrayRef<CallSpec> operatorTable() { return operators; }

ArrayRef<ArgumentSpec> commonArguments() { return common; }

bool isCommonArgument(StringRef name) {
  return any_of(common, [&](const ArgumentSpec &argument) { return argument.name == name; });
}

} // namespace dlc::fe
