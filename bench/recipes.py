"""The recipes of docs/recipes.md in PyTorch: network, start values, augmentation, optimizer, schedule, epochs and batch
are those that dlc has there, and so is what is measured at the end, of the last epoch's weights.

    build/peers/bin/python bench/recipes.py dsb2018|svhn|nuclei|brain2p --data FOLDER [--seed N] [--precision f32|bf16]

FOLDER holds the data set's arrays. With --prediction FILE.npy nothing is trained: what dlc-run predicted of a volume is
measured instead. `brain2p --write FOLDER` writes what dlc trains on, volume.npy, and what it predicts, hidden.npy.
"""

import argparse
import itertools
import math
import pathlib
import resource
import time

import numpy as np
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from torch_models import Denoiser, UNet, masked_error


def he_normal(model):
    """dlc's start values."""
    for module in model.modules():
        if hasattr(module, "weight") and module.weight.dim() > 1:
            nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model


def epoch_of(count, batch, rng):
    """Rows of each step; the last one wraps around to the first samples of the permutation."""
    return np.resize(rng.permutation(count), (math.ceil(count / batch), batch))


def fit(model, optimizer, loss, epochs, draw_epoch, precision, evaluate=None, warm_up=1):
    """Half a cosine from 1 to 0, with a rise over the first `warm_up` epochs. draw_epoch(): a function for each step that
    makes its batch."""
    begin, step = time.perf_counter(), 0
    base = optimizer.param_groups[0]["lr"]
    for epoch in range(epochs):
        model.train()
        losses = []
        batches = draw_epoch()
        for batch in batches:
            rise = min(1, (step + 1) / round(warm_up * len(batches)))
            for group in optimizer.param_groups:
                group["lr"] = base * rise * 0.5 * (1 + math.cos(math.pi * step / (epochs * len(batches))))
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                value = loss(model, *batch())
            value.backward()
            optimizer.step()
            losses.append(value.item())
            step += 1
        model.eval()
        with torch.no_grad():
            figure = evaluate() if evaluate else ""
        seconds = time.perf_counter() - begin
        print(f"epoch {epoch + 1}/{epochs}  loss {np.mean(losses):.5g}  {figure}  {seconds:.1f} s", flush=True)


def later(function, *arguments):
    return lambda: function(*arguments)


# ---- dsb2018: models/unet2d.dl, base = 16, batch = 8


def per_image(images):
    """Each normalised by itself."""
    images = images.astype(np.float32)
    mean, std = (f(images, axis=(-2, -1), keepdims=True) for f in (np.mean, np.std))
    return (images - mean) / (std + 1e-6)


def turned(arrays, rng):
    """One draw of flips, and a quarter turn of the last two axes, for all."""
    axes = [axis for axis in range(arrays[0].ndim) if rng.random() < 0.5]
    turns = rng.integers(4)
    return [np.rot90(np.flip(array, axes), turns, (-2, -1)) for array in arrays]


def tensor(parts):
    """A batch with a channel axis."""
    return torch.from_numpy(np.stack(parts).astype(np.float32))[:, None]


def dsb2018(arguments):
    images, masks, val_images, val_masks = (np.load(arguments.data / f"{part}_{kind}.npy")
                                            for part in ("train", "val") for kind in ("images", "masks"))
    images, val_images = per_image(images), tensor(per_image(val_images))
    rng = np.random.default_rng(arguments.seed)
    model = he_normal(UNet(base=16)).to(memory_format=torch.channels_last)

    def batch(rows):
        pairs = [turned([images[row], masks[row]], rng) for row in rows]
        return tensor([image for image, _ in pairs]), tensor([mask for _, mask in pairs])

    def loss(model, image, mask):
        return F.binary_cross_entropy_with_logits(model(image).float(), mask)

    def evaluate():
        found = torch.cat([model(part) for part in val_images.split(8)])[:, 0].numpy() > 0
        truth = val_masks > 0
        return f"pooled IoU {(found & truth).sum() / (found | truth).sum():.4f}"

    fit(model, torch.optim.Adam(model.parameters(), lr=1e-3), loss, 20,
        lambda: [later(batch, rows) for rows in epoch_of(len(images), 8, rng)], arguments.precision, evaluate)


# ---- svhn: models/resnet50_svhn.dl


def svhn(arguments):
    images, labels, test_images, test_labels = (np.load(arguments.data / f"{part}_{kind}.npy")
                                                for part in ("train", "test") for kind in ("images", "labels"))
    test_images = torch.from_numpy(per_image(test_images))
    rng = np.random.default_rng(arguments.seed)
    model = torchvision.models.resnet50(num_classes=10, zero_init_residual=True)
    model.conv1, model.maxpool = nn.Conv2d(1, 64, 3, padding=1, bias=False), nn.Identity()
    model = he_normal(model).to(memory_format=torch.channels_last)
    padded = np.pad(per_image(images), [(0, 0), (0, 0), (2, 2), (2, 2)])

    def batch(rows):
        corners = rng.integers(5, size=(len(rows), 2))
        parts = [padded[row, :, y:y + 32, x:x + 32] for row, (y, x) in zip(rows, corners)]
        return torch.from_numpy(np.stack(parts)), torch.from_numpy(labels[rows].astype(np.int64))

    def loss(model, image, label):
        return F.cross_entropy(model(image).float(), label, label_smoothing=0.1)

    def evaluate():
        found = torch.cat([model(part).argmax(1) for part in test_images.split(64)]).numpy()
        return f"accuracy {(found == test_labels).mean():.4f}"

    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    fit(model, optimizer, loss, 7, lambda: [later(batch, rows) for rows in epoch_of(len(images), 32, rng)],
        arguments.precision, evaluate, warm_up=0.5)


# ---- nuclei, brain2p: models/n2v3d.dl, patch = [16, 32, 32], percent = 1.6

PATCH, RADIUS = (16, 32, 32), 5


def blind_spots(volume, box, rng):
    """A copy in which one voxel of each box is a random neighbour, itself among them, and where these voxels are."""
    boxes = [range(0, extent, box) for extent in volume.shape]
    corners = np.array(list(itertools.product(*boxes)))
    places = corners + rng.integers(box, size=corners.shape)
    places = places[(places < volume.shape).all(1)]
    low, high = np.maximum(places - RADIUS, 0), np.minimum(places + RADIUS + 1, volume.shape)
    image = volume.copy()
    image[tuple(places.T)] = volume[tuple(rng.integers(low, high).T)]
    return image, tuple(places.T)


def noise2void(volume, epochs, arguments):
    """The network trained on this volume, as a function that denoises one. An epoch is 100 steps."""
    mean, std = volume.mean(), volume.std()
    scaled = ((volume - mean) / std).astype(np.float32)
    rng = np.random.default_rng(arguments.seed)
    model = he_normal(Denoiser(axes=3)).to(memory_format=torch.channels_last_3d)

    def sample():
        corner = [rng.integers(extent - size + 1) for extent, size in zip(volume.shape, PATCH)]
        patch, = turned([scaled[tuple(slice(at, at + size) for at, size in zip(corner, PATCH))]], rng)
        image, places = blind_spots(patch, 4, rng)
        mask = np.zeros_like(patch)
        mask[places] = 1
        return image, patch, mask

    def batch():
        return [tensor(parts) for parts in zip(*(sample() for _ in range(4)))]

    def loss(model, image, target, mask):
        return masked_error("mse", model(image).float(), target, mask)

    def denoised(volume):
        model.eval()
        padded = np.pad((volume - mean) / std, [(0, -extent % 4) for extent in volume.shape], mode="reflect")
        with torch.no_grad():
            result = model(tensor([padded]))[0, 0].numpy()
        return result[tuple(slice(extent) for extent in volume.shape)] * std + mean

    fit(model, torch.optim.Adam(model.parameters(), lr=1e-3), loss, epochs, lambda: [batch] * 100, arguments.precision)
    return denoised


def nuclei(arguments):
    clean, noisy = (np.load(arguments.data / f"train_{kind}.npy").astype(np.float64) for kind in ("clean", "noisy"))

    def psnr(volume):
        return 10 * math.log10(980**2 / np.mean((volume - clean)**2))
    if arguments.prediction:
        result = np.load(arguments.prediction).reshape(clean.shape)
    else:
        result = noise2void(noisy, 10, arguments)(noisy)
    print(f"PSNR of the noisy volume {psnr(noisy):.2f} dB, denoised {psnr(result):.2f} dB")


def brain2p(arguments):
    volume = np.minimum(np.load(arguments.data / "train_volume.npy"), 1618)  # its 99.9th percentile
    hidden, places = blind_spots(volume, 8, np.random.default_rng(0))
    if arguments.write:
        arguments.write.mkdir(parents=True, exist_ok=True)
        np.save(arguments.write / "volume.npy", volume)
        np.save(arguments.write / "hidden.npy", hidden)
        return
    volume = volume.astype(np.float64)
    if arguments.prediction:
        result = np.load(arguments.prediction).reshape(volume.shape)
    else:
        result = noise2void(volume, 10, arguments)(hidden.astype(np.float64))
    error = np.mean((result - volume)[places]**2)
    print(f"MSE at {len(places[0])} hidden voxels {error:.1f}, variance there {volume[places].var():.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    recipes = {f.__name__: f for f in (dsb2018, svhn, nuclei, brain2p)}
    parser.add_argument("recipe", choices=recipes)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=("f32", "bf16"), default="bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prediction", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(arguments.seed)
    recipes[arguments.recipe](arguments)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"user {used.ru_utime:.1f} s, system {used.ru_stime:.1f} s")


if __name__ == "__main__":
    main()
