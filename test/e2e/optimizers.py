#!/usr/bin/python3
"""What the block train says of updates, compiled and run on one rank, on two and in micro-batches, against the evaluator
in f64: several steps, all variables and slots. Buckets of whatever size leave the same bits."""
import re

from support import check, read_safetensors, run, workspace, write_safetensors

import numpy as np

STEPS, ROWS = 3, 8  # of all ranks and micro-batches
# No ReLU and no max pool: nothing decides narrowly.
MODEL = """
model m(batch = 8) {
  input x : f32[batch, 3, 9, 9]
  input t : f32[batch, 5]
  y = tanh(batch_norm(conv(x, 16, kernel = 3, bias = false, name = "conv"), name = "bn"))
  y = tanh(conv(y, 8, kernel = 3, stride = 2, name = "features.0"))
  y = tanh(dense(flatten(y), 24, name = "features.1"))
  y = dense(y, 5, name = "head")
  loss = mse(y, t)
}
train { %s; lr_scale = [["head.*", 4], ["*.bias", 0.5]]; freeze = ["features.0.*", "bn.weight"] }
"""
CASES = {
    "rmsprop": "optimizer = rmsprop(lr = 0.02)",
    "rmsprop with all options": 'optimizer = rmsprop(lr = 0.02, alpha = 0.9, eps = 0.01, momentum = 0.5, weight_decay = 0.1, no_decay = ["*.bias"])',
    "sgd, clipped": "optimizer = sgd(lr = 0.5, momentum = 0.9, weight_decay = 0.1); clip_norm = 0.25",
    "adamw, clipped": "optimizer = adamw(lr = 0.02); clip_norm = 0.25",
    "sgd, below the norm, averaged": "optimizer = sgd(lr = 0.5, nesterov = true, momentum = 0.5); clip_norm = 100; ema = 0.75",
}


class Case:
    def __init__(self, name, settings):
        self.name, self.directory = name, workspace()
        self.model, self.weights = self.directory / "m.dl", self.directory / "weights.safetensors"
        self.model.write_text(MODEL % settings)
        self.rate = float(re.search(r"lr = ([\d.]+)", settings)[1])
        random = np.random.default_rng(3)
        for key, shape in {"x": (3, 9, 9), "t": (5,)}.items():
            values = random.standard_normal((STEPS * ROWS, *shape), np.float32)
            np.save(self.directory / f"{key}.npy", values)
            for step in range(STEPS):
                np.save(self.directory / f"{key}-{step}.npy", values[step * ROWS:(step + 1) * ROWS])
        run("dlc-run", "train", self.compiled(ROWS), *self.data(), "--steps", 1, "--lr", 0, "--save", self.weights, "--run",
            self.directory / "start")
        start = read_safetensors(self.weights)
        self.start = {key: value + 0.1 * random.random(value.shape, np.float32) * (value.ndim == 1) for key, value in start.items()}
        write_safetensors(self.weights, self.start)
        if "ema" in settings:
            self.start |= {f"optimizer.ema.{key}": value for key, value in self.start.items() if self.is_trained(key)}

    @staticmethod
    def is_trained(name):
        return not re.search(r"features\.0|bn\.weight|running", name)

    def compiled(self, batch, *options):
        artifact = self.directory / "m.dlx"
        run("dlc", "compile", self.model, "--set", f"batch={batch}", "--threads=1", *options, "-o", artifact)
        return artifact

    def data(self, suffix="", option="--data"):
        return [part for name in ("x", "t") for part in (option, f"{name}={self.directory / name}{suffix}.npy")]

    def trained(self, ranks, pieces, *options):
        """The checkpoint after all steps."""
        directory = self.directory / f"run-{ranks}-{pieces}-{len(list(self.directory.iterdir()))}"
        run("dlc-run", "-np", ranks, "train", self.compiled(ROWS // ranks // pieces, *options), *self.data(), "--init", self.weights,
            "--steps", STEPS, "--accumulate", pieces, "--no-shuffle", "--seed", 3, "--threads", 1, "--run", directory)
        return directory / "last.safetensors"

    def reference(self, ranks):
        """Variables after all steps."""
        out, weights, variables = self.directory / "reference.safetensors", self.directory / "next.safetensors", dict(self.start)
        for step in range(STEPS):
            write_safetensors(weights, variables)
            run("dlc-reference", self.model, "--set", f"batch={ROWS // ranks}", "--program", "train", "--update", "--ranks", ranks,
                *self.data(f"-{step}", "--input"), "--weights", weights, "--scalar", f"lr={self.rate}", "--scalar", f"step={step}",
                "--scalar", "seed=3", "-o", out)
            variables |= {key.removeprefix("assigned."): value for key, value in read_safetensors(out).items() if key.startswith("assigned.")}
        return variables

    def compare(self, ranks, pieces):
        ours, theirs = read_safetensors(self.trained(ranks, pieces)), self.reference(ranks * pieces)
        check(ours.keys() == theirs.keys(), f"{self.name}: variables {ours.keys() ^ theirs.keys()} on one side alone")
        for key, value in theirs.items():
            start = self.start.get(key, 0)
            frozen = not self.is_trained(key) and "running" not in key
            check(not (frozen and key.startswith("optimizer.")), f"{self.name}: {key} is the slot of a frozen parameter")
            moved = np.linalg.norm(value - start)
            check(frozen or moved > 0, f"{self.name}: {key} has not moved")
            error = np.linalg.norm(ours[key] - value)
            allowed = 0 if frozen else 1e-4 * moved + 1e-6 * np.linalg.norm(value)
            check(error <= allowed, f"{self.name}, {ranks} ranks, {pieces} batches a step: {key} is off by {error:.1e}, allowed {allowed:.1e}")


def main():
    for name, settings in CASES.items():
        case = Case(name, settings)
        for ranks, pieces in ((1, 1), (2, 1), (1, 2)):
            case.compare(ranks, pieces)
    clipped = Case("buckets", CASES["adamw, clipped"])
    whole, *others = (clipped.trained(2, 1, f"--bucket-size={size}") for size in (10**9, 4096, 1))
    one, *rest = (read_safetensors(path) for path in (whole, *others))
    for size, tensors in zip((4096, 1), rest):
        for key, value in one.items():
            check(value.tobytes() == tensors[key].tobytes(), f"buckets of {size} bytes change {key}")


if __name__ == "__main__":
    main()
