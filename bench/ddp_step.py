"""One rank of PyTorch's DistributedDataParallel over gloo, on one thread: prints milliseconds per step. Started by
bench/overlap.

    ddp_step.py unet32|vgg16 MODE OPTIMIZER RANK RANKS ADDRESS PORT STEPS
"""

import sys

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from peer_step import Peer, unet, vgg

MODELS = {"unet32": lambda: unet(32, 2, False), "vgg16": lambda: vgg(4)}


def main():
    model, mode, optimizer, rank, ranks, address, port, steps = sys.argv[1:]
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    distributed.init_process_group("gloo", init_method=f"tcp://{address}:{port}", rank=int(rank), world_size=int(ranks))
    # torch.compile cuts its graph where a bucket is full, which it cannot do in a static one.
    peer = Peer(MODELS[model], mode, "f32", optimizer,
                lambda model: DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph="compile" not in mode))
    peer.run(3)  # the first one compiles, the second one has the buckets in their final order
    distributed.barrier()
    print(peer.run(int(steps)), flush=True)
    distributed.destroy_process_group()


main()
