"""Compares loss, gradients and running statistics of the reference evaluator with PyTorch, both in f64: of models at a
larger size than test/parity has them, then of the models and networks there.

Loss and every gradient, on one and on two ranks, must agree to 1e-9 relative (absolute 1e-12 where its norm is below
1e-9); running statistics to 1e-7, since their momentum is a constant of the model in f32. PyTorch and numpy come from
bench/peers.

    build/peers/bin/python bench/gradients.py [--bin build/release/bin] [MODEL...]
"""

import argparse
import functools
import pathlib
import sys
import tempfile

import numpy as np
import torch

from torch_cases import NETWORKS, evaluator_results, inception_v3, mnist_cnn, n2v3d, residual, tested, torch_results, unet2d, vgg16

STEP = 3
CASES = {"mnist_cnn": lambda: mnist_cnn(step=STEP), "unet2d": lambda: unet2d(6, 3, step=STEP),
         "unet2d-plain": lambda: unet2d(6, 3, norm="none", step=STEP),
         "vgg16": lambda: vgg16(rows=2, step=STEP), "resnet50": lambda: residual("resnet50", rows=4, size=64),
         "resnet101": lambda: residual("resnet101", rows=4, size=64), "inception_v3": inception_v3,
         "inception_v3 with aux": lambda: inception_v3(size=299, aux=True), "n2v3d": n2v3d}
CASES = {name: functools.partial(tested, case, STEP) for name, case in NETWORKS.items()} | CASES


def compare(ours, theirs):
    """Largest (error over tolerance, error, name); infinite if names differ or a value is not a number."""
    if ours.keys() != theirs.keys():
        return float("inf"), float("inf"), "names: " + ", ".join(sorted(ours.keys() ^ theirs.keys()))
    worst = (0.0, 0.0, "")
    for name, value in theirs.items():
        norm, error = np.linalg.norm(value), np.linalg.norm(ours[name] - value)
        relative = error / norm if norm >= 1e-9 else error * 1e3  # 1e-12 absolute counts as 1e-9
        relative = float(np.nan_to_num(relative, nan=np.inf))
        tolerance = 1e-7 if name.startswith("assigned.") else 1e-9
        worst = max(worst, (relative / tolerance, relative, name))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin")
    parser.add_argument("models", nargs="*", default=list(CASES))
    arguments = parser.parse_args()
    torch.manual_seed(0)
    failures = 0
    print(f"PyTorch {torch.__version__}; relative error of the tensor nearest to its tolerance")
    for name in arguments.models:
        for ranks in (1, 2):
            case = CASES[name]()
            theirs = torch_results(case, ranks, torch.float64)
            with tempfile.TemporaryDirectory() as folder:
                ours = evaluator_results(arguments.bin.resolve(), case, ranks, pathlib.Path(folder))
            ratio, error, worst = compare(ours, theirs)
            failures += ratio > 1
            print(f"{name:24} ranks {ranks}  {len(theirs):3} tensors  {error:.1e}  {worst}  {'FAILED' if ratio > 1 else 'ok'}",
                  flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
