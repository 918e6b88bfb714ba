"""What PyTorch and dlc both train for some steps: the models of models/, the networks of test/networks and groups of
operators (*.dl beside this file), with the same starts and batches, drawn by exact arithmetic alone; and what is kept of a
tensor to compare it.

Everything is numpy's: make_expected.py runs the cases in PyTorch and keeps the results in expected/, test/e2e/parity.py
runs them in the evaluator and compiled, and compares.
"""
import dataclasses
import pathlib
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPECTED = pathlib.Path(__file__).with_name("expected")
STEPS, SEED = 5, 11
PROJECTIONS = 8


@dataclasses.dataclass
class Case:
    """`inputs` are name -> (what to draw, shape without rows): "f32" any number, "mask" 0 or 1, an int one of so many
    classes. All numbers of the optimizer are exact in f32."""
    name: str
    sets: dict
    inputs: dict
    optimizer: tuple = ("sgd", {"lr": 2.0**-8, "momentum": 0.875})
    rows: int = 4  # of a batch of all ranks
    steps: dict = dataclasses.field(default_factory=lambda: {1: STEPS, 2: STEPS})  # by the number of ranks
    folder: pathlib.Path = ROOT / "models"
    draws: tuple = ()  # of each step's batch, as make_expected.py finds them; without them all steps' are drawn at once

    @property
    def path(self):
        """The model is the name's first word."""
        return self.folder / f"{self.name.split()[0]}.dl"

    @property
    def exact(self):
        """How near two programs in f64 can be: Adam's correction and the case of that name have constants in f32."""
        return STEPS * 1e-7 if self.optimizer[0].startswith("adam") or self.name == "constants" else 1e-9

    def optimizer_text(self):
        kind, options = self.optimizer
        return f"{kind}({', '.join(f'{key} = {str(value).lower()}' for key, value in options.items())})"

    def batches(self):
        """Name -> the rows of all steps."""
        if self.draws:
            steps = [self.batch(step, draw) for step, draw in enumerate(self.draws)]
            return {name: np.concatenate([step[name] for step in steps]) for name in self.inputs}
        return {name: drawn_input(f"{self.name} {name}", kind, (max(self.steps.values()) * self.rows, *shape)) for name, (kind, shape) in self.inputs.items()}

    def batch(self, step, draw):
        """Name -> the rows of one step, as a draw of that number makes them."""
        return {name: drawn_input(f"{self.name} {name} {step} {draw}", kind, (self.rows, *shape)) for name, (kind, shape) in self.inputs.items()}


def uniform(key, shape):
    """In [0, 1), multiples of 2^-24: the same on every machine."""
    bits = np.frombuffer(np.random.RandomState(zlib.crc32(key.encode())).bytes(4 * int(np.prod(shape))), "<u4")
    return ((bits >> 8) * 2.0**-24).reshape(shape)


def drawn_input(key, kind, shape):
    values = uniform(key, shape)
    if kind == "f32":  # of variance 1
        return (np.sqrt(12) * (values - 0.5)).astype(np.float32)
    return (values < 0.4).astype(np.float32) if kind == "mask" else np.floor(values * kind).astype(np.int32)


def drawn_variables(shapes):
    """Name -> values exact in f32, near what training starts from, but no bias is 0 and no scale is 1. Biases of batch norm
    are near 1: so most ReLUs are open by far, and few decide by a rounding."""
    return {name: drawn_variable(name, shape, name.endswith("bias") and name.removesuffix("bias") + "running_var" in shapes)
            for name, shape in shapes.items()}


def drawn_variable(name, shape, is_norms_bias):
    values = uniform(name, shape) - 0.5
    if len(shape) > 1:
        values = values * np.sqrt(24 / np.prod(shape[1:]))  # he_normal's variance
    elif name.endswith("running_var"):
        values = 1 + values
    else:
        values = 0.5 * values + (name.endswith(("weight", "gain")) or is_norms_bias)
    return values.astype(np.float32)


def sketch(name, value):
    """Its norm, then projections on vectors of 1 and -1: those of a difference are on average as large as its norm, so
    that equal sketches mean equal tensors."""
    flat = value.reshape(-1).astype(np.float64)
    signs = np.frombuffer(np.random.RandomState(zlib.crc32(name.encode()) ^ SEED).bytes(flat.size), np.uint8)
    sums = np.zeros(PROJECTIONS)
    for begin in range(0, flat.size, 2**18):
        part = slice(begin, begin + 2**18)
        sums += flat[part] @ (2.0 * np.unpackbits(signs[part, None], axis=1) - 1)
    return np.array([np.linalg.norm(flat), *sums])


def distance(one, two):
    """The norm of the difference of two tensors, estimated from their sketches."""
    return max(abs(one[0] - two[0]), np.sqrt(np.mean((one[1:] - two[1:])**2)))


def image(size, channels=3):
    return "f32", (channels, size, size)


SGD = ("sgd", {"lr": 2.0**-6, "momentum": 0.875, "nesterov": True, "weight_decay": 2.0**-7})
SLOW = ("sgd", SGD[1] | {"lr": 2.0**-12})
SLOWEST = ("sgd", {"lr": 2.0**-14, "momentum": 0.875})
ADAM = ("adam", {"lr": 2.0**-8, "beta1": 0.875, "beta2": 0.96875, "eps": 2.0**-20})
ADAMW = ("adamw", {"lr": 2.0**-8, "beta1": 0.875, "beta2": 0.96875, "eps": 2.0**-20, "weight_decay": 2.0**-5})
RMSPROP = ("rmsprop", {"lr": 2.0**-9, "alpha": 0.96875, "eps": 2.0**-10, "momentum": 0.5})
HERE, NETWORKS = pathlib.Path(__file__).parent, ROOT / "test" / "networks"


def classifier(name, size, rows=4, classes=10, **options):
    sets = {"size": size, "classes": classes} | options.pop("sets", {})
    return Case(name, sets, {"image": image(size, options.pop("channels", 3)), "label": (classes, ())}, rows=rows, **options)


def unet(name, spatial, classes=1, channels=1, optimizer=SGD, **sets):
    shape = {"size": spatial[0]} if len(spatial) == 2 else {"patch": ",".join(map(str, spatial))}
    mask = ("mask", (1, *spatial)) if classes == 1 else (classes, spatial)
    return Case(name, shape | {"channels": channels, "classes": classes} | sets, {"image": ("f32", (channels, *spatial)), "mask": mask},
                optimizer)


def denoiser(name, spatial, channels=1, **sets):
    shape = {"size": spatial[0]} if len(spatial) == 2 else {"patch": ",".join(map(str, spatial))}
    inputs = {"image": "f32", "target": "f32", "mask": "mask"}
    return Case(name, shape | {"channels": channels} | sets, {key: (kind, (channels, *spatial)) for key, kind in inputs.items()})


def as_written(name, folder=HERE, **inputs):
    return Case(name, {}, inputs, SGD, folder=folder)


SMALL = [
    Case("mnist_cnn", {}, {"image": image(28, 1), "label": (10, ())}, SLOWEST),
    unet("unet2d", (16, 16), base=6, depth=2, optimizer=ADAM),
    unet("unet2d plain", (16, 16), base=6, depth=2, norm="none"),
    unet("unet2d of classes", (16, 16), base=4, depth=2, classes=3, channels=2, norm="none", optimizer=RMSPROP),
    unet("unet3d", (4, 8, 8), base=4, depth=2, optimizer=ADAMW),
    unet("unet3d plain", (4, 8, 8), base=4, depth=1, classes=3, channels=2, norm="none"),
    denoiser("n2v2d", (16, 16), base=4),
    denoiser("n2v2d apart", (8, 8), channels=2, base=4, residual="true", error="mae"),
    denoiser("n2v2d joint", (8, 8), channels=2, base=4, single_net_per_channel="false", kernel=5),
    denoiser("n2v2d as N2V2", (16, 16), base=4, blurpool="true", skip_skipone="true"),
    denoiser("n2v3d", (4, 8, 8), base=4, residual="true"),
    classifier("mobilenetv2", 32, folder=NETWORKS, sets={"drop": 0, "widths": "8,16", "counts": "1,2", "strides": "1,2"}),
    classifier("densenet121", 32, folder=NETWORKS, sets={"blocks": "2,2", "growth": 8, "start": 16}),
    as_written("squeeze_excitation", NETWORKS, image=image(12), label=(10, ())),
    as_written("attention_unet", NETWORKS, image=image(16, 1), mask=("mask", (1, 16, 16))),
    as_written("super_resolution", NETWORKS, image=image(8, 1), large=image(16, 1)),
    as_written("variational_autoencoder", NETWORKS, image=image(8, 1)),
    as_written("siamese", NETWORKS, image=image(8, 1), other=image(8, 1), same=("mask", (1,))),
    as_written("atrous_pyramid", NETWORKS, image=image(12), label=(4, (12, 12))),
    as_written("activations", image=image(6), target=("f32", (8, 6, 6))),
    as_written("constants", image=image(6), target=("f32", (8, 3, 3))),
    as_written("norms", image=image(6), target=("f32", (8, 6, 6))),
    as_written("synchronised", image=image(6), target=("f32", (8, 6, 6))),
    as_written("moves", image=image(6), target=("f32", (8, 7, 5))),
    as_written("windows", image=image(8), target=("f32", (6, 4, 4))),
    as_written("reductions", image=image(8), label=(5, ()), target=("f32", (8,))),
    as_written("losses", image=image(6), label=(4, (6, 6)), target=("f32", (4, 6, 6)), mask=("mask", (1, 6, 6))),
    as_written("sharing", image=image(6), target=("f32", (8, 6, 6))),
]

# A step of these takes the evaluator some 5 to 20 s, 80 s with the auxiliary head, which wants images of 299 and two on a rank.
LARGE = [
    classifier("vgg16", 32, rows=2, optimizer=SLOWEST, draws=(3, 0, 0, 0, 7)),
    classifier("resnet50", 40, optimizer=SLOW),
    classifier("resnet50_svhn", 12, optimizer=SLOW, channels=1),
    classifier("resnet101", 40, optimizer=SLOW),
    classifier("inception_v3", 107, optimizer=SLOW, sets={"aux": "false", "drop": 0}),
    classifier("inception_v3 with aux", 299, optimizer=SLOW, steps={1: 1, 2: 1}, sets={"aux": "true", "drop": 0}),
]
CASES = SMALL + LARGE
