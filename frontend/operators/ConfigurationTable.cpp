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
};

static constexpr ArgumentSpec flipArguments[] = {
    {"axes", Text, "=all", "", "which spatial axes, letters of \"ZYX\""},
};

static constexpr CallSpec calls[] = {
    {"sgd", CallKind::Optimizer, "stochastic gradient descent", sgdArguments,
     "Source: torch.optim.SGD."},
    {"adam", CallKind::Optimizer, "Adam", adamArguments, "Source: Kingma and Ba 2015."},
    {"adamw", CallKind::Optimizer, "Adam with decoupled weight decay", adamwArguments,
     "Source: Loshchilov and Hutter 2019."},

    {"constant", CallKind::Schedule, "the learning rate as it is", {}, ""},
    {"warm_up", CallKind::Schedule, "linear rise from 0", warmUpArguments, ""},
    {"step", CallKind::Schedule, "drops at given epochs", stepArguments,
     "Source: torch.optim.lr_scheduler.MultiStepLR."},
    {"cosine", CallKind::Schedule, "half a cosine from 1 to the floor", cosineArguments,
     "Source: Loshchilov and Hutter 2017, without restarts."},
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
};

ArrayRef<SettingSpec> trainSettings() { return settings; }

} // namespace dlc::fe
