#!/usr/bin/python3
"""The same global batch on 1 and 2 ranks is the same training: the losses of 100 steps, the metric at the end, and, of
Noise2Void, the patches, the spots and what replaces them.

Sums in another order round otherwise, and training amplifies that: losses are compared step by step of a network without
batch norm, at a rate at which one rank that computes with other instructions stays as near (docs/results.md, Ranks). Of
one with synchronised batch norm (its gradients are compared in invariance.py) what is compared is what was learnt.
"""
import json
import shutil

from combinations import disks
from support import MODELS, check, run, workspace

import numpy as np

STEPS = 100


def steps_of(directory):
    """Records of the steps, and those of the epochs."""
    records = [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]
    return ([record for record in records if record["event"] == kind] for kind in ("step", "epoch"))


def trained(model, ranks, batch, directory, *options, sets=(), seed=7):
    """Trains `batch` samples a step on so many ranks."""
    run("dlc-run", "-np", ranks, "train", model, "--set", f"batch={batch // ranks}", *sets, "--threads", 1, "--seed", seed,
        "--run", directory, *options)
    return steps_of(directory)


def disks_of(directory):
    """Arguments for disks to train on and others to validate by."""
    part, other = directory / "train", directory / "val"
    part.mkdir(), other.mkdir()
    return [*disks(part, count=40, size=32), *(text.replace("--data", "--val") for text in disks(other, count=24, size=32))]


def check_segmentation(directory, name, model, data, *options, sets=()):
    """Returns by how much the losses of 1 and 2 ranks differ in each step, relative to them."""
    sets = [part for text in ("base=8", "depth=2", "size=32", "predict.size=32", "train.schedule=[]", *sets) for part in ("--set", text)]
    (one, first), (two, second) = (trained(model, ranks, 8, directory / f"{name}-{ranks}", *data, "--steps", STEPS, *options,
                                           sets=sets)
                                   for ranks in (1, 2))
    errors = [abs(a["loss"] - b["loss"]) / a["loss"] for a, b in zip(one, two, strict=True)]
    check(len(errors) == STEPS and one[-1]["loss"] < 0.5 * one[0]["loss"], f"{name}: from {one[0]['loss']} to {one[-1]['loss']}")
    a, b = first[-1]["val_iou"], second[-1]["val_iou"]
    check(0.3 < a < 1 and abs(a - b) < 0.01, f"{name}: validation's IoU is {a} on one rank and {b} on two")
    print(f"{name}, {STEPS} steps: losses differ by {max(errors):.1e} at most, validation's IoU is {a:.4f} and {b:.4f}")
    return errors


def check_losses(directory, data):
    errors = check_segmentation(directory, "without norm", MODELS / "unet2d.dl", data,
                                sets=["norm=none", "train.optimizer=sgd(lr=0.02, momentum=0.9)"])
    check(max(errors) < 1e-3, f"losses of 1 and 2 ranks differ by {max(errors):.1e}")


def check_synchronised_norms(directory, data):
    """With statistics of half a batch the losses would differ by 1e-3 from the first step on.

    Fast math would take other convolution algorithms for half a batch. Even so training amplifies rounding hundreds of times by
    the tenth step, more with some processors' kernels than with others'.
    """
    for part in MODELS.glob("*.dl"):
        shutil.copy(part, directory)
    blocks = directory / "blocks.dl"
    check(blocks.read_text().count("batch_norm(x, ") == 1, "blocks.dl has other norms")
    blocks.write_text(blocks.read_text().replace("batch_norm(x, ", "batch_norm(x, sync = true, "))
    errors = check_segmentation(directory, "synchronised norms", directory / "unet2d.dl", data, "--math=strict")
    check(max(errors[:5]) < 1e-6 and max(errors[:10]) < 1e-4, f"with synchronised norms the first losses differ by {max(errors[:10]):.1e}")


# What tells samples apart, weighted by their rows' places in the global batch: other patches change all three, other spots
# the last two, other replacements the last one.
SAMPLES = """
  place = uniform([batch], low = 1, high = 2)
  metric patches = mean(place * tanh(20 * mean(target, axes = AXES)))
  metric spots = mean(place * tanh(sum(target * mask, axes = AXES)))
  metric replaced = mean(place * tanh(sum(image * mask, axes = AXES)))
"""


def check_draws(directory, model, volume, sets):
    """In every step of an epoch and a half the ranks together see what one rank sees."""
    axes = str(list(range(1, 2 + (3 if "3d" in model else 2))))
    shutil.copy(MODELS / "noise2void.dl", directory)
    text = (MODELS / model).read_text()
    check(text.count("\n  loss = ") == 1, f"{model} has another loss")
    path = directory / model
    path.write_text(text.replace("\n  loss = ", SAMPLES.replace("AXES", axes) + "  loss = "))
    np.save(directory / "volume.npy", volume)

    def samples(ranks, seed=7):
        steps, _ = trained(path, ranks, 6, directory / f"{path.stem}-{ranks}-{seed}", "--data", f"volume={directory}/volume.npy",
                           "--steps", 12, seed=seed,
                           sets=[*sets, "--set", "train.steps_per_epoch=8", "--set", "base=2", "--set", "depth=1"])
        return np.array([[step[key] for key in ("patches", "spots", "replaced")] for step in steps])

    one = samples(1)
    check(one.shape == (12, 3) and len(np.unique(one)) == one.size, f"{model}: what a step sees is not told apart: {one}")
    for ranks in (2, 3):
        error = np.abs(samples(ranks) - one).max()
        check(error < 1e-6, f"{model}: {ranks} ranks see other patches or spots than one, {error:.1e}")
        print(f"{model}: {ranks} ranks see what one sees, to {error:.1e}")
    other = np.abs(samples(1, seed=8) - one).max(axis=0)
    check((other > 1e-3).all(), f"{model}: another seed draws the same, {other}")


def main():
    directory = workspace()
    data = disks_of(directory)
    check_losses(directory, data)
    check_synchronised_norms(directory, data)
    random = np.random.default_rng(3)
    check_draws(directory, "n2v2d.dl", random.normal(100, 20, (6, 340, 48)).astype(np.float32), ["--set", "size=32"])
    check_draws(directory, "n2v3d.dl", random.normal(100, 20, (12, 48, 170)).astype(np.float32),
                ["--set", "patch=8,16,16"])


main()
