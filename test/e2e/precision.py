#!/usr/bin/python3
"""--precision=bf16: gradients and predictions against the evaluator, which rounds at the same places; the invariants of
bits; refusal."""
import json

from combinations import WIRES, strict_is_fast
from reference import Case
from support import MODELS, check, digits, has, read_safetensors, run, same_file, skip, workspace, write_safetensors

import numpy as np


def refused(directory):
    """A target without the instructions is one line that says what to do."""
    _, error = run("dlc", "compile", MODELS / "mnist_cnn.dl", "--target=cpu:avx512", "--precision=bf16", "-o", directory / "no.dlx",
                   expect=1)
    check("bf16 instructions" in error and "--precision=f32" in error and error.count("\n") == 1, f"refusal reads: {error}")


class RoundedCase(Case):
    """A case whose reference is the model at stage nn with its casts: the evaluator rounds where the compiled step
    does. Where f32 falls on the other side of the middle between two bf16 values than f64 does, one element differs by
    2^-8, and what depends on it follows; few elements do, and tensors are compared by norm. Rounding at one place more
    or less shows: bf16 misses f64 by 0.2."""
    tolerance = 2e-3

    def __init__(self, name, model, sets, inputs, *options):
        super().__init__(name, model, sets, inputs, "--precision=bf16", *options)
        text = self.directory / "rounded.mlir"
        self.source = [*self.model, "--precision=bf16"]
        run("dlc", "compile", *self.source, "--emit=nn", "-o", text)
        self.model = [text]


def near_evaluator(random):
    shots = {"image": random.standard_normal((4, 1, 28, 28), np.float32), "label": random.integers(0, 10, 4, np.int32)}
    scans = {"image": random.standard_normal((4, 1, 16, 16), np.float32),
             "mask": (random.random((4, 1, 16, 16)) < 0.2).astype(np.float32)}
    plain = {"size": 16, "depth": 2, "predict.size": 16, "predict.batch": 4, "batch": 4, "base": 16, "norm": "none"}
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


# No bit of the step depends on the order of a sum: see integer_case. Concatenation, pooling and upsampling as in the
# U-Net.
INTEGERS = """model integers(batch = 4) {
  input image : f32[batch, 1, 16, 16]
  input target : f32[batch, 1, 16, 16]
  skip = relu(conv(image, 10, kernel = 3, padding = same, name = "a"))
  x = relu(conv(max_pool(skip, kernel = 2), 20, kernel = 3, padding = same, name = "b"))
  x = concat(skip, conv_transpose(x, 10, kernel = 2, stride = 2, name = "c"))
  x = relu(conv(x, 10, kernel = 3, padding = same, name = "d"))
  y = conv(x, 1, kernel = 1, name = "e")
  output probability = y
  loss = mse(y, target)
}
train { optimizer = sgd(lr = 1) }
"""

# Sums of two branches, and windows of maxima that overlap, of both strides.
RESIDUAL = """model residual(batch = 4) {
  input image : f32[batch, 1, 16, 16]
  input target : f32[batch, 1, 16, 16]
  x = relu(conv(image, 10, kernel = 3, padding = same, name = "stem"))
  x = max_pool(x, kernel = 3, stride = 2, padding = 1)
  inner = relu(conv(x, 10, kernel = 3, padding = same, name = "a"))
  x = relu(x + conv(inner, 10, kernel = 3, padding = same, name = "b"))
  inner = conv(x, 20, kernel = 3, stride = 2, padding = 1, name = "c")
  x = relu(inner + conv(x, 20, kernel = 1, stride = 2, name = "shortcut"))
  x = max_pool(x, kernel = 3, stride = 1, padding = 1)
  y = conv_transpose(x, 1, kernel = 4, stride = 4, name = "last")
  output probability = y
  loss = mse(y, target)
}
train { optimizer = sgd(lr = 1) }
"""

# Convolutions of groups of several channels and of other strides and dilations along each axis, in two and three dimensions, with more
# padding on one side. A transposed one is a data gradient.
PLANE = """model plane(batch = 4) {
  input image : f32[batch, 1, 16, 16]
  input target : f32[batch, 1, 16, 16]
  x = relu(conv(image, 16, kernel = 3, padding = same, name = "first"))
  x = relu(conv(x, 32, kernel = [3, 2], stride = [2, 1], padding = [1, 0], groups = 2, name = "strided"))
  x = relu(conv(x, 32, kernel = [2, 3], dilation = [1, 2], padding = same, groups = 4, name = "dilated"))
  x = conv_transpose(x, 16, kernel = 2, stride = [2, 1], groups = 2, name = "transposed")
  y = conv(x, 1, kernel = 1, name = "last")
  output probability = y
  loss = mse(y, target)
}
train { optimizer = sgd(lr = 1) }
"""
VOLUME = """model volume(batch = 4) {
  input image : f32[batch, 1, 4, 8, 8]
  input target : f32[batch, 1, 4, 8, 8]
  x = relu(conv(image, 16, kernel = 3, padding = same, name = "first"))
  x = relu(conv(x, 32, kernel = [3, 2, 3], stride = [1, 2, 1], padding = [1, 0, 1], groups = 2, name = "strided"))
  x = relu(conv(x, 32, kernel = [2, 1, 3], dilation = [1, 1, 2], padding = [0, 0, 2], groups = 4, name = "dilated"))
  x = conv_transpose(x, 16, kernel = [2, 2, 1], stride = [1, 2, 1], groups = 2, name = "transposed")
  y = conv(x, 1, kernel = 1, name = "last")
  output probability = y
  loss = mse(y, target)
}
train { optimizer = sgd(lr = 1) }
"""

# A norm and an activation without a corner: two roundings after another of what is not exact.
NORM = """model norm(batch = 4) {
  input image : f32[batch, 1, 16, 16]
  input target : f32[batch, 1, 16, 16]
  x = batch_norm(conv(image, 10, kernel = 3, padding = same, bias = false, name = "a"), name = "norm")
  x = x * sigmoid(x)
  y = conv(x, 1, kernel = 3, padding = same, name = "b")
  output probability = y
  loss = mse(y, target)
}
train { optimizer = sgd(lr = 1) }
"""


def integer_case(kind, name, text, random, target, bias, *options, unit=1):
    """Pixels are integers that bf16 holds, of some unit, weights are 1, 0 and -1, the loss divides by a power of 2. While nothing but sums, ReLU and
    max pool is computed of them, f32 holds every sum in any order, and program and evaluator round the same numbers: a rounding at one
    place more or less moves gradients by 1e-2. In a network of ordinary numbers no tolerance shows that: errors of 2^-22 in its sums
    decide otherwise at a few roundings of each layer, those move all sums of the next layer by as much as a few roundings, and behind
    four layers, or one ReLU that they turn over, gradients differ by 0.2, as they do from those without any rounding."""
    path = workspace() / "model.dl"
    path.write_text(text)
    image = unit * random.integers(-256, 257, target.shape).astype(np.float32)
    case = kind(name, path, {}, {"image": image, "target": target}, *options)

    def weights(value):  # about eight of a filter's are not 0
        share = min(0.4, 4 / value[0].size)
        return random.choice([-1, 0, 1], value.shape, p=[share, 1 - 2 * share, share])
    drawn = read_safetensors(case.weights).items()
    write_safetensors(case.weights, {key: weights(value) if value.ndim > 1 else bias(value) for key, value in drawn})
    case.tolerance = 1e-6
    return case


def near_evaluator_in_integers(random, kind, *options, name="integers", text=INTEGERS, shape=(4, 1, 16, 16), unit=1):
    """Returns the case."""
    target = unit * random.integers(-256, 257, shape).astype(np.float32)
    case = integer_case(kind, name, text, random, target, lambda value: unit * random.integers(-20, 21, value.shape), *options, unit=unit)
    case.step(1)
    case.forward()
    return case


def near_evaluator_with_norm(random, kind, *options):
    """One element that is rounded to the other side moves a gradient by up to 8e-5, a rounding more or less by 5e-4 to
    2e-3."""
    for norm, groups in (("batch_norm", ""), ("group_norm", ", 5"), ("instance_norm", ""), ("layer_norm", "")):
        text = NORM.replace("batch_norm(", f"{norm}(").replace('"a")', f'"a"){groups}')
        case = integer_case(kind, norm, text, random, random.standard_normal((4, 1, 16, 16), np.float32), lambda value: value, *options)
        case.tolerance = 3e-5
        case.step(1)


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

    check(len(losses("base")) == 5, f"{len(losses('base'))} steps of 5 are logged")
    for ours, theirs in zip(losses("base"), losses("wide"), strict=True):
        check(abs(ours - theirs) <= 0.03 * theirs, f"loss is {ours} in bf16, {theirs} in f32")


def main():
    directory = workspace()
    if has("avx512f"):
        refused(directory)
    if not has("avx512_bf16"):
        skip("this processor has no bf16 instructions")
    random = np.random.default_rng(4)
    near_evaluator(random)
    near_evaluator_in_integers(random, RoundedCase)
    near_evaluator_in_integers(random, RoundedCase, name="residual", text=RESIDUAL)
    near_evaluator_in_integers(random, RoundedCase, name="plane", text=PLANE)
    near_evaluator_in_integers(random, RoundedCase, name="volume", text=VOLUME, shape=(4, 1, 4, 8, 8))
    near_evaluator_with_norm(np.random.default_rng(5), RoundedCase)
    bits(directory)


if __name__ == "__main__":
    main()
