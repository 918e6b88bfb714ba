"""Classifiers of models/ beside torchvision's: its random weights, by its parameter names, give its probabilities.

One line per network: the largest difference of a probability over the largest probability, in f32 with strict math.
Running statistics are those of random images. torchvision comes from bench/peers.

    build/peers/bin/python bench/torchvision_models.py [--bin build/release/bin] [MODEL...]
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
import torchvision
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = {
    "vgg16": ("models/vgg16.dl", 224, lambda m: m.vgg16()),
    "resnet50": ("models/resnet50.dl", 224, lambda m: m.resnet50()),
    "resnet101": ("models/resnet101.dl", 224, lambda m: m.resnet101()),
    "inception_v3": ("models/inception_v3.dl", 299, lambda m: m.inception_v3(init_weights=False)),
    "mobilenetv2": ("test/networks/mobilenetv2.dl", 224, lambda m: m.mobilenet_v2()),
    "densenet121": ("test/networks/densenet121.dl", 224, lambda m: m.densenet121()),
}
TOLERANCE = 1e-4
BATCH = 2


def without_data(source, folder):
    """A copy that takes its inputs as they are, beside what it imports."""
    for part in source.parent.glob("*.dl"):
        text = part.read_text()
        begin = text.find("\ndata {")
        end = text.find("\n}\n", begin)
        (folder / part.name).write_text(text if begin < 0 else text[:begin] + text[end + 3:])
    return folder / source.name


def network_with_statistics(make, size):
    """Else a residual network's logits grow until all probabilities are 0 or 1."""
    network = make(torchvision.models)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # a cumulative mean
    with torch.no_grad():
        for _ in range(2):
            network(torch.randn(2 * BATCH, 3, size, size))
    return network.eval()


def difference(binaries, name, folder):
    file, size, make = MODELS[name]
    torch.manual_seed(1)
    network = network_with_statistics(make, size)
    images = torch.randn(BATCH, 3, size, size)
    with torch.no_grad():
        theirs = network(images).softmax(1).numpy()
    weights = {key: value for key, value in network.state_dict().items() if not key.endswith("num_batches_tracked")}
    save_file(weights, folder / "weights.safetensors")
    np.save(folder / "image.npy", images.numpy())
    model = without_data(ROOT / file, folder)
    subprocess.run([binaries / "dlc", "compile", model, "--math=strict", "--set", f"predict.batch={BATCH}", "-o", folder / "model.dlx"],
                   check=True, capture_output=True)
    subprocess.run([binaries / "dlc-run", "predict", folder / "model.dlx", "--data", f"image={folder}/image.npy", "--init",
                    folder / "weights.safetensors", "-o", folder / "out"], check=True, capture_output=True)
    ours = np.load(next((folder / "out").glob("*.npy")))
    return np.abs(ours - theirs).max() / theirs.max()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], metavar="MODEL")
    arguments = parser.parse_args()
    worst = 0
    for name in arguments.models or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            found = difference(arguments.bin.resolve(), name, pathlib.Path(folder))
        worst = max(worst, found)
        print(f"{name}: {found:.1e}", flush=True)
    if not worst < TOLERANCE:
        raise SystemExit(f"differs by more than {TOLERANCE}")


if __name__ == "__main__":
    main()
