"""PyTorch's training step of one model in one mode, as a process that times steps on demand.

Prints "ready PARAMETERS SECONDS BYTES" after two steps: the network's parameters, seconds from the model's making to
the end of the first step, and the process's peak resident memory until then above what was resident before: with
torch.compile that is the compiler's. Then each line of standard input is a number of steps to run, answered by
milliseconds per step and the peak since "ready", which is the steps' own. Started by bench/compare.py.

    peer_step.py MODEL MODE PRECISION OPTIMIZER THREADS
"""

import pathlib
import sys
import time

import torch
import torchvision
from torch.nn import functional as F

from torch_models import Denoiser, MnistCnn, UNet, Vgg16, masked_error
from torch_peers import with_small_stem


def mnist(batch=64):
    image, label = torch.rand(batch, 1, 28, 28), torch.randint(10, (batch,))
    return MnistCnn(), image, lambda logits: F.cross_entropy(logits, label)


def unet(base, batch, norm, size=256):
    image, mask = torch.rand(batch, 1, size, size), (torch.rand(batch, 1, size, size) > 0.5).float()
    return UNet(base=base, norm=norm), image, lambda logits: F.binary_cross_entropy_with_logits(logits, mask)


def vgg(batch):
    image, label = torch.rand(batch, 3, 224, 224), torch.randint(1000, (batch,))
    return Vgg16(), image, lambda logits: F.cross_entropy(logits, label)


def residual(name, batch, size=224, classes=1000, channels=3, stem="imagenet"):
    image, label = torch.rand(batch, channels, size, size), torch.randint(classes, (batch,))
    network = getattr(torchvision.models, name)(num_classes=classes)
    if stem == "small":
        network = with_small_stem(network, channels)
    return network, image, lambda logits: F.cross_entropy(logits, label, label_smoothing=0.1)


class BothLogits(torchvision.models.Inception3):
    """Those of the auxiliary classifier in a row of their own."""

    def forward(self, image):
        return torch.stack(list(super().forward(image)))


def inception(batch):
    image, label = torch.rand(batch, 3, 299, 299), torch.randint(1000, (batch,))

    def loss(logits):
        main, auxiliary = (F.cross_entropy(part, label, label_smoothing=0.1) for part in logits)
        return main + 0.4 * auxiliary
    return BothLogits(init_weights=False, dropout=0.0), image, loss


def denoiser(batch, *patch):
    image, target = torch.rand(batch, 1, *patch), torch.rand(batch, 1, *patch)
    mask = (torch.rand(image.shape) < 0.00198).float()
    return Denoiser(axes=3), image, lambda x: masked_error("mse", x, target, mask)


MODELS = {"mnist": mnist, "unet16": lambda: unet(16, 8, True), "unet32": lambda: unet(32, 4, False), "vgg16": lambda: vgg(8),
          "resnet50": lambda: residual("resnet50", 8), "resnet101": lambda: residual("resnet101", 8),
          "inception_v3": lambda: inception(8), "n2v3d": lambda: denoiser(4, 16, 64, 64)}
MODES = ("eager", "channels_last", "compile", "compile channels_last")


def resident(field):
    """VmRSS or VmHWM, the peak, of this program in bytes. What getrusage calls the peak is the parent's, too: exec
    keeps it."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split(field + ":")[1].split()[0]) * 1024


def forget_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


class Peer:
    """`mode` names what is used of channels_last and compile; `optimizer` is fused or foreach; `wrap` is done to the
    model."""

    def __init__(self, make, mode, precision, optimizer, wrap=lambda model: model):
        torch.manual_seed(0)
        self.model, self.image, self.loss = make()
        if "channels_last" in mode:
            layout = torch.channels_last if self.image.dim() == 4 else torch.channels_last_3d
            self.model = self.model.to(memory_format=layout)
            self.image = self.image.contiguous(memory_format=layout)
        self.model = wrap(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, **{optimizer: True})
        self.forward = torch.compile(self.model) if "compile" in mode else self.model
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")

    def run(self, steps):
        """Milliseconds per step."""
        begin = time.perf_counter()
        for _ in range(steps):
            self.optimizer.zero_grad()
            with self.autocast:
                logits = self.forward(self.image)
            self.loss(logits.float()).backward()
            self.optimizer.step()
        return (time.perf_counter() - begin) / steps * 1e3


def main():
    model, mode, precision, optimizer, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)
    # Threads, the library and what optimizers import (149 MiB) are loaded before the model's memory is counted, as
    # dlc's are.
    Peer(mnist, mode.removeprefix("compile").strip() or "eager", precision, optimizer).run(2)
    forget_peak()
    before, begin = resident("VmRSS"), time.perf_counter()
    peer = Peer(MODELS[model], mode, precision, optimizer)
    peer.run(1)
    seconds = time.perf_counter() - begin
    peer.run(1)
    print("ready", sum(p.numel() for p in peer.model.parameters()), seconds, resident("VmHWM") - before, flush=True)
    forget_peak()
    for line in sys.stdin:
        print(peer.run(int(line)), resident("VmHWM") - before, flush=True)


if __name__ == "__main__":
    main()
