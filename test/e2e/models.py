#!/usr/bin/python3
"""What the heads of models/*.dl say is so: parameters, multiplications, settings, sources. Images and volumes of several
channels train as they are."""
import json
import math
import re

from support import MODELS, check, run, workspace

import numpy as np
from PIL import Image

# Without what a head leaves out of its first count.
WITHOUT = {"inception_v3": ["--set", "aux=false"]}


def head(model):
    """The comment that a file begins with, in one line."""
    lines = model.read_text().split("\n")
    end = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    return " ".join(line[2:].strip() for line in lines[:end])


def parameter_count(model, *settings):
    return json.loads(run("dlc", "inspect", model, "--json", *settings)[0])["parameter_count"]


def flop(text):
    """Of a forward pass as --emit=nn shows it: two for each multiplication of convolutions and products."""
    program = text[text.index("nn.program @eval"):].split("nn.program @predict")[0]
    total = 0
    for op, operands, result in re.findall(r"nn\.(conv|conv_transpose|matmul) .*: \((.*)\) -> tensor<(.*?)>", program):
        shapes = [[int(extent) for extent in shape.split("x")[:-1]] for shape in [*re.findall(r"tensor<(.*?)>", operands), result]]
        x, weight, y = shapes[0], shapes[1], shapes[-1]
        total += 2 * {"conv": math.prod(y) * math.prod(weight[1:]), "conv_transpose": math.prod(x) * math.prod(weight[1:]),
                      "matmul": math.prod(y) * x[1]}[op]
    return total


def expect_rounded(stated, value, what):
    """`stated` is `value` with as many digits behind the point as it has."""
    check(abs(float(stated) - value) <= 0.5001 * 10 ** -len(stated.partition(".")[2]), f"{what}: its head says {stated}, it has {value:.4f}")


def heads():
    for model in sorted(MODELS.glob("*.dl")):
        name, said = model.stem, head(model)
        if f"\nmodel {name}(" not in model.read_text():
            continue
        counts = re.findall(r"([\d,]+)(?: parameters| with the)", said)
        for settings in ([], WITHOUT.get(name, [])):
            count = f"{parameter_count(model, *settings):,}"
            check(count in counts, f"{name} {settings} has {count} parameters, its head says {counts}")

        text = run("dlc", "compile", model, "--emit=nn", "-o", "-")[0]
        batch = int(re.search(r"attributes \{batch = (\d+)", text)[1])
        unit = {"G": 1e9, "M": 1e6}
        each = re.search(r"([\d.]+) ([GM])FLOP\)? per [\w ]*forward, three times that in a training step", said)
        check(each, f"{name}: its head says no FLOP")
        expect_rounded(each[1], flop(text) / batch / unit[each[2]], f"{name}, {each[2]}FLOP")
        for stated in re.findall(r"([\d.]+) G multiply-adds", said):
            expect_rounded(stated, flop(text) / batch / 2e9, f"{name}, G multiply-adds")
        for stated, many in re.findall(r"([\d.]+) GFLOP for a batch of (\d+)", said):
            expect_rounded(stated, flop(text) / batch * int(many) / 1e9, f"{name}, GFLOP for a batch")

        check(re.search(r'"[^"]+", (19|20)\d\d', said), f"{name}: its head names no paper")
        config = re.search(r"config = \{(.*?)\}", text)[1]
        for setting in re.findall(r"(\w+) = ", config):
            check(re.search(rf"\b{setting}\b", said[said.index("Parameters:"):]), f"{name}: its head says nothing of {setting}")
        for command in (f"dlc compile models/{name}.dl", "dlc-run"):
            check(command in said, f"{name}: its head has no {command}")


def few_classes():
    """No metric asks for more of them than there are."""
    classifiers = [model for model in sorted(MODELS.glob("*.dl")) if re.search(rf"\nmodel {model.stem}\(.*\bclasses = 10", model.read_text())]
    check(len(classifiers) >= 5, f"classifiers are {classifiers}")
    for model in classifiers:
        run("dlc", "compile", model, "--set", "classes=2", "--emit=nn", "-o", "-")


def channels(directory):
    """Of three channels, behind the pixels in .npy files, and as RGB in directories."""
    random = np.random.default_rng(0)
    planes = random.integers(0, 255, (6, 16, 16, 3)).astype(np.uint8)
    wide = random.integers(0, 255, (6, 32, 48, 3)).astype(np.uint8)
    volume = random.integers(0, 255, (16, 24, 16, 3)).astype(np.uint8)
    np.save(directory / "planes.npy", planes)
    np.save(directory / "wide.npy", wide)
    np.save(directory / "volume.npy", volume)
    np.save(directory / "masks.npy", (planes[..., 0] > 127).astype(np.uint8))
    np.save(directory / "mask.npy", (volume[..., 0] > 127).astype(np.uint8))
    np.save(directory / "label.npy", np.arange(6).astype(np.uint8))
    for folder, images in (("images", planes), ("masks", (planes[..., 0] > 127) * 255), ("photos", wide), ("slices", volume)):
        (directory / folder).mkdir()
        for i, image in enumerate(images):
            Image.fromarray(image.astype(np.uint8)).save(directory / folder / f"{i:02}.png")

    plane, patch = ["size=16", "predict.size=32"], ["patch=8,8,8", "predict.patch=32,32,32"]
    small = ["base=4", "depth=1", "batch=2"]
    cases = [("unet2d", plane + small, {"image": "planes.npy", "mask": "masks.npy"}),
             ("unet2d", plane + small, {"image": "images", "mask": "masks"}),
             ("unet3d", patch + small, {"image": "volume.npy", "mask": "mask.npy"}),
             ("n2v2d", plane + small + ["percent=2", "replace=median", "radius=2", "struct=0,1,1,1,0", "axis=Y"], {"volume": "wide.npy"}),
             ("n2v2d", plane + small + ["percent=2"], {"volume": "photos"}),
             ("n2v3d", patch + small + ["percent=2"], {"volume": "volume.npy"}),
             ("n2v3d", patch + small + ["percent=2"], {"volume": "slices"}),
             ("mnist_cnn", ["size=16", "batch=2"], {"image": "planes.npy", "label": "label.npy"}),
             ("mnist_cnn", ["size=16", "batch=2"], {"image": "images", "label": "label.npy"})]
    artifacts = {}
    for number, (model, settings, data) in enumerate(cases):
        key = (model, *settings)
        if key not in artifacts:
            artifacts[key] = directory / f"{number}.dlx"
            sets = [part for setting in ["channels=3", *settings] for part in ("--set", setting)]
            run("dlc", "compile", MODELS / f"{model}.dl", *sets, "--threads=1", "-o", artifacts[key])
        paths = [part for name, file in data.items() for part in ("--data", f"{name}={directory / file}")]
        kept = directory / f"{number}"
        run("dlc-run", "train", artifacts[key], *paths, "--steps", 2, "--run", kept)
        losses = [json.loads(line).get("loss") for line in (kept / "log.jsonl").read_text().splitlines() if '"step"' in line]
        check(losses and all(math.isfinite(loss) for loss in losses), f"{model} of {data}: losses {losses}")
        if model != "mnist_cnn":
            name = "denoised" if "volume" in data else "probability"
            source = next(iter(data))
            run("dlc-run", "predict", artifacts[key], "--data", f"{source}={directory / data[source]}",
                "--init", kept / "last.safetensors", "-o", kept / "out")
            shape = np.load(kept / "out" / f"{name}.npy").shape
            wanted = {"unet2d": (6, 1, 16, 16), "unet3d": (1, 1, 16, 24, 16), "n2v2d": (6, 3, 32, 48), "n2v3d": (1, 3, 16, 24, 16)}[model]
            check(shape == wanted, f"{model} of {data}: predictions {shape}, not {wanted}")


heads()
few_classes()
channels(workspace())
