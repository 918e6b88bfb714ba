#!/usr/bin/python3
"""Every model of models/ with its own data block: train, predict and eval on small files of the kinds that it is made for.

numpy does what the data steps say. A copy of the model without a data block, given the results, must predict and evaluate
the same; of Noise2Void, whose blind spots are drawn, only predict: its evaluation must tell the variance of the noise.
Segmentations must learn their masks; of the others, whose steps are few, the loss must fall.
"""
import dataclasses
import gzip
import json
import math
import pathlib
import re
import shutil
import struct
import tempfile

from images import read_tiff, write_tiff
from support import MODELS, check, read_safetensors, run, without_data, workspace

import numpy as np
from PIL import Image

CLASSES = 5
LEARNT = 0.8  # an IoU: pixels of the masks are brighter than all others
VARIANCE = 0.1, 10  # between which the error of a guess is, of few pixels normalised to 1, of which none tells of another


@dataclasses.dataclass
class Case:
    """`data` and `val` are source -> file, first the source that predict needs; `pixels` are that file's, [N, C, (Z,) Y, X].
    They are normalised by `mean` and `std`, per channel or sample, or by those of `dataset`, pixels of the training part."""
    name: str
    sets: dict
    data: dict
    pixels: np.ndarray
    said: list  # as training starts
    target: np.ndarray = None  # the other source's numbers, of masks [N, 1, (Z,) Y, X]
    mean: object = None
    std: object = None
    dataset: np.ndarray = None
    val: dict = dataclasses.field(default_factory=dict)
    steps: tuple = ("--steps", 3, "--lr", 1e-3)

    def __post_init__(self):
        if self.dataset is not None:
            axes = (0, *range(2, self.dataset.ndim))
            self.mean, self.std = (figure(self.dataset.astype(np.float64), axis=axes, keepdims=True) for figure in (np.mean, np.std))

    @property
    def source(self):
        return next(iter(self.data))

    @property
    def has_masks(self):
        return "mask" in self.data

    @property
    def shape(self):
        """Of what is predicted."""
        if "label" in self.data:
            return len(self.pixels), self.sets.get("classes", 10)
        return len(self.pixels), self.sets.get("classes", self.pixels.shape[1]), *self.pixels.shape[2:]

    @property
    def files(self):
        """Of the source that predict needs."""
        file = self.data[self.source]
        return sorted(file.iterdir()) if file.is_dir() else [file]

    @property
    def prepared(self):
        return ((self.pixels - self.mean) / self.std).astype(np.float32)


def of_each(pixels):
    """normalize(per_image)."""
    axes = tuple(range(1, pixels.ndim))
    return {"mean": pixels.mean(axes, keepdims=True), "std": pixels.std(axes, keepdims=True) + 1e-6}


def per_channel(*values):
    return np.array(values)[:, None, None]


def saved(path, values):
    np.save(path, np.ascontiguousarray(values))
    return path


def packed(path, values):
    """An IDX file, as MNIST comes."""
    path.write_bytes(gzip.compress(struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes(), 1))
    return path


def class_folders(path, pixels, label):
    for image, k in zip(np.moveaxis(pixels, 1, -1), label):
        (path / f"class{k}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path / f"class{k}" / f"image{k}.png")
    return path


def striped(random, count, channels, size):
    """Bytes and their labels: which fifth of the rows is bright. A flip along X changes nothing."""
    label = np.arange(count) % CLASSES
    pixels = random.integers(0, 60, (count, channels, size, 1)).repeat(size, axis=3)
    for image, k in zip(pixels, label):
        image[:, k * size // CLASSES:(k + 1) * size // CLASSES] += 100 + 30 * np.arange(channels)[:, None, None]
    return pixels.astype(np.uint8), label.astype(np.uint8)


def classifiers(directory, random):
    pixels, label = striped(random, 16, 1, 28)
    digits = {"image": packed(directory / "images.gz", pixels[:, 0]), "label": packed(directory / "labels.gz", label)}
    tests = {"image": packed(directory / "test-images.gz", pixels[:5, 0]), "label": packed(directory / "test-labels.gz", label[:5])}
    yield Case("mnist_cnn", {"batch": 16}, digits, pixels, ["16 training samples, 5 for validation"], label, mean=33.318421, std=78.567490,
               val=tests, steps=("--steps", 8, "--lr", 0.005))

    # One image of a class, all of them in each of the steps.
    small = {"batch": CLASSES, "predict.batch": CLASSES, "classes": CLASSES, "train.steps_per_epoch": 3}
    still = small | {"drop": 0}
    pixels, label = striped(random, CLASSES, 3, 32)
    folders = class_folders(directory / "photos", pixels, label)
    photos = {"image": folders, "label": folders}
    said = ["5 training samples, 0 for validation", f"label numbers the folders of '{folders}': 0 class0, 1 class1, 2 class2, 3 class3, 4 class4"]
    yield Case("vgg16", still | {"size": 32}, photos, pixels, said, label, mean=per_channel(123.675, 116.28, 103.53),
               std=per_channel(58.395, 57.12, 57.375), steps=("--steps", 3, "--lr", 1e-4))
    yield Case("resnet101", small | {"size": 32, "zero_init_residual": "true"}, photos, pixels, said, label, dataset=pixels)

    tiny, large = (striped(random, CLASSES, 3, size)[0] for size in (8, 107))
    for name, sets, images in (("resnet50", small | {"size": 8, "stem": "small", "zero_init_residual": "true"}, tiny),
                               ("inception_v3", still | {"size": 107, "aux": "false"}, large)):
        files = {"image": saved(directory / f"{name}.npy", np.moveaxis(images, 1, -1)), "label": saved(directory / "labels.npy", label)}
        yield Case(name, sets, files, images, ["5 training samples, 0 for validation"], label, dataset=images, steps=("--steps", 3, "--lr", 2e-5))

    pixels, label = striped(random, CLASSES, 1, 8)
    numbers = {"image": saved(directory / "numbers.npy", pixels), "label": saved(directory / "labels.npy", label)}
    yield Case("resnet50_svhn", small | {"size": 8}, numbers, pixels, ["5 training samples, 5 for validation"], label, **of_each(pixels),
               val=numbers, steps=("--steps", 3, "--lr", 5e-5))


def cells(random, *shape, classes=2):
    """Bytes, the brighter the higher the mask's class."""
    mask = (random.random(shape) < 0.3).astype(np.uint8) if classes == 2 else random.integers(0, classes, shape, np.uint8)
    return (random.integers(0, 50, shape) + 100 * mask).astype(np.uint8), mask


def segmentations(directory, random):
    small = {"base": 4, "depth": 1}
    pixels, mask = cells(random, 10, 16, 16)
    folder = directory / "cells"
    folder.mkdir()
    for i, (image, truth) in enumerate(zip(pixels, mask)):
        Image.fromarray(image).save(folder / f"x{i}.png")
        Image.fromarray(truth * 255).save(folder / f"x{i}_mask.png")
    said = ["8 training samples, 2 for validation", "image and mask pair x0.png with x0_mask.png, x1.png with x1_mask.png, x2.png with x2_mask.png, ...",
            "mask holds 0 and 255 alone and is read as 0 and 1"]
    yield Case("unet2d", small | {"size": 16, "predict.size": 16}, {"image": folder, "mask": folder}, pixels[:, None], said, mask[:, None],
               **of_each(pixels[:, None]), steps=("--steps", 60, "--lr", 0.02))

    pixels, mask = cells(random, 2, 8, 24, 16)
    for name, volumes in (("volumes", pixels), ("masks", mask)):
        (directory / name).mkdir()
        for i, volume in enumerate(volumes):
            write_tiff(directory / name / f"v{i}.tif", volume)
    # Of 24 rows, a fifth and at least a patch validates.
    said = ["16 training samples, 8 for validation", "image and mask pair v0.tif with v0.tif, v1.tif with v1.tif", "8 x 8 x 16 is kept apart"]
    yield Case("unet3d", small | {"patch": "4,8,8", "predict.patch": "8,24,16"}, {"image": directory / "volumes", "mask": directory / "masks"},
               pixels[:, None], said, mask[:, None], dataset=pixels[:, None, :, :16], steps=("--steps", 120, "--lr", 0.02))


def denoisers(directory, random):
    pixels = random.normal(300, 40, (3, 1, 32, 96)).astype(np.uint16)
    write_tiff(directory / "images.tif", pixels[:, 0])
    yield Case("n2v2d", {"base": 4, "size": 32, "predict.size": 96}, {"volume": directory / "images.tif"}, pixels, ["6 training samples"],
               dataset=pixels[..., :64], steps=("--steps", 100, "--lr", 2e-3))
    pixels = random.normal(300, 40, (1, 1, 8, 16, 48)).astype(np.uint16)
    write_tiff(directory / "volume.tif", pixels[0, 0])
    yield Case("n2v3d", {"base": 4, "patch": "4,16,16", "predict.patch": "8,16,48"}, {"volume": directory / "volume.tif"}, pixels, ["4 training samples"],
               dataset=pixels[..., :32], steps=("--steps", 100, "--lr", 2e-3))


def class_masks(directory, random):
    small = {"base": 4, "depth": 1, "classes": 3}
    pixels, mask = cells(random, 10, 16, 16, classes=3)
    files = {"image": saved(directory / "class-images.npy", pixels), "mask": saved(directory / "class-masks.npy", mask)}
    yield Case("unet2d", small | {"size": 16, "predict.size": 16}, files, pixels[:, None], ["8 training samples, 2 for validation"], mask[:, None],
               **of_each(pixels[:, None]), steps=("--steps", 200, "--lr", 0.02))

    pixels, mask = cells(random, 8, 24, 16, classes=3)
    for name, volume in (("class-image", pixels), ("class-mask", mask)):
        write_tiff(directory / f"{name}.tif", volume)
    pixels, mask = pixels[None, None], mask[None, None]
    yield Case("unet3d", small | {"patch": "4,8,8", "predict.patch": "8,24,16"},
               {"image": directory / "class-image.tif", "mask": directory / "class-mask.tif"}, pixels, ["8 training samples, 4 for validation"], mask,
               dataset=pixels[:, :, :, :16], steps=("--steps", 120, "--lr", 0.02))


def patches(values):
    """Of 4 x 8 x 8, side by side."""
    n, c, z, y, x = values.shape
    parts = values.reshape(n, c, z // 4, 4, y // 8, 8, x // 8, 8)
    return parts.transpose(0, 2, 4, 6, 1, 3, 5, 7).reshape(-1, c, 4, 8, 8)


def options(option, files):
    return [part for name, file in files.items() for part in (option, f"{name}={file}")]


def compiled(model, sets, folder):
    artifact = folder / f"{model.parent.name}.dlx"
    run("dlc", "compile", model, *[part for name, value in sets.items() for part in ("--set", f"{name}={value}")], "--threads=1", "-o", artifact)
    return artifact


def trained(case, artifact, folder):
    """The directory of a run whose loss falls."""
    kept = folder / "run"
    out, err = run("dlc-run", "train", artifact, *options("--data", case.data), *options("--val", case.val), *case.steps, "--run", kept)
    for line in case.said:
        check(re.search(rf"(?<!\d){re.escape(line)}", out + err), f"{case.name} does not say '{line}': {out + err}")
    records = [json.loads(line) for line in (kept / "log.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in records if record["event"] == "step"]
    few = max(1, len(losses) // 5)
    end = np.mean(losses[-few:]) if few > 1 else min(losses[1:])  # a random crop is large beside three steps
    check(all(map(math.isfinite, losses)) and end < np.mean(losses[:few]), f"{case.name}: losses {losses}")
    validated = [record["val_loss"] for record in records if "val_loss" in record]
    check(all(map(math.isfinite, validated)) and bool(validated) == (" 0 for validation" not in case.said[0]), f"{case.name}: validation {validated}")
    return kept


def statistics(case, weights):
    tensors = read_safetensors(weights)
    for figure in ("mean", "std"):
        ours, wanted = tensors[f"data.{case.source}.{figure}"], getattr(case, figure).ravel()
        check(ours.shape == wanted.shape and np.allclose(ours, wanted, rtol=1e-5), f"{case.name}: {figure} is {ours}, not {wanted}")


def predicted(artifact, source, file, weights, into):
    """The one output, and what is printed of it."""
    out, _ = run("dlc-run", "predict", artifact, "--data", f"{source}={file}", "--init", weights, "-o", into)
    file, = into.glob("*.npy")
    return np.load(file), out


def alike(case, one, two, what):
    error = np.abs(one - two).max() / max(np.abs(two).max(), 1e-6) if one.shape == two.shape else math.inf
    check(error < 1e-4, f"{case.name}: {what} differs by {error:.1e} from that of data prepared by numpy")


def predicts(case, artifact, copy, weights, folder):
    output, printed = predicted(artifact, case.source, case.data[case.source], weights, folder / "out")
    prepared, _ = predicted(copy, "image", saved(folder / "image.npy", case.prepared), weights, folder / "prepared")
    check(output.shape == case.shape and output.dtype == np.float32, f"{case.name} predicts {output.shape} of {output.dtype}, not {case.shape}")
    check(": " + " x ".join(map(str, case.shape)) + " as .npy" in printed, f"{case.name} prints {printed}")
    if case.source == "volume":  # predictions are denoised in the units of the file
        prepared = prepared * case.std + case.mean
    alike(case, output, prepared, "what is predicted")
    images = list((folder / "out").glob("*.tif"))
    check(len(images) == sum(file.suffix == ".tif" for file in case.files), f"{case.name} writes {len(images)} images")
    for file in images:
        pages = np.moveaxis(output, 1, -3)  # one of each sample, depth and channel
        same = (pages[int(file.stem[-1])] if case.data[case.source].is_dir() else pages).reshape(-1, *output.shape[-2:])
        check(np.array_equal(read_tiff(file)[0], same), f"{case.name}: {file.name} is not what the .npy file holds")


def evaluates(case, artifact, copy, weights, folder):
    def told(model, files):
        figures = json.loads(run("dlc-run", "eval", model, *options("--data", files), "--init", weights, "--json")[0])
        check(figures and all(map(math.isfinite, figures.values())), f"{case.name}: {figures}")
        return figures
    figures = told(artifact, case.data)
    if case.target is None:
        check(VARIANCE[0] < figures["loss"] < VARIANCE[1], f"{case.name} guesses pixels that nothing tells of by {figures}")
        return
    cut = patches if case.pixels.ndim == 5 else lambda values: values
    target = case.target.astype(np.int32) if case.target.ndim == 1 else cut(case.target).astype(np.float32)
    if case.has_masks and "classes" in case.sets:
        target = target[:, 0].astype(np.int32)
    values = saved(folder / "image.npy", cut(case.prepared)), saved(folder / "target.npy", target)
    prepared = told(copy, dict(zip(case.data, values)))
    check(figures.keys() == prepared.keys(), f"{case.name}: {figures} and {prepared}")
    for name, value in prepared.items():
        alike(case, np.array(figures[name]), np.array(value), name)
    if case.has_masks:
        check(figures["iou"] > LEARNT, f"{case.name} has not learnt from its images and masks, as if they did not belong together: {figures}")


def refuses(case, artifact, folder):
    """A file with a channel more."""
    wrong = saved(folder / "wrong.npy", np.zeros((len(case.pixels), case.pixels.shape[1] + 1, *case.pixels.shape[2:]), np.uint8))
    _, err = run("dlc-run", "train", artifact, *options("--data", case.data | {case.source: wrong}), "--run", folder / "none", expect=1)
    check(err.startswith(f"dlc-run: error: '{wrong}'") and err.count("\n") == 1, f"{case.name}: {err}")


def judge(case, directory):
    folder = directory / case.name
    (folder / "copy").mkdir(parents=True)
    artifact = compiled(MODELS / f"{case.name}.dl", case.sets, folder)
    weights = trained(case, artifact, folder) / "last.safetensors"
    if case.dataset is not None:
        statistics(case, weights)
    copy = compiled(without_data(f"{case.name}.dl", folder / "copy"), case.sets, folder)
    predicts(case, artifact, copy, weights, folder)
    evaluates(case, artifact, copy, weights, folder)
    refuses(case, artifact, folder)
    shutil.rmtree(folder)


def main():
    shared = pathlib.Path("/dev/shm")
    if shared.exists() and shutil.disk_usage(shared).free > 2**31:
        tempfile.tempdir = shared  # checkpoints are of some hundred MB, and synced
    directory, random, seen = workspace(), np.random.default_rng(5), set()
    for cases in (classifiers, segmentations, denoisers, class_masks):
        for case in cases(directory, random):
            judge(case, directory)
            seen.add(case.name)
    models = {model.stem for model in MODELS.glob("*.dl") if f"\nmodel {model.stem}(" in model.read_text()}
    check(models == seen, f"not tested: {', '.join(models - seen)}")
    shutil.rmtree(directory)


main()
