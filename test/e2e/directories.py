#!/usr/bin/python3
"""Directories as people keep them: JPEG files in a folder for each class, and images of several sizes with their
masks beside them; what does not fit ends in one line."""
import re
import shutil
import time

from support import check, run, workspace

import numpy as np
from PIL import Image

CLASSIFIER = """
model classifier(batch = 4, size = 8) {
  input image : f32[batch, 3, size, size]
  input label : i32[batch]
  logits = dense(flatten(image), 3, name = "head")
  output probability = softmax(logits)
  loss = softmax_cross_entropy(logits, label)
  metric accuracy = accuracy(logits, label)
}
data {
  source image : axes = "NYXC"
  source label : axes = "N"
  image -> normalize(dataset) -> image
}
train { optimizer = adam(lr = 0.01); epochs = 30 }
predict { batch = 1 }
"""

SEGMENTER = """
model segmenter(batch = 2, size = 16) {
  input image : f32[batch, 1, size, size]
  input mask  : f32[batch, 1, size, size]
  logits = conv(image, 1, kernel = 1, name = "head")
  output probability = sigmoid(logits)
  loss = bce_with_logits(logits, mask)
}
data {
  source image, mask : axes = "NYX"
  image -> normalize(per_image) -> image
  image, mask -> resize_pad(16) -> image, mask
}
train { optimizer = sgd(lr = 0.1); epochs = 1 }
predict { batch = 1 }
"""


def refused(*command):
    """The one line of a command that fails."""
    out, err = run(*command, expect=1)
    lines = err.strip().split("\n")
    check(len(lines) == 1 and lines[0].startswith("dlc-run: error: "), f"more than one line: {err}")
    return lines[0]


def expect(text, *parts):
    for part in parts:
        check(part in text, f"'{part}' is not in: {text}")


def photographs(folder, count, seed):
    """The brightest channel tells the class."""
    random = np.random.default_rng(seed)
    for channel, name in enumerate(("red", "green", "blue")):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            pixels = random.integers(0, 80, (8, 8, 3))
            pixels[..., channel] += 150
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{i}.jpg", quality=95)


def classes(directory):
    photographs(directory / "photos", 8, seed=0)
    photographs(directory / "others", 2, seed=1)
    model = directory / "classifier.dl"
    model.write_text(CLASSIFIER)
    data = ["--data", f"image={directory}/photos", "--data", f"label={directory}/photos"]
    val = ["--val", f"image={directory}/others", "--val", f"label={directory}/others"]
    kept, saved = directory / "classes", directory / "saved.safetensors"
    out, _ = run("dlc-run", "train", model, *data, *val, "--run", kept, "--save", saved)
    expect(out, f"note: label numbers the folders of '{directory}/photos': 0 blue, 1 green, 2 red")
    weights = ["--init", kept / "last.safetensors"]
    out, _ = run("dlc-run", "eval", model, "--data", val[1], "--data", val[3], *weights)
    expect(out, "accuracy 1")
    run("dlc-run", "predict", model, "--data", data[1], *weights, "-o", directory / "predictions")
    found = np.load(directory / "predictions" / "probability.npy").argmax(axis=1)
    check(list(found) == [0] * 8 + [1] * 8 + [2] * 8, f"classes of the folders in order: {found}")

    whole = (directory / "photos" / "red" / "5.jpg").read_bytes()
    (directory / "photos" / "red" / "5.jpg").write_bytes(whole[:len(whole) // 2])
    line = refused("dlc-run", "train", model, *data, "--run", directory / "cut")
    expect(line, "photos/red/5.jpg': it is truncated or damaged (Premature end of JPEG file)")
    (directory / "photos" / "red" / "5.jpg").write_bytes(whole)
    shutil.rmtree(directory / "others" / "green")
    line = refused("dlc-run", "train", model, "--data", val[1], "--data", val[3], "--val", data[1], "--val", data[3])
    expect(line, "the folders that number the classes of label differ: training lacks green; give both the same folders")
    (directory / "others" / "green").mkdir()
    line = refused("dlc-run", "eval", model, "--data", val[1], "--data", val[3], *weights)
    expect(line, "others/green' holds no PNG, TIFF or JPEG images: each folder of")

    # Weights know the names of their classes, so that a folder less shifts no label.
    shutil.rmtree(directory / "others" / "green")
    for weights in (kept / "best.safetensors", saved):
        line = refused("dlc-run", "eval", model, "--data", val[1], "--data", val[3], "--init", weights)
        expect(line, "the folders that number the classes of label differ: --data lacks green; give the folders of the training, "
                     "or the labels in a file")
    shutil.copytree(directory / "others" / "red", directory / "others" / "cyan")
    line = refused("dlc-run", "eval", model, "--data", val[1], "--data", val[3], "--init", saved)
    expect(line, f"differ: '{saved}' lacks cyan; give")
    line = refused("dlc-run", "train", "--run", kept, "--resume", "--override", "data,epochs", "--epochs", 9, model, "--data", val[1],
                   "--data", val[3])
    expect(line, "differ: the run lacks cyan; give the folders that the run began with")
    np.save(directory / "label.npy", np.zeros(6, np.uint8))
    run("dlc-run", "eval", model, "--data", val[1], "--data", f"label={directory}/label.npy", "--init", saved)


LARGE = CLASSIFIER.replace("normalize(dataset)", "crop(8) -> normalize(mean = 128, std = 64)")


def decoding(directory):
    """How many images a second a thread decodes, which a run tells at its end: no less than its own time allows, and no
    more than another program does."""
    random = np.random.default_rng(2)
    photos = [directory / "large" / name / f"{i}.jpg" for name in "abc" for i in range(8)]
    for path in photos:
        path.parent.mkdir(parents=True, exist_ok=True)
        small = Image.fromarray(random.integers(0, 256, (128, 128, 3), np.uint8))
        small.resize((1024, 1024), Image.Resampling.BICUBIC).save(path, quality=90)

    def seconds():
        begin = time.perf_counter()
        for path in photos:
            Image.open(path).load()
        return time.perf_counter() - begin

    most = 2 * len(photos) / min(seconds() for _ in range(3))
    model = directory / "large.dl"
    model.write_text(LARGE)
    out, _ = run("dlc-run", "train", model, "--threads", 1, "--data", f"image={directory}/large", "--data", f"label={directory}/large", "--epochs", 1,
                 "--run", directory / "decoded")
    found = re.search(r"^data: (\d+) samples/s a thread, 1 thread per rank\n([0-9.]+) s = ", out, re.M)
    check(found and int(found[1]) + 1 > len(photos) / float(found[2]) and int(found[1]) < most, f"more than {most:.0f} images/s a thread, or no figure: {out}")


def masks(directory):
    model = directory / "segmenter.dl"
    model.write_text(SEGMENTER)
    folder = directory / "cells"
    folder.mkdir()
    random = np.random.default_rng(2)
    for name, shape in (("a", (16, 16)), ("b", (20, 12)), ("c", (7, 16)), ("d", (16, 16))):
        pixels = random.integers(0, 256, shape)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{name}.png")
        Image.fromarray(((pixels > 127) * 255).astype(np.uint8)).save(folder / f"{name}_mask.png")
    data = ["--data", f"image={folder}", "--data", f"mask={folder}"]
    kept = directory / "masks"
    out, _ = run("dlc-run", "train", model, *data, "--run", kept)
    expect(out, "note: image and mask pair a.png with a_mask.png, b.png with b_mask.png, c.png with c_mask.png, ...")
    run("dlc-run", "predict", model, "--data", data[1], "--init", kept / "last.safetensors", "-o",
        directory / "masks-out")
    check(sorted(path.name for path in (directory / "masks-out").glob("*.png")) ==
          [f"probability-{name}.png" for name in "abcd"], "one picture for each image, none for masks")

    plain = directory / "plain.dl"
    plain.write_text(SEGMENTER.replace("image, mask -> resize_pad(16) -> image, mask", ""))
    line = refused("dlc-run", "train", plain, *data)
    expect(line, "b.png' (1 x 20 x 12) gives samples of shape 1 x 20 x 12, but the model's input image takes 1 x 16 x 16",
           "a.png' gives 1 x 16 x 16: resize_pad(size) in the data block makes images of several sizes alike")
    (folder / "c_mask.png").unlink()
    line = refused("dlc-run", "train", model, *data)
    expect(line, "has c for image, but", "has no image named c or c_mask for mask: add it, or take the other away")


def main():
    directory = workspace()
    classes(directory)
    decoding(directory)
    masks(directory)


main()
