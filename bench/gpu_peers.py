"""PyTorch's training steps of models/*.dl on one NVIDIA GPU: time, memory, seconds to the first step; one table.

Networks, losses, batches, sizes and optimizers are those that the .dl files default to; resnet50:256 is resnet50 at
batch 256. Inputs are synthetic and stay on the GPU: no loader, no copy from the host. Tensors are channels_last, or
contiguous in a mode that ends in -contiguous; cuDNN chooses algorithms by benchmark; optimizers are fused.

    modes       eager; graph (the whole eager step, optimizer included, replayed as a CUDA graph); compile (torch.compile
                of network and loss); compile-max (the same with max-autotune, which uses CUDA graphs)
    precisions  bf16 and f16 (autocast over f32 weights; f16 with GradScaler, within the graph, too); f32 (TF32 allowed)

Each case is a process of its own, which imports PyTorch while the case before it runs. torch.compile's caches start
empty and are shared. Times are those of CUDA events around blocks of steps. Peak memory is that of PyTorch's allocator
from the second step on, or from the capture on. Cases go by precision, then mode, then model; a case that fails or
takes too long is listed with its reason. --json is written anew after each case.

    python3 bench/gpu_peers.py [--models resnet50,vgg16:64] [--modes eager,graph] [--precisions bf16] [--json OUT]
    build/peers/bin/python bench/gpu_peers.py --device cpu --models mnist_cnn:8     # on a CPU: only to test the script
"""

import argparse
import contextlib
import dataclasses
import fnmatch
import functools
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import typing

import torch
import torch._dynamo  # imported by optimizers: not to be part of a first step
from torch import nn

import peer_step

WARM_UP = 5  # steps
BLOCKS, BLOCK_SECONDS = 5, 0.25
LEAST = 20  # seconds: no case starts with fewer left


def inception(batch):
    network, image, loss = peer_step.inception(batch)
    network.dropout.p = 0.5
    return network, image, loss


def volumes(batch):
    image = torch.rand(batch, 1, 16, 64, 64)
    mask = (torch.rand(image.shape) > 0.5).float()
    network = peer_step.UNet(base=16, depth=3, axes=3)
    return network, image, lambda logits: nn.functional.binary_cross_entropy_with_logits(logits, mask)


@dataclasses.dataclass
class Model:
    make: typing.Callable  # from a batch: the network, its images and the loss of what it gives for them
    batch: int
    optimizer: type
    options: dict
    no_decay: tuple = ()  # patterns of parameters' names

    def groups(self, network):
        groups = {"decay": {"params": []}, "none": {"params": [], "weight_decay": 0.0}}
        for name, parameter in network.named_parameters():
            kept = any(fnmatch.fnmatchcase(name, pattern) for pattern in self.no_decay)
            groups["none" if kept else "decay"]["params"].append(parameter)
        return [group for group in groups.values() if group["params"]]


SGD, ADAM = torch.optim.SGD, torch.optim.Adam
NESTEROV = {"lr": 0.0125, "momentum": 0.9, "nesterov": True}
RESIDUAL = (32, SGD, NESTEROV | {"weight_decay": 1e-4}, ("*.bias", "*bn*.weight"))
MODELS = {
    # 3 x 224 x 224
    "resnet50": Model(functools.partial(peer_step.residual, "resnet50"), *RESIDUAL),
    "resnet101": Model(functools.partial(peer_step.residual, "resnet101"), *RESIDUAL),
    "vgg16": Model(peer_step.vgg, 32, SGD, {"lr": 0.01, "momentum": 0.9, "weight_decay": 5e-4}),
    # 3 x 299 x 299
    "inception_v3": Model(inception, 32, SGD, NESTEROV | {"weight_decay": 4e-5}, ("*.bias", "*.bn.weight")),
    # 1 x 256 x 256
    "unet2d": Model(lambda batch: peer_step.unet(32, batch, True), 4, ADAM, {"lr": 1e-3}),
    # 1 x 16 x 64 x 64
    "unet3d": Model(volumes, 2, ADAM, {"lr": 1e-3}),
    # 1 x 28 x 28
    "mnist_cnn": Model(peer_step.mnist, 64, SGD, {"lr": 0.05, "momentum": 0.9}),
    # 1 x 16 x 64 x 64
    "n2v3d": Model(lambda batch: peer_step.denoiser(batch, 16, 64, 64), 4, ADAM, {"lr": 4e-4}),
}
CASES = "resnet50,resnet50:256,resnet101,inception_v3,vgg16,unet2d,unet3d,mnist_cnn,n2v3d"
COMPILED = {"compile": "default", "compile-max": "max-autotune"}  # torch.compile's modes
MODES = ("eager", "graph", *COMPILED)
PRECISIONS = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
CONTIGUOUS = "-contiguous"


# ---- one case, in its process


class Objective(nn.Module):
    def __init__(self, network, loss):
        super().__init__()
        self.network, self.loss = network, loss

    def forward(self, image):
        return self.loss(self.network(image).float())


class Training:
    def __init__(self, case, device):
        model, dtype = MODELS[case["model"]], PRECISIONS[case["precision"]]
        mode = case["mode"].removesuffix(CONTIGUOUS)
        self.captured, self.compiled = mode == "graph", mode in COMPILED
        torch.manual_seed(0)
        with torch.device(device):
            network, self.image, loss = model.make(case["batch"])
        self.parameters = sum(p.numel() for p in network.parameters())
        if mode == case["mode"]:
            layout = torch.channels_last if self.image.dim() == 4 else torch.channels_last_3d
            network = network.to(memory_format=layout)
            self.image = self.image.contiguous(memory_format=layout)
        self.optimizer = self.make_optimizer(model, network)
        self.objective = Objective(network, loss)
        if self.compiled:
            self.objective = torch.compile(self.objective, mode=COMPILED[mode])
        self.autocast = contextlib.nullcontext()
        if dtype != torch.float32:
            self.autocast = torch.autocast(device, dtype, cache_enabled=not self.captured)
        self.scaler = torch.amp.GradScaler(device, enabled=dtype == torch.float16)

    def make_optimizer(self, model, network):
        options = model.options | ({"capturable": True} if self.captured and model.optimizer is ADAM else {})
        optimizer = model.optimizer(model.groups(network), fused=True, **options)
        if model.optimizer is SGD:
            # Otherwise the first step makes the momenta, and leaves them uninitialized where f16 overflows.
            for parameter in network.parameters():
                optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return optimizer

    def step(self):
        if self.compiled:
            torch.compiler.cudagraph_mark_step_begin()
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            loss = self.objective(self.image)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.loss = loss.detach()  # the backward pass's nodes must not live on into a capture

    def capture(self):
        """A function that replays a step."""
        self.optimizer.zero_grad(set_to_none=True)
        forget_peak()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=torch.cuda.current_stream()):
            self.step()
        return self.graph.replay


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def forget_peak():
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peaks():
    """Of memory that tensors take and that PyTorch holds for them, in MiB."""
    if not torch.cuda.is_available():
        return {}
    return {"allocated_mib": torch.cuda.max_memory_allocated() / 2**20, "reserved_mib": torch.cuda.max_memory_reserved() / 2**20}


def seconds_of(run, count):
    if not torch.cuda.is_available():
        begin = time.perf_counter()
        for _ in range(count):
            run()
        return time.perf_counter() - begin
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def measure(case, device):
    if case["mode"].startswith("graph") and device != "cuda":
        raise ValueError("CUDA graphs need --device cuda")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    begin = time.perf_counter()
    training = Training(case, device)
    synchronize()
    made = time.perf_counter()
    if training.captured:
        torch.cuda.set_stream(torch.cuda.Stream())  # the default stream cannot be captured
    training.step()
    synchronize()
    first = time.perf_counter()
    record = {"parameters": training.parameters, "make_s": made - begin, "first_step_s": first - made,
              "first_loss": training.loss.item(), "first_step_peak": peaks()}
    forget_peak()
    for _ in range(WARM_UP - 1):
        training.step()
    run = training.capture() if training.captured else training.step
    run()
    synchronize()
    record |= {"ready_s": time.perf_counter() - made, "loss_scale": [training.scaler.get_scale()]}
    count = max(1, math.ceil(BLOCK_SECONDS / (seconds_of(run, 3) / 3)))
    times = [seconds_of(run, count) / count * 1e3 for _ in range(BLOCKS)]
    ms = statistics.median(times)
    record |= {"ms": ms, "min_ms": min(times), "max_ms": max(times), "steps_a_block": count, "blocks_ms": times,
               "images_per_s": case["batch"] / ms * 1e3, "last_loss": training.loss.item(), **peaks()}
    record["loss_scale"].append(training.scaler.get_scale())
    if device == "cuda":
        free, total = torch.cuda.mem_get_info()
        record |= {"device_used_mib": (total - free) / 2**20, "gpu": torch.cuda.get_device_name()}
    if training.compiled:
        counters = torch._dynamo.utils.counters
        record |= {"graph_breaks": sum(counters["graph_break"].values()),
                   "cuda_graph_skips": counters["inductor"]["cudagraph_skips"]}
    return record


def one_line(error):
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def work(result, device):
    """Measures the case that standard input gives, if any, and writes the file `result`."""
    line = sys.stdin.readline()
    if not line:
        return
    try:
        record = {"status": "ok"} | measure(json.loads(line), device)
    except Exception as error:
        record = {"status": "failed", "reason": one_line(error), "traceback": traceback.format_exc()[-6000:]}
    result.write_text(json.dumps(record))


# ---- all cases


class Worker:
    """A process that waits for a case."""

    def __init__(self, folder, number, device):
        self.result, self.log = folder / f"{number}.json", folder / f"{number}.log"
        caches = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}
        command = [sys.executable, __file__, "--device", device, "--worker", str(self.result)]
        # A log file, no pipe: compilers that outlive the process would hold a pipe open.
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
                                            env=os.environ | caches, start_new_session=True)

    def run(self, case, limit):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return {"status": "failed", "reason": f"over {limit:.0f} s"} | self.log_tail()
        finally:
            self.stop()
        if self.result.exists():
            return json.loads(self.result.read_text())
        return {"status": "failed", "reason": f"exit status {self.process.returncode}"} | self.log_tail()

    def log_tail(self):
        return {"log": self.log.read_text(errors="replace")[-3000:]}

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def machine():
    try:
        command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        gpu = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        gpu = ""
    name, _, driver = gpu.partition(", ")
    return {"gpu": name, "driver": driver, "torch": torch.__version__, "torchvision": peer_step.torchvision.__version__,
            "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "python": sys.version.split()[0],
            "cores": os.cpu_count()}


def write(path, document):
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(json.dumps(document, indent=1) + "\n")
        part.replace(path)


def row(case):
    head = f"{case['model']:13}{case['batch']:>6}  {case['precision']:5} {case['mode']:17}"
    if case["status"] != "ok":
        return f"{head} {case['status']}: {case['reason']}"
    memory = f"{case['allocated_mib']:10.0f} {case['reserved_mib']:9.0f}" if "allocated_mib" in case else f"{'-':>10} {'-':>9}"
    spread = f"{case['ms']:9.2f} ({case['min_ms']:.2f}-{case['max_ms']:.2f})"
    return f"{head}{spread:>28}{case['images_per_s']:10.1f}{memory}{case['first_step_s']:8.1f}{case['last_loss']:10.4g}"


HEADER = (f"{'model':13}{'batch':>6}  {'prec.':5} {'mode':17}{'ms/step (min-max)':>28}{'img/s':>10}{'peak MiB':>10}"
          f"{'reserved':>10}{'first s':>8}{'loss':>10}")


def run_all(cases, arguments):
    """The cases with their records."""
    begin = time.monotonic()
    document = {"machine": machine(), "command": sys.argv[1:], "cases": []}
    print(", ".join(f"{key} {value}" for key, value in document["machine"].items()), flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        spare = Worker(pathlib.Path(folder), 0, arguments.device)
        try:
            for number, case in enumerate(cases, 1):
                left = arguments.budget - (time.monotonic() - begin)
                if left < LEAST:
                    record = {"status": "skipped", "reason": f"{max(0, left):.0f} s left"}
                else:
                    worker, spare = spare, Worker(pathlib.Path(folder), number, arguments.device)
                    record = worker.run(case, min(arguments.limit, left))
                document["cases"].append(case | record)
                write(arguments.json, document)
                print(f"{time.monotonic() - begin:5.0f} s  {row(document['cases'][-1])}", flush=True)
        finally:
            spare.stop()
    return document["cases"]


def model_and_batch(text):
    name, _, batch = text.partition(":")
    if name not in MODELS or (batch and not batch.isdecimal()):
        raise argparse.ArgumentTypeError(f"a model is NAME or NAME:BATCH, with a name of {', '.join(MODELS)}; got {text}")
    return {"model": name, "batch": int(batch or MODELS[name].batch)}


def list_of(one):
    return lambda text: [one(part) for part in text.split(",")]


def one_of(names):
    def check(text):
        if text not in names:
            raise argparse.ArgumentTypeError(f"got {text}, not one of {', '.join(names)}")
        return text
    return check


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=list_of(model_and_batch), default=CASES)
    parser.add_argument("--modes", type=list_of(one_of([m + end for end in ("", CONTIGUOUS) for m in MODES])),
                        default="eager,graph,compile")
    parser.add_argument("--precisions", type=list_of(one_of(PRECISIONS)), default="bf16,f16,f32")
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS", help="for all cases (540)")
    parser.add_argument("--limit", type=float, default=100, metavar="SECONDS", help="for a case (100)")
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--worker", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.worker, arguments.device)
    cases = [model | {"precision": precision, "mode": mode}
             for precision in arguments.precisions for mode in arguments.modes for model in arguments.models]
    records = run_all(cases, arguments)
    print(f"\n{HEADER}", *map(row, records), sep="\n")


if __name__ == "__main__":
    main()
