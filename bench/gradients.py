"""Compares loss, gradients and running statistics of the reference evaluator with PyTorch, both in f64.

Loss and every gradient, on one and on two ranks, must agree to 1e-9 relative (absolute 1e-12 where its norm is below 1e-9);
running statistics to 1e-7, since their momentum is a constant of the model in f32. PyTorch and numpy come from bench/peers.

    build/peers/bin/python bench/gradients.py [--bin build/release/bin] [MODEL...]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch.nn import functional as F

from torch_models import MnistCnn, UNet2d

SEED, STEP = 11, 3  # of dropout


def philox_uniform(stream, first, count):
    """runtime/core/Philox.h: uniform numbers of elements first, first + 1, ..."""
    element = np.arange(first, first + count, dtype=np.uint64)
    group, mask = element // np.uint64(4), np.uint64(0xFFFFFFFF)
    counter = [group & mask, group >> np.uint64(32), np.full_like(group, stream), np.full_like(group, STEP)]
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

    def __call__(self, x, rate, name):
        first = self.first_row * x[0].numel()
        uniform = philox_uniform(stream_of(name), first, x.numel()).reshape(x.shape)
        return x * torch.from_numpy(uniform >= rate) / (1 - rate)


def mnist_cnn(rng, rows):
    inputs = {"image": rng.standard_normal((rows, 1, 28, 28), dtype=np.float32),
              "label": rng.integers(0, 10, rows, dtype=np.int32)}
    dropout = Dropout()

    def loss(model, batch, first_row):
        dropout.first_row = first_row
        return F.cross_entropy(model(batch["image"].double()), batch["label"].long())
    return "mnist_cnn", {}, MnistCnn(dropout), inputs, loss


def unet2d(rng, rows, norm="batch"):
    inputs = {"image": rng.standard_normal((rows, 1, 32, 32), dtype=np.float32),
              "mask": rng.integers(0, 2, (rows, 1, 32, 32)).astype(np.float32)}

    def loss(model, batch, first_row):
        return F.binary_cross_entropy_with_logits(model(batch["image"].double()), batch["mask"].double())
    sets = {"size": 32, "base": 6, "depth": 3, "norm": norm}
    return "unet2d", sets, UNet2d(base=6, depth=3, norm=norm == "batch"), inputs, loss


CASES = {"mnist_cnn": mnist_cnn, "unet2d": unet2d, "unet2d-plain": lambda *a: unet2d(*a, norm="none")}


def randomise(model):
    """Weights that f32 holds exactly; scales and biases away from 1 and 0."""
    for name, value in model.state_dict().items():
        if value.dtype.is_floating_point and "running" not in name and value.dim() == 1:
            value.add_(0.1 * torch.randn_like(value))
        if value.dtype.is_floating_point:
            value.copy_(value.float().double())


def torch_results(model, inputs, loss, ranks):
    """Means over ranks of loss, gradients and new running statistics."""
    batch = {name: torch.from_numpy(value) for name, value in inputs.items()}
    before = {name: value.clone() for name, value in model.state_dict().items()}
    results = {"loss": 0.0}
    rows = len(next(iter(batch.values()))) // ranks
    for rank in range(ranks):
        model.load_state_dict(before)
        part = {name: value[rank * rows:(rank + 1) * rows] for name, value in batch.items()}
        value = loss(model, part, rank * rows) / ranks
        value.backward()  # gradients add up
        results["loss"] += value.detach().numpy()
        for name, state in model.named_buffers():
            if "running" in name:
                results["assigned." + name] = results.get("assigned." + name, 0) + state.numpy() / ranks
    results |= {"gradient." + name: p.grad.numpy() for name, p in model.named_parameters()}
    model.load_state_dict(before)
    return results


def evaluator_results(bin, name, sets, model, inputs, ranks, folder):
    command = [bin / "dlc-reference", f"models/{name}.dl", "--ranks", ranks, "--weights", folder / "w.safetensors",
               "-o", folder / "out.safetensors", "--scalar", f"seed={SEED}", "--scalar", f"step={STEP}"]
    rows = len(next(iter(inputs.values())))
    for key, value in ({"batch": rows // ranks} | sets).items():
        command += ["--set", f"{key}={value}"]
    state = {k: v.float().contiguous() for k, v in model.state_dict().items() if v.dtype.is_floating_point}
    save_file(state, folder / "w.safetensors")
    for key, value in inputs.items():
        np.save(folder / f"{key}.npy", value)
        command += ["--input", f"{key}={folder / key}.npy"]
    root = pathlib.Path(__file__).resolve().parent.parent
    subprocess.run(list(map(str, command)), check=True, cwd=root, stdout=subprocess.DEVNULL)
    return load_file(folder / "out.safetensors")


def compare(ours, theirs):
    """Largest (error over tolerance, error, name); infinite if names differ."""
    if ours.keys() != theirs.keys():
        return float("inf"), float("inf"), "names: " + ", ".join(sorted(ours.keys() ^ theirs.keys()))
    worst = (0.0, 0.0, "")
    for name, value in theirs.items():
        norm, error = np.linalg.norm(value), np.linalg.norm(ours[name] - value)
        relative = error / norm if norm >= 1e-9 else error * 1e3  # 1e-12 absolute counts as 1e-9
        tolerance = 1e-7 if name.startswith("assigned.") else 1e-9
        worst = max(worst, (float(relative / tolerance), float(relative), name))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin")
    parser.add_argument("models", nargs="*", default=list(CASES))
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    failures = 0
    print(f"PyTorch {torch.__version__}; relative error of the tensor nearest to its tolerance")
    for case in arguments.models:
        for ranks in (1, 2):
            name, sets, model, inputs, loss = CASES[case](np.random.default_rng(1), 4)
            randomise(model)
            theirs = torch_results(model, inputs, loss, ranks)
            with tempfile.TemporaryDirectory() as folder:
                ours = evaluator_results(arguments.bin.resolve(), name, sets, model, inputs, ranks, pathlib.Path(folder))
            ratio, error, worst = compare(ours, theirs)
            failures += ratio > 1
            print(f"{case:14} ranks {ranks}  {len(theirs):3} tensors  {error:.1e}  {worst}  {'FAILED' if ratio > 1 else 'ok'}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
