#!/usr/bin/python3
"""The same for a network with batch norm, whose statistics are reduced and saved too: no bit depends on overlap, buckets or interruption."""
from support import MODELS, run, same_file, workspace

import numpy as np


def disks(directory, count=20, size=64):
    """Bright disks on noise, and their masks in {0, 255}. Returns the --data arguments."""
    random = np.random.default_rng(1)
    y, x = np.mgrid[:size, :size]
    place, radius = random.integers(10, size - 10, (2, count, 1, 1)), random.integers(5, 12, (count, 1, 1))
    mask = (y - place[0]) ** 2 + (x - place[1]) ** 2 < radius ** 2
    image = random.integers(40, 100, (count, size, size)) + 100 * mask
    np.save(directory / "image.npy", image.astype(np.uint8))
    np.save(directory / "mask.npy", (255 * mask).astype(np.uint8))
    return ["--data", f"image={directory}/image.npy", "--data", f"mask={directory}/mask.npy"]


def main():
    directory = workspace()
    data = disks(directory)
    small = ["--set", "base=8", "--set", "depth=2", "--set", "size=64", "--set", "predict.size=64", "--set", "batch=2"]
    variants = {"base": [], "no-overlap": ["--no-overlap"], "small-buckets": ["--bucket-size=20000"]}
    for name, options in variants.items():
        run("dlc", "compile", MODELS / "unet2d.dl", *small, "--threads=1", *options, "-o", directory / f"{name}.dlx")

    def trained(artifact, ranks, name, *options):
        out = directory / f"{name}.safetensors"
        run("dlc-run", "-np", ranks, "train", directory / f"{artifact}.dlx", *data, "--epochs", 3, "--save", out, "--run",
            directory / name, *options)
        return out

    for ranks in (2, 3):
        base = trained("base", ranks, f"base-{ranks}")
        for name in ("no-overlap", "small-buckets"):
            same_file(base, trained(name, ranks, f"{name}-{ranks}"), f"{name}, {ranks} ranks")
    trained("base", 3, "cut", "--steps", 5) # within the second epoch
    same_file(base, trained("base", 3, "cut", "--resume"), "resumed and uninterrupted run")
    same_file(directory / "base-3" / "last.safetensors", directory / "cut" / "last.safetensors", "their checkpoints")


main()
