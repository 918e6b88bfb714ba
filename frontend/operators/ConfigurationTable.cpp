// What the blocks data and train can call. Arguments and formulas of optimizers follow torch.optim.
#include "frontend/operators/Operators.h"

using namespace llvm;

namespace dlc::fe {

static constexpr ArgumentSpec sgdArguments[] = {
    {"lr", Float, "0.01", "", "learning rate"},
    {"momentum", Float, "0.0", "", "share of the previous update"},
    {"nesterov", Bool, "false", "", "whether the momentum looks ahead"},
    {"weight_decay", Float, "0.0", "", "added to the gradient, times the parameter"},
    {"no_decay", TextList, "[]", "", "patterns of parameters without decay, such as \"*.bias\""},
};

static constexpr ArgumentSpec adamArguments[] = {
    {"lr", Float, "1e-3", "", "learning rate"},
    {"beta1", Float, "0.9", "", "decay of the mean of gradients"},
    {"beta2", Float, "0.999", "", "decay of the mean of squared gradients"},
    {"eps", Float, "1e-8", "", "added to the root of the latter"},
    {"weight_decay", Float, "0.0", "", "added to the gradient, times the parameter"},
    {"no_decay", TextList, "[]", "", "patterns of parameters without decay, such as \"*.bias\""},
};

static constexpr ArgumentSpec adamwArguments[] = {
    {"lr", Float, "1e-3", "", "learning rate"},
    {"beta1", Float, "0.9", "", "decay of the mean of gradients"},
    {"beta2", Float, "0.999", "", "decay of the mean of squared gradients"},
    {"eps", Float, "1e-8", "", "added to the root of the latter"},
    {"weight_decay", Float, "0.01", "", "share of the parameter taken off a step, times lr"},
    {"no_decay", TextList, "[]", "", "patterns of parameters without decay, such as \"*.bias\""},
};

static constexpr ArgumentSpec rmspropArguments[] = {
    {"lr", Float, "0.01", "", "learning rate"},
    {"alpha", Float, "0.99", "", "decay of the mean of squared gradients"},
    {"eps", Float, "1e-8", "", "added to its root"},
    {"momentum", Float, "0.0", "", "share of the previous update"},
    {"weight_decay", Float, "0.0", "", "added to the gradient, times the parameter"},
    {"no_decay", TextList, "[]", "", "patterns of parameters without decay, such as \"*.bias\""},
};

static constexpr ArgumentSpec warmUpArguments[] = {
    {"epochs", Float, "1", "", "epochs over which the factor rises linearly to 1"},
};

static constexpr ArgumentSpec stepArguments[] = {
    {"at", Float | FloatList, "", "", "epochs at which the learning rate drops"},
    {"factor", Float, "0.1", "", "what it is multiplied by each time"},
};

static constexpr ArgumentSpec cosineArguments[] = {
    {"floor", Float, "0.0", "", "factor at the end of the run"},
};

static constexpr ArgumentSpec exponentialArguments[] = {
    {"gamma", Float, "", "", "what the learning rate is multiplied by after each epoch"},
};

static constexpr ArgumentSpec polyArguments[] = {
    {"power", Float, "1.0", "", "power of the share of the run that is left; 1: a straight line"},
};

static constexpr ArgumentSpec earlyStopArguments[] = {
    {"patience", Int, "", "", "epochs without a better monitor until the run ends"},
};

static constexpr ArgumentSpec plateauArguments[] = {
    {"factor", Float, "0.1", "", "what the learning rate is multiplied by"},
    {"patience", Int, "10", "", "epochs without a better monitor before that"},
};

static constexpr ArgumentSpec normalizeArguments[] = {
    {"mean", Float | FloatList, "dataset", "dataset per_image",
     "subtracted, in the stored units, per channel if a list; dataset: mean and deviation per "
     "channel over the training part; per_image: (x - mean) / (std + 1e-6) per sample"},
    {"std", Float | FloatList, "=none", "", "divided by, where mean is given in numbers"},
    {"percentile", FloatList, "=none", "",
     "[p, q], instead of a mean: (x - P) / (Q - P + 1e-6), P and Q percentiles of the sample"},
};

static constexpr ArgumentSpec flipArguments[] = {
    {"axes", Text, "=all", "", "which spatial axes, letters of \"ZYX\""},
};

static constexpr ArgumentSpec sizeArguments[] = {
    {"size", Int | IntList, "", "", "extent of all spatial axes, or a list of one for each"},
};

static constexpr ArgumentSpec randomCropArguments[] = {
    {"size", Int | IntList, "", "", "extent of all spatial axes, or a list of one for each"},
    {"padding", Int, "0", "", "zeros on every side of the image before that"},
};

static constexpr ArgumentSpec randomResizedCropArguments[] = {
    {"size", Int | IntList, "", "", "extent of both spatial axes, or [height, width]"},
    {"scale", FloatList, "[0.08, 1]", "", "bounds of the share of the area"},
    {"ratio", FloatList, "[0.75, 1.33]", "", "bounds of width to height"},
};

static constexpr ArgumentSpec brightnessArguments[] = {
    {"delta", Float, "", "", "what is added at most, and subtracted at most"},
};

static constexpr ArgumentSpec contrastArguments[] = {
    {"low", Float, "", "", "smallest factor"},
    {"high", Float, "", "", "largest factor"},
};

static constexpr ArgumentSpec gammaArguments[] = {
    {"low", Float, "", "", "smallest exponent"},
    {"high", Float, "", "", "largest exponent"},
};

static constexpr ArgumentSpec noiseArguments[] = {
    {"std", Float, "", "", "standard deviation, in the units that the sample then has"},
};

static constexpr ArgumentSpec oneHotArguments[] = {
    {"classes", Int, "", "", "number of classes, and of channels"},
};

static constexpr ArgumentSpec blindSpotArguments[] = {
    {"percent", Float, "0.198", "", "share of the pixels that become spots"},
    {"radius", Int, "5", "", "how far a neighbour may be along each axis"},
    {"replace", Word, "uniform_with_center", "uniform_with_center uniform normal mean median",
     "what replaces a spot: a random neighbour, the spot's own pixel among them or not; the pixel "
     "with noise added; the mean or the median of the neighbours"},
    {"sigma", Float, "1.0", "", "standard deviation of the noise of replace = normal"},
    {"struct", Word | IntList, "=none", "none",
     "structN2V: a list of 0 and 1 around the spot along an axis; where it is 1, pixels become "
     "uniform in [-2, 2)"},
    {"axis", Text, "X", "", "the axis of struct: \"X\", \"Y\" or \"Z\""},
    {"box", Word, "exact", "exact compat",
     "edge of the box that holds one spot: (100 / percent)^(1 / axes) pixels; compat: the square "
     "root, rounded, in volumes, too, as Noise2Void's own validation data"},
};

static constexpr ArgumentSpec denormalizeArguments[] = {
    {"source", Text, "", "", "the source whose normalize is undone"},
};

static constexpr CallSpec calls[] = {
    {"sgd", CallKind::Optimizer, "stochastic gradient descent", sgdArguments,
     "Source: torch.optim.SGD."},
    {"adam", CallKind::Optimizer, "Adam", adamArguments, "Source: Kingma and Ba 2015."},
    {"adamw", CallKind::Optimizer, "Adam with decoupled weight decay", adamwArguments,
     "Source: Loshchilov and Hutter 2019."},
    {"rmsprop", CallKind::Optimizer, "gradients over the root of their mean square",
     rmspropArguments, "Source: torch.optim.RMSprop, not centered."},

    {"constant", CallKind::Schedule, "the learning rate as it is", {}, ""},
    {"warm_up", CallKind::Schedule, "linear rise from 0", warmUpArguments, ""},
    {"step", CallKind::Schedule, "drops at given epochs", stepArguments,
     "Source: torch.optim.lr_scheduler.MultiStepLR."},
    {"cosine", CallKind::Schedule, "half a cosine from 1 to the floor", cosineArguments,
     "Source: Loshchilov and Hutter 2017, without restarts."},
    {"exponential", CallKind::Schedule, "the same factor after every epoch", exponentialArguments,
     "Source: torch.optim.lr_scheduler.ExponentialLR."},
    {"poly", CallKind::Schedule, "a power of the share of the run that is left", polyArguments,
     "Source: torch.optim.lr_scheduler.PolynomialLR, by steps to the run's end."},
    {"reduce_on_plateau", CallKind::Schedule, "smaller once the monitor stalls", plateauArguments,
     "Source: torch.optim.lr_scheduler.ReduceLROnPlateau."},

    {"early_stop", CallKind::EarlyStop, "ends a run whose monitor stalls", earlyStopArguments, ""},

    {"normalize", CallKind::DataStep, "zero mean and unit deviation", normalizeArguments, ""},
    {"flip", CallKind::DataStep, "mirrors each spatial axis with probability 1/2", flipArguments,
     "Augmentation: left out of evaluation."},
    {"rotate90",
     CallKind::DataStep,
     "a random quarter turn of the last two axes",
     {},
     "Augmentation: left out of evaluation."},
    {"crop", CallKind::DataStep, "the centre of an image", sizeArguments, ""},
    {"random_crop", CallKind::DataStep, "a part of an image, at a random place",
     randomCropArguments, "Evaluation takes the centre, prediction by tiles the whole image."},
    {"random_resized_crop", CallKind::DataStep, "a part of random area, ratio and place, resized",
     randomResizedCropArguments,
     "Evaluation resizes the image, prediction by tiles takes it as it is. Source: torchvision's "
     "RandomResizedCrop."},
    {"patches", CallKind::DataStep, "parts of volumes, or of images, as samples", sizeArguments,
     "Training takes random places: floor(volume / patch) samples of each volume are an epoch, "
     "unless steps_per_epoch says otherwise. Evaluation takes the patches of a grid, prediction "
     "the whole. validation = f keeps the last share of each volume apart, at least one patch, "
     "along "
     "the axis that has room for the most. A patch is all that is read of a file: only normalize "
     "(by numbers or by dataset) and one_hot "
     "may stand before it."},
    {"resize", CallKind::DataStep, "images of another size", sizeArguments,
     "Linear with half-pixel centres and without antialiasing; inputs of integers and inputs whose "
     "range a loss knows (masks, weights) take the nearest element."},
    {"resize_pad", CallKind::DataStep, "images resized at their ratio, centred in zeros",
     sizeArguments, "Interpolates as resize does."},
    {"brightness", CallKind::DataStep, "adds a draw of [-delta, delta]", brightnessArguments,
     "Augmentation: left out of evaluation. Leaves classes and masks as they are."},
    {"contrast", CallKind::DataStep, "scales the distance from the sample's mean",
     contrastArguments,
     "Augmentation: left out of evaluation. Leaves classes and masks as they are."},
    {"gamma", CallKind::DataStep, "raises a sample, scaled to [0, 1] and back, to a drawn power",
     gammaArguments, "Augmentation: left out of evaluation. Leaves classes and masks as they are."},
    {"noise", CallKind::DataStep, "adds normal noise to each element", noiseArguments,
     "Augmentation: left out of evaluation. Leaves classes and masks as they are."},
    {"blind_spot", CallKind::DataStep, "Noise2Void: an image, its target and the mask of spots",
     blindSpotArguments,
     "The chain ends in three inputs: volume -> ... -> blind_spot() -> image, target, mask. One "
     "pixel of each box, drawn anew for every sample in training, is replaced in the image and 1 "
     "in the mask; in evaluation spots are the same each time, in predictions there are none. "
     "What struct hides lies along an axis of the file if rotate90 stands behind this step. "
     "Source: Krull et al. 2019; structN2V: Broaddus et al. 2020."},
    {"denormalize", CallKind::DataStep, "an output in the units of a source", denormalizeArguments,
     "Stands alone in a chain of an output: denoised -> denormalize(volume) -> denoised. It "
     "changes "
     "what dlc-run predict writes."},
    {"one_hot", CallKind::DataStep, "classes 0 to n - 1 as n channels of 0 and 1", oneHotArguments,
     ""},
};

ArrayRef<CallSpec> configurationTable() { return calls; }

static constexpr SettingSpec settings[] = {
    {"optimizer", "OPTIMIZER(...)", "what updates the parameters; adam() if not given"},
    {"epochs", "INT", "length of the run; 10 if not given"},
    {"steps_per_epoch", "INT", "0, one pass over the data, if not given"},
    {"schedule", "[SCHEDULE(...), ...]", "factors of the learning rate, multiplied"},
    {"early_stop", "early_stop(...)", "when the run ends early"},
    {"monitor", "max(NAME) | min(NAME) | NAME",
     "metric or loss that best checkpoint, plateau and early stop watch, kept high or low; a bare "
     "NAME where the direction is known; loss if not given"},
    {"freeze", "[PATTERN, ...]",
     "parameters that training leaves as they are, such as \"features.*\"; none if not given"},
    {"lr_scale", "[[PATTERN, FACTOR], ...]",
     "factors of the learning rate of some parameters; the first pattern that matches counts"},
    {"clip_norm", "FLOAT",
     "largest norm of all gradients together, as torch.nn.utils.clip_grad_norm_ has it; none if "
     "not given"},
    {"ema", "FLOAT",
     "decay of an average of the parameters over steps, with which eval, best, --save and predict "
     "work; none if not given"},
};

ArrayRef<SettingSpec> trainSettings() { return settings; }

} // namespace dlc::fe
