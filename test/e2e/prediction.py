#!/usr/bin/python3
"""Images of any size are predicted, and evaluated, by tiles as a program of their size would; what predict writes, TIFF
for ImageJ included."""
import json
import os
import re

from images import read_tiff, write_tiff
from support import MODELS, check, read_safetensors, run, same_file, without_data, workspace, write_safetensors

import numpy as np

directory = workspace()
os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
random = np.random.default_rng(7)
model = without_data("unet2d.dl", directory)
small = ["--set", "base=4", "--set", "depth=2", "--set", "size=32", "--set", "batch=4", "--threads", 1]
weights = directory / "weights.safetensors"
reach = 24 # of this network, rounded up to its total stride of 4
runs = 0


def predict(tile, image, *options, expect=0):
    """The artifact that takes `tile` square images, on an array [n, height, width] or a path; the output directory."""
    return predict_by(model, weights, [*small, "--set", "predict.batch=3", "--set", f"predict.size={tile}"], image, *options, expect=expect)


def predict_by(file, start, settings, image, *options, expect=0):
    global runs
    runs += 1
    path, into = directory / f"input-{runs}.npy", directory / f"output-{runs}"
    if isinstance(image, np.ndarray):
        np.save(path, image)
    else:
        path = image
    _, err = run("dlc-run", "predict", file, *settings, "--data", f"image={path}", "--init", start, "-o", into, *options, expect=expect)
    return err if expect else into


def probability(tile, image):
    return np.load(predict(tile, image) / "probability.npy")


def same(a, b, what):
    check(a.shape == b.shape, f"{what}: {a.shape} and {b.shape}")
    error = np.abs(a - b).max() / np.abs(b).max()
    check(error < 1e-5, f"{what} differs by up to {error:.1e} of the largest value")


def train():
    image = random.normal(size=(8, 32, 32)).astype(np.float32)
    np.save(directory / "image.npy", image)
    np.save(directory / "mask.npy", (image > 0).astype(np.uint8))
    run("dlc-run", "train", model, *small, "--data", f"image={directory}/image.npy", "--data", f"mask={directory}/mask.npy", "--steps",
        4, "--run", directory / "run", "--save", weights)


def test_tiles():
    image = random.normal(size=(2, 100, 100)).astype(np.float32)
    whole = probability(100, image)
    check(whole.std() > 0.01, "a prediction that says nothing")
    same(probability(64, image), whole, "an image larger than a tile in tiles")
    # No multiple of the total stride: beyond the edge the image is mirrored, which reaches as far as the network does.
    part = probability(64, image[:, :99, :70])
    mirrored = probability(100, np.pad(image[:, :99, :70], ((0, 0), (0, 1), (0, 30)), mode="reflect"))
    check(part.shape == (2, 1, 99, 70), f"{part.shape}")
    same(part[..., :70 - reach], mirrored[..., :99, :70 - reach], "an image of an odd size in tiles")
    smaller = probability(64, image[:, :40, :64])
    mirrored = probability(64, np.pad(image[:, :40, :64], ((0, 0), (0, 24), (0, 0)), mode="reflect"))
    same(smaller, mirrored[..., :40, :], "an image smaller than a tile")


# A gate of one channel made of features of two resolutions, after Oktay et al. 2018, and sums, means and shares over
# channels.
GATES = """
model gates(batch = 4, patch = [32, 32]) {
  input image : f32[batch, 1, patch...]
  input mask  : f32[batch, 1, patch...]
  skip = relu(conv(image, 8, kernel = 3, padding = 1, name = "down"))
  deep = relu(conv(max_pool(skip, kernel = 2), 8, kernel = 3, padding = 1, name = "bottom"))
  both = relu(conv(skip, 4, kernel = 2, stride = 2, name = "theta") + conv(deep, 4, kernel = 1, name = "phi"))
  gate = sigmoid(conv(both, 1, kernel = 1, name = "psi"))
  gate = conv_transpose(gate, 1, kernel = 2, stride = 2, name = "spread")
  x = concat(skip * gate, conv_transpose(deep, 8, kernel = 2, stride = 2, name = "up"))
  x = x - mean(x, axes = [1], keep = true)
  share = softmax(conv(x, 3, kernel = 3, padding = 1, name = "classes"))
  logits = conv(share, 1, kernel = 1, name = "head") + sum(x * x, axes = [1], keep = true)
  output probability = sigmoid(logits)
  output energy = sum(x * x, axes = [1])
  loss = bce_with_logits(logits, mask)
}
"""


def test_gates():
    file, start = directory / "gates.dl", directory / "gates.safetensors"
    file.write_text(GATES)
    run("dlc-run", "train", file, "--threads", 1, "--data", f"image={directory}/image.npy", "--data", f"mask={directory}/mask.npy", "--steps", 4,
        "--run", directory / "gates", "--save", start)

    def by(patch, image, expect=0):
        return predict_by(file, start, ["--threads", 1, "--set", f"predict.patch=[{patch}]"], image, expect=expect)

    image = random.normal(size=(2, 70, 100)).astype(np.float32)
    whole, tiled = by("70,100", image), by("32,48", image)
    for output, shape in (("probability", (2, 1, 70, 100)), ("energy", (2, 70, 100))):
        check(np.load(whole / f"{output}.npy").shape == shape, f"the shape of {output}")
        check(np.load(whole / f"{output}.npy").std() > 0.01, f"{output} says nothing")
        same(np.load(tiled / f"{output}.npy"), np.load(whole / f"{output}.npy"), f"{output} in tiles")
    err = by("32,8", image, expect=1)
    setting = re.search(r"--set 'predict\.patch=\[([\d,]+)\]'", err)
    check("tiles of 32 x 8 have no interior" in err and setting and setting.group(1).startswith("32,"), err)
    same(np.load(by(setting.group(1), image) / "probability.npy"), np.load(whole / "probability.npy"), "tiles as the message advises")


VOLUMES = """
model volumes(batch = 1, patch = [4, 16, 16]) {
  input image : f32[batch, 1, patch...]
  input mask  : f32[batch, 1, patch...]
  x = relu(conv(image, 4, kernel = 3, padding = 1, name = "first"))
  logits = conv(x, 2, kernel = 3, padding = 1, name = "second")
  output features = logits
  output smaller = avg_pool(logits, kernel = [1, 2, 2])
  loss = mse(logits, concat(mask, mask))
}
"""


def turns(image):
    """The symmetries of the last two axes, each with what undoes it."""
    for flips in ((), (-1,), (-2,), (-1, -2)):
        yield np.flip(image, flips), lambda made, flips=flips: np.flip(made, flips)
        yield np.swapaxes(np.flip(image, flips), -1, -2), lambda made, flips=flips: np.flip(np.swapaxes(made, -1, -2), flips)


def test_turns():
    image = random.normal(size=(2, 100, 70)).astype(np.float32)  # larger than a tile, not square
    wanted = np.mean([undo(probability(64, np.ascontiguousarray(turn))) for turn, undo in turns(image)], axis=0)
    alone = probability(64, image)
    averaged = np.load(predict(64, image, "--tta") / "probability.npy")
    check(np.abs(alone - wanted).max() > 1e-3, "turns change nothing")
    same(averaged, wanted, "the mean over flips and turns")

    file, start, data = directory / "volumes.dl", directory / "volumes.safetensors", []
    file.write_text(VOLUMES)
    for name in ("image", "mask"):
        np.save(directory / f"volume-{name}.npy", random.normal(size=(2, 4, 16, 16)).astype(np.float32))
        data += ["--data", f"{name}={directory}/volume-{name}.npy"]
    run("dlc-run", "train", file, "--threads", 1, *data, "--steps", 2, "--run", directory / "volumes", "--save", start)
    volume = random.normal(size=(2, 6, 24, 16)).astype(np.float32)
    by = lambda volume, *options: predict_by(file, start, ["--threads", 1, "--set", "predict.patch=[6,16,16]"], volume, *options)
    alone, averaged = by(volume), by(volume, "--tta")
    made = [(by(np.ascontiguousarray(turn)), undo) for turn, undo in turns(volume)]
    for output, shape in (("features", (2, 2, 6, 24, 16)), ("smaller", (2, 2, 6, 12, 8))):
        wanted = np.mean([undo(np.load(into / f"{output}.npy")) for into, undo in made], axis=0)
        check(wanted.shape == shape and np.abs(np.load(alone / f"{output}.npy") - wanted).max() > 1e-3, f"turns change nothing of {output}")
        same(np.load(averaged / f"{output}.npy"), wanted, f"{output} in 3-D, averaged over flips and turns of planes")


def test_averages():
    """Where training has averaged the parameters (`ema`), predictions are of the averages, whichever file of the run gives
    them, and whether or not the artifact that predicts averages, too."""
    kept, averaging = directory / "averaged", [*small, "--set", "train.ema=0.75"]
    run("dlc-run", "train", model, *averaging, "--data", f"image={directory}/image.npy", "--data", f"mask={directory}/mask.npy",
        "--epochs", 2, "--run", kept, "--save", kept / "saved.safetensors")
    last = read_safetensors(kept / "last.safetensors")
    raw = {name: value for name, value in last.items() if not name.startswith("optimizer.")}
    averages = {name: last.get(f"optimizer.ema.{name}", value) for name, value in raw.items()}
    check(sum(f"optimizer.ema.{name}" in last for name in raw) > 20, f"averages among {last.keys()}")
    write_safetensors(kept / "averages.safetensors", averages)
    write_safetensors(kept / "raw.safetensors", raw)
    image = random.normal(size=(2, 100, 64)).astype(np.float32)

    def by(settings, start):
        made = predict_by(model, kept / f"{start}.safetensors", [*settings, "--set", "predict.size=64"], image)
        return np.load(made / "probability.npy")

    wanted = by(small, "averages")
    for settings in (small, averaging):
        for start in ("last", "saved"):
            check(np.array_equal(by(settings, start), wanted), f"predictions by {start} are not those by the averages")
    check(np.abs(by(averaging, "raw") - wanted).max() > 1e-3, "averages predict what the last step's parameters do")
    best = read_safetensors(kept / "best.safetensors")  # of either epoch
    write_safetensors(kept / "best-averages.safetensors", {name: best.get(f"optimizer.ema.{name}", best[name]) for name in raw})
    check(np.array_equal(by(averaging, "best"), by(small, "best-averages")), "predictions by best are not those by its averages")


def test_ranks():
    """Any number of ranks gives the same bytes: also more than images, images that differ in size, and turns."""
    folder = directory / "sizes"
    folder.mkdir()
    for name, height in (("a", 40), ("b", 64), ("c", 100), ("d", 64), ("e", 30)):
        write_tiff(folder / f"{name}.tif", random.normal(size=(1, height, 70)).astype(np.float32))
    for image in (random.normal(size=(5, 70, 64)).astype(np.float32), random.normal(size=(1, 80, 80)).astype(np.float32), folder):
        for options in ([], ["--tta"]):
            alone = predict(64, image, *options)
            check(len(list(alone.iterdir())) == (10 if image is folder else 2 if len(image) == 1 else 6), f"files of {image}")
            for ranks in (2, 3):
                together = predict(64, image, "-np", ranks, *options)
                check({file.name for file in together.iterdir()} ^ {file.name for file in alone.iterdir()} <= {
                    f"probability-{stem.stem}.png" for stem in directory.glob("input-*.npy")}, "the same files")
                for file in alone.iterdir():
                    if (together / file.name).exists():
                        same_file(file, together / file.name, f"{ranks} ranks and one")


def evaluation(size, image, mask, *options, ranks=1, expect=0):
    start = [] if "--init" in options else ["--init", weights]
    return evaluation_by(model, [*small, "--set", f"size={size}"], image, mask, *start, *options, ranks=ranks, expect=expect)


def evaluation_by(file, settings, image, mask, *options, ranks=1, expect=0):
    paths = [directory / f"evaluated-{name}" for name in ("image", "mask")]
    for path, array in zip(paths, (image, mask)):
        if isinstance(array, np.ndarray):
            np.save(f"{path}.npy", array)
    given = [array if not isinstance(array, np.ndarray) else f"{path}.npy" for path, array in zip(paths, (image, mask))]
    return run("dlc-run", "-np", ranks, "eval", file, *settings, "--data", f"image={given[0]}", "--data", f"mask={given[1]}", "--json", *options,
               expect=expect)


def test_evaluation():
    """In tiles every pixel counts once: the figures are those of predictions, and of a model of the images' size."""
    def agrees(out, loss, iou, samples, what):
        record = json.loads(out)
        check(abs(record["loss"] - loss) < 2e-6 * loss and abs(record["iou"] - iou) < 1e-9, f"{what}: {out}, wanted {loss} and {iou}")
        check(record["samples"] == samples, f"{what}: {out}")

    def told(image, mask):
        """Sums of the loss, of pixels, of the intersection and the union, by predictions."""
        made = probability(64, image)[:, 0].astype(np.float64)
        loss = -np.where(mask > 0, np.log(made), np.log1p(-made))
        return np.array([loss.sum(), loss.size, ((made > 0.5) & (mask > 0)).sum(), ((made > 0.5) | (mask > 0)).sum()])

    folders = {name: directory / f"evaluated-{name}s" for name in ("image", "mask")}
    for folder in folders.values():
        folder.mkdir()
    pooled = np.zeros(4)
    for count, height, width in ((3, 100, 70), (1, 64, 130), (2, 40, 64)):
        image = random.normal(size=(count, height, width)).astype(np.float32)
        mask = (image + random.normal(size=image.shape) > 0).astype(np.uint8)
        sums = told(image, mask)
        for ranks in (1, 2):
            agrees(evaluation(64, image, mask, ranks=ranks)[0], sums[0] / sums[1], sums[2] / sums[3], count, f"{image.shape} on {ranks} ranks")
        for name, array in (("image", image), ("mask", mask)):
            write_tiff(folders[name] / f"{height}.tif", array[:1])
        pooled += told(image[:1], mask[:1])
    agrees(evaluation(64, *folders.values())[0], pooled[0] / pooled[1], pooled[2] / pooled[3], 3, "images of several sizes")

    image = random.normal(size=(5, 96, 96)).astype(np.float32)
    mask = (image > 0).astype(np.uint8)
    whole = json.loads(evaluation(96, image, mask)[0])
    agrees(evaluation(64, image, mask)[0], whole["loss"], whole["iou"], 5, "a model of the images' size")
    part = np.ascontiguousarray(image[:, :64, :64]), np.ascontiguousarray(mask[:, :64, :64])
    sums = told(*part)
    agrees(evaluation(64, *part)[0], sums[0] / sums[1], sums[2] / sums[3], 5, "images that fit")


def test_validation():
    """A training's own validation is what eval says of the same images."""
    image = random.normal(size=(5, 100, 70)).astype(np.float32)
    mask = (image > 0).astype(np.uint8)
    for size, cut in ((64, 100), (64, 64)):
        part = [np.ascontiguousarray(array[:, :cut, :cut]) for array in (image, mask)]
        data = [text for name, array in zip(("image", "mask"), part) for text in ("--val", f"{name}={directory}/val-{name}.npy")]
        for name, array in zip(("image", "mask"), part):
            np.save(directory / f"val-{name}.npy", array)
            np.save(directory / f"train-{name}.npy", array[:4, :size, :size])
            data += ["--data", f"{name}={directory}/train-{name}.npy"]
        for ranks in (1, 2):
            kept = directory / f"validated-{cut}-{ranks}"
            run("dlc-run", "-np", ranks, "train", model, *small, "--set", f"size={size}", *data, "--steps", 3, "--run", kept, "--save",
                f"{kept}.safetensors")
            epoch = json.loads((kept / "log.jsonl").read_text().splitlines()[-1])
            told = json.loads(evaluation(size, *part, "--init", f"{kept}.safetensors")[0])
            check(abs(epoch["val_loss"] - told["loss"]) < 1e-6 and abs(epoch["val_iou"] - told["iou"]) < 1e-9, f"{epoch}, not {told}")


# Labels without an axis of channels, classes that weigh, pixels that do not count.
CLASSES = """
model classes(batch = 4, patch = [32, 32], ignore = 255, smoothing = 0.0) {
  input image : f32[batch, 1, patch...]
  input mask  : i32[batch, patch...]
  skip = relu(batch_norm(conv(image, 6, kernel = 3, padding = 1, name = "down"), name = "norm"))
  deep = relu(conv(max_pool(skip, kernel = 2), 8, kernel = 3, padding = 1, name = "bottom"))
  x = concat(skip, conv_transpose(deep, 6, kernel = 2, stride = 2, name = "up"))
  logits = conv(x, 3, kernel = 3, padding = 1, name = "head")
  output probability = softmax(logits)
  loss = softmax_cross_entropy(logits, mask, weights = [1.0, 2.5, 0.5], ignore = ignore, smoothing = smoothing)
  metric plain = softmax_cross_entropy(logits, mask, ignore = ignore)
  metric iou = iou(argmax(logits, 1), mask, classes = 3, ignore = ignore)
  metric accuracy = accuracy(logits, mask, ignore = ignore)
}
"""


def classes_besides(ignore):
    return [k for k in range(3) if k != ignore]


def figures(made, mask, ignore, smoothing):
    """Of predictions [samples, classes, height, width]: sums of the loss and its weights, of the loss without weights and
    the pixels that count, of what is right, of the intersections and unions of each class that is not ignored."""
    weights, logs = np.array([1, 2.5, 0.5]), np.log(made.astype(np.float64))
    counts, label = mask != ignore, np.where(mask < 3, mask, 0)
    weight, told = counts * weights[label], -np.take_along_axis(logs, label[:, None], 1)[:, 0]
    spread = -(logs * weights[:, None, None]).sum(axis=1) / 3
    best = made.argmax(axis=1)
    sets = [(counts & (best == k), counts & (mask == k)) for k in classes_besides(ignore)]
    overlaps = [[(a & b).sum(), (a | b).sum()] for a, b in sets]
    loss = (1 - smoothing) * weight * told + smoothing * counts * spread
    return np.array([[loss.sum(), weight.sum()], [(counts * told).sum(), counts.sum()], [(counts & (best == mask)).sum(), counts.sum()], *overlaps])


def test_classes():
    file, start = directory / "classes.dl", directory / "classes.safetensors"
    file.write_text(CLASSES)
    train_image = random.normal(size=(8, 32, 32)).astype(np.float32)
    for name, array in (("image", train_image), ("mask", np.digitize(train_image, [-0.5, 0.5]).astype(np.uint8))):
        np.save(directory / f"classes-{name}.npy", array)
    data = [part for name in ("image", "mask") for part in ("--data", f"{name}={directory}/classes-{name}.npy")]
    run("dlc-run", "train", file, "--threads", 1, *data, "--steps", 4, "--run", directory / "classes", "--save", start)

    def evaluated(patch, settings, image, mask, ranks=1):
        return json.loads(evaluation_by(file, ["--threads", 1, "--set", f"patch=[{patch}]", *settings], image, mask, "--init", start, ranks=ranks)[0])

    def agrees(record, sums, samples, ignore, what):
        loss, plain, accuracy, *overlaps = sums[:, 0] / sums[:, 1]
        wanted = {"loss": loss, "plain": plain, "accuracy": accuracy, "iou": np.mean(overlaps)}
        wanted |= {f"iou.{k}": overlap for k, overlap in zip(classes_besides(ignore), overlaps, strict=True)}
        check(record["samples"] == samples and set(wanted) <= set(record), f"{what}: {record}")
        for name, value in wanted.items():
            near = 2e-6 * value if name in ("loss", "plain") else 1e-9
            check(abs(record[name] - value) < near, f"{what}: {name} is {record[name]}, wanted {value}")

    folders = {name: directory / f"evaluated-classes-{name}" for name in ("image", "mask")}
    for folder in folders.values():
        folder.mkdir()
    for ignore, smoothing in ((255, 0), (1, 0.1)):
        settings = ["--set", f"ignore={ignore}", "--set", f"smoothing={smoothing}"]
        pooled = 0
        for count, height, width in ((3, 100, 70), (1, 33, 97), (5, 32, 32)):
            image = random.normal(size=(count, height, width)).astype(np.float32)
            mask = np.digitize(image + random.normal(size=image.shape), [-0.5, 0.5]).astype(np.uint8)
            if ignore == 255:
                mask[random.random(size=mask.shape) < 0.2] = 255
            made = np.load(predict_by(file, start, ["--threads", 1, "--set", "predict.patch=[32,32]"], image) / "probability.npy")
            sums = figures(made, mask, ignore, smoothing)
            for ranks in (1, 2):
                agrees(evaluated("32,32", settings, image, mask, ranks), sums, count, ignore, f"{image.shape}, ignore {ignore}, {ranks} ranks")
            for name, array in (("image", image), ("mask", mask)):
                write_tiff(folders[name] / f"{height}.tif", array[:1])
            pooled += figures(made[:1], mask[:1], ignore, smoothing)
        agrees(evaluated("32,32", settings, *folders.values()), pooled, 3, ignore, "images of several sizes")

        image = random.normal(size=(3, 96, 80)).astype(np.float32)
        mask = np.digitize(image, [-0.5, 0.5]).astype(np.uint8)
        whole, tiled = (evaluated(patch, settings, image, mask) for patch in ("96,80", "32,48"))
        check(whole.keys() == tiled.keys() and "iou.2" in whole, f"{whole}, {tiled} in tiles")
        for name, value in whole.items():
            if name == f"iou.{ignore}":
                check(value is None and tiled[name] is None, f"the ignored class has an IoU: {whole}, {tiled} in tiles")
            else:
                check(abs(tiled[name] - value) < 2e-6 * value, f"{name} is {tiled[name]} in tiles, {value} of the whole images")


def test_classes_of_a_unet():
    """As evaluations are, so is the validation of a training."""
    image = random.normal(size=(5, 100, 70)).astype(np.float32)
    mask = np.digitize(image, [-0.5, 0.5]).astype(np.uint8)
    fitting = np.pad(image, ((0, 0), (0, 0), (0, 30)), mode="reflect"), np.pad(mask, ((0, 0), (0, 0), (0, 30)), mode="reflect")
    options, data = ["--set", "classes=3"], []
    for name, array in (("image", image), ("mask", mask)):
        np.save(directory / f"val-{name}.npy", array)
        np.save(directory / f"train-{name}.npy", array[:4, :64, :64])
        data += ["--val", f"{name}={directory}/val-{name}.npy", "--data", f"{name}={directory}/train-{name}.npy"]
    kept = directory / "validated-classes"
    run("dlc-run", "train", model, *small, *options, "--set", "size=64", *data, "--steps", 3, "--run", kept, "--save", f"{kept}.safetensors")
    options += ["--init", f"{kept}.safetensors"]
    epoch = json.loads((kept / "log.jsonl").read_text().splitlines()[-1])
    told = json.loads(evaluation(64, image, mask, *options)[0])
    for name in ("loss", "iou", "iou.0", "iou.1", "iou.2"):
        check(abs(epoch[f"val_{name}"] - told[name]) < 1e-6, f"{epoch}, not {told}")
    whole, tiled = (json.loads(evaluation(size, *fitting, *options)[0]) for size in (100, 64))
    check(whole.keys() == tiled.keys(), f"{whole}, {tiled} in tiles")
    for name, value in whole.items():
        check(abs(tiled[name] - value) < 2e-6 * value, f"{name} is {tiled[name]} in tiles, {value} of the whole images")


# An input of predictions that has no axis of channels.
DEPTHS = """
model depths(batch = 4, patch = [32, 32]) {
  input depth : f32[batch, patch...]
  input image : f32[batch, 1, patch...]
  input mask  : f32[batch, 1, patch...]
  x = relu(conv(concat(image, reshape(depth, image.shape)), 4, kernel = 3, padding = 1, name = "first"))
  logits = conv(x, 1, kernel = 3, padding = 1, name = "second")
  output probability = sigmoid(logits)
  loss = bce_with_logits(logits, mask)
}
"""


def test_inputs_without_channels():
    file, start = directory / "depths.dl", directory / "depths.safetensors"
    file.write_text(DEPTHS)
    np.save(directory / "depth.npy", np.load(directory / "image.npy")[::-1])
    data = [part for name in ("depth", "image", "mask") for part in ("--data", f"{name}={directory}/{name}.npy")]
    run("dlc-run", "train", file, "--threads", 1, *data, "--steps", 4, "--run", directory / "depths", "--save", start)

    def by(patch, image, depth, *options):
        np.save(directory / "large-depth.npy", depth)
        into = predict_by(file, start, ["--threads", 1, "--set", f"predict.patch=[{patch}]"], image, "--data", f"depth={directory}/large-depth.npy", *options)
        return np.load(into / "probability.npy")

    image, depth = (random.normal(size=(2, 70, 100)).astype(np.float32) for _ in range(2))
    whole = by("70,100", image, depth)
    check(np.abs(whole - by("70,100", image, 0 * depth)).max() > 0.01, "the depth says nothing")
    same(by("32,48", image, depth), whole, "two inputs in tiles")
    wanted = np.mean([undo(by("32,48", np.ascontiguousarray(turn), np.ascontiguousarray(other)))
                      for (turn, undo), (other, _) in zip(turns(image), turns(depth))], axis=0)
    same(by("32,48", image, depth, "--tta"), wanted, "the mean over flips and turns of two inputs")


STACKS = """
model stacks(batch = 2, patch = [32, 32]) {
  input image : f32[batch, 5, patch...]
  input mask : f32[batch, 1, patch...]
  logits = conv(image, 1, kernel = 3, padding = 1, name = "sums")
  output probability = sigmoid(logits)
  loss = bce_with_logits(logits, mask)
}
"""


def test_depths_as_channels():
    """Volumes without channels are images whose channels are their slices, in tiles of any shape."""
    files = {axes: directory / f"stacks-{axes}.dl" for axes in ("NZYX", "NCYX")}
    for axes, file in files.items():
        file.write_text(STACKS + f'data {{ source image : axes = "{axes}" }}\n')
    start = directory / "stacks.safetensors"
    for shape in ((2, 5, 32, 32), (2, 5, 70, 60), (2, 5, 400, 40)):
        image, mask = random.normal(size=shape).astype(np.float32), np.zeros(shape[:1] + shape[2:], np.uint8)
        if not start.exists():
            np.save(directory / "stack.npy", image)
            np.save(directory / "stack-mask.npy", mask)
            run("dlc-run", "train", files["NCYX"], "--threads", 1, "--data", f"image={directory}/stack.npy", "--data",
                f"mask={directory}/stack-mask.npy", "--steps", 1, "--run", directory / "stacks", "--save", start)
        made = {axes: np.load(predict_by(file, start, ["--threads", 1], image) / "probability.npy") for axes, file in files.items()}
        same(made["NZYX"], made["NCYX"], f"{shape} as depths")
        losses = {axes: json.loads(evaluation_by(file, ["--threads", 1], image, mask, "--init", start)[0])["loss"] for axes, file in files.items()}
        check(losses["NZYX"] == losses["NCYX"], f"{shape}: {losses}")


NOISE = """
model noisy(batch = 2) {
  input image : f32[batch, 3]
  p = parameter([1, 1], init = 1.0, name = "p")
  y = image * p + normal([batch, 3])
  loss = mean(y * y)
  output y = y
}
train { optimizer = sgd(lr = 0.1) }
"""
# Of a larger image each of the parts would be larger.
PYRAMID = """
model pyramid(batch = 1, size = 32) {
  input image : f32[batch, 1, size, size]
  parts = resize(adaptive_avg_pool(conv(image, 4, kernel = 3, padding = 1), 8), size, mode = linear)
  y = conv(concat(image, parts), 1, kernel = 3, padding = 1)
  loss = mean(y * y)
  output y = y
}
train { optimizer = sgd(lr = 0.1) }
"""


def trained(text, name, data):
    model, start = directory / f"{name}.dl", directory / f"{name}.safetensors"
    model.write_text(text)
    run("dlc-run", "train", model, "--threads", 1, "--data", f"image={data}", "--steps", 1, "--save", start, "--run", directory / name)
    return model, start


def test_draws():
    """A sample's random numbers are its position's, whatever else is in its batch and on however many ranks."""
    np.save(directory / "five.npy", random.normal(size=(5, 3)).astype(np.float32))
    model, start = trained(NOISE, "noisy", directory / "five.npy")
    made = {(ranks, batch): np.load(predict_by(model, start, ["--set", f"predict.batch={batch}"], directory / "five.npy", "-np", ranks) / "y.npy")
            for ranks in (1, 2, 3) for batch in (1, 2, 8)}
    check(len(np.unique(made[1, 1] - np.load(directory / "five.npy"))) > 10, "each draws its own")
    for how, y in made.items():
        check(np.array_equal(y, made[1, 1]), f"ranks and batch {how} draw {y}, one by one {made[1, 1]}")


def test_parts():
    np.save(directory / "fitting.npy", random.normal(size=(2, 1, 32, 32)).astype(np.float32))
    model, start = trained(PYRAMID, "pyramid", directory / "fitting.npy")
    err = predict_by(model, start, [], random.normal(size=(1, 1, 96, 96)).astype(np.float32), expect=1)
    check("adaptive_avg_pool.0 divides the image along axis 2 into a fixed number of parts" in err and err.count("\n") == 1, err)


def test_what_is_not_finite():
    values = read_safetensors(weights)
    name = next(name for name in values if name.endswith("weight"))
    values[name] = np.where(values[name] == values[name].max(), np.nan, values[name]).astype(np.float32)
    write_safetensors(directory / "nan.safetensors", values)
    err = predict_by(model, directory / "nan.safetensors", small, np.zeros((1, 32, 32), np.float32), expect=1)
    check(f"nan.safetensors': {name} holds numbers that are not finite" in err and err.count("\n") == 1, err)


def test_refusals():
    err = predict(2 * reach, np.zeros((1, 100, 100), np.float32), expect=1)
    check("tiles of 48 x 48 have no interior" in err and "--set predict.size=96" in err and err.count("\n") == 1, err)
    digits = directory / "digits.npy"
    np.save(digits, np.zeros((1, 30, 30), np.uint8))
    run("dlc-run", "train", MODELS / "mnist_cnn.dl", "--threads", 1, "--set", "batch=1", "--data", f"image={model_images()}", "--data",
        f"label={directory}/label.npy", "--steps", 1, "--run", directory / "mnist", "--save", directory / "mnist.safetensors")
    _, err = run("dlc-run", "predict", MODELS / "mnist_cnn.dl", "--threads", 1, "--set", "batch=1", "--data", f"image={digits}", "--init",
                 directory / "mnist.safetensors", "-o", directory / "none", expect=1)
    check("1 x 30 x 30" in err and "1 x 28 x 28" in err and err.count("\n") == 1, err)
    check(re.search(r"mnist_cnn\.dl:\d+:\d+: flatten\.0 mixes the axes of the image with others", err), err)
    np.save(directory / "fitting.npy", np.zeros((1, 28, 28), np.uint8))
    _, err = run("dlc-run", "predict", MODELS / "mnist_cnn.dl", "--threads", 1, "--set", "batch=1", "--data", f"image={directory}/fitting.npy",
                 "--init", directory / "mnist.safetensors", "-o", directory / "none", "--tta", expect=1)
    check("(10) lacks the spatial axes of the input (28 x 28) and cannot be turned back; leave --tta out" in err and err.count("\n") == 1, err)
    classes = directory / "argmax.dl"
    classes.write_text("model classes(batch = 1) {\n  input image : f32[batch, 1, 8, 8]\n  y = conv(image, 3, kernel = 1)\n"
                       "  loss = mean(y ** 2)\n  output class = argmax(y, axis = 1)\n}\ntrain { optimizer = sgd(lr = 0.1) }\n")
    np.save(directory / "eight.npy", np.zeros((1, 8, 8), np.float32))
    run("dlc-run", "train", classes, "--threads", 1, "--data", f"image={directory}/eight.npy", "--steps", 1, "--run", directory / "argmax",
        "--save", directory / "argmax.safetensors")
    _, err = run("dlc-run", "predict", classes, "--threads", 1, "--data", f"image={directory}/eight.npy", "--init", directory / "argmax.safetensors",
                 "-o", directory / "none", "--tta", expect=1)
    check("the output 'class' has whole numbers; leave --tta out" in err and err.count("\n") == 1, err)
    _, err = run("dlc-run", "eval", MODELS / "mnist_cnn.dl", "--threads", 1, "--set", "batch=1", "--data", f"image={digits}", "--data",
                 f"label={directory}/label.npy", "--init", directory / "mnist.safetensors", expect=1)
    check("takes 1 x 28 x 28; evaluation of this model takes samples of the one size" in err and err.count("\n") == 1, err)
    _, err = evaluation(32, np.zeros((1, 100, 100), np.float32), np.zeros((1, 100, 100), np.uint8), expect=1)
    check("tiles of 32 x 32 have no interior" in err and err.count("\n") == 1, err)
    err = predict(64, np.zeros((1, 64, 64), np.float32), "--format=jpeg", expect=2)
    check("jpeg" in err, err)


def model_images():
    np.save(directory / "label.npy", np.zeros(2, np.uint8))
    np.save(directory / "digit.npy", np.zeros((2, 28, 28), np.uint8))
    return directory / "digit.npy"


def test_formats():
    image = random.normal(size=(3, 40, 64)).astype(np.float32)
    wanted = probability(64, image)[:, 0]
    stack = directory / "stack.tif"
    write_tiff(stack, image)
    into = predict(64, stack)
    check({file.name for file in into.iterdir()} == {"probability.npy", "probability.tif"}, "files for a TIFF stack")
    pages, text = read_tiff(into / "probability.tif")
    same(pages, wanted, "a stack of f32 pages")
    check(text.startswith("ImageJ=") and "\nimages=3\nframes=3\n" in text, f"ImageDescription: {text}")
    for option, dtype in (("tiff8", np.uint8), ("tiff16", np.uint16)):
        into = predict(64, stack, "--format", option)
        check({file.name for file in into.iterdir()} == {"probability.tif"}, f"files of --format={option}")
        pages, _ = read_tiff(into / "probability.tif")
        most = np.iinfo(dtype).max
        check(pages.dtype == dtype and np.abs(pages - wanted * most).max() < 0.51, f"pixels of --format={option}")
    err = predict(64, stack, "--format", "tiff16,npy,tiff", expect=1)
    check("two formats of --format would be written to the same TIFF files; give one of them" in err, err)
    folder = directory / "folder"
    folder.mkdir()
    for name, page in zip(("b", "a", "c"), image):
        write_tiff(folder / f"{name}.tif", page[None])
    into = predict(64, folder)
    check({file.name for file in into.iterdir()} == {"probability.npy"} | {f"probability-{name}.tif" for name in "abc"}, "files by stem")
    same(read_tiff(into / "probability-b.tif")[0][0], wanted[0], "the image of a directory")
    write_tiff(folder / "d.tif", image[:1, :30, :50])
    into = predict(64, folder)
    check({file.name for file in into.iterdir()} == {f"probability-{name}.{kind}" for name in "abcd" for kind in ("npy", "tif")},
          "files of images of several sizes")
    same(np.load(into / "probability-b.npy")[0, 0], wanted[0], "one of several sizes")
    check(read_tiff(into / "probability-d.tif")[0].shape == (1, 30, 50), "the size of a smaller image")
    write_tiff(directory / "alone.tif", image[:1])
    into = predict(64, directory / "alone.tif", "--format=npy,tiff,png")
    check({file.name for file in into.iterdir()} == {"probability.npy", "probability-alone.tif", "probability-alone.png"}, "one image")
    into = predict(64, stack, "--format=png,npy")
    check({file.name for file in into.iterdir()} == {"probability.npy"} | {f"probability-0000{i}.png" for i in range(3)}, "PNG")


train()
test_tiles()
test_gates()
test_turns()
test_averages()
test_ranks()
test_evaluation()
test_validation()
test_classes()
test_classes_of_a_unet()
test_inputs_without_channels()
test_depths_as_channels()
test_draws()
test_parts()
test_what_is_not_finite()
test_refusals()
test_formats()
