"""Step time of dlc beside PyTorch's best mode, interleaved in one run.

PyTorch runs eager and compiled, contiguous and channels_last; the fastest of the four in this run is the peer. Then both alternate,
and the medians' ratio is printed. Same network (parameter counts are compared), batch, threads, Adam, float32, synthetic data,
denormals flushed on both sides. PyTorch and numpy come from bench/peers.

    build/peers/bin/python bench/compare.py [--bin build/release/bin] [--rounds 5] [--threads 2] [--no-compile] [MODEL...]
"""

import argparse
import json
import pathlib
import platform
import statistics
import subprocess
import tempfile
import time

import torch
from torch.nn import functional as F

from torch_models import MnistCnn, UNet2d

ROOT = pathlib.Path(__file__).resolve().parents[1]


def mnist():
    image, label = torch.rand(64, 1, 28, 28), torch.randint(10, (64,))
    return MnistCnn(), image, lambda logits: F.cross_entropy(logits, label)


def unet(base, batch, norm):
    image, mask = torch.rand(batch, 1, 256, 256), (torch.rand(batch, 1, 256, 256) > 0.5).float()
    return UNet2d(base=base, norm=norm), image, lambda logits: F.binary_cross_entropy_with_logits(logits, mask)


# name: (model file, --set, PyTorch's side, steps per round)
MODELS = {
    "mnist": ("mnist_cnn.dl", ["batch=64", "train.optimizer=adam()"], mnist, 20),
    "unet16": ("unet2d.dl", ["base=16", "batch=8", "size=256", "predict.size=256"], lambda: unet(16, 8, True), 3),
    "unet32": ("unet2d.dl", ["base=32", "batch=4", "size=256", "norm=none", "predict.size=256"], lambda: unet(32, 4, False), 3),
}


class Peer:
    """PyTorch's training step in one mode."""

    def __init__(self, make, channels_last, compiled):
        torch.manual_seed(0)
        self.name = ("compile" if compiled else "eager") + (" channels_last" if channels_last else "")
        self.model, self.image, self.loss = make()
        self.parameters = sum(p.numel() for p in self.model.parameters())
        if channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.image = self.image.contiguous(memory_format=torch.channels_last)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.forward = torch.compile(self.model) if compiled else self.model

    def step_ms(self, steps):
        begin = time.perf_counter()
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.loss(self.forward(self.image)).backward()
            self.optimizer.step()
        return (time.perf_counter() - begin) / steps * 1e3


def best_peer(make, steps, modes):
    best, best_ms = None, float("inf")
    for channels_last, compiled in modes:
        peer = Peer(make, channels_last, compiled)
        begin = time.perf_counter()
        peer.step_ms(1)
        start_up = time.perf_counter() - begin
        ms = min(peer.step_ms(steps) for _ in range(2))
        print(f"  PyTorch {peer.name}: {ms:.1f} ms, first step after {start_up:.1f} s", flush=True)
        if ms < best_ms:
            best, best_ms = peer, ms
    return best


def ours(arguments, artifact, steps):
    command = [arguments.bin / "dlc-run", "bench", artifact, "--threads", arguments.threads, "--warmup", 2, "--iters", 1,
               "--batches-per-iter", steps, "--json"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["step_ms"]


def spread(values):
    return f"{statistics.median(values):.1f} ms ({min(values):.1f}-{max(values):.1f})"


def compare(name, arguments, directory):
    file, sets, make, steps = MODELS[name]
    artifacts = {}
    for math in ("fast", "strict"):
        artifacts[math] = pathlib.Path(directory) / f"{name}-{math}.dlx"
        options = [option for value in sets for option in ("--set", value)]
        subprocess.run([str(arguments.bin / "dlc"), "compile", str(ROOT / "models" / file), *options, f"--math={math}",
                        f"--threads={arguments.threads}", "-o", str(artifacts[math])], check=True)
    inspected = subprocess.run([str(arguments.bin / "dlc"), "inspect", str(artifacts["fast"]), "--json"], capture_output=True,
                               text=True, check=True)
    print(f"{name}: {file} {' '.join(sets)}", flush=True)
    modes = [(False, False), (True, False)] + ([] if arguments.no_compile else [(False, True), (True, True)])
    peer = best_peer(make, steps, modes)
    parameters = json.loads(inspected.stdout)["parameter_count"]
    if parameters != peer.parameters:
        raise SystemExit(f"{name}: dlc has {parameters} parameters, PyTorch {peer.parameters}: not the same network")
    times = {"peer": [], "fast": [], "strict": []}
    for _ in range(arguments.rounds):
        times["peer"].append(peer.step_ms(steps))
        for math, artifact in artifacts.items():
            times[math].append(ours(arguments, artifact, steps))
    print(f"  PyTorch {peer.name}: {spread(times['peer'])}")
    for math in artifacts:
        ratio = statistics.median(times["peer"]) / statistics.median(times[math])
        print(f"  dlc {math}: {spread(times[math])}, {ratio:.2f}x PyTorch", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile, which takes minutes to start")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    print(f"{cpu}, {arguments.threads} threads; PyTorch {torch.__version__}")
    with tempfile.TemporaryDirectory() as directory:
        for name in arguments.models:
            compare(name, arguments, directory)


main()
