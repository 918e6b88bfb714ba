#!/usr/bin/python3
"""Data that fit stay in a GPU's memory, and batches are gathered there: flips, turns, crops, zeros beside an image and patches of
volumes with blind spots, on stand-ins for NVIDIA's libraries. No bit of what is trained differs from what the host prepares."""
import json
import re

import standin
from combinations import disks
from emulated import emulated_device
from standin import on_gpu
from support import MODELS, check, png, run, same_file, workspace

import numpy as np

DEVICE_BYTES = 4 << 30  # of the stand-in

PADDED = """model padded(batch = 3) {
  input image : f32[batch, 1, 10, 10]
  input label : i32[batch]
  loss = softmax_cross_entropy(dense(flatten(relu(conv(image, 4, kernel = 3, name = "conv"))), 3, name = "head"), label)
}
data {
  image -> normalize(per_image) -> random_crop(10, padding = 3) -> flip -> image
  validation = 0.25
}
train { optimizer = sgd(lr = 0.05) }
"""


# What is computed of one source in training alone, of another never, and of a third not in evaluations.
BLENDED = """model blended(batch = 2) {
  input image : f32[batch, 1, 8, 8]
  input mask : f32[batch, 1, 8, 8]
  input weight : f32[batch, 1, 8, 8]
  loss = mse(conv(image, 1, kernel = 3, padding = same, name = "conv") * weight, mask)
}
data {
  source image : axes = "NYX"
  source mask : axes = "NYX"
  source weight : axes = "NYX"
  image -> normalize(per_image) -> brightness(0.1) -> image
  weight -> random_crop(8, padding = 3) -> normalize(mean = 100, std = 50) -> weight
  image, mask, weight -> flip -> image, mask, weight
  validation = 0.25
}
train { optimizer = sgd(lr = 0.05) }
"""


# Spots that are elements of no image, and hide their neighbours, too.
SPOTS = """model spots(batch = 2) {
  input image : f32[batch, 1, 32, 32]
  input target : f32[batch, 1, 32, 32]
  input mask : f32[batch, 1, 32, 32]
  loss = mse(conv(image, 1, kernel = 3, padding = same, name = "conv") * mask, target * mask)
}
data {
  source volume : axes = "NYX"
  volume -> normalize(dataset) -> random_crop(32) -> blind_spot(percent = 0.1, radius = 2, replace = "median", struct = [1, 0, 1])
         -> flip -> rotate90 -> image, target, mask
  validation = 0.25
}
train { optimizer = sgd(lr = 0.05) }
"""


def padded(directory):
    """PNG images in a folder for each class."""
    random = np.random.default_rng(1)
    for i in range(24):
        folder = directory / "images" / "abc"[i % 3]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i:02}.png").write_bytes(png(11, 9, random.bytes(11 * 9)))
    return ["--data", f"image={directory}/images", "--data", f"label={directory}/images"]


def digits(directory, count):
    random = np.random.default_rng(5)
    np.save(directory / "image.npy", random.integers(0, 255, (count, 12, 12), dtype=np.uint8))
    np.save(directory / "label.npy", random.integers(0, 10, count, dtype=np.uint8))
    return ["--data", f"image={directory}/image.npy", "--data", f"label={directory}/label.npy"]


def volumes(directory, *names, dtype=np.uint8, shape=(12, 24, 20)):
    random = np.random.default_rng(2)
    words = []
    for name in names:
        values = random.integers(0, 2, shape) * 255 if name == "mask" else random.integers(0, np.iinfo(dtype).max, shape)
        np.save(directory / f"{name}.npy", values.astype(np.uint8 if name == "mask" else dtype))
        words += ["--data", f"{name}={directory}/{name}.npy"]
    return words


def room(*arrays):
    """Bytes for arrays of so many, which begin at multiples of 256."""
    return sum(-(-each // 256) * 256 for each in arrays)


# Data, settings, sources as files hold them, bytes that are set aside, and how often inputs are gathered: steps of two epochs
# and their validations.
CASES = {
    "mnist_cnn": (lambda at: digits(at, 40), ["batch=8", "size=12"], ["image=u8"], room(40 * 12 * 12), 2 * 5),
    "unet2d": (lambda at: disks(at, size=32), ["base=4", "depth=1", "size=32", "predict.size=32", "batch=2"], ["image=u8", "mask=u8"],
               room(*2 * [24 * 32 * 32]), 2 * 2 * (10 + 3)),
    "unet3d": (lambda at: volumes(at, "image", "mask"), ["base=4", "depth=1", "patch=[4, 8, 8]", "batch=2"], ["image=u8", "mask=u8"],
               room(*2 * [12 * 24 * 20]), 2 * 2 * 11),
    "n2v2d": (lambda at: volumes(at, "volume", dtype=np.uint16, shape=(3, 80, 72)), ["base=4", "depth=1", "size=32", "batch=2", "percent=0.25"],
              ["volume=u16"], room(2 * 3 * 80 * 72), 2 * 3 * (100 + 3)),
    "spots": (lambda at: volumes(at, "volume", dtype=np.uint16, shape=(16, 34, 37)), [], [], room(2 * 16 * 34 * 37), 2 * 3 * (6 + 2)),
    "padded": (padded, [], [], room(*24 * [11 * 9]), 2 * (6 + 2)),
    "blended": (lambda at: volumes(at, "image", "mask", "weight", shape=(16, 8, 8)), [], [], room(16 * 8 * 8), 2 * (6 + 2)),
}


class Kept(standin.Pair):
    def __init__(self, directory, model, emulated):
        self.model, self.emulated, self.directory = model, emulated, directory / model
        self.directory.mkdir()
        make, sets, sources, self.kept, self.gathers = CASES[model]
        self.source = MODELS / f"{model}.dl"
        if not self.source.exists():
            self.source = self.directory / f"{model}.dl"
            self.source.write_text({"padded": PADDED, "blended": BLENDED, "spots": SPOTS}[model])
        self.data = make(self.directory)
        self.sets = [word for each in sets for word in ("--set", each)]
        self.artifact = self.compiled_as_text("--math=strict", *(f"--source={each}" for each in sources))

    def train(self, program, name, *options, launcher=()):
        """Weights, losses of epochs, and what is said."""
        weights, directory = self.directory / f"{name}.safetensors", self.directory / name
        said, _ = program(*launcher, "train", self.artifact, *options, *self.data, "--epochs", 2, "--save", weights, "--run", directory)
        log = [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]
        return weights, [(record["loss"], record.get("val_loss")) for record in log if record["event"] == "epoch"], said

    def compare(self, *options):
        name = "".join(map(str, options))
        ranks, rest = (options, ()) if "-np" in options else ((), options)
        staged = self.train(lambda *words: run(self.emulated, *words), f"staged{name}", *rest, launcher=ranks)
        gathers = self.directory / f"{name}.gathers"
        kept = self.train(lambda *words: on_gpu("dlc-run", *words, gathers=gathers), f"kept{name}", *rest, launcher=ranks)
        same_file(kept[0], staged[0], f"{self.model} {name}: data that are kept")
        check(kept[1] == staged[1], f"{self.model} {name}: {kept[1]} and {staged[1]}")
        told = re.search(r"\nthe GPU keeps data in up to ([0-9.]+) KiB", kept[2])
        check(told and abs(float(told[1]) - self.kept / 1024) < 0.06, kept[2])
        check("the GPU keeps" not in staged[2], staged[2])
        counts = [int(count) for count in re.findall(r"gathers (\d+)", gathers.read_text())]
        print(self.model, name, counts)
        check(all(count > 0 if options else count == self.gathers for count in counts), f"{self.model} {name}: {counts} gathered")


def without_room_for_rows(kept):
    """The same bits wherever memory ends that tells the GPU of rows: first for evaluations, then for training as well."""
    counts = []
    for full in range(20, 0, -1):  # allocations that succeed
        weights, gathers = kept.directory / f"full{full}.safetensors", kept.directory / f"full{full}.gathers"
        said, _ = on_gpu("dlc-run", "train", kept.artifact, *kept.data, "--epochs", 2, "--save", weights, "--run", kept.directory / f"full{full}",
                         full=full, gathers=gathers)
        same_file(weights, kept.directory / "kept.safetensors", f"a GPU of {full} allocations")
        check("the GPU keeps" in said, said)
        counts.append(int(re.search(r"gathers (\d+)", gathers.read_text())[1]))
        if counts[-1] == 0:
            break
    print("allocations fail", counts)
    check(counts[0] == kept.gathers and counts[-1] == 0 and len(set(counts)) > 2, f"{counts} gathered")


def without_room(kept):
    """The same bits where others have taken so much of the GPU that less than twice the data are left."""
    digits(kept.directory, 70000)
    planned = json.loads(run("dlc", "inspect", "--json", kept.artifact)[0])["memory"]["bytes"]
    weights = []
    for name, left in ("room", 24 << 20), ("none", 12 << 20):
        weights.append(kept.directory / f"{name}.safetensors")
        said, _ = on_gpu("dlc-run", "train", kept.artifact, *kept.data, "--steps", 4, "--save", weights[-1], "--run", kept.directory / name,
                         taken=DEVICE_BYTES - planned - left)
        check(("the GPU keeps data in up to 9.6 MiB" in said) == (name == "room") and ("the GPU keeps" in said) == (name == "room"), said)
    same_file(*weights, "data for which there is no room")


def main():
    standin.require_standins()
    directory = workspace()
    emulated = emulated_device(directory)
    for model in CASES:
        kept = Kept(directory, model, emulated)
        kept.compare()
        if model == "mnist_cnn":
            kept.compare("--accumulate", 2)
            kept.compare("-np", 2)
            without_room_for_rows(kept)
            without_room(kept)


main()
