"""Models with inputs and weights, and what PyTorch and the reference evaluator make of them: loss, gradients, new
statistics.

Both take the same weights, which f32 holds exactly, and the same draws; results have the evaluator's names.
"""

import dataclasses
import math
import pathlib
import subprocess
import sys

import numpy as np
import torch
import torchvision
from safetensors.numpy import load_file
from safetensors.torch import save_file

from torch_models import Denoiser, MnistCnn, UNet, Vgg16, masked_error
from torch_peers import SEED, Draws, Peer, auxiliary_loss, classes_loss, mask_loss, peer_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "parity"))
import cases  # noqa: E402


@dataclasses.dataclass
class Case:
    """A model with its parameters, the same in PyTorch, and a global batch."""
    name: str
    sets: dict
    peer: Peer
    inputs: dict
    folder: pathlib.Path = ROOT / "models"

    @property
    def path(self):
        return self.folder / f"{self.name}.dl"

    @property
    def model(self):
        return self.peer.network

    @property
    def rows(self):
        return len(next(iter(self.inputs.values())))


def classified(rows, size, classes, channels=3):
    rng = np.random.default_rng(1)
    return {"image": rng.standard_normal((rows, channels, size, size), dtype=np.float32),
            "label": rng.integers(0, classes, rows, dtype=np.int32)}


def mnist_cnn(rows=4, step=0):
    draws = Draws(step)
    return randomised(Case("mnist_cnn", {}, Peer(MnistCnn(draws.dropout), classes_loss(), draws), classified(rows, 28, 10, 1)))


def unet2d(base, depth, norm="batch", rows=4, size=32, step=0):
    rng = np.random.default_rng(1)
    inputs = {"image": rng.standard_normal((rows, 1, size, size), dtype=np.float32),
              # As in a segmentation, mostly background: even halves would cancel in the head's gradients.
              "mask": (rng.random((rows, 1, size, size)) < 0.2).astype(np.float32)}
    sets = {"size": size, "base": base, "depth": depth, "norm": norm}
    model = UNet(base=base, depth=depth, norm=norm == "batch")
    return randomised(Case("unet2d", sets, Peer(model, mask_loss, Draws(step)), inputs))


def vgg16(rows=4, size=32, classes=10, step=0):
    draws = Draws(step)
    peer = Peer(Vgg16(size, classes, draws.dropout), classes_loss(), draws)
    return randomised(Case("vgg16", {"size": size, "classes": classes}, peer, classified(rows, size, classes)))


def residual(name, rows=4, size=64, classes=10):
    """torchvision's ResNet of that name."""
    peer = Peer(getattr(torchvision.models, name)(num_classes=classes), classes_loss(0.1), Draws())
    return randomised(Case(name, {"size": size, "classes": classes}, peer, classified(rows, size, classes)))


def inception_v3(rows=4, size=107, classes=10, aux=False):
    """torchvision's, without dropout, whose masks are not Philox's."""
    model = torchvision.models.inception_v3(num_classes=classes, dropout=0.0, aux_logits=aux, init_weights=False)
    peer = Peer(model, auxiliary_loss if aux else classes_loss(0.1), Draws())
    sets = {"size": size, "classes": classes, "drop": 0, "aux": str(aux).lower()}
    return randomised(Case("inception_v3", sets, peer, classified(rows, size, classes)))


def n2v3d(base=4, rows=4, patch=(4, 16, 16), spots=4):
    """Noise2Void in 3-D; every sample has as many spots."""
    rng = np.random.default_rng(1)
    shape = (rows, 1, *patch)
    inputs = {name: rng.standard_normal(shape, dtype=np.float32) for name in ("image", "target")}
    inputs["mask"] = np.zeros(shape, np.float32)
    for row in inputs["mask"].reshape(rows, -1):
        row[rng.choice(row.size, spots, replace=False)] = 1

    def loss(x, batch):
        return masked_error("mse", x, batch["target"], batch["mask"])
    sets = {"patch": ",".join(map(str, patch)), "base": base}
    return randomised(Case("n2v3d", sets, Peer(Denoiser(base=base, axes=3), loss, Draws()), inputs))


def tested(case, step=0):
    """A case of test/parity, its first batch, with weights of PyTorch's."""
    inputs = {name: value[:case.rows] for name, value in case.batches().items()}
    return randomised(Case(case.path.stem, case.sets, peer_of(case, step), inputs, case.folder))


NETWORKS = {case.name: case for case in cases.CASES if case.folder != cases.HERE}


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
    """Loss, gradients and new running statistics, computed in dtype."""
    model = case.model.to(dtype)
    batch = {name: torch.from_numpy(value) for name, value in case.inputs.items()}
    batch = {name: value.to(dtype) if value.is_floating_point() else value for name, value in batch.items()}
    before = {place: getattr(*place) for place in case.peer.running().values()}
    model.zero_grad()
    loss = case.peer.loss_of(batch, ranks)
    loss.backward()
    results = {"loss": loss.detach().numpy()}
    results |= {"assigned." + name: getattr(*place).numpy() for name, place in case.peer.running().items()}
    results |= {"gradient." + name: p.grad.numpy().copy() for name, p in model.named_parameters()}
    for place, value in before.items():
        setattr(*place, value)
    return results


def random_sums(case, ranks):
    """Of each batch norm's bias the norm that its gradient, a sum over positions, has where its terms' signs are random:
    the root of the sum of their squares. In f64."""
    squares, handles = {}, []

    def watch(name, output):
        def add(gradient):
            squares[name] = squares.get(name, 0) + gradient.square().sum().item()
        output.register_hook(add)
    for name, module in case.model.named_modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            handles.append(module.register_forward_hook(lambda _, __, output, name=name: watch(f"gradient.{name}.bias", output)))
    torch_results(case, ranks, torch.float64)
    for handle in handles:
        handle.remove()
    return {name: math.sqrt(value) for name, value in squares.items()}


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
    run(bin / "dlc-reference", case.path, *settings(case, ranks), *inputs, "--ranks", ranks,
        "--weights", folder / "weights.safetensors", "-o", out, "--scalar", f"seed={SEED}", "--scalar", f"step={case.peer.draws.step}")
    return load_file(out)
