"""PyTorch's training step of one model in one mode, as a process that times steps on demand.

Prints "ready PARAMETERS SECONDS BYTES" after the first step: the network's parameters, seconds from the model's making to the end
of that step, and the process's peak resident memory above what was resident before. Then each line of standard input is a number
of steps to run, answered by milliseconds per step. Started by bench/compare.py.

    peer_step.py MODEL MODE PRECISION OPTIMIZER THREADS
"""

import resource
import sys
import time

import torch
from torch.nn import functional as F

from torch_models import MnistCnn, UNet2d, Vgg16


def mnist():
    image, label = torch.rand(64, 1, 28, 28), torch.randint(10, (64,))
    return MnistCnn(), image, lambda logits: F.cross_entropy(logits, label)


def unet(base, batch, norm):
    image, mask = torch.rand(batch, 1, 256, 256), (torch.rand(batch, 1, 256, 256) > 0.5).float()
    return UNet2d(base=base, norm=norm), image, lambda logits: F.binary_cross_entropy_with_logits(logits, mask)


def vgg():
    image, label = torch.rand(8, 3, 224, 224), torch.randint(1000, (8,))
    return Vgg16(), image, lambda logits: F.cross_entropy(logits, label)


MODELS = {"mnist": mnist, "unet16": lambda: unet(16, 8, True), "unet32": lambda: unet(32, 4, False), "vgg16": vgg}


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


class Peer:
    """`mode` names what is used of channels_last and compile; `optimizer` is fused or foreach."""

    def __init__(self, make, mode, precision, optimizer):
        torch.manual_seed(0)
        self.model, self.image, self.loss = make()
        if "channels_last" in mode:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.image = self.image.contiguous(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, **{optimizer: True})
        self.forward = torch.compile(self.model) if "compile" in mode else self.model
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")

    def run(self, steps):
        for _ in range(steps):
            self.optimizer.zero_grad()
            with self.autocast:
                logits = self.forward(self.image)
            self.loss(logits.float()).backward()
            self.optimizer.step()


def main():
    model, mode, precision, optimizer, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)
    before, begin = resident(), time.perf_counter()
    peer = Peer(MODELS[model], mode, precision, optimizer)
    peer.run(1)
    seconds = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    print("ready", sum(p.numel() for p in peer.model.parameters()), seconds, memory, flush=True)
    for line in sys.stdin:
        steps = int(line)
        begin = time.perf_counter()
        peer.run(steps)
        print((time.perf_counter() - begin) / steps * 1e3, flush=True)


main()
