#!/usr/bin/python3
"""The best epoch, the plateau and the early stop follow the monitor in the direction that the model states, from .dl
and from .mlir text.

The metric `level` rises in every epoch, since the only weight is drawn to 1; the same figure is watched in both
directions."""
import json

from support import check, run, workspace

import numpy as np

MODEL = """
model rising(batch = 4) {
  input x : f32[batch, 1]
  input t : f32[batch, 1]
  y = dense(x, 1, bias = false, init = zeros, name = "w")
  loss = mse(y, t)
  metric level = mean(y)
  metric error = mae(y, t)
}
train { optimizer = sgd(lr = 0.1); epochs = 6; schedule = reduce_on_plateau(factor = 0.5, patience = 0) }
"""


def best(output):
    lines = [line for line in output.splitlines() if line.startswith("best epoch ")]
    check(len(lines) == 1, f"one line tells the best epoch: {output}")
    return lines[0]


def main():
    directory = workspace()
    np.save(directory / "x.npy", np.ones((8, 1), np.float32))
    data = [word for name in ("x", "t") for word in ("--data", f"{name}={directory / 'x.npy'}")]
    validation = [word.replace("--data", "--val") for word in data]
    model = directory / "rising.dl"
    model.write_text(MODEL)

    def train(name, artifact, *more):
        kept = directory / name
        output = "".join(run("dlc-run", "train", artifact, *more, "--threads", 1, *data, *validation, "--run", kept))
        log = [json.loads(line) for line in (kept / "log.jsonl").read_text().splitlines()]
        epochs = [record for record in log if record["event"] == "epoch"]
        levels = [epoch["val_level"] for epoch in epochs]
        check(levels == sorted(set(levels)), f"the metric rises: {levels}")
        return output, [epoch["lr"] for epoch in epochs], json.loads((kept / "config.json").read_text())["recipe"]["monitor"]

    # In the model's direction every epoch improves, and the rate stays.
    for name, monitor in {"max": "max(level)", "error": "error", "loss": "loss"}.items():
        output, rates, recorded = train(name, model, "--set", f"train.monitor={monitor}")
        check(best(output).startswith("best epoch 6: val_" + {"max": "level"}.get(name, name)), best(output))
        check(len(set(rates)) == 1, f"rates {rates} of {monitor}")
        goal = "highest" if name == "max" else "lowest"
        check(f"best is the epoch of the {goal} val_" in output, output)
        check(recorded == {"max": "max(level)", "error": "min(error)", "loss": "min(loss)"}[name], f"recorded {recorded}")

    # Lower is better: the first epoch stays the best, the plateau lowers the rate at once, and the run stops early.
    output, rates, recorded = train("min", model, "--set", "train.monitor=min(level)", "--set", "train.early_stop=early_stop(patience=3)")
    check(best(output).startswith("best epoch 1: val_level"), best(output))
    check(len(rates) == 4 and rates[2] == rates[0] / 2, f"rates {rates}")
    check("stopped early: no improvement for 3 epochs" in output and recorded == "min(level)", output)

    # Text of the compiler keeps the direction.
    for stage, goal, epoch in (("nn", "max", 6), ("exec", "min", 1), ("exec", "max", 6), ("nn", "min", 1)):
        text = directory / f"{stage}.mlir"
        run("dlc", "compile", model, "--set", f"train.monitor={goal}(level)", f"--emit={stage}", "-o", text)
        run("dlc", "compile", text, "-o", directory / f"{stage}.dlx")
        check(best(train(f"{stage}-{goal}", directory / f"{stage}.dlx")[0]).startswith(f"best epoch {epoch}: val_level"), f"from {stage}, {goal}")


main()
