#!/usr/bin/python3
"""Damaged artifacts through the program: exit code 1 and one line, never a signal; undamaged memory is as planned."""
import json
import random
import subprocess

from support import BIN, MODELS, check, digits, run, workspace

ROUNDS = 300


def corruptions(directory, artifact, data):
    sound = artifact.read_bytes()
    generator = random.Random(3)
    for number in range(ROUNDS):
        damaged = bytearray(sound)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        if number % 10 == 0:
            damaged = damaged[:generator.randrange(len(damaged))]
        if bytes(damaged) == sound:
            continue
        path = directory / "damaged.dlx"
        path.write_bytes(damaged)
        done = subprocess.run([str(BIN / "dlc-run"), "bench", str(path)], capture_output=True, text=True, timeout=60)
        check(done.returncode == 1, f"round {number}: exit code {done.returncode}\n{done.stderr}")
        check(len(done.stderr.strip().split("\n")) == 1, f"round {number}: more than one line\n{done.stderr}")


def memory(artifact):
    planned = json.loads(run("dlc", "inspect", artifact, "--json")[0])["memory"]
    measured = json.loads(run("dlc-run", "bench", artifact, "--warmup", 1, "--iters", 1, "--batches-per-iter", 1, "--json")[0])
    check(measured["arena_bytes"] == planned["bytes"], f"planned {planned['bytes']} bytes, allocated {measured['arena_bytes']}")
    check(planned["bytes"] <= 1.10 * planned["lower_bound"], f"plan exceeds its lower bound by more than a tenth: {planned}")


def main():
    directory = workspace()
    artifact = directory / "mnist.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--threads=1", "-o", artifact)
    memory(artifact)
    corruptions(directory, artifact, digits(directory))


main()
