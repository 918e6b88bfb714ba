#!/usr/bin/python3
"""--precision=bf16: gradients and predictions against the evaluator, which rounds at the same places; the invariants of bits; refusal."""
import json

from combinations import WIRES, strict_is_fast
from reference import Case
from support import MODELS, check, digits, has, read_safetensors, run, same_file, skip, workspace

import numpy as np


def refused(directory):
    """A target without the instructions is one line that says what to do."""
    _, error = run("dlc", "compile", MODELS / "mnist_cnn.dl", "--target=cpu:avx512", "--precision=bf16", "-o", directory / "no.dlx",
                   expect=1)
    check("bf16 instructions" in error and "--precision=f32" in error and error.count("\n") == 1, f"refusal reads: {error}")


class RoundedCase(Case):
    """A case whose reference is the model at stage nn with its casts: the evaluator rounds where the compiled step does. Where f32
    falls on the other side of the middle between two bf16 values than f64 does, one element differs by 2^-8, and what depends on it
    follows; few elements do, and tensors are compared by norm. Rounding at one place more or less shows: bf16 misses f64 by 0.2."""
    tolerance = 2e-3

    def __init__(self, name, model, sets, inputs, *options):
        super().__init__(name, model, sets, inputs, "--precision=bf16", *options)
        text = self.directory / "rounded.mlir"
        self.source = [*self.model, "--precision=bf16"]
        run("dlc", "compile", *self.source, "--emit=nn", "-o", text)
        self.model = [text]


UNET = {"size": 16, "depth": 2, "predict.size": 16, "predict.batch": 4, "batch": 4}


def draw(random):
    return {"image": random.standard_normal((4, 1, 16, 16), np.float32), "mask": (random.random((4, 1, 16, 16)) < 0.2).astype(np.float32)}


def near_evaluator(random):
    shots = {"image": random.standard_normal((4, 1, 28, 28), np.float32), "label": random.integers(0, 10, 4, np.int32)}
    scans, plain = draw(random), UNET | {"base": 16, "norm": "none"}
    for name, model, sets, inputs in (("mnist_cnn", "mnist_cnn.dl", {"batch": 4}, shots),
                                      ("unet2d of 10 channels", "unet2d.dl", plain | {"base": 10}, scans),
                                      ("unet2d of 16 channels", "unet2d.dl", plain, scans)):
        case = RoundedCase(name, model, sets, inputs)
        case.step(1)
        case.forward()
        if not strict_is_fast(*case.source):
            RoundedCase(f"{name}, strict", model, sets, inputs, "--math=strict").step(1)
    for wire in WIRES:
        RoundedCase(f"unet2d, wire of {wire}", "unet2d.dl", plain | {"batch": 2}, scans, f"--wire={wire}").step(2)


def near_evaluator_with_norm(random):
    """Batch norm takes the mean off each gradient: where one value of 1,000 falls on the other side of a rounding, and with it a
    ReLU, the small rest moves by percents. That depends on the images and on the order in which a CPU's kernels add; rounding at a
    place more or less shows for all images."""
    failures = []
    for _ in range(5):
        case = RoundedCase("unet2d of 10 channels with batch norm", "unet2d.dl", UNET | {"base": 10}, draw(random))
        try:
            case.step(1)
            case.forward()
            return
        except SystemExit as failure:
            failures.append(str(failure))
    check(False, "for no images:\n" + "\n".join(failures))


def bits(directory):
    """Overlap, buckets and interruption leave the bits alone; the loss is near that of f32, and not the same."""
    data = digits(directory)

    def trained(name, *options, steps=5, ranks=2):
        out = directory / f"{name}.safetensors"
        run("dlc-run", "-np", ranks, "train", MODELS / "mnist_cnn.dl", *data, "--set", "batch=8", "--set", "train.schedule=[]",
            "--steps", steps, "--lr", 0.001, "--seed", 7, "--threads", 1, "--save", out, "--run", directory / name, *options)
        return out

    base = trained("base", "--precision=bf16")
    same_file(base, trained("no-overlap", "--precision=bf16", "--no-overlap", "--bucket-size=65536"), "bf16 without overlap")
    trained("cut", "--precision=bf16", steps=3)
    same_file(base, trained("cut", "--precision=bf16", "--resume"), "resumed and uninterrupted bf16 run")
    same_file(base, trained("accumulated", "--precision=bf16", "--accumulate", 2, ranks=1), "2 bf16 batches on one rank and 2 ranks")
    wide = trained("wide")
    check(wide.read_bytes() != base.read_bytes(), "bf16 and f32 train alike to the bit")
    first, second = (read_safetensors(path) for path in (base, wide))
    check(first.keys() == second.keys(), "bf16 saves other tensors than f32")

    def losses(name):
        lines = (directory / name / "log.jsonl").read_text().splitlines()
        return [entry["loss"] for entry in map(json.loads, lines) if entry["event"] == "step"]

    for ours, theirs in zip(losses("base"), losses("wide")):
        check(abs(ours - theirs) <= 0.03 * theirs, f"loss is {ours} in bf16, {theirs} in f32")


def main():
    directory = workspace()
    if has("avx512f"):
        refused(directory)
    if not has("avx512_bf16"):
        skip("this processor has no bf16 instructions")
    random = np.random.default_rng(4)
    near_evaluator(random)
    near_evaluator_with_norm(random)
    bits(directory)


if __name__ == "__main__":
    main()
