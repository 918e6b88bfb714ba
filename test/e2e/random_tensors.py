#!/usr/bin/python3
"""Random tensors: moments within six standard errors of those of their distributions, the same numbers in every
validation and on any number of ranks, others in every step."""
import json
import math

from support import check, run, workspace

import numpy as np

SAMPLES, EACH = 90, 1024 # which no global batch divides; numbers of a sample

MODEL = f"""
model noise(batch = 4) {{
  input x : f32[batch, 1]
  u = uniform([batch, {EACH}], name = "u")
  wide = uniform([batch, {EACH}], low = -3, high = 5, name = "wide")
  z = normal([batch, {EACH}], name = "z")
  moved = normal([batch, {EACH}], mean = 2, std = 3, name = "moved")
  loss = mse(dense(x, 1, name = "w"), 0.0)
  metric uniform = mean(u)
  metric uniform2 = mean(u * u)
  metric wide = mean(wide)
  metric normal = mean(z)
  metric normal2 = mean(z * z)
  metric normal4 = mean(z * z * z * z)
  metric moved = mean(moved)
  metric moved2 = mean((moved - 2) * (moved - 2))
  metric together = mean(z * (moved - 2))
  metric bernoulli = mean(bernoulli([batch, {EACH}], 0.2, name = "b"))
  metric never = mean(bernoulli([batch, {EACH}], 0, name = "n"))
  metric always = mean(bernoulli([batch, {EACH}], 1, name = "a"))
}}
train {{ optimizer = sgd(lr = 0.0); epochs = 2 }}
"""

# Mean and variance of what a metric is the mean of.
MOMENTS = {"uniform": (1 / 2, 1 / 12), "uniform2": (1 / 3, 4 / 45), "wide": (1, 64 / 12), "normal": (0, 1), "normal2": (1, 2),
           "normal4": (3, 96), "moved": (2, 9), "moved2": (9, 162), "together": (0, 9), "bernoulli": (0.2, 0.16),
           "never": (0, 0), "always": (1, 0)}


def main():
    directory = workspace()
    np.save(directory / "x.npy", np.ones((SAMPLES, 1), np.float32))
    model = directory / "noise.dl"
    model.write_text(MODEL)

    def epochs(name, ranks, *options):
        run("dlc-run", "-np", ranks, "train", model, "--threads", 1, "--data", f"x={directory}/x.npy", "--val", f"x={directory}/x.npy",
            "--run", directory / name, *options)
        log = [json.loads(line) for line in (directory / name / "log.jsonl").read_text().splitlines()]
        return [record for record in log if record["event"] == "epoch"]

    one, two, other = epochs("one", 1), epochs("two", 2), epochs("other", 1, "--seed", 12)
    for metric, (mean, variance) in MOMENTS.items():
        bound = 6 * math.sqrt(variance / (SAMPLES * EACH)) + 1e-6 # rounding of sums
        first = one[0]["val_" + metric]
        for record in (*one, *two, *other):
            check(abs(record["val_" + metric] - mean) <= bound, f"val_{metric} is {record['val_' + metric]}, expected {mean} within {bound}")
            check(abs(record[metric] - mean) <= bound, f"{metric} is {record[metric]}, expected {mean} within {bound}")
        check(one[1]["val_" + metric] == first, f"val_{metric} differs between epochs")
        check(abs(two[0]["val_" + metric] - first) <= 1e-6 * max(1, abs(first)), f"val_{metric} differs between 1 and 2 ranks")
        if variance:
            check(other[0]["val_" + metric] != first, f"val_{metric} does not depend on the seed")
            check(one[0][metric] != one[1][metric], f"{metric} does not depend on the step")


main()
