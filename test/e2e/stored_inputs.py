#!/usr/bin/python3
"""`dlc compile --source`: inputs that travel as their files hold them, and are normalised by the program, change no bit of
weights, losses and metrics; inputs that the host computes stay as they are."""
import json
import os
import re
import shutil

from combinations import disks
from support import MODELS, check, digits, run, same_file, workspace

import numpy as np

directory = workspace()


def volume(directory):
    """Words, as microscopes write them."""
    random = np.random.default_rng(2)
    np.save(directory / "volume.npy", (300 + 40 * random.normal(size=(6, 40, 36))).astype(np.uint16))
    return ["--data", f"volume={directory}/volume.npy"]


def images_of_two_sizes(directory):
    """Disks to train on, and to validate with larger images than the tiles of an evaluation."""
    training = disks(directory, size=32)
    random = np.random.default_rng(5)
    np.save(directory / "large.npy", random.integers(0, 255, (3, 56, 48), dtype=np.uint8))
    np.save(directory / "large_mask.npy", random.integers(0, 2, (3, 56, 48), dtype=np.uint8) * 255)
    return [*training, "--val", f"image={directory}/large.npy", "--val", f"mask={directory}/large_mask.npy"]


UNET = ["base=4", "depth=1", "size=32", "predict.size=32", "batch=2"]
N2V = ["base=4", "depth=1", "size=16", "batch=2", "percent=2"]
CASES = {
    "mnist_cnn": ("mnist_cnn", digits, ["batch=8"], {"image": "u8"}),
    "unet2d": ("unet2d", lambda at: disks(at, size=32), UNET, {"image": "u8", "mask": "u8"}),
    "tiles": ("unet2d", images_of_two_sizes, UNET, {"image": "u8", "mask": "u8"}),
    "n2v2d": ("n2v2d", volume, N2V, {"volume": "u16"}),
}


def compiled(at, model, sets, sources, *options):
    artifact = at / ("stored.dlx" if sources else "plain.dlx")
    words = [word for each in sets for word in ("--set", each)] + [word for name, kind in sources.items() for word in ("--source", f"{name}={kind}")]
    _, said = run("dlc", "compile", MODELS / f"{model}.dl", "--threads=1", *words, *options, "-o", artifact)
    return artifact, said


def trained(at, artifact, data):
    shutil.rmtree(at / artifact.stem, ignore_errors=True)
    run("dlc-run", "train", artifact, *data, "--epochs", 2, "--run", at / artifact.stem, "--save", at / f"{artifact.stem}.safetensors")
    log = [json.loads(line) for line in (at / artifact.stem / "log.jsonl").read_text().splitlines()]
    return at / f"{artifact.stem}.safetensors", [(record["loss"], record.get("val_loss")) for record in log if record["event"] == "epoch"]


def compare(name, *options):
    model, make, sets, sources = CASES[name]
    at = directory / (name + "".join(options))
    at.mkdir()
    data = make(at)
    results = []
    for given in {}, sources:
        artifact, said = compiled(at, model, sets, given, *options)
        check("stays f32" not in said, said)
        results.append(trained(at, artifact, data))
    same_file(results[0][0], results[1][0], f"{name}: inputs as files hold them")
    check(results[0][1] == results[1][1], f"{name}: {results}")


def test_read_as_they_are():
    """Nothing normalises the input, and what reads it first wants another layout; a GPU's plans are compiled, too."""
    at = directory / "unscaled"
    at.mkdir()
    random = np.random.default_rng(4)
    cuda = "cuda         cuDNN" in run("dlc-run", "--check")[0]
    for kind, first in ("u8", "conv(x, 6, kernel = 3)"), ("u16", "conv(x, 6, kernel = 1)"), ("u8", "conv(x, 8, kernel = 3, groups = 2)"), \
            ("u8", "conv_transpose(x, 6, kernel = 3)"), ("u16", "conv(max_pool(x, 2), 6, kernel = 3)"):
        (at / "model.dl").write_text(f"model plain(batch = 2) {{\n  input x : f32[batch, 4, 8, 6]\n  h = {first}\n  loss = mean(h ** 2)\n}}\n"
                                     "train { optimizer = sgd(lr = 1e-9) }\n")
        np.save(at / "x.npy", random.integers(0, 200, (8, 4, 8, 6)).astype({"u8": np.uint8, "u16": np.uint16}[kind]))
        results = []
        for sources in {}, {"x": kind}:
            artifact, _ = compiled(at, at / "model", [], sources)
            results.append(trained(at, artifact, ["--data", f"x={at}/x.npy"]))
        same_file(results[0][0], results[1][0], f"{first} of {kind}")
        check(results[0][1] == results[1][1], f"{first} of {kind}: {results}")
        for precision in ("f32", "bf16") if cuda else ():
            run("dlc", "compile", at / "model.dl", "--target=cuda:h200", f"--precision={precision}", f"--source=x={kind}", "-o", at / "gpu.dlx")


def test_computed_inputs_stay():
    at = directory / "computed"
    at.mkdir()
    artifact, said = compiled(at, "n2v2d", [*N2V, "replace=mean"], {"volume": "u16"})
    check(said.count("stays f32") == 2, said)
    trained(at, artifact, volume(at))


def test_other_files():
    at = directory / "other"
    at.mkdir()
    digits(at)
    artifact, _ = compiled(at, "mnist_cnn", ["batch=8"], {"image": "u8"})
    np.save(at / "image.npy", np.load(at / "image.npy").astype(np.float32))
    _, said = run("dlc-run", "train", artifact, "--data", f"image={at}/image.npy", "--data", f"label={at}/label.npy", "--steps", 1, expect=1)
    check("holds f32 elements, but the artifact takes image as u8: compile it without --source image" in said, said)


def test_gpus_take_what_files_hold():
    """A model that dlc-run compiles for one, whether there is one or not: bytes of 784 pixels and 4 of a label, for 8 rows."""
    if "cuda         cuDNN" not in run("dlc-run", "--check")[0]:
        check("DLC_REQUIRE_CUDA" not in os.environ, "cuDNN was not found")
        print("skipped: no cuDNN, which plans for GPUs")
        return
    at = directory / "gpu"
    at.mkdir()
    data = digits(at)
    bytes_of = {}
    planned = at / "planned.mlir" # where it is decided
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--target=cuda:h200", "--emit=schedule", "-o", planned)
    model = [MODELS / "mnist_cnn.dl", "--set", "batch=8"]
    for name, given in ("found", model), ("given", [*model, "--source=label=u8"]), ("decided", [planned]):
        cache = at / name
        run("dlc-run", "train", *given, "--target=cuda:h200", *data, "--steps", 1, "--run", at / "run",
            expect=1, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
        artifact = next((cache / "dlc").glob("*.dlx"))
        bytes_of[name] = json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"][0]["input_bytes"]
    # Of each row a mean and a scale, too.
    plain = 8 * (4 * 784 + 4)
    # What the loader and the bus have to bring, for people to read.
    program = json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"][0]
    step, text = program["forecast"]["step_ns"], run("dlc", "inspect", artifact)[0]
    megabytes, rows, rate = re.search(r"inputs: ([\d.]+) MB a step, at the forecast ([\d,]+) rows/s, ([\d.]+) GB/s", text).groups()
    check(float(megabytes) == round(plain / 1e6, 2) and abs(int(rows.replace(",", "")) - 8e9 / step) < 1, text[:2000])
    check(abs(float(rate) - plain / step) < 0.006, text[:2000])
    check(bytes_of == {"found": 8 * (784 + 4 + 8), "given": plain, "decided": plain}, f"{bytes_of}")


def main():
    for name in CASES:
        compare(name)
    test_read_as_they_are()
    test_computed_inputs_stay()
    test_other_files()
    test_gpus_take_what_files_hold()


main()
