#!/usr/bin/python3
"""Data that do not fit: one line that names file, sample and value, on any number of ranks, and no step on such
data."""
import json
import os
import struct

from support import check, png, run, workspace

import numpy as np

MODEL = """
model small(batch = 2) {
  input image : f32[batch, 1, 8, 8]
  input mask  : f32[batch, 1, 8, 8]
  logits = conv(image, 1, kernel = 3, padding = same, name = "head")
  output probability = sigmoid(logits)
  loss = bce_with_logits(logits, mask)
  metric iou = iou(logits > 0.0, mask > 0.5)
}
data { source image, mask : axes = "NYX" }
"""


def refused(*command, **options):
    """The one line of a command that fails."""
    out, err = run(*command, expect=1, **options)
    lines = err.strip().split("\n")
    check(len(lines) == 1 and lines[0].startswith("dlc-run: error: "), f"more than one line: {err}")
    return lines[0]


def expect(line, *parts):
    for part in parts:
        check(part in line, f"'{part}' is not in: {line}")


def steps_made(directory):
    """Numbers of the steps that a run has logged."""
    log = directory / "log.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [record["step"] for record in records if record["event"] == "step"]


def targets(directory, model):
    """Masks that are no targets of a binary cross entropy."""
    image, mask = directory / "image.npy", directory / "mask.npy"
    random = np.random.default_rng(0)
    np.save(image, random.integers(0, 255, (12, 8, 8)).astype(np.uint8))
    data = ["--data", f"image={image}", "--data", f"mask={mask}"]
    good = random.integers(0, 2, (12, 8, 8))

    np.save(mask, (good * 255).astype(np.uint8))
    out, _ = run("dlc-run", "train", model, *data, "--epochs", 1, "--run", directory / "good")
    expect(out, "note: mask holds 0 and 255 alone and is read as 0 and 1")
    weights = ["--init", directory / "good" / "last.safetensors"]

    grey = good * 200
    grey[0, 0, 0] = 100
    np.save(mask, grey.astype(np.uint8))
    # Several times: the rank that mpirun ends because of the other must not speak for both.
    for attempt, ranks in enumerate((1, 2, 2, 2, 2)):
        kept = directory / f"whole-{attempt}"
        line = refused("dlc-run", "-np", ranks, "train", model, *data, "--run", kept)
        expect(line, "mask.npy': sample 0 has the value 100, but the loss or metric on input mask takes 0..1: save it")
        check(not kept.exists(), "a run that made no step left its directory")
    expect(refused("dlc-run", "eval", model, *data, *weights), "sample 0 has the value 100")
    run("dlc-run", "predict", model, "--data", data[1], *weights, "-o", directory / "predictions")  # needs no target

    late = good.astype(np.float32)
    late[10, 3, 3] = 1.5
    np.save(mask, late)
    line = refused("dlc-run", "train", model, *data, "--no-shuffle", "--run", directory / "late")
    expect(line, "mask.npy': sample 10 has the value 1.5,")
    check(steps_made(directory / "late") == [1, 2, 3, 4, 5], f"steps before the one of sample 10: {steps_made(directory / 'late')}")
    # On rank 1; and in the second piece of a step, on rank 0.
    for name, more, steps in (("late-2", [], [1, 2]), ("late-pieces", ["--accumulate", 2], [1])):
        kept = directory / name
        line = refused("dlc-run", "-np", 2, "train", model, *data, "--no-shuffle", *more, "--run", kept)
        expect(line, f"dlc-run: error: '{mask}': sample 10 has the value 1.5,")
        check(steps_made(kept) == steps, f"{name}: steps before the one of sample 10: {steps_made(kept)}")
    for ranks in (1, 2):
        line = refused("dlc-run", "-np", ranks, "eval", model, *data, *weights)
        expect(line, f"dlc-run: error: '{mask}': sample 10 has the value 1.5,")

    np.save(mask, good.astype(np.uint8))
    pixels = random.random((12, 8, 8)).astype(np.float32)
    pixels[7, 0, 0] = np.nan
    np.save(image, pixels)
    for verb in ("train", "eval", "predict"):
        more = [] if verb == "train" else weights
        more += ["-o", directory / "predictions"] if verb == "predict" else []
        more += ["--no-shuffle", "--run", directory / "nan"] if verb == "train" else []
        given = data[:2] if verb == "predict" else data
        expect(refused("dlc-run", verb, model, *given, *more), "image.npy': sample 7 holds nan")
    check(steps_made(directory / "nan") == [1, 2, 3], f"steps before the one of sample 7: {steps_made(directory / 'nan')}")


SOFT = """
model soft(batch = 2) {
  input image : f32[batch, 1, 8, 8]
  input label : f32[batch, 3]
  logits = dense(flatten(image), 3, name = "head")
  output probability = softmax(logits)
  loss = softmax_cross_entropy(logits, label)
}
"""


def shares(directory):
    """Labels that are shares of the classes sum to 1; no step is made on such that do not."""
    model, image, label = directory / "soft.dl", directory / "soft-image.npy", directory / "soft-label.npy"
    model.write_text(SOFT)
    np.save(image, np.ones((8, 1, 8, 8), np.float32))
    rows = np.tile(np.array([0.25, 0.25, 0.5], np.float32), (8, 1))
    data = ["--data", f"image={image}", "--data", f"label={label}"]
    np.save(label, rows)
    run("dlc-run", "train", model, *data, "--epochs", 1, "--run", directory / "soft")
    rows[5, 2] = 0.375
    np.save(label, rows)
    line = refused("dlc-run", "train", model, *data, "--no-shuffle", "--run", directory / "soft-late")
    expect(line, "soft-label.npy': sample 5 has shares of the classes that sum to 0.875, but the loss on input label "
                 "takes such that sum to 1: divide them by their sum")
    check(steps_made(directory / "soft-late") == [1, 2], f"steps before the one of sample 5: {steps_made(directory / 'soft-late')}")
    expect(refused("dlc-run", "eval", model, *data, "--init", directory / "soft" / "last.safetensors"), "sum to 0.875")


def files(directory, model):
    """Files of odd kinds, one line each."""
    weights = ["--init", directory / "good" / "last.safetensors", "-o", directory / "predictions"]

    def refusal(path):
        return refused("dlc-run", "predict", model, "--data", f"image={path}", *weights)

    def array(values, name="odd.npy"):
        np.save(directory / name, values)
        return directory / name

    expect(refusal(array(np.zeros((2, 8, 8), np.complex64))), "'<c8' is not supported; save it as one of")
    expect(refusal(array(np.zeros((2, 8, 8), np.uint64))), "'<u8' is not supported; save it as one of")
    expect(refusal(array(np.full((2, 8, 8), None))), "'|O' is not supported; save it as one of")
    expect(refusal(array(np.asfortranarray(np.zeros((2, 8, 8))))), "numpy.ascontiguousarray")
    expect(refusal(array(np.zeros((0, 8, 8)))), "holds no samples")
    expect(refusal(array(np.zeros((2, 0, 8)))), "holds no elements")
    run("dlc-run", "predict", model, "--data", f"image={array(np.zeros((2, 8, 8), bool))}", *weights)

    whole = png(64, 64, bytes(range(256)) * 16)
    (directory / "cut.png").write_bytes(whole[:60])
    expect(refusal(directory / "cut.png"), "cut.png': it is truncated or damaged")
    (directory / "cut.tif").write_bytes(b"II*\0" + struct.pack("<I", 1000))
    expect(refusal(directory / "cut.tif"), "cut.tif': it is truncated or damaged")
    (directory / "cut.gz").write_bytes(b"\x1f\x8b\x08\0\0\0")
    expect(refusal(directory / "cut.gz"), "truncated or damaged (gzip)")
    (directory / "wrong.idx").write_bytes(b"\0\0\x63\x01\0\0\0\x01a")
    expect(refusal(directory / "wrong.idx"), "no IDX file")
    os.mkfifo(directory / "pipe")
    expect(refusal(directory / "pipe"), "no regular file")

    (directory / "none").mkdir()
    expect(refusal(directory / "none"), "holds no PNG, TIFF or JPEG images")
    (directory / "images").mkdir()
    for name in ("a.png", "B.PNG"):
        (directory / "images" / name).write_bytes(png(8, 8, bytes(64)))
    for name in (".DS_Store", "Thumbs.db", "._a.png"):
        (directory / "images" / name).write_bytes(b"\0\5\x16\7 of another program")
    run("dlc-run", "predict", model, "--data", f"image={directory / 'images'}", *weights)
    (directory / "images" / "a.tif").write_bytes(b"")
    expect(refusal(directory / "images"), "holds two images named a")


def main():
    directory = workspace()
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
    source = directory / "small.dl"
    source.write_text(MODEL)
    model = directory / "small.dlx"
    run("dlc", "compile", source, "--threads=1", "-o", model)
    targets(directory, model)
    shares(directory)
    files(directory, model)


main()
