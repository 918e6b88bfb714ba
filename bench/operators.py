"""Compares values and gradients of the language's functions with PyTorch, in f64 by the reference evaluator, at random
and at special points.

Both read the same numbers, which f32 holds exactly. PyTorch and numpy come from bench/peers.

    build/peers/bin/python bench/operators.py [--bin build/release/bin]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from torch.nn import functional as F

SHAPE = (3, 4, 8)
CASES = {
    "silu(x)": F.silu, "gelu(x)": F.gelu, "elu(x)": F.elu, "softplus(x)": F.softplus, "hardswish(x)": F.hardswish,
    "leaky_relu(x)": F.leaky_relu, "leaky_relu(x, slope = 0.25)": lambda x: F.leaky_relu(x, 0.25),
    "log10(1 + abs(x))": lambda x: torch.log10(1 + abs(x)),
    "x ** 2": lambda x: x**2, "x ** 3": lambda x: x**3, "x ** 9": lambda x: x**9, "(3.5 + x) ** -1": lambda x: (3.5 + x)**-1,
    "-x ** 2": lambda x: -x**2, "(4 + x) ** 1.5": lambda x: (4 + x)**1.5, "abs(x) ** 1.25": lambda x: abs(x)**1.25,
    "where(x > 0.5, x ** 2, 2)": lambda x: torch.where(x > 0.5, x**2, 2),
    "where(x > mean(x, axes = 1, keep = true), x, -x)": lambda x: torch.where(x > x.mean(1, keepdim=True), x, -x),
    "clamp(x, -0.7, 1.3)": lambda x: x.clamp(-0.7, 1.3),  # no number is a bound
    "x * stop_gradient(x)": lambda x: x * x.detach(),
    "amax(x, axes = [1, 2])": lambda x: x.amax((1, 2)), "amax(x, axes = 1, keep = true)": lambda x: x.amax(1, keepdim=True),
    "var(x, axes = [1, 2])": lambda x: x.var((1, 2)), "var(x, axes = 2, correction = 0, keep = true)": lambda x: x.var(2, correction=0, keepdim=True),
    "argmax(x, 1)": lambda x: x.argmax(1), "argmax(x, axis = -1)": lambda x: x.argmax(-1),
    "softmax(x)": lambda x: x.softmax(1), "log_softmax(x)": lambda x: x.log_softmax(1),
}


def evaluated(bin, expression, x, factor):
    """f(x) and the gradient of mean(factor * f(x)), where x is the bias of a layer whose weights are zero."""
    text = f"""model m(batch = 1) {{
  input zero : f32[batch, 1]
  input factor : f32[batch, {factor.size}]
  x = reshape(dense(zero, {x.size}, name = "x"), {list(x.shape)})
  y = reshape({expression}, [batch, {factor.size}])
  output y = y
  loss = mean(y * factor) if training else mean(factor)  // the rows of x are no samples
}}
"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "m.dl").write_text(text)
        np.save(folder / "zero.npy", np.zeros((1, 1), np.float32))
        np.save(folder / "factor.npy", factor.reshape(1, -1))
        save_file({"x.weight": np.zeros((x.size, 1), np.float32), "x.bias": x.reshape(-1)}, folder / "w.safetensors")
        results = {}
        for program in ("predict", "train"):
            inputs = ["--input", f"zero={folder}/zero.npy"] + (["--input", f"factor={folder}/factor.npy"] if program == "train" else [])
            subprocess.run([bin / "dlc-reference", folder / "m.dl", "--program", program, *inputs, "--weights", folder / "w.safetensors",
                            "-o", folder / "out.safetensors"], check=True, stdout=subprocess.DEVNULL)
            results |= load_file(folder / "out.safetensors")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    x = rng.normal(size=SHAPE).astype(np.float32)
    x[0, 0] = 0, 1, -1, 3, -3, 3, 0.5, -0.5  # where derivatives jump, and a tie
    failures = 0
    for expression, function in CASES.items():
        theirs = torch.from_numpy(x).double().requires_grad_()
        y = function(theirs)
        factor = rng.uniform(0.5, 2, y.numel()).astype(np.float32)
        ours = evaluated(arguments.bin.resolve(), expression, x, factor)
        gradient = np.zeros(x.size)
        if y.is_floating_point():
            (y.reshape(-1) * torch.from_numpy(factor)).mean().backward()
            gradient = theirs.grad.numpy().reshape(-1)
        pairs = ((ours["output.y"], y.detach().numpy()), (ours.get("gradient.x.bias", np.zeros(x.size)), gradient))
        errors = [np.linalg.norm(a.reshape(-1) - b.reshape(-1)) / max(np.linalg.norm(b), 1e-9) for a, b in pairs]
        wrong = not max(errors) < 1e-6  # constants of the model are f32
        failures += wrong
        print(f"{expression:50} value {errors[0]:.1e}  gradient {errors[1]:.1e}  {'FAILED' if wrong else 'ok'}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
