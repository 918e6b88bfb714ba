#!/usr/bin/python3
"""Every stage's text can be read back: by dlc-opt, and by dlc compile, which goes on to the same artifact."""
from support import MODELS, run, same_file, workspace

CASES = {
    "mnist_cnn.dl": ["batch=4"],
    "mnist_cnn.mlir": [],
    "unet2d.dl": ["base=6", "depth=2", "size=32", "batch=2", "predict.size=32"],
}


def main():
    directory = workspace()
    for model, sets in CASES.items():
        options = [option for value in sets for option in ("--set", value)]
        whole = directory / "whole.dlx"
        run("dlc", "compile", MODELS / model, *options, "--threads=1", "-o", whole)
        for stage in ("nn", "train", "schedule", "exec"):
            text, resumed = directory / f"{stage}.mlir", directory / f"{stage}.dlx"
            run("dlc", "compile", MODELS / model, *options, "--threads=1", f"--emit={stage}", "-o", text)
            run("dlc-opt", text, "-o", "/dev/null")
            run("dlc", "compile", text, "--threads=1", "-o", resumed)
            same_file(whole, resumed, f"{model} resumed from {stage}")


main()
