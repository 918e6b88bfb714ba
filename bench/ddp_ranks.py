"""PyTorch's DistributedDataParallel over gloo on this machine: prints milliseconds per step. For `dlc-run bench
--scaling` or `--batches`, which add ranks, batch per rank and threads per rank:

    dlc-run bench models/unet2d.dl --set norm=none --set 'train.optimizer=sgd(lr=0.01, momentum=0.9)' \\
        --scaling=weak --ranks 1,2,4 --peers 'build/peers/bin/python bench/ddp_ranks.py unet2d base=32 norm=none'

    ddp_ranks.py MODEL [NAME=VALUE...] [mode=MODE] RANKS BATCH THREADS

MODEL is unet2d (base, size, norm), mnist_cnn, vgg16, resnet50 or resnet101 (stem, size, classes), resnet50_svhn (size,
channels, classes), inception_v3 with its auxiliary classifier, or n2v3d (patch); it trains by SGD with momentum, as the
model beside it should. MODE is eager (the default), channels_last, compile or "compile channels_last". One rank is not
wrapped. PyTorch comes from bench/peers.
"""

import os
import socket
import sys

try:
    import torch
except ModuleNotFoundError:
    sys.exit("ddp_ranks.py: this Python has no torch; bench/peers sets up build/peers/bin/python, which has")
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel

from peer_step import Peer, denoiser, inception, mnist, residual, unet, vgg

STEPS = 5


def maker(model, settings, batch):
    numbers = {name: int(value) for name, value in settings.items() if name in ("size", "classes", "channels")}
    if model == "unet2d":
        return lambda: unet(int(settings.get("base", 32)), batch, settings.get("norm", "batch") == "batch", numbers.get("size", 256))
    if model in ("resnet50", "resnet101"):
        return lambda: residual(model, batch, stem=settings.get("stem", "imagenet"), **numbers)
    if model == "resnet50_svhn":
        return lambda: residual("resnet50", batch, stem="small", **{"size": 32, "classes": 10, "channels": 1} | numbers)
    if model == "n2v3d":
        return lambda: denoiser(batch, *map(int, settings.get("patch", "16,64,64").split(",")))
    return {"mnist_cnn": lambda: mnist(batch), "vgg16": lambda: vgg(batch), "inception_v3": lambda: inception(batch)}[model]


def work(rank, model, settings, ranks, batch, threads, port, results):
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    if len(os.sched_getaffinity(0)) >= ranks * threads:  # as dlc-run's ranks are bound
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[rank * threads:(rank + 1) * threads])
    mode = settings.get("mode", "eager")
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    # torch.compile cuts its graph where a bucket is full, which it cannot do in a static one.
    wrap = (lambda net: net) if ranks == 1 else (
        lambda net: DistributedDataParallel(net, gradient_as_bucket_view=True, static_graph="compile" not in mode))
    peer = Peer(maker(model, settings, batch), mode, "f32", "fused", wrap)
    peer.run(3)  # the first one compiles, the second one has the buckets in their final order
    distributed.barrier()
    milliseconds = peer.run(STEPS)
    distributed.barrier()
    if rank == 0:
        results.put(milliseconds)
    distributed.destroy_process_group()


def main():
    model, *settings, ranks, batch, threads = sys.argv[1:]
    settings = dict(setting.split("=", 1) for setting in settings)
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    results = multiprocessing.get_context("spawn").SimpleQueue()
    multiprocessing.spawn(work, (model, settings, int(ranks), int(batch), int(threads), port, results), nprocs=int(ranks))
    print(results.get())


if __name__ == "__main__":
    main()
