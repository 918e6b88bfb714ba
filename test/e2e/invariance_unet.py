#!/usr/bin/python3
"""The same for a network with batch norm, whose statistics are reduced and saved too, in every combination of precision, math and wire:
no bit depends on overlap, buckets, interruption, or on whether a rank's batches come one after the other."""
import itertools

from support import MODELS, blocked_target, check, has, read_safetensors, run, same_file, workspace

import numpy as np

PLANS = {"fast": [], "strict": ["--math=strict"], "bf16": ["--precision=bf16"]}
SMALL = ["--set", "base=16", "--set", "depth=2", "--set", "size=64", "--set", "predict.size=64", "--set", "batch=4"]
STEPS, CUT = 5, 3  # of 2 an epoch


def disks(directory, count=24, size=64):
    """Bright disks on noise, and their masks in {0, 255}. Returns the --data arguments."""
    random = np.random.default_rng(1)
    y, x = np.mgrid[:size, :size]
    place, radius = random.integers(10, size - 10, (2, count, 1, 1)), random.integers(5, 12, (count, 1, 1))
    mask = (y - place[0]) ** 2 + (x - place[1]) ** 2 < radius ** 2
    image = random.integers(40, 100, (count, size, size)) + 100 * mask
    np.save(directory / "image.npy", image.astype(np.uint8))
    np.save(directory / "mask.npy", (255 * mask).astype(np.uint8))
    return ["--data", f"image={directory}/image.npy", "--data", f"mask={directory}/mask.npy"]


class Combination:
    def __init__(self, directory, plan, wire, threads=1):
        self.directory, self.wire, self.what = directory / f"{plan}-{wire}-{threads}", wire, f"{plan}, wire {wire}"
        self.directory.mkdir()
        self.options = [*SMALL, *PLANS[plan], f"--wire={wire}", f"--threads={threads}"]
        if plan != "bf16" and has("avx512f"):
            self.options.append(f"--target={blocked_target(self.directory)}")
        self.data = disks(self.directory)

    def compiled(self, name, *options):
        run("dlc", "compile", MODELS / "unet2d.dl", *self.options, "--set", "train.schedule=[]", *options, "-o",
            self.directory / f"{name}.dlx")
        return name

    def trained(self, artifact, ranks, name, *options, steps=STEPS):
        out = self.directory / f"{name}.safetensors"
        run("dlc-run", "-np", ranks, "train", self.directory / f"{artifact}.dlx", *self.data, "--steps", steps, "--save", out, "--run",
            self.directory / name, *options)
        return out

    def check_schedules(self, ranks):
        """Returns the weights to which any schedule of the communication comes."""
        base = self.trained("base", ranks, f"base-{ranks}")
        same_file(base, self.trained("other", ranks, f"other-{ranks}"),
                  f"{self.what}: {ranks} ranks with and without overlap, in large and small buckets")
        return base

    def check_bits(self):
        """Returns the weights to which 3 ranks come."""
        self.compiled("base")
        self.compiled("other", "--no-overlap", "--bucket-size=20000")
        weights = self.check_schedules(3)
        if self.wire == "bf16":
            return weights
        self.check_schedules(2)
        self.trained("base", 3, "cut", steps=CUT)
        same_file(weights, self.trained("base", 3, "cut", "--resume"), f"{self.what}: resumed and uninterrupted run")
        same_file(self.directory / "base-3" / "last.safetensors", self.directory / "cut" / "last.safetensors", "their checkpoints")
        same_file(weights, self.trained("base", 1, "alone", "--accumulate", 3), f"{self.what}: 3 batches on one rank and 3 ranks")
        return weights


def distance(one, two):
    """Of two weight files: largest difference of a tensor, relative to its norm."""
    one, two = read_safetensors(one), read_safetensors(two)
    return max(np.linalg.norm(one[name] - value) / np.linalg.norm(value) for name, value in two.items() if value.any())


def main():
    directory = workspace()
    plans = list(PLANS)
    if not has("avx512_bf16"):
        print("skipped in bf16: this processor has no bf16 instructions")
        plans.remove("bf16")
    results = {}
    for plan, wire in itertools.product(plans, ("f32", "bf16")):
        results[plan, wire] = Combination(directory, plan, wire).check_bits()
    for plan in plans:
        check(results[plan, "f32"].read_bytes() != results[plan, "bf16"].read_bytes(), f"{plan}: a wire of bf16 leaves no trace")
        two = Combination(directory, plan, "f32", threads=2)
        two.compiled("base", "--set", "train.optimizer=sgd(lr=0.01)")
        first, second = (two.trained("base", 1, name, "--threads", 2, steps=2) for name in ("first", "second"))
        same_file(first, second, f"{plan}: the same run on two threads twice")
        error = distance(first, two.trained("base", 1, "one-thread", "--threads", 1, steps=2))
        check(error < 1e-2, f"{plan}: one thread and two differ by {error:.1e}")
    if has("avx512f"):
        check(results["fast", "f32"].read_bytes() != results["strict", "f32"].read_bytes(), "fast has no Winograd kernel here")


main()
