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

# One kernel reads a value and, through a view, its first row for every row: the result may not lie in the value's
# memory.
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

# What the host reads of a variable that the step writes is the value that the step began with, reshaped or not.
OLD_VALUES = """
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "sgd", lr = 0.1}}} {
  nn.variable @w : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @count : tensor<f32> {kind = #nn<kind state>, init = #nn.init<constant, 5.0, 0.0>}
  nn.variable @other : tensor<1xf32> {kind = #nn<kind state>, init = #nn.init<constant, 5.0, 0.0>}
  nn.program @train(%x: tensor<2x3xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<3xf32>
    %c = nn.read @count : tensor<f32>
    %d = nn.read @other : tensor<1xf32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %n = nn.add %c, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
    nn.assign @count, %n : tensor<f32>
    %r = nn.reshape %d : (tensor<1xf32>) -> tensor<f32>
    %m = nn.reshape %n : (tensor<f32>) -> tensor<1xf32>
    nn.assign @other, %m : tensor<1xf32>
    %b = nn.broadcast %w {dims = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf32>
    %y = nn.mul %x, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %s = nn.reduce_sum %y {dims = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    nn.loss %s, %two : tensor<f32>, tensor<f32>
    nn.metric "steps", %c, %one : tensor<f32>, tensor<f32>
    nn.metric "reshaped", %r, %one : tensor<f32>, tensor<f32>
  }
}
"""

# A convolution to one channel is no library kernel; its activation is not lost on the way.
PROJECTION_WITH_RELU = """
nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @w : tensor<1x4x1x1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, -1.0, 0.0>}
  nn.program @predict(%x: tensor<2x4x4x4xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<1x4x1x1xf32>
    %y = nn.conv %x, %w {relu, strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x4x4x4xf32>, tensor<1x4x1x1xf32>) -> tensor<2x1x4x4xf32>
    nn.output "y", %y : tensor<2x1x4x4xf32>
  }
}
"""

# The shift that keeps softmax from overflowing has a gradient.
SOFTMAX_IN_LOSS = """
model m(batch = 4, c = 8) {
  input x : f32[batch, c]
  input t : f32[batch, 10]
  loss = mse(softmax(dense(x, 10)), t)
}
train { optimizer = sgd(lr = 0.1) }
"""

# A mean inside of a term is that of the rows that do not pad the batch.
NESTED_MEANS = """
model m(batch = 2) {
  input x : f32[batch, 3]
  y = dense(x, 1, name = "d")
  loss = mean(abs(y - mean(y)))
  metric power = mean(exp(mean(y * y)))
}
train { optimizer = sgd(lr = 0.1) }
"""

# The derivative of a^0 is 0 at 0 too.
POWER_OF_ZERO = """
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "sgd", lr = 0.1}}} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2x2xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<2xf32>
    %v = nn.sub %w, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %b = nn.constant dense<[0.0, 1.0]> : tensor<2xf32>
    %p = nn.pow %v, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %q = nn.add %p, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %r = nn.broadcast %q {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<2x2xf32>
    %y = nn.mul %x, %r : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %s = nn.reduce_sum %y {dims = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    nn.loss %s, %two : tensor<f32>, tensor<f32>
  }
}
"""

# Classes of pixels, with logits of which many are equal.
PIXEL_CLASSES = """
model m(batch = 2) {
  input x : f32[batch, 5, 6, 7]
  input t : i32[batch, 6, 7]
  logits = conv(x, 5, kernel = 1, name = "c")
  loss = softmax_cross_entropy(logits, t)
  metric first = accuracy(logits, t)
  metric second = accuracy(logits, t, k = 2)
}
train { optimizer = sgd(lr = 0.1) }
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
        outputs = {key.removeprefix("output."): value for key, value in truth.items() if key.startswith("output.")}
        check(outputs, f"{self.name}: nothing compared")
        for key, value in outputs.items():
            self.compare(key, np.load(self.directory / f"{key}.npy"), value)


def evaluate_padded():
    """Three rows in batches of two."""
    program = Program("nested means", NESTED_MEANS)
    rows = np.random.default_rng(6).standard_normal((3, 3)).astype(np.float32)
    np.save(program.directory / "x.npy", rows)
    printed, _ = run("dlc-run", "eval", program.artifact, *program.data(), "--init", program.weights, "--json")
    weights = read_safetensors(program.weights)
    y = rows @ weights["d.weight"][0] + weights["d.bias"]
    batches = (y[:2], y[2:])
    ours = json.loads(printed)
    program.compare("loss", ours["loss"], sum(np.abs(batch - batch.mean()).sum() for batch in batches) / 3)
    program.compare("power", ours["power"], sum(len(batch) * np.exp((batch**2).mean()) for batch in batches) / 3)


def evaluate_pixels():
    """Three images in batches of two; of equal logits the first counts as the largest."""
    program = Program("pixel classes", PIXEL_CLASSES)
    random = np.random.default_rng(7)
    x = random.integers(0, 3, (3, 5, 6, 7)).astype(np.float32)
    t = random.integers(0, 5, (3, 6, 7)).astype(np.int32)
    np.save(program.directory / "x.npy", x)
    np.save(program.directory / "t.npy", t)
    write_safetensors(program.weights, {"c.weight": np.eye(5, dtype=np.float32).reshape(5, 5, 1, 1), "c.bias": np.zeros(5)})
    printed, _ = run("dlc-run", "eval", program.artifact, *program.data(), "--init", program.weights, "--json")
    ranks = np.argsort(np.argsort(-x, axis=1, kind="stable"), axis=1)
    rank = np.take_along_axis(ranks, t[:, None], axis=1)
    ours = json.loads(printed)
    program.compare("accuracy", ours["first"], (rank < 1).mean())
    program.compare("accuracy of two", ours["second"], (rank < 2).mean())
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    likelihood = np.take_along_axis(weights / weights.sum(axis=1, keepdims=True), t[:, None], axis=1)
    program.compare("loss", ours["loss"], -np.log(likelihood).mean())


def main():
    Program("pooled concat", POOLED_CONCAT).step()
    Program("read through a view", READ_THROUGH_VIEW).predict()
    Program("old values", OLD_VALUES).step()
    Program("projection with ReLU", PROJECTION_WITH_RELU).predict()
    Program("softmax in a loss", SOFTMAX_IN_LOSS).step()
    Program("power of zero", POWER_OF_ZERO).step()
    evaluate_padded()
    evaluate_pixels()


if __name__ == "__main__":
    main()
