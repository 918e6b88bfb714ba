#!/usr/bin/python3
"""Damaged artifacts through the program: an error in one line or a sound step, never a signal; undamaged memory is as
planned."""
import json
import random
import re
import shutil
import struct
import subprocess

import numpy as np

from support import BIN, MODELS, check, run, workspace

ROUNDS = 300

# What dlc-mutate tries: all kinds of programs, layers and instructions, small. What the loss counts depends on labels
# alone, so that a step of several micro-batches counts ahead.
SMALL = """model small(batch = 2) {
  input image : f32[batch, 3, 16, 16]
  input label : i32[batch]
  x = relu(batch_norm(conv(image, 8, kernel = 3, padding = same, name = "conv"), name = "norm"))
  y = dense(flatten(max_pool(x, kernel = 3, stride = 2)), 4, name = "fc")
  loss = softmax_cross_entropy(y, label, ignore = 3)
  output probability = softmax(y)
}
train {
  optimizer = sgd(lr = 0.1, momentum = 0.9)
  schedule = [warm_up(epochs = 2), step(at = [3, 5], factor = 0.5)]
  early_stop = early_stop(patience = 3)
}
"""


def damage(sound, generator):
    """A few flipped bits. Returns the bytes and whether the hash is to be renewed: then the tables alone are damaged, since nobody can
    say what damaged machine code does. In other rounds the hash finds the damage, wherever it is."""
    tables = struct.unpack("<I", sound[:4])[0] + 4
    renewed = generator.randrange(3) > 0
    damaged = bytearray(sound)
    for _ in range(generator.randint(1, 4)):
        damaged[generator.randrange(12, tables) if renewed else generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
    if not renewed and generator.randrange(4) == 0:
        damaged = damaged[:generator.randrange(len(damaged))]
    return bytes(damaged), renewed


def bench(artifact):
    return "bench", artifact, "--warmup", 1, "--iters", 1, "--batches-per-iter", 1


def train(artifact):
    """Two steps, each of three micro-batches."""
    directory = artifact.parent
    shutil.rmtree(directory / "run", ignore_errors=True)
    return ("train", artifact, "--data", f"image={directory}/image.npy", "--data", f"label={directory}/label.npy", "--threads", 1, "--steps", 2,
            "--accumulate", 3, "--run", directory / "run")


def corruptions(directory, artifact, command):
    """Damaged copies of the artifact, each run by the command."""
    sound = artifact.read_bytes()
    generator = random.Random(3)
    path = directory / "damaged.dlx"
    ran = refused = 0
    for number in range(ROUNDS):
        damaged, renewed = damage(sound, generator)
        if damaged == sound:
            continue
        path.write_bytes(damaged)
        if renewed:
            run("dlc-mutate", "--seal", path)
        words = [str(word) for word in command(path)]
        done = subprocess.run([str(BIN / "dlc-run"), *words], capture_output=True, text=True, errors="replace", timeout=60)
        check(done.returncode == 1 or (renewed and done.returncode == 0), f"round {number}: exit code {done.returncode}\n{done.stderr}")
        if done.returncode == 1:
            check(len(done.stderr.strip().split("\n")) == 1, f"round {number}: more than one line\n{done.stderr}")
        ran += done.returncode == 0
        refused += renewed and done.returncode == 1
    check(ran > 0 and refused > 0, f"of the damaged artifacts whose hash fits {ran} ran and {refused} were refused")


def small(directory):
    """The artifact; its data lie beside it."""
    model, artifact = directory / "small.dl", directory / "small.dlx"
    model.write_text(SMALL)
    run("dlc", "compile", model, "--threads=1", "-o", artifact)
    generator = np.random.default_rng(3)
    np.save(directory / "image.npy", generator.normal(size=(8, 3, 16, 16)).astype(np.float32))
    np.save(directory / "label.npy", generator.integers(0, 4, 8).astype(np.int32))
    out, _ = run("dlc-run", *train(artifact))
    check("is counted first" in out, out)
    return artifact


def mutations(artifact, sample):
    """One changed field of every table; dlc-mutate says what it does. All fields of the instructions of training, some of the others."""
    figures = run("dlc-mutate", artifact, "--every", sample, "--seed", 1, "--all", "programs[0].instructions")[0]
    print(figures, end="")
    tried, accepted, ran = (int(number) for number in re.findall(r"\d+", figures)[:3])
    check(tried > 2500 and ran > 250 and accepted < tried, f"too few mutants: {figures}")


def memory(artifact):
    planned = json.loads(run("dlc", "inspect", artifact, "--json")[0])["memory"]
    measured = json.loads(run("dlc-run", *bench(artifact), "--json")[0])
    check(measured["arena_bytes"] == planned["bytes"], f"planned {planned['bytes']} bytes, allocated {measured['arena_bytes']}")
    for arena in planned["arenas"]:
        check(arena["bytes"] <= 1.10 * arena["lower_bound"], f"an arena exceeds its lower bound by more than a tenth: {arena}")
    apart = sum(arena["instances"] * arena["lower_bound"] for arena in planned["arenas"])
    check(planned["lower_bound"] <= apart, f"more is live at one time than arena by arena: {planned}")
    check(planned["bytes"] <= 1.10 * planned["lower_bound"], f"plan exceeds its lower bound by more than a tenth: {planned}")


def main():
    directory = workspace()
    artifact = directory / "mnist.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--threads=1", "-o", artifact)
    memory(artifact)
    corruptions(directory, artifact, bench)
    artifact = small(directory)
    corruptions(directory, artifact, train)
    mutations(artifact, sample=20)


if __name__ == "__main__":
    main()
