"""Classifiers of models/ and test/networks beside torchvision's: its random weights, by its parameter names, give its
logits.

One line per network: how far the logits of dlc, in f32 with strict math, and of PyTorch in f32 are from PyTorch's in f64, the
largest difference over the largest logit. Running statistics are those of random images. torchvision comes from bench/peers.

    build/peers/bin/python bench/torchvision_models.py [--bin build/release/bin] [NAME...]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision
from safetensors.torch import save_file

from torch_peers import with_small_stem

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "e2e"))
from support import without_data  # noqa: E402

MODELS, NETWORKS = ROOT / "models", ROOT / "test" / "networks"
# Name -> folder, settings, shape of an image, network. The name's first word is the file's.
CASES = {
    "vgg16": (MODELS, [], (3, 224, 224), lambda m: m.vgg16()),
    "resnet50": (MODELS, [], (3, 224, 224), lambda m: m.resnet50()),
    "resnet50 with a small stem": (MODELS, ["stem=small", "size=32"], (3, 32, 32), lambda m: with_small_stem(m.resnet50())),
    "resnet50_svhn": (MODELS, [], (1, 32, 32), lambda m: with_small_stem(m.resnet50(num_classes=10), channels=1)),
    "resnet101": (MODELS, [], (3, 224, 224), lambda m: m.resnet101()),
    "inception_v3": (MODELS, ["aux=false"], (3, 299, 299), lambda m: m.inception_v3(aux_logits=False, init_weights=False)),
    "inception_v3 with aux": (MODELS, ["aux=true"], (3, 299, 299), lambda m: m.inception_v3(init_weights=False)),
    "mobilenetv2": (NETWORKS, [], (3, 224, 224), lambda m: m.mobilenet_v2()),
    "densenet121": (NETWORKS, [], (3, 224, 224), lambda m: m.densenet121()),
}
TOLERANCE = 1e-4
BATCH = 2


def with_logits(name, folder, directory):
    """A copy that takes its inputs as they are and puts out logits."""
    model = without_data(f"{name}.dl", directory, folder)
    text = model.read_text()
    changed = text.replace("output probability = softmax(logits)", "output logits = logits")
    if changed == text:
        raise SystemExit(f"{name} puts out no softmax of its logits")
    model.write_text(changed)
    return model


def network_with_statistics(make, shape):
    """Else a residual network's logits grow with its depth."""
    network = make(torchvision.models)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # a cumulative mean
    with torch.no_grad():
        for _ in range(2):
            network(torch.randn(2 * BATCH, *shape))
    return network.eval()


def differences(binaries, name, directory):
    folder, sets, shape, make = CASES[name]
    torch.manual_seed(1)
    network = network_with_statistics(make, shape)
    images = torch.randn(BATCH, *shape)
    with torch.no_grad():
        theirs = network(images).numpy()
    weights = {key: value for key, value in network.state_dict().items() if not key.endswith("num_batches_tracked")}
    save_file(weights, directory / "weights.safetensors")
    np.save(directory / "image.npy", images.numpy())
    settings = [part for text in [*sets, f"predict.batch={BATCH}"] for part in ("--set", text)]
    for command in (["dlc", "compile", with_logits(name.split()[0], folder, directory), "--math=strict", *settings, "-o", directory / "model.dlx"],
                    ["dlc-run", "predict", directory / "model.dlx", "--data", f"image={directory}/image.npy", "--init",
                     directory / "weights.safetensors", "-o", directory / "out"]):
        subprocess.run([binaries / command[0], *command[1:]], check=True, stdout=subprocess.DEVNULL)
    ours = np.load(directory / "out" / "logits.npy")
    with torch.no_grad():
        truth = network.double()(images.double()).numpy()
    return [np.abs(logits - truth).max() / np.abs(truth).max() for logits in (ours, theirs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], metavar="NAME", help=", ".join(CASES))
    arguments = parser.parse_args()
    worst = 0
    for name in arguments.cases or CASES:
        with tempfile.TemporaryDirectory() as directory:
            ours, theirs = differences(arguments.bin.resolve(), name, pathlib.Path(directory))
        worst = max(worst, ours)
        print(f"{name:26} dlc {ours:.1e}  PyTorch {theirs:.1e}", flush=True)
    if not worst < TOLERANCE:
        raise SystemExit(f"differs by more than {TOLERANCE}")


if __name__ == "__main__":
    main()
