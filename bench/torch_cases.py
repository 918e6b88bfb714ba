"""Models with inputs and weights, and what PyTorch and the reference evaluator make of them: loss, gradients, new
statistics.

Both take the same weights, which f32 holds exactly, and the same Philox dropout masks; results have the evaluator's
names.
"""

import dataclasses
import pathlib
import subprocess
import typing

import numpy as np
import torch
import torchvision
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch.nn import functional as F

from torch_models import Denoiser, MnistCnn, UNet, Vgg16, masked_error

ROOT = pathlib.Path(__file__).resolve().parents[1]
SEED = 11  # of dropout


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


class Dropout:
    """The language's dropout; first_row is set to the rank's first row of the global batch."""

    first_row = 0

    def __init__(self, step):
        self.step = step

    def __call__(self, x, rate, name):
        first = self.first_row * x[0].numel()
        uniform = philox_uniform(stream_of(name), self.step, first, x.numel()).reshape(x.shape)
        return x * torch.from_numpy(uniform >= rate) / (1 - rate)


@dataclasses.dataclass
class Case:
    """A model of models/ with its parameters, the same in PyTorch, and a global batch."""
    name: str
    sets: dict
    model: torch.nn.Module
    inputs: dict
    loss: typing.Callable  # of the model, a rank's part of the batch and its first row
    step: int = 0  # of training, which dropout draws from

    @property
    def rows(self):
        return len(next(iter(self.inputs.values())))


def mnist_cnn(rows=4, step=0):
    rng = np.random.default_rng(1)
    inputs = {"image": rng.standard_normal((rows, 1, 28, 28), dtype=np.float32),
              "label": rng.integers(0, 10, rows, dtype=np.int32)}
    dropout = Dropout(step)

    def loss(model, batch, first_row):
        dropout.first_row = first_row
        return F.cross_entropy(model(batch["image"]), batch["label"].long())
    return randomised(Case("mnist_cnn", {}, MnistCnn(dropout), inputs, loss, step))


def unet2d(base, depth, norm="batch", rows=4, size=32, step=0):
    rng = np.random.default_rng(1)
    inputs = {"image": rng.standard_normal((rows, 1, size, size), dtype=np.float32),
              # As in a segmentation, mostly background: even halves would cancel in the head's gradients.
              "mask": (rng.random((rows, 1, size, size)) < 0.2).astype(np.float32)}

    def loss(model, batch, first_row):
        return F.binary_cross_entropy_with_logits(model(batch["image"]), batch["mask"])
    sets = {"size": size, "base": base, "depth": depth, "norm": norm}
    model = UNet(base=base, depth=depth, norm=norm == "batch")
    return randomised(Case("unet2d", sets, model, inputs, loss, step))


def vgg16(rows=4, size=32, classes=10, step=0):
    rng = np.random.default_rng(1)
    inputs = {"image": rng.standard_normal((rows, 3, size, size), dtype=np.float32),
              "label": rng.integers(0, classes, rows, dtype=np.int32)}
    dropout = Dropout(step)

    def loss(model, batch, first_row):
        dropout.first_row = first_row
        return F.cross_entropy(model(batch["image"]), batch["label"].long())
    model = Vgg16(size, classes, dropout)
    return randomised(Case("vgg16", {"size": size, "classes": classes}, model, inputs, loss, step))


def residual(name, rows=4, size=64, classes=10):
    """torchvision's ResNet of that name."""
    rng = np.random.default_rng(1)
    inputs = {"image": rng.standard_normal((rows, 3, size, size), dtype=np.float32),
              "label": rng.integers(0, classes, rows, dtype=np.int32)}

    def loss(model, batch, first_row):
        return F.cross_entropy(model(batch["image"]), batch["label"].long(), label_smoothing=0.1)
    model = getattr(torchvision.models, name)(num_classes=classes)
    return randomised(Case(name, {"size": size, "classes": classes}, model, inputs, loss))


def inception_v3(rows=4, size=107, classes=10, aux=False):
    """torchvision's, without dropout, whose masks are not Philox's."""
    rng = np.random.default_rng(1)
    inputs = {"image": rng.standard_normal((rows, 3, size, size), dtype=np.float32),
              "label": rng.integers(0, classes, rows, dtype=np.int32)}

    def loss(model, batch, first_row):
        results = model(batch["image"]) if aux else [model(batch["image"])]
        losses = [F.cross_entropy(logits, batch["label"].long(), label_smoothing=0.1) for logits in results]
        return losses[0] + 0.4 * losses[1] if aux else losses[0]
    model = torchvision.models.inception_v3(num_classes=classes, dropout=0.0, aux_logits=aux, init_weights=False)
    sets = {"size": size, "classes": classes, "drop": 0, "aux": str(aux).lower()}
    return randomised(Case("inception_v3", sets, model, inputs, loss))


def n2v3d(base=4, rows=4, patch=(4, 16, 16), spots=4):
    """Noise2Void in 3-D; every sample has as many spots."""
    rng = np.random.default_rng(1)
    shape = (rows, 1, *patch)
    inputs = {name: rng.standard_normal(shape, dtype=np.float32) for name in ("image", "target")}
    inputs["mask"] = np.zeros(shape, np.float32)
    for row in inputs["mask"].reshape(rows, -1):
        row[rng.choice(row.size, spots, replace=False)] = 1

    def loss(model, batch, first_row):
        return masked_error("mse", model(batch["image"]), batch["target"], batch["mask"])
    sets = {"patch": ",".join(map(str, patch)), "base": base}
    return randomised(Case("n2v3d", sets, Denoiser(base=base, axes=3), inputs, loss))


def randomised(case):
    """With weights in f64 that f32 holds exactly; scales and biases away from 1 and 0."""
    case.model.double()
    for name, value in case.model.state_dict().items():
        if value.dtype.is_floating_point and "running" not in name and value.dim() == 1:
            value.add_(0.1 * torch.randn_like(value))
        if value.dtype.is_floating_point:
            value.copy_(value.float().double())
    return case


def torch_results(case, ranks, dtype):
    """Means over ranks of loss, gradients and new running statistics, computed in dtype."""
    model = case.model.to(dtype)
    batch = {name: torch.from_numpy(value) for name, value in case.inputs.items()}
    batch = {name: value.to(dtype) if value.is_floating_point() else value for name, value in batch.items()}
    before = {name: value.clone() for name, value in model.state_dict().items()}
    results = {"loss": 0.0}
    rows = case.rows // ranks
    model.zero_grad()
    for rank in range(ranks):
        model.load_state_dict(before)
        part = {name: value[rank * rows:(rank + 1) * rows] for name, value in batch.items()}
        value = case.loss(model, part, rank * rows) / ranks
        value.backward()  # gradients add up
        results["loss"] += value.detach().numpy()
        for name, state in model.named_buffers():
            if "running" in name:
                results["assigned." + name] = results.get("assigned." + name, 0) + state.numpy() / ranks
    results |= {"gradient." + name: p.grad.numpy().copy() for name, p in model.named_parameters()}
    model.load_state_dict(before)
    return results


def write_batch(case, folder):
    """Weights to folder/weights.safetensors, inputs to .npy files. Returns NAME=FILE of the inputs."""
    state = {k: v.float().contiguous() for k, v in case.model.state_dict().items() if v.dtype.is_floating_point}
    save_file(state, folder / "weights.safetensors")
    for name, value in case.inputs.items():
        np.save(folder / f"{name}.npy", value)
    return [f"{name}={folder / name}.npy" for name in case.inputs]


def settings(case, ranks):
    pairs = {"batch": case.rows // ranks} | case.sets
    return [part for key, value in pairs.items() for part in ("--set", f"{key}={value}")]


def run(*command):
    subprocess.run(list(map(str, command)), check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def evaluator_results(bin, case, ranks, folder):
    """What dlc-reference computes in f64."""
    inputs = [part for file in write_batch(case, folder) for part in ("--input", file)]
    out = folder / "reference.safetensors"
    run(bin / "dlc-reference", f"models/{case.name}.dl", *settings(case, ranks), *inputs, "--ranks", ranks,
        "--weights", folder / "weights.safetensors", "-o", out, "--scalar", f"seed={SEED}", "--scalar", f"step={case.step}")
    return load_file(out)
