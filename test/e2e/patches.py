#!/usr/bin/python3
"""Noise2Void's data: one volume to image, target and mask; a part of it validates; ranks change nothing; predictions come in the volume's
units."""
import json

from support import check, read_safetensors, run, workspace, write_safetensors

import numpy as np

MODEL = """
model denoiser(batch = 2, patch = [4, 16, 16]) {
  input image  : f32[batch, 1, patch...]
  input target : f32[batch, 1, patch...]
  input mask   : f32[batch, 1, patch...]
  prediction = conv(image, 1, kernel = 1, name = "head")
  output denoised = prediction
  loss = mse(prediction, target, where = mask)
}
data {
  source volume : axes = "ZYX"
  volume -> normalize(dataset) -> patches(patch) -> flip -> blind_spot(percent = 2, radius = 2, replace = mean)
         -> image, target, mask
  denoised -> denormalize(volume) -> denoised
  validation = 0.34
}
train { optimizer = sgd(lr = 0.01); epochs = 3 }
predict { batch = 1 }
"""

directory = workspace()
model = directory / "denoiser.dl"
model.write_text(MODEL)
random = np.random.default_rng(1)
volume = (300 + 40 * random.normal(size=(8, 48, 32))).astype(np.float32)
np.save(directory / "volume.npy", volume)
data = ["--data", f"volume={directory}/volume.npy"]


def epochs(kept):
    records = [json.loads(line) for line in (kept / "log.jsonl").read_text().splitlines()]
    return [(record["loss"], record["val_loss"]) for record in records if record["event"] == "epoch"]


def test_training():
    out, err = run("dlc-run", "train", model, *data, "--run", directory / "one")
    # Of 48 rows, 16 validate: a grid of 2 x 1 x 2. The others are 8 x 32 x 32, 8 patches.
    check("8 training samples, 4 for validation" in out + err, out + err)
    run("dlc-run", "-np", 2, "train", model, "--set", "batch=1", *data, "--run", directory / "two")
    one, two = epochs(directory / "one"), epochs(directory / "two")
    check(len(one) == 3 and np.allclose(one, two, rtol=1e-4), f"one rank: {one}, two: {two}")
    check(len({loss for loss, _ in one}) == 3, f"epochs alike: {one}")


def test_statistics_and_units():
    """A network that does nothing gives back the volume."""
    part = volume[:, :32].astype(np.float64)
    out, _ = run("dlc-run", "train", model, *data, "--epochs", 1, "--run", directory / "kept", "--save", directory / "saved.safetensors")
    weights = {"head.weight": np.ones((1, 1, 1, 1, 1), np.float32), "head.bias": np.zeros(1, np.float32),
               "data.volume.mean": np.array([part.mean()], np.float32), "data.volume.std": np.array([part.std()], np.float32)}
    saved = read_safetensors(directory / "saved.safetensors")
    for name in ("data.volume.mean", "data.volume.std"):
        check(np.allclose(saved[name], weights[name], rtol=1e-5, atol=0), f"{name}: {saved[name]} and {weights[name]}")
    write_safetensors(directory / "identity.safetensors", weights)
    run("dlc-run", "predict", model, *data, "--init", directory / "identity.safetensors", "-o", directory / "out")
    denoised = np.load(directory / "out" / "denoised.npy")
    check(denoised.shape == (1, 1, 8, 48, 32), f"{denoised.shape}")
    check(np.abs(denoised[0, 0] - volume).max() < 1e-3, f"{np.abs(denoised[0, 0] - volume).max()}")


def test_boxes_of_the_reference():
    """Those of 5 percent have edges of 4 in volumes, too: one spot of 64 voxels."""
    text = MODEL.replace("percent = 2,", "percent = 5, box = compat,")
    text = text.replace("  loss =", "  metric share = mean(mask)\n  loss =")
    model = directory / "compat.dl"
    model.write_text(text)
    run("dlc-run", "train", model, *data, "--epochs", 1, "--run", directory / "compat")
    records = [json.loads(line) for line in (directory / "compat" / "log.jsonl").read_text().splitlines()]
    share = next(record["val_share"] for record in records if record["event"] == "epoch")
    check(abs(share - 1 / 64) < 1e-7, f"{share} of all voxels are spots")


test_training()
test_boxes_of_the_reference()
test_statistics_and_units()
