#!/usr/bin/python3
"""Small programs that compilers get wrong: one step, or one prediction, against the evaluator in f64."""
import json
import re

from support import check, read_safetensors, run, workspace, write_safetensors

import numpy as np

# Both branches of a concatenation go through one pooling, whose gradient is sliced.
POOLED_CONCAT = """
model m(batch = 2) {
  input x : f32[batch, 3, 16, 16]
  input t : f32[batch, 10]
  a = relu(conv(x, 16, kernel = 3, padding = 1, name = "a"))
  b = relu(batch_norm(conv(x, 32, kernel = 5, padding = 2, name = "b"), name = "bn"))
  logits = dense(flatten(max_pool(concat(a, b), kernel = 2)), 10, name = "head")
  loss = mse(logits, t)
}
train { optimizer = sgd(lr = 0.1) }
"""

# One kernel reads a value and, through a view, its first row for every row: the result may not lie in the value's memory.
READ_THROUGH_VIEW = """
nn.model @m attributes {stage = "nn", batch = 4 : i64} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %e = nn.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %r = nn.reshape %e : (tensor<4x4xf32>) -> tensor<16xf32>
    %s = nn.slice %r {start = array<i64: 0>, size = array<i64: 4>} : (tensor<16xf32>) -> tensor<4xf32>
    %b = nn.broadcast %s {dims = array<i64: 1>} : (tensor<4xf32>) -> tensor<4x4xf32>
    %y = nn.add %e, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    nn.output "y", %y : tensor<4x4xf32>
  }
}
"""


class Program:
    def __init__(self, name, text, *options):
        self.name, self.directory = name, workspace()
        self.model = self.directory / ("m.mlir" if text.lstrip().startswith("nn.model") else "m.dl")
        self.model.write_text(text)
        self.artifact, self.weights = self.directory / "m.dlx", self.directory / "weights.safetensors"
        run("dlc", "compile", self.model, "--threads=1", *options, "-o", self.artifact)
        nn, _ = run("dlc", "compile", self.model, "--emit=nn")
        random = np.random.default_rng(5)
        shape_of = lambda text: [int(extent) for extent in text.split("x")[:-1]]
        self.inputs = {name: random.standard_normal(shape_of(shape)).astype(np.float32)
                       for shape, name in re.findall(r'%\w+: tensor<([^>]*)> {nn.input = "(\w+)"', nn)}
        for name, value in self.inputs.items():
            np.save(self.directory / f"{name}.npy", value)
        variables = re.findall(r"nn.variable @([\w.]+) : tensor<([^>]*)> {.*kind = #nn<kind (?:parameter|state)>", nn)
        drawn = {name: 0.1 * random.standard_normal(shape_of(shape)).astype(np.float32) for name, shape in variables}
        write_safetensors(self.weights, {name: value + 0.5 * (value.ndim < 2) for name, value in drawn.items()})

    def reference(self, program, *options):
        out = self.directory / "reference.safetensors"
        inputs = [part for name in self.inputs for part in ("--input", f"{name}={self.directory / name}.npy")]
        printed, _ = run("dlc-reference", self.model, "--program", program, *inputs, "--weights", self.weights, "-o", out, *options)
        return json.loads(printed), read_safetensors(out)

    def data(self):
        return [part for name in self.inputs for part in ("--data", f"{name}={self.directory / name}.npy")]

    def compare(self, what, ours, truth):
        error, norm = np.linalg.norm(ours - truth), np.linalg.norm(truth)
        check(error <= 1e-5 * norm, f"{self.name}: {what} differs by {error:.1e} of {norm:.1e} from the evaluator's")

    def step(self):
        """Losses, metrics and updated variables of one step."""
        out, log = self.directory / "out.safetensors", self.directory / "log.jsonl"
        run("dlc-run", "train", self.artifact, *self.data(), "--init", self.weights, "--steps", 1, "--lr", 0.5, "--no-shuffle",
            "--threads", 1, "--save", out, "--log", log, "--run", self.directory / "run")
        printed, truth = self.reference("train", "--update", "--scalar", "lr=0.5", "--scalar", "step=0", "--scalar", "seed=0")
        record = next(entry for entry in map(json.loads, log.read_text().splitlines()) if entry["event"] == "step")
        for key, value in printed.items():
            self.compare(key, record[key], value)
        after, compared = read_safetensors(out), 0
        for key, value in truth.items():
            if key.startswith("assigned."):
                self.compare(key, after[key.removeprefix("assigned.")], value)
                compared += 1
        check(compared > 0, f"{self.name}: nothing compared")

    def predict(self):
        run("dlc-run", "predict", self.artifact, *self.data(), "--init", self.weights, "-o", self.directory)
        _, truth = self.reference("predict")
        for key, value in truth.items():
            if key.startswith("output."):
                self.compare(key, np.load(self.directory / f"{key.removeprefix('output.')}.npy"), value)


def main():
    Program("pooled concat", POOLED_CONCAT).step()
    Program("read through a view", READ_THROUGH_VIEW).predict()


if __name__ == "__main__":
    main()
