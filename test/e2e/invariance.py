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


NORMS = """
model norms(batch = 8, sync = true) {
  input image : f32[batch, 1, 28, 28]
  input label : i32[batch]
  x = image
  for width in [8, 16] {
    short = batch_norm(conv(x, width, kernel = 1, stride = 2, bias = false), sync = sync)     // a sibling of the one below
    x = relu(batch_norm(conv(x, width, kernel = 3, stride = 2, padding = 1, bias = false), sync = sync) + short)
  }
  logits = dense(flatten(x), 10)
  loss = softmax_cross_entropy(logits, label)
}
data { image -> normalize(dataset) -> image }
train { optimizer = sgd(lr = 0.05, momentum = 0.9) }
"""


def check_synchronised_norms(directory, data):
    """Two ranks whose norms meet train as one with the whole batch; those of norms that do not are elsewhere."""
    model = directory / "norms.dl"
    model.write_text(NORMS)

    def artifact(name, *options):
        run("dlc", "compile", model, "--threads=1", *options, "-o", directory / f"{name}.dlx")
        return directory / f"{name}.dlx"

    alone = trained(directory, artifact("norms-alone", "--set", "batch=16"), data, 1, "norms-alone", steps=10)
    met = trained(directory, artifact("norms-met"), data, 2, "norms-met", steps=10)
    apart = trained(directory, artifact("norms-apart", "--set", "sync=false"), data, 2, "norms-apart", steps=10)
    check(distance(met, alone) < 1e-4, f"two ranks with synchronised norms and one differ by {distance(met, alone):.1e}")
    check(distance(apart, alone) > 1e-3, f"norms apart lead only {distance(apart, alone):.1e} elsewhere")
    same_file(met, trained(directory, artifact("norms-late", "--no-overlap"), data, 2, "norms-late", steps=10), "norms, no overlap")

    # Four norms meet forward and backward, each pair of siblings in one message.
    train = json.loads(run("dlc", "inspect", directory / "norms-met.dlx", "--json")[0])["programs"][0]
    layers = [set(bucket["members"]) for bucket in train["buckets"]]
    first, second = {"batch_norm.0", "batch_norm.1"}, {"batch_norm.2", "batch_norm.3"}
    check(layers[:3] == [first, second, second] and first in layers[3:] and len(layers) <= 6, f"messages of {layers}")


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
    check_synchronised_norms(directory, data)


main()
