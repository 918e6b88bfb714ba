#!/usr/bin/python3
"""Norms of samples, shared layers, parameters and random tensors against the evaluator in f64: gradients, statistics,
loss and predictions, with channels last and in blocks."""
from reference import Case
from support import blocked_target, has, workspace

import numpy as np

# Groups of 6 channels and single ones cut blocks of 16; the layer that is used twice updates its statistics twice. No
# ReLU: none can turn over.
MODEL = """
fn unit(x) { return tanh(batch_norm(conv(x, 24, kernel = 3, padding = 1, bias = false, name = "conv"), name = "norm")) }
model norms(batch = 4) {
  input image : f32[batch, 3, 12, 10]
  input target : f32[batch, 24, 12, 10]
  x = tanh(group_norm(conv(image, 24, kernel = 3, padding = 1, name = "a"), 4, name = "group"))
  x = x + instance_norm(conv(x, 24, kernel = 3, padding = 1, bias = false, name = "b"), name = "instance")
  x = unit(unit(x, name = "unit"), name = "unit", reuse = true)
  x = layer_norm(conv(x, 24, kernel = 3, padding = 1, name = "c"), name = "layer")
  y = conv(x * parameter([1, 24, 1, 1], init = 1.5, name = "gain"), 24, kernel = 1, name = "head")
  output probability = sigmoid(y)
  noise = normal(y.shape, std = 0.5, name = "noise") * bernoulli(y.shape, 0.25, name = "where")
  loss = mse(y + noise, target) + 0.5 * mean(uniform(y.shape, low = 1, high = 2, name = "weight") * y)
}
"""


def main():
    directory = workspace()
    whole = directory / "norms.dl"
    whole.write_text(MODEL)
    random = np.random.default_rng(6)
    inputs = {"image": random.standard_normal((4, 3, 12, 10), np.float32), "target": random.standard_normal((4, 24, 12, 10), np.float32)}
    targets = {"": []}
    if has("avx512f"):
        targets[", blocked"] = [f"--target={blocked_target(directory)}"]
    for kind, options in targets.items():
        for ranks in (1, 2):
            case = Case("norms" + kind, whole, {"batch": 4 // ranks, "predict.batch": 4}, inputs, *options)
            case.step(ranks)
            if ranks == 1:
                case.forward()


main()
