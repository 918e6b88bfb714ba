#!/usr/bin/python3
"""Bits of a training run do not depend on overlap, buckets or interruption; one artifact serves any number of ranks.

That ranks stay equal is what every run checks before it saves.
"""
import json

from support import MODELS, check, digits, distance, run, same_file, workspace

STEPS = 5


def compiled(directory, name, *options, threads=1):
    out = directory / f"{name}.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", f"--threads={threads}", *options, "-o", out)
    return out


def trained(directory, artifact, data, ranks, name, *options, steps=STEPS, threads=1):
    out = directory / f"{name}.safetensors"
    run("dlc-run", "-np", ranks, "train", artifact, *data, "--steps", steps, "--seed", 7, "--threads", threads, "--save", out,
        "--run", directory / name, *options)
    return out


def check_rounded_wire(directory, data, exact):
    """Gradients that travel as bf16: half the bytes, the same invariances, and nearly the same weights."""
    rounded = {"wire": compiled(directory, "wire", "--wire=bf16")}
    for name, option in {"no-overlap": "--no-overlap", "small-buckets": "--bucket-size=65536"}.items():
        rounded[f"wire-{name}"] = compiled(directory, f"wire-{name}", "--wire=bf16", option)
    first, *others = (trained(directory, artifact, data, 2, name) for name, artifact in rounded.items())
    for other in others:
        same_file(first, other, "runs with gradients in bf16")
    check(first.read_bytes() != exact.read_bytes(), "gradients in bf16 leave no trace")
    error = distance(first, exact)
    check(error < 5e-2, f"gradients in bf16 lead {error:.1e} astray")

    def wire_bytes(artifact):
        return json.loads(run("dlc-run", "-np", 2, "bench", artifact, "--iters", 1, "--batches-per-iter", 1, "--json")[0])["wire_bytes"]
    check(2 * wire_bytes(rounded["wire"]) == wire_bytes(directory / "base.dlx"), "bf16 takes half the bytes on the wire")
    alone = trained(directory, rounded["wire"], data, 1, "wire-alone")
    same_file(alone, trained(directory, directory / "base.dlx", data, 1, "base-alone"), "one rank has no wire")


def main():
    directory = workspace()
    data = digits(directory)
    base = compiled(directory, "base")
    variants = {
        "no-overlap": compiled(directory, "no-overlap", "--no-overlap"),
        "small-buckets": compiled(directory, "small-buckets", "--bucket-size=65536"),
        "one-bucket": compiled(directory, "one-bucket", "--bucket-size=1000000000"),
    }
    results = {}
    for ranks in (1, 2, 3):
        results[ranks] = trained(directory, base, data, ranks, f"base-{ranks}")
        if ranks > 1:
            for name, artifact in variants.items():
                same_file(results[ranks], trained(directory, artifact, data, ranks, f"{name}-{ranks}"), f"{name}, {ranks} ranks")
    check(results[1].read_bytes() != results[2].read_bytes(), "2 ranks train on twice the batch, yet the weights agree")

    again = trained(directory, base, data, 2, "again")
    same_file(results[2], again, "the same run twice")
    two_threads = compiled(directory, "two-threads", threads=2)
    first, second = (trained(directory, two_threads, data, 1, f"threads-{i}", threads=2) for i in range(2))
    same_file(first, second, "the same run on two threads twice")

    # A schedule over the whole run would differ between a total of 3 and of 5 steps.
    constant = compiled(directory, "constant", "--set", "train.schedule=[]")
    whole = trained(directory, constant, data, 2, "whole")
    trained(directory, constant, data, 2, "interrupted", steps=3)
    same_file(whole, trained(directory, constant, data, 2, "interrupted", "--resume"), "resumed and uninterrupted run")

    # Twice the batch on one rank sees the same samples: equal up to rounding (the network has no batch norm).
    double = directory / "double.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=16", "--threads=1", "-o", double)
    error = distance(trained(directory, double, data, 1, "double"), results[2])
    check(error < 1e-3, f"1 rank x 16 and 2 ranks x 8 differ by {error:.1e}")

    check_rounded_wire(directory, data, results[2])


main()
