#!/usr/bin/python3
"""Networks of the literature have as many parameters as torchvision's. Then those of test/networks and every option of the
U-Nets and of Noise2Void (models/), made small: gradients, statistics, loss and predictions of the compiled programs
against the evaluator in f64 (of the literature's on 2 ranks, too); then some steps of training."""
import json
import math
import pathlib

from reference import Case
from support import MODELS, NETWORKS, ROOT, check, run

import numpy as np

ROWS = 4

# Of torchvision's networks. A small stem has kernels of 3 x 3 instead of 7 x 7; that of house numbers sees one channel,
# and 10 classes instead of 1000 come of 2048 features and a bias each.
SMALL = 64 * 3 * (3 * 3 - 7 * 7)
HOUSE_NUMBERS = 64 * (1 * 3 * 3 - 3 * 7 * 7) - 990 * (2048 + 1)
COUNTS = [
    ("resnet50", [], 25_557_032),
    ("resnet50", ["stem=small"], 25_557_032 + SMALL),
    ("resnet101", [], 44_549_160),
    ("resnet101", ["stem=small"], 44_549_160 + SMALL),
    ("resnet50_svhn", [], 25_557_032 + HOUSE_NUMBERS),
    ("vgg16", [], 138_357_544),
    ("inception_v3", ["aux=false"], 23_834_568),
    ("inception_v3", ["aux=true"], 27_161_264),
    ("mobilenetv2", [], 3_504_872),
    ("densenet121", [], 7_978_856),
]


def source(network):
    """The file of a network of the literature, else the name of a model."""
    return NETWORKS / f"{network}.dl" if (NETWORKS / f"{network}.dl").exists() else f"{network}.dl"


def counts():
    for network, settings, count in COUNTS:
        told = run("dlc", "inspect", MODELS / source(network), "--json", *[part for text in settings for part in ("--set", text)])[0]
        found = json.loads(told)["parameter_count"]
        check(found == count, f"{network} {settings}: {found:,} parameters, not {count:,}")


def inputs(random, **shapes):
    """Standard normal values; those named label are classes below 4, those named mask or same are 0 or 1; a mask without
    channels is of classes below 3."""
    made = {}
    for name, shape in shapes.items():
        if name == "label":
            made[name] = random.integers(0, 4, (ROWS, *shape), np.int32)
        elif name == "mask" and len(shape) == len(shapes["image"]) - 1:
            made[name] = random.integers(0, 3, (ROWS, *shape), np.int32)
        elif name in ("mask", "same"):
            made[name] = (random.random((ROWS, *shape)) < 0.4).astype(np.float32)
        else:
            made[name] = random.standard_normal((ROWS, *shape), np.float32)
    return made


def trains(case):
    """The loss of the first batch falls."""
    log = case.directory / "log.jsonl"
    run("dlc-run", "train", case.artifact, *case.data(), "--init", case.weights, "--steps", 12, "--epochs", 12, "--lr", 0.005,
        "--seed", 3, "--no-shuffle", "--log", log, "--run", case.directory / "training")
    losses = [json.loads(line)["loss"] for line in log.read_text().splitlines() if '"step"' in line and '"loss"' in line]
    check(all(map(math.isfinite, losses)) and min(losses[-3:]) < losses[0], f"{case.name}: losses {losses}")


def options(random):
    """The U-Nets and the denoisers, each option in one case at least."""
    unet = {"depth": 1, "base": 4}
    plane, volume = {"size": 8, "predict.size": 8}, {"patch": "4,8,8", "predict.patch": "4,8,8"}
    denoiser = {"depth": 2, "base": 3}

    def noisy(*shape):
        return inputs(random, image=shape, target=shape, mask=shape)
    return {
        "unet2d of 3 classes": (unet | plane | {"classes": 3, "channels": 2}, inputs(random, image=(2, 8, 8), mask=(8, 8))),
        "unet3d": (unet | volume, inputs(random, image=(1, 4, 8, 8), mask=(1, 4, 8, 8))),
        "unet3d of 3 classes": (unet | volume | {"classes": 3, "channels": 2, "norm": "none"},
                                inputs(random, image=(2, 4, 8, 8), mask=(4, 8, 8))),
        "n2v2d": (denoiser | plane, noisy(1, 8, 8)),
        "n2v2d with networks apart": (denoiser | plane | {"channels": 2, "residual": "true"}, noisy(2, 8, 8)),
        "n2v2d with one network": (denoiser | plane | {"channels": 2, "single_net_per_channel": "false", "error": "mae", "kernel": 5},
                               noisy(2, 8, 8)),
        "n2v2d as N2V2": (denoiser | plane | {"blurpool": "true", "skip_skipone": "true"}, noisy(1, 8, 8)),
        "n2v3d": (denoiser | volume | {"residual": "true"}, noisy(1, 4, 8, 8)),
        "n2v3d of 2 channels": (denoiser | volume | {"channels": 2, "error": "mae", "depth": 1}, noisy(2, 4, 8, 8)),
    }


def main():
    counts()
    random = np.random.default_rng(8)
    image = lambda size, channels=3: (channels, size, size)
    small = {"classes": 4, "size": 32}
    cases = {
        "squeeze_excitation": ({}, inputs(random, image=image(12), label=())),
        "attention_unet": ({}, inputs(random, image=image(16, 1), mask=image(16, 1))),
        "super_resolution": ({}, inputs(random, image=image(8, 1), large=image(16, 1))),
        "variational_autoencoder": ({}, inputs(random, image=image(8, 1))),
        "siamese": ({}, inputs(random, image=image(8, 1), other=image(8, 1), same=(1,))),
        "atrous_pyramid": ({}, inputs(random, image=image(12), label=(12, 12))),
        "mobilenetv2": (small | {"drop": 0, "widths": "8,12", "counts": "1,2", "strides": "1,2"}, inputs(random, image=image(32), label=())),
        "densenet121": (small | {"blocks": "2,2", "growth": 8, "start": 16}, inputs(random, image=image(32), label=())),
    }
    for name, (sets, data) in (cases | options(random)).items():
        for ranks in (1, 2) if name in cases else (1,):
            case = Case(name, source(name.split()[0]), sets | {"batch": ROWS // ranks, "predict.batch": ROWS}, data)
            case.floor = 0.01  # ahead of batch norm a bias has no gradient, also where a convolution lies between
            case.step(ranks)
            if ranks == 1:
                case.forward()
                trains(case)


main()
