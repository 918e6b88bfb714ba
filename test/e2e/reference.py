#!/usr/bin/python3
"""Compiled programs against the evaluator in f64: gradients and loss of a step, loss and metrics of eval, and what predict writes.

Gradients are read off one step of SGD whose rate is 2^20: then the weights' own rounding does not hide them.
"""
import json
import pathlib

from support import check, read_safetensors, run, without_data, workspace, write_safetensors

import numpy as np

RATE, SEED = 2**20, 11


def relative(ours, theirs, least=1e-9):
    return np.linalg.norm(ours - theirs) / max(np.linalg.norm(theirs), least)


class Case:
    """A model (of models/ by its name, or a path), its inputs and its weights: drawn by the runtime, then moved so that
    no bias is 0 and no scale is 1."""
    program, threads = "dlc-run", 2
    tolerance = 1e-5  # of what leaves the forward pass; gradients may err tenfold
    floor = 0  # share of the largest gradient that others are measured by if they are smaller: some are 0 but for rounding

    def __init__(self, name, model, sets, inputs, *options):
        self.name, self.directory = name, workspace()
        self.model = [model if isinstance(model, pathlib.Path) else without_data(model, self.directory)]
        for key, value in sets.items():
            self.model += ["--set", f"{key}={value}"]
        self.files = []
        for key, value in inputs.items():
            np.save(self.directory / f"{key}.npy", value)
            self.files.append(f"{key}={self.directory / key}.npy")
        self.artifact, self.weights = self.directory / "model.dlx", self.directory / "weights.safetensors"
        run("dlc", "compile", *self.model, "--set", "train.optimizer=sgd(lr=1)", "--set", "train.schedule=[]",
            *self.threaded(1), *options, "-o", self.artifact)
        random = np.random.default_rng(2)
        drawn = self.trained(0, 1)
        write_safetensors(self.weights, {key: value + 0.1 * random.random(value.shape, np.float32) * (value.ndim == 1)
                                         for key, value in drawn.items()})

    def data(self, option="--data"):
        return [part for file in self.files for part in (option, file)]

    def threaded(self, ranks):
        return ["--threads", self.threads // ranks] if self.threads else []

    def trained(self, rate, ranks):
        """Weights after one step."""
        out = self.directory / "out.safetensors"
        init = ["--init", self.weights] if self.weights.exists() else []
        run(self.program, "-np", ranks, "train", self.artifact, *self.data(), *init, "--steps", 1, "--lr", rate, "--seed", SEED,
            "--no-shuffle", "--on-nan=continue", *self.threaded(ranks), "--save", out, "--run",
            self.directory / f"run-{rate}-{ranks}")
        return read_safetensors(out)

    def logged(self, rate, ranks):
        """The loss of that step."""
        lines = (self.directory / f"run-{rate}-{ranks}" / "log.jsonl").read_text().splitlines()
        loss, = (record["loss"] for record in map(json.loads, lines) if record["event"] == "step")
        return loss

    def reference(self, program, *options):
        """What the evaluator prints and writes."""
        out = self.directory / "reference.safetensors"
        seed = SEED if program == "train" else 0  # dlc-run's in eval and predict
        printed, _ = run("dlc-reference", *self.model, "--program", program, *self.data("--input"), "--weights", self.weights,
                         "--scalar", f"seed={seed}", "--scalar", "step=0", "-o", out, *options)
        return json.loads(printed), read_safetensors(out)

    def step(self, ranks):
        """Returns how far the gradient that is furthest is from the evaluator's."""
        before, after = read_safetensors(self.weights), self.trained(RATE, ranks)
        figures, truth = self.reference("train", "--ranks", ranks)
        loss = self.logged(RATE, ranks)
        check(abs(loss - figures["loss"]) <= self.tolerance * abs(figures["loss"]),
              f"{self.name}, {ranks} ranks: loss is {loss}, evaluator: {figures['loss']}")
        largest = max(np.linalg.norm(value) for key, value in truth.items() if key.startswith("gradient."))
        compared, furthest = 0, 0
        for key, value in truth.items():
            kind, _, name = key.partition(".")
            if kind == "gradient":
                ours = (before[name].astype(np.float64) - after[name]) / RATE
            elif kind == "assigned":
                ours = after[name]
            else:
                continue
            error = relative(ours, value, max(1e-9, self.floor * largest) if kind == "gradient" else 1e-9)
            check(error < 10 * self.tolerance, f"{self.name}, {ranks} ranks: {key} differs by {error:.1e} from the evaluator's")
            compared, furthest = compared + 1, max(furthest, error)
        check(compared == len(before), f"{self.name}: {compared} of {len(before)} variables compared")
        return furthest

    def forward(self):
        ours = json.loads(run(self.program, "eval", self.artifact, *self.data(), "--init", self.weights, "--json")[0])
        theirs, _ = self.reference("eval")
        for key, value in theirs.items():
            check(abs(ours[key] - value) <= self.tolerance * abs(value), f"{self.name}: {key} is {ours[key]}, evaluator: {value}")
        image = [part for part in self.files if part.startswith("image=")]
        run(self.program, "predict", self.artifact, "--data", *image, "--init", self.weights, "-o", self.directory)
        _, truth = self.reference("predict")
        for key in filter(lambda key: key.startswith("output."), truth):
            error = relative(np.load(self.directory / f"{key.removeprefix('output.')}.npy"), truth[key])
            check(error < self.tolerance, f"{self.name}: predicted {key} differs by {error:.1e} from the evaluator's")


def main():
    # Under this seed no ReLU and no max pool decides within 1e-5 of its operand's spread (bench/parity.py watches
    # that), so that no rounding, of any host's kernels, turns one over.
    random = np.random.default_rng(4)
    digits = {"image": random.standard_normal((4, 1, 28, 28), np.float32), "label": random.integers(0, 10, 4, np.int32)}
    scans = {"image": random.standard_normal((4, 1, 16, 16), np.float32),
             "mask": (random.random((4, 1, 16, 16)) < 0.2).astype(np.float32)}
    unet = {"size": 16, "depth": 2, "predict.size": 16, "predict.batch": 4}
    for ranks in (1, 2):
        rows = {"batch": 4 // ranks}
        for case in (Case("mnist_cnn", "mnist_cnn.dl", rows, digits),
                     Case("unet2d of 10 channels", "unet2d.dl", unet | rows | {"base": 10}, scans),
                     Case("unet2d of 16 channels", "unet2d.dl", unet | rows | {"base": 16, "norm": "none"}, scans)):
            case.step(ranks)
            if ranks == 1:
                case.forward()
    # In every combination of math and wire; test/e2e/precision.py has bf16.
    tensors = unet | {"batch": 2, "base": 16, "norm": "none"}
    Case("unet2d, strict", "unet2d.dl", tensors, scans, "--math=strict").step(2)
    for math in ("fast", "strict"):
        case = Case(f"unet2d, {math}, wire of bf16", "unet2d.dl", tensors, scans, f"--math={math}", "--wire=bf16")
        case.tolerance = 4e-4  # gradients may err tenfold: each way rounds by at most 2^-9
        case.step(2)


if __name__ == "__main__":
    main()
