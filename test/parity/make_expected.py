"""Trains the cases (cases.py) in PyTorch, in f64, and keeps losses and sketches of how variables changed in expected/.

Ranks are those of DistributedDataParallel: each has its rows and its own batch statistics; gradients are those of the loss
over all rows, running statistics the mean over ranks, taken after each step. PyTorch and numpy come from bench/peers.

    build/peers/bin/python test/parity/make_expected.py [CASE...]
"""
import argparse
import sys

import numpy as np
import torch
import torchvision
from torch.nn import functional as F

import groups
from cases import CASES, EXPECTED, ROOT, STEPS, drawn_variables, sketch

sys.path.insert(0, str(ROOT / "bench"))
import torch_cases  # noqa: E402
from torch_models import Denoiser, MnistCnn, UNet, Vgg16, masked_error  # noqa: E402


def typed(sets):
    """Values of sets as a module's arguments, less what only the .dl takes."""
    known = {"true": True, "false": False}
    return {key: known.get(value, value) for key, value in sets.items() if key not in ("size", "patch")}


def classes_loss(smoothing=0.0):
    return lambda logits, batch: F.cross_entropy(logits, batch["label"].long(), label_smoothing=smoothing)


def unet(case):
    arguments = typed(case.sets)
    arguments["norm"] = arguments.get("norm") != "none"

    def loss(logits, batch):
        if arguments["classes"] > 1:
            return F.cross_entropy(logits, batch["mask"].long())
        return F.binary_cross_entropy_with_logits(logits, batch["mask"])
    return UNet(axes=len(case.inputs["image"][1]) - 1, **arguments), loss


def denoiser(case):
    arguments = typed(case.sets)
    error = arguments.pop("error", "mse")
    return (Denoiser(axes=len(case.inputs["image"][1]) - 1, **arguments),
            lambda x, batch: masked_error(error, x, batch["target"], batch["mask"]))


def numbers(text):
    return list(map(int, text.split(",")))


def mobilenet(case):
    stages = zip(*(numbers(case.sets[key]) for key in ("widths", "counts", "strides")))
    setting = [[1 if i == 0 else 6, width, count, stride] for i, (width, count, stride) in enumerate(stages)]
    return torchvision.models.MobileNetV2(case.sets["classes"], inverted_residual_setting=setting, dropout=0.0), classes_loss()


def densenet(case):
    sets = case.sets
    return torchvision.models.DenseNet(sets["growth"], tuple(numbers(sets["blocks"])), sets["start"], num_classes=sets["classes"]), classes_loss()


def inception(case):
    return torchvision.models.Inception3(case.sets["classes"], aux_logits=False, init_weights=False, dropout=0.0), classes_loss(0.1)


def residual(case):
    return getattr(torchvision.models, case.name)(num_classes=case.sets["classes"]), classes_loss(0.1)


def whole(module):
    """A group whose module gives the loss of the batch of all ranks."""
    return lambda case: (module(), None)


def sharing(case):
    return groups.Sharing(), lambda y, batch: F.mse_loss(y, batch["target"])


def mnist(case):
    return MnistCnn(), classes_loss()


def vgg(case):
    return Vgg16(case.sets["size"], case.sets["classes"]), classes_loss()


MAKERS = {"mnist_cnn": mnist, "vgg16": vgg, "resnet50": residual, "resnet101": residual, "inception_v3": inception,
          "mobilenetv2": mobilenet, "densenet121": densenet, "unet2d": unet, "unet3d": unet, "n2v2d": denoiser, "n2v3d": denoiser,
          "sharing": sharing}
MAKERS |= {module.__name__.lower(): whole(module) for module in (groups.Activations, groups.Constants, groups.Norms, groups.Moves, groups.Windows,
                                                                 groups.Reductions, groups.Losses)}


def optimizer(case, parameters):
    kind, options = case.optimizer
    options = dict(options)
    if "beta1" in options:
        options["betas"] = options.pop("beta1"), options.pop("beta2")
    return {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}[kind](parameters, **options)


def running(model):
    """Of each batch norm's two running statistics, the name and where it is: a module and an attribute."""
    return {f"{path}.{field}": (module, field) for path, module in model.named_modules()
            for field in ("running_mean", "running_var") if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)}


def outputs_of_ranks(model, batch, ranks, rows):
    """Of all rows; running statistics become the mean over ranks."""
    statistics = running(model)
    before = {name: getattr(*place).clone() for name, place in statistics.items()}
    sums = {name: torch.zeros_like(value) for name, value in before.items()}
    results = []
    for rank in range(ranks):
        for name, (module, field) in statistics.items():
            setattr(module, field, before[name].clone())
        torch_cases.Dropout.first_row = rank * rows // ranks
        results.append(model(batch["image"][rank * rows // ranks:(rank + 1) * rows // ranks]))
        for name, place in statistics.items():
            sums[name] += getattr(*place) / ranks
    for name, (module, field) in statistics.items():
        setattr(module, field, sums[name])
    return torch.cat(results)


def variables(model):
    return dict(model.named_parameters()) | {name: getattr(*place) for name, place in running(model).items()}


def train(case, ranks):
    """The loss of each step, and by name how every parameter and running statistic changed."""
    model, loss = MAKERS[case.name.split()[0]](case)
    model = model.double()
    if hasattr(model, "dropout") and case.name in ("mnist_cnn", "vgg16"):
        model.dropout = torch_cases.Dropout(0)
    with torch.no_grad():
        drawn = drawn_variables({name: tuple(value.shape) for name, value in variables(model).items()})
        for name, value in variables(model).items():
            value.copy_(torch.from_numpy(drawn[name]))
    start = {name: value.detach().clone().numpy() for name, value in variables(model).items()}
    update = optimizer(case, [value for value in model.parameters() if value.requires_grad])
    batches = {name: torch.from_numpy(value) for name, value in case.batches().items()}
    batches = {name: value.double() if value.is_floating_point() else value for name, value in batches.items()}
    losses = []
    for step in range(STEPS):
        batch = {name: value[step * case.rows:(step + 1) * case.rows] for name, value in batches.items()}
        if case.name in ("mnist_cnn", "vgg16"):
            model.dropout.step = step
        update.zero_grad()
        value = loss(outputs_of_ranks(model, batch, ranks, case.rows), batch) if loss else model(batch)
        value.backward()
        update.step()
        losses.append(value.item())
    return losses, {name: value.detach().numpy() - start[name] for name, value in variables(model).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", default=[case.name for case in CASES])
    chosen = parser.parse_args().cases
    EXPECTED.mkdir(exist_ok=True)
    for case in CASES:
        if case.name not in chosen:
            continue
        kept = {}
        for ranks in case.ranks:
            losses, changes = train(case, ranks)
            names = sorted(changes)
            kept |= {f"losses.{ranks}": np.array(losses), f"changes.{ranks}": np.array([sketch(name, changes[name]) for name in names])}
            print(f"{case.name}, {ranks} ranks: losses {' '.join(f'{loss:.4f}' for loss in losses)}", flush=True)
        np.savez_compressed(EXPECTED / f"{case.name.replace(' ', '_')}.npz", names=np.array(names), **kept)


main()
