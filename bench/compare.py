"""Step time of dlc beside PyTorch's best mode, interleaved in one run; one table.

PyTorch runs eager and compiled, contiguous and channels_last, with its fused and its foreach optimizer; the fastest in
this run is the peer. Then peer, peer with jemalloc preloaded and dlc's variants alternate, and the ratios of medians
are printed, and of peak resident memory less what was resident before the arenas or the model: PyTorch's is that of the
timed steps, less what torch.compile has given back before them, in the fastest mode and in the one that takes least.
Both train the same network: unless parameter counts and, with equal weights and dropout masks, first losses agree,
nothing is timed. Batch, threads, SGD with momentum and flushed denormals are the same. bf16 is left out where the
processor lacks its instructions. PyTorch and numpy come from bench/peers, jemalloc from the system.

    build/peers/bin/python bench/compare.py [MODEL...] [--bin build/release/bin] [--rounds 5] [--threads 2]
        [--variants bf16] [--no-compile]
"""

import argparse
import functools
import glob
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

import torch

from peer_step import MODES
from torch_cases import (ROOT, SEED, inception_v3, mnist_cnn, n2v3d, residual, run, settings, torch_results, unet2d, vgg16,
                         write_batch)

sys.path.insert(0, str(ROOT / "test" / "e2e"))
from support import has, without_data  # noqa: E402

# name: (the case, steps a round)
MODELS = {
    "mnist": (functools.partial(mnist_cnn, rows=64), 20),
    "unet16": (functools.partial(unet2d, 16, 4, rows=8, size=256), 3),
    "unet32": (functools.partial(unet2d, 32, 4, "none", rows=4, size=256), 3),
    "vgg16": (functools.partial(vgg16, rows=8, size=224, classes=1000), 2),
    "resnet50": (functools.partial(residual, "resnet50", rows=8, size=224, classes=1000), 3),
    "resnet101": (functools.partial(residual, "resnet101", rows=8, size=224, classes=1000), 2),
    "inception_v3": (functools.partial(inception_v3, rows=8, size=299, classes=1000, aux=True), 2),
    "n2v3d": (functools.partial(n2v3d, base=32, rows=4, patch=(16, 64, 64), spots=130), 2),
}
# variant of dlc: (options of dlc compile, precision of the peer, how far the first losses may be apart)
VARIANTS = {"f32 fast": (["--math=fast"], "f32", 1e-4), "f32 strict": (["--math=strict"], "f32", 1e-5),
            "bf16": (["--precision=bf16"], "bf16", 1e-2)}


WARM_UP = 2  # steps of either side before those of a round: the other one has had caches and memory until then


class Peer:
    """A process that runs PyTorch's steps."""

    def __init__(self, model, mode, precision, optimizer, threads, cache, jemalloc=None):
        """cache: an empty folder for what torch.compile generates."""
        self.name = f"{mode}, {optimizer} SGD, {precision}"
        self.arguments, self.cache = (model, mode, precision, optimizer, threads), cache
        environment = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(cache))
        if jemalloc:
            environment |= {"LD_PRELOAD": jemalloc, "MALLOC_CONF": "dirty_decay_ms:-1,thp:always"}
        command = [sys.executable, pathlib.Path(__file__).with_name("peer_step.py"), *self.arguments]
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        ready = self.process.stdout.readline().split()
        if not ready:
            sys.exit(f"PyTorch {self.name} ended before its first step")
        self.parameters, self.seconds, self.bytes_at_first = int(ready[1]), float(ready[2]), float(ready[3])

    def with_jemalloc(self, library):
        return Peer(*self.arguments, self.cache, jemalloc=library)

    def step_ms(self, steps):
        for count in (WARM_UP, steps):
            print(count, file=self.process.stdin, flush=True)
            ms, self.bytes = map(float, self.process.stdout.readline().split())
        return ms

    def memory(self):
        return f"{mebibytes(self.bytes)} above the start, {mebibytes(self.bytes_at_first)} until the second step"

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def mebibytes(count):
    return f"{count / 2**20:.0f} MiB"


def best_peer(model, precision, steps, arguments, folder):
    """The fastest mode, then the faster of the two optimizers in it; and the least memory that any of them took."""
    modes = [mode for mode in MODES if not (arguments.no_compile and "compile" in mode)]
    best, best_ms, least = None, float("inf"), float("inf")

    def consider(mode, optimizer):
        nonlocal best, best_ms, least
        peer = Peer(model, mode, precision, optimizer, arguments.threads, tempfile.mkdtemp(dir=folder))
        ms = min(peer.step_ms(steps) for _ in range(2))
        print(f"  PyTorch {peer.name}: {ms:.1f} ms, first step after {peer.seconds:.1f} s, {peer.memory()}", flush=True)
        least = min(least, peer.bytes)
        worse, best, best_ms = (best, peer, ms) if ms < best_ms else (peer, best, best_ms)
        if worse:
            worse.stop()
    for mode in modes:
        consider(mode, "fused")
    consider(best.arguments[1], "foreach")
    return best, least


class Ours:
    """A compiled variant."""

    def __init__(self, case, variant, arguments, folder):
        options, self.precision, self.tolerance = VARIANTS[variant]
        self.bin, self.threads = arguments.bin, arguments.threads
        self.artifact = folder / ("-".join(options).strip("-").replace("=", "-") + ".dlx")
        run(self.bin / "dlc", "compile", without_data(f"{case.name}.dl", folder), *settings(case, 1), "--set",
            "train.optimizer=sgd(lr=0.01, momentum=0.9)", "--set", "train.schedule=[]", *options,
            f"--threads={self.threads}", "-o", self.artifact)

    def parameters(self):
        done = subprocess.run([self.bin / "dlc", "inspect", self.artifact, "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["parameter_count"]

    def first_loss(self, inputs, folder):
        """Of the weights and inputs in folder."""
        log = folder / "log.jsonl"
        run(self.bin / "dlc-run", "train", self.artifact, *(part for file in inputs for part in ("--data", file)), "--steps", 1,
            "--seed", SEED, "--no-shuffle", "--threads", self.threads, "--init", folder / "weights.safetensors", "--log", log,
            "--run", tempfile.mkdtemp(dir=folder))
        loss = json.loads(log.read_text().splitlines()[0])["loss"]
        log.unlink()
        return loss

    def step_ms(self, steps):
        done = subprocess.run([str(self.bin / "dlc-run"), "bench", str(self.artifact), "--threads", str(self.threads),
                               "--warmup", str(WARM_UP), "--iters", "1", "--batches-per-iter", str(steps), "--json"],
                              capture_output=True, text=True, check=True)
        record = json.loads(done.stdout)
        self.bytes = record["peak_resident_bytes"] - record["resident_before_bytes"]
        return record["step_ms"]

    def memory(self):
        return f"{mebibytes(self.bytes)} above the start"


def require_same_network(name, case, ours, peer, inputs, folder):
    if ours[0].parameters() != peer.parameters:
        sys.exit(f"{name}: dlc has {ours[0].parameters()} parameters, PyTorch {peer.parameters}: not the same network")
    loss = float(torch_results(case, 1, torch.float32)["loss"])
    for variant in ours:
        mine, tolerance = variant.first_loss(inputs, folder), variant.tolerance
        if not abs(mine - loss) <= tolerance * abs(loss):
            sys.exit(f"{name}: the first loss is {mine} in {variant.artifact.name}, {loss} in PyTorch: not the same network")


def spread(values):
    return f"{statistics.median(values):8.1f} ms ({min(values):.1f}-{max(values):.1f})"


def compare(name, arguments, folder):
    """Yields (variant, its cell of the table of times, of the table of memory)."""
    make, steps = MODELS[name]
    torch.manual_seed(0)
    case = make()
    inputs = write_batch(case, folder)
    print(f"{name}: {case.name} {' '.join(settings(case, 1))}", flush=True)
    ours = {variant: Ours(case, variant, arguments, folder) for variant in arguments.variants}
    timed, least = dict(ours), {}
    for precision in dict.fromkeys(variant.precision for variant in ours.values()):
        peer, least[precision] = best_peer(name, precision, steps, arguments, folder)
        if len(least) == 1:
            require_same_network(name, case, list(ours.values()), peer, inputs, folder)
        timed[f"PyTorch {precision}"] = peer
        if arguments.jemalloc:
            timed[f"PyTorch {precision} jemalloc"] = peer.with_jemalloc(arguments.jemalloc)
    times = {label: [] for label in timed}
    for _ in range(arguments.rounds):
        for label, side in timed.items():
            times[label].append(side.step_ms(steps))
    for label, side in timed.items():
        print(f"  {label:22} {spread(times[label])}  {side.memory()}{f'   ({side.name})' if isinstance(side, Peer) else ''}", flush=True)
        if isinstance(side, Peer):
            side.stop()
    median = {label: statistics.median(values) for label, values in times.items()}
    for label, variant in ours.items():
        peer = f"PyTorch {variant.precision}"
        speed = f"{median[peer] / median[label]:.2f}"
        if arguments.jemalloc:
            speed += f" ({median[peer + ' jemalloc'] / median[label]:.2f})"
        yield label, speed, f"{timed[peer].bytes / variant.bytes:.2f} ({least[variant.precision] / variant.bytes:.2f})"


def print_table(what, rows, number):
    print(f"\n{what}\n" + " " * 12 + "".join(f"{name:>16}" for name in rows))
    for variant in next(iter(rows.values())):
        print(f"{variant:12}" + "".join(f"{cells[variant][number]:>16}" for cells in rows.values()))


def cpu_name():
    with open("/proc/cpuinfo") as cpuinfo:
        fields = dict(line.split(":", 1) for line in cpuinfo.read().split("\n\n")[0].splitlines())
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_tile") if flag in fields["flags"].split()]
    return f"{fields.get('model name', platform.processor())}, family {fields['cpu family']} model {fields['model']}, {' '.join(flags)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=" ".join(MODELS))
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile, which takes minutes to start")
    arguments = parser.parse_args()
    arguments.bin = arguments.bin.resolve()
    arguments.jemalloc = next(iter(glob.glob("/usr/lib/*/libjemalloc.so.2")), None)
    print(f"{cpu_name()}; {arguments.threads} threads; PyTorch {torch.__version__}"
          + ("" if arguments.jemalloc else "; no jemalloc here: install libjemalloc2"))
    if not has("avx512_bf16") and "bf16" in arguments.variants:
        arguments.variants.remove("bf16")
        print("skipped in bf16: this processor has no bf16 instructions")
    if not arguments.variants:
        sys.exit("no variant is left: name others with --variants")
    rows = {}
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = {variant: cells for variant, *cells in compare(name, arguments, pathlib.Path(folder))}
    print_table("PyTorch's step over dlc's (in brackets: PyTorch with jemalloc)", rows, 0)
    print_table("PyTorch's memory over dlc's (in brackets: of its mode that takes least)", rows, 1)


main()
