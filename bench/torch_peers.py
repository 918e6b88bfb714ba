"""What PyTorch trains in the place of a case of test/parity/cases.py: the network, how its loss comes from what it puts out,
and the random numbers of the language.

Ranks are those of DistributedDataParallel: each has its rows and its own batch statistics; gradients are those of the loss
over all rows, running statistics the mean over ranks.
"""

import dataclasses
import typing

import numpy as np
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from torch_models import Denoiser, MnistCnn, UNet, Vgg16, masked_error
from torch_networks import (AtrousPyramid, AttentionUNet, Siamese, SqueezeExcitation, SuperResolution, VariationalAutoencoder,
                            contrastive_error, variational_error)

SEED = 11  # of all draws


def philox_uniform(stream, step, first, count):
    """runtime/core/Philox.h: uniform numbers of elements first, first + 1, ..."""
    element = np.arange(first, first + count, dtype=np.uint64)
    group, mask = element // np.uint64(4), np.uint64(0xFFFFFFFF)
    counter = [group & mask, group >> np.uint64(32), np.full_like(group, stream), np.full_like(group, step)]
    key = [SEED & 0xFFFFFFFF, SEED >> 32]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [(p1 >> np.uint64(32)) ^ counter[1] ^ np.uint64(key[0]), p1 & mask,
                   (p0 >> np.uint64(32)) ^ counter[3] ^ np.uint64(key[1]), p0 & mask]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    bits = np.choose((element % np.uint64(4)).astype(np.intp), counter)
    return (bits >> np.uint64(8)).astype(np.float64) * 2.0**-24


def stream_of(name):
    """FNV-1a of an op's name path."""
    value = 2166136261
    for byte in name.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


class Draws:
    """The language's random numbers in a step of training; first_row is set to the rank's first row of the global batch."""

    def __init__(self, step=0):
        self.step, self.first_row = step, 0

    def uniform(self, shape, name):
        count = int(np.prod(shape))
        first = self.first_row * (count // shape[0])
        return torch.from_numpy(philox_uniform(stream_of(name), self.step, first, count).reshape(shape))

    def normal(self, shape, name):
        return torch.special.ndtri(self.uniform(shape, name) + 2.0**-25)

    def dropout(self, x, rate, name):
        return x * (self.uniform(x.shape, name) >= rate) / (1 - rate)


@dataclasses.dataclass
class Peer:
    """A network, and the loss of its outputs for all rows and the batch; without one the network gives the loss of a batch.
    `inputs` are the network's arguments."""
    network: nn.Module
    loss: typing.Callable | None
    draws: Draws
    inputs: tuple = ("image",)

    def loss_of(self, batch, ranks):
        """Of the batch of all ranks. Running statistics move."""
        return self.loss(self.outputs(batch, ranks), batch) if self.loss else self.network(batch)

    def outputs(self, batch, ranks):
        statistics = self.running()
        before = {name: getattr(*place).clone() for name, place in statistics.items()}
        sums = {name: torch.zeros_like(value) for name, value in before.items()}
        rows, results = len(batch[self.inputs[0]]) // ranks, []
        for rank in range(ranks):
            for name, (module, field) in statistics.items():
                setattr(module, field, before[name].clone())
            self.draws.first_row = rank * rows
            results.append(self.network(*(batch[name][rank * rows:(rank + 1) * rows] for name in self.inputs)))
            for name, place in statistics.items():
                sums[name] += getattr(*place) / ranks
        for name, (module, field) in statistics.items():
            setattr(module, field, sums[name])
        return torch.cat(results) if torch.is_tensor(results[0]) else [torch.cat(parts) for parts in zip(*results)]

    def running(self):
        """Of each batch norm's two running statistics, the name and where it is: a module and an attribute."""
        return {f"{path}.{field}": (module, field) for path, module in self.network.named_modules()
                for field in ("running_mean", "running_var") if isinstance(module, nn.modules.batchnorm._BatchNorm)}

    def variables(self):
        return dict(self.network.named_parameters()) | {name: getattr(*place) for name, place in self.running().items()}


def typed(sets):
    """Values of sets as a module's arguments, less what only the .dl takes."""
    known = {"true": True, "false": False}
    return {key: known.get(value, value) for key, value in sets.items() if key not in ("size", "patch")}


def numbers(text):
    return list(map(int, text.split(",")))


def classes_loss(smoothing=0.0):
    return lambda logits, batch: F.cross_entropy(logits, batch["label"].long(), label_smoothing=smoothing)


def auxiliary_loss(outputs, batch):
    logits, auxiliary = outputs
    return classes_loss(0.1)(logits, batch) + 0.4 * classes_loss(0.1)(auxiliary, batch)


def mask_loss(logits, batch):
    if logits.shape[1] > 1:
        return F.cross_entropy(logits, batch["mask"].long())
    return F.binary_cross_entropy_with_logits(logits, batch["mask"])


def unet(case, draws):
    arguments = typed(case.sets)
    arguments["norm"] = arguments.get("norm") != "none"
    return UNet(axes=len(case.inputs["image"][1]) - 1, **arguments), mask_loss


def denoiser(case, draws):
    arguments = typed(case.sets)
    error = arguments.pop("error", "mse")
    return (Denoiser(axes=len(case.inputs["image"][1]) - 1, **arguments),
            lambda x, batch: masked_error(error, x, batch["target"], batch["mask"]))


def mobilenet(case, draws):
    stages = zip(*(numbers(case.sets[key]) for key in ("widths", "counts", "strides")))
    setting = [[1 if i == 0 else 6, width, count, stride] for i, (width, count, stride) in enumerate(stages)]
    return torchvision.models.MobileNetV2(case.sets["classes"], inverted_residual_setting=setting, dropout=0.0), classes_loss()


def densenet(case, draws):
    sets = case.sets
    return torchvision.models.DenseNet(sets["growth"], tuple(numbers(sets["blocks"])), sets["start"], num_classes=sets["classes"]), classes_loss()


def inception(case, draws):
    """Without dropout, whose masks are not Philox's."""
    aux = case.sets["aux"] == "true"
    network = torchvision.models.Inception3(case.sets["classes"], aux_logits=aux, init_weights=False, dropout=0.0)
    return network, auxiliary_loss if aux else classes_loss(0.1)


def with_small_stem(network, channels=3):
    """A residual network of torchvision's for images of some 32 pixels."""
    network.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
    network.maxpool = nn.Identity()
    return network


def residual(case, draws):
    name = case.name.split()[0].removesuffix("_svhn")
    network = getattr(torchvision.models, name)(num_classes=case.sets["classes"])
    small = case.sets.get("stem") == "small" or "svhn" in case.name
    return with_small_stem(network, case.inputs["image"][1][0]) if small else network, classes_loss(0.1)


MAKERS = {
    "mnist_cnn": lambda case, draws: (MnistCnn(draws.dropout), classes_loss()),
    "vgg16": lambda case, draws: (Vgg16(case.sets["size"], case.sets["classes"], draws.dropout), classes_loss()),
    "resnet50": residual, "resnet101": residual, "resnet50_svhn": residual, "inception_v3": inception,
    "mobilenetv2": mobilenet, "densenet121": densenet,
    "unet2d": unet, "unet3d": unet, "n2v2d": denoiser, "n2v3d": denoiser,
    "squeeze_excitation": lambda case, draws: (SqueezeExcitation(), classes_loss()),
    "attention_unet": lambda case, draws: (AttentionUNet(), mask_loss),
    "super_resolution": lambda case, draws: (SuperResolution(), lambda y, batch: F.l1_loss(y, batch["large"])),
    "variational_autoencoder": lambda case, draws: (VariationalAutoencoder(normal=draws.normal), variational_error),
    "siamese": lambda case, draws: (Siamese(), contrastive_error, ("image", "other")),
    "atrous_pyramid": lambda case, draws: (AtrousPyramid(), classes_loss()),
}


def peer_of(case, step=0):
    draws = Draws(step)
    network, loss, *inputs = MAKERS[case.name.split()[0]](case, draws)
    return Peer(network.double(), loss, draws, *inputs)
