"""One rank of PyTorch's DistributedDataParallel over gloo: prints milliseconds per step. Started by bench/overlap.

    ddp_step.py unet32|vgg16 RANK RANKS ADDRESS PORT STEPS
"""

import sys
import time

import torch
from torch import distributed
from torch.nn import functional as F

from torch_models import UNet2d, Vgg16


def unet32():
    return UNet2d(base=32, norm=False), torch.rand(2, 1, 256, 256), (torch.rand(2, 1, 256, 256) > 0.5).float(), \
        F.binary_cross_entropy_with_logits


def vgg16():
    return Vgg16(), torch.rand(4, 3, 224, 224), torch.randint(1000, (4,)), F.cross_entropy


def main():
    make, rank, ranks, address, port, steps = sys.argv[1:]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    distributed.init_process_group("gloo", init_method=f"tcp://{address}:{port}", rank=int(rank), world_size=int(ranks))
    model, image, target, loss = {"unet32": unet32, "vgg16": vgg16}[make]()
    model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)

    def run(count):
        for _ in range(count):
            optimizer.zero_grad()
            loss(model(image), target).backward()
            optimizer.step()
    run(2)
    distributed.barrier()
    begin = time.perf_counter()
    run(int(steps))
    distributed.barrier()
    print((time.perf_counter() - begin) / int(steps) * 1e3, flush=True)
    distributed.destroy_process_group()


main()
