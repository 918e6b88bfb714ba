#!/usr/bin/python3
"""train, eval, predict and bench from a model file: compiled once, kept, and their outputs of the promised form."""
import json
import re
import os

from support import MODELS, check, digits, run, workspace

import numpy as np


def check_kernels(trace):
    """A kernel's category is the phase that it runs in, and which its kind and name tell of."""
    lanes = {event["args"]["name"]: event["tid"] for event in trace if event["name"] == "thread_name"}
    complete = [event for event in trace if event["ph"] == "X"]
    phases = [event for event in complete if event["tid"] == lanes["phases"]]
    kernels = [event for event in complete if event["tid"] == lanes["kernels"]]
    check({event["cat"] for event in kernels} == {"forward", "backward", "update"}, "kernels of all phases")
    for kernel in kernels:
        around = [phase["name"] for phase in phases if phase["pid"] == kernel["pid"]
                  and phase["ts"] <= kernel["ts"] and kernel["ts"] + kernel["dur"] <= phase["ts"] + phase["dur"] + 1e-3]
        check(kernel["cat"] in around, f"{kernel} lies in the phases {around}")
        told = "backward" if "_grad_" in kernel["args"].get("kind", "") else kernel["cat"]
        check(kernel["cat"] == told, f"the category of {kernel}")
        check(kernel["name"].endswith(" backward") == (kernel["cat"] == "backward"), f"the name of {kernel}")


def main():
    directory = workspace()
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
    data = digits(directory)
    model = [MODELS / "mnist_cnn.dl", "--set", "batch=8", "--threads", 1]
    out, _ = run("dlc-run", "-np", 2, "train", *model, *data, "--val", data[1], "--val", data[3], "--epochs", 2, "--run",
                 directory / "run", "--trace", directory / "trace.json", "--log", directory / "copy.jsonl")
    lines = out.split("\n")
    check(lines[0] == "2 ranks x batch 8 = 16 samples a step, 6 steps an epoch", out)
    check(re.fullmatch(r"data: \d+ samples/s a thread, 1 thread per rank", lines[-4]), out)
    check(" = compute " in lines[-3] and "exposed all-reduce" in lines[-3], out)
    check(re.fullmatch(r"user \d+\.\d\d s, system \d+\.\d\d s \(2 ranks together\), wall \d+\.\d\d s", lines[-2]), out)
    check("\r" not in out, "a progress bar in a pipe")
    phases = "".join(rf"{phase} \d\.\d\d, " for phase in ("device", "memory", "kernels", "variables"))
    check(re.search(rf"^first step after \d+\.\d\d s \({phases}rest -?\d+\.\d\d\)$", out, re.M), out)
    kept = sorted((directory / "cache" / "dlc").iterdir())
    check(len(kept) == 1, f"one compiled model, got {kept}")

    records = [json.loads(line) for line in (directory / "copy.jsonl").read_text().splitlines()]
    steps = [record for record in records if record["event"] == "step"]
    epochs = [record for record in records if record["event"] == "epoch"]
    check(len(steps) == 12 and len(epochs) == 2, f"{len(steps)} step and {len(epochs)} epoch records")
    wanted = {"step", "epoch", "loss", "lr", "accuracy", "samples_per_s", "step_ms", "exposed_comm_ms", "data_wait_ms"}
    check(wanted <= steps[0].keys(), f"step record lacks {wanted - steps[0].keys()}")
    check({"val_loss", "val_accuracy", "seconds"} <= epochs[0].keys(), f"epoch record: {epochs[0]}")

    trace = json.loads((directory / "trace.json").read_text())["traceEvents"]
    check({event["pid"] for event in trace} == {0, 1}, "the trace has one process per rank")
    check(any(event["ph"] == "b" and event["name"].startswith("all-reduce") for event in trace), "the trace shows all-reduces")
    check_kernels(trace)

    results = []
    for ranks in (1, 3): # 96 samples do not divide by 3 x 8 x ..., and count once each all the same
        out, _ = run("dlc-run", "-np", ranks, "eval", *model, *data, "--init", directory / "run" / "best.safetensors", "--json")
        results.append(json.loads(out))
    check(results[0]["samples"] == 96 and results[0]["accuracy"] == results[1]["accuracy"], f"{results}")
    best = max(epochs, key=lambda record: record["val_accuracy"])
    check(results[0]["accuracy"] == best["val_accuracy"], f"eval {results[0]}, training said {best}")
    check(sorted((directory / "cache" / "dlc").iterdir()) == kept, "the model was compiled again")

    run("dlc-run", "predict", *model, "--data", data[1], "--init", directory / "run" / "best.safetensors", "-o",
        directory / "predictions")
    probability = np.load(directory / "predictions" / "probability.npy")
    check(probability.shape == (96, 10) and np.allclose(probability.sum(axis=1), 1, atol=1e-5), "probabilities")
    label = np.load(directory / "label.npy")
    check(np.isclose((probability.argmax(axis=1) == label).mean(), results[0]["accuracy"]), "predict and eval disagree")

    out, _ = run("dlc-run", "-np", 2, "bench", *model, "--warmup", 1, "--iters", 2, "--num-batches-per-iter", 2)
    for line in ("Iter #1: ", "Img/sec per CPU: ", "Total img/sec on 2 CPU(s): ", "exposed", "first step after "):
        check(line in out, f"bench prints no '{line}': {out}")
    check("Total img/sec on 2 CPU(s)" in run("dlc-run", "bench", *model, "-np", 2, "--warmup", 1, "--iters", 1)[0], "-np behind the verb")
    record, again, more = (json.loads(run("dlc-run", "bench", *model, "--warmup", 1, "--iters", iters, "--json")[0]) for iters in (1, 1, 2))
    check(record["ranks"] == 1 and record["img_per_s_total"] > 0 and record["wire_bytes"] == 0, f"{record}")
    check(record["variables_hash"] == again["variables_hash"] != more["variables_hash"], f"{record}, {again}, {more}")


main()
