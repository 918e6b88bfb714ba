#!/usr/bin/python3
"""The U-Net of docs/unet.md: what it shows of ours compiles to the parameters that it tells; where torch is installed,
PyTorch's listing has as many and trains; where Keras is, too, with its PyTorch backend, so does Keras's."""
import os
import re
import subprocess

from support import ROOT, check, run, skip, workspace

PEERS = ROOT / "build" / "peers" / "bin" / "python"

# Before the listings of the network, between them and that of training, and behind it. What they train is small.
TORCH = ("""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
""", """
print(sum(parameter.numel() for parameter in UNet().parameters()))
whole, UNet = UNet, lambda: whole(base=2, depth=2)
mask = (torch.rand(8, 1, 16, 16) < 0.5).float()
augmented, held_back, steps = list(zip(mask, mask)), None, []
validate = lambda model, data: steps.append(0) or 0.5
""", """
assert len(steps) == 20 and optimizer.param_groups[0]["lr"] == 5e-4
""")
KERAS = ("""
import keras
from keras import layers
""", """
import numpy as np
from torch.utils.data import DataLoader
print(sum(int(np.prod(weight.shape)) for weight in unet().trainable_variables))
whole, unet = unet, lambda: whole(size=16, base=2, depth=1)
mask = (np.random.rand(8, 16, 16, 1) < 0.5).astype(np.float32)
held_back = mask[4:], mask[4:]

class Pairs(list):
    def batch(self, size):
        return DataLoader(self, batch_size=size, shuffle=True)
augmented = Pairs(zip(mask, mask))
""", """
predicted = keras.ops.convert_to_numpy(model(mask[4:], training=False)) > 0
iou = (predicted & (mask[4:] > 0)).sum() / (predicted | (mask[4:] > 0)).sum()
history = model.history.history
assert len(history["val_iou"]) == 20 and abs(history["val_iou"][-1] - iou) < 1e-5, (history, iou)
""")


def check_peer(name, text, frame, told, directory):
    network, training = frame[0], frame[1:]
    listings = re.findall(rf"^{name}:\n\n```python\n(.*?)^```", text, re.M | re.S)
    check(len(listings) == 3, f"{len(listings)} listings of {name}")
    code = "\n".join([network, *listings[:2], training[0], listings[2], training[1]])
    done = subprocess.run([PEERS, "-c", code], capture_output=True, text=True, cwd=directory,
                          env=dict(os.environ, KERAS_BACKEND="torch"))
    check(done.returncode == 0 and done.stdout.split("\n")[0] == told.replace(",", ""), f"{name}: {done.stdout}{done.stderr}")


def main():
    directory = workspace()
    text = (ROOT / "docs" / "unet.md").read_text()
    told = re.search(r"([\d,]+) parameters", text).group(1)
    ours = "\n".join(re.findall(r"^dlc:\n\n```\n(.*?)^```", text, re.M | re.S))
    (directory / "unet2d.dl").write_text(ours)
    out, _ = run("dlc", "compile", directory / "unet2d.dl", "-o", directory / "unet2d.dlx")
    check(f" {told} parameters" in out, f"wanted {told}: {out}")

    for name, frame in {"PyTorch": TORCH, "Keras": KERAS}.items():
        if PEERS.exists() and subprocess.run([PEERS, "-c", "import torch" + ", keras" * (name == "Keras")], capture_output=True,
                                             env=dict(os.environ, KERAS_BACKEND="torch")).returncode == 0:
            check_peer(name, text, frame, told, directory)
        else:
            reason = f"{name} is not installed in {PEERS}: its listing has not run"
            if name == "PyTorch":  # without which Keras does not run either
                skip(reason)
            print("skipped: " + reason)


main()
