#!/usr/bin/python3
"""The CUDA back end, on stand-ins for NVIDIA's libraries (test/cuda/standin): their kernels and plans are computed as the
emulated GPU computes them, so that what is trained is equal to the bit. Streams run late, captures are held to CUDA's
rules, memory of the device is none of the host's. Synchronised norms, clipped gradients, averages and predictions are what
the CPU makes of them; steps that overflow in f16 leave no trace but in the loss scale."""
import collections
import json
import os
import re
import shutil

import emulated
import standin
from emulated import MOST, OPTIONS, RATE, STEPS, overwrite
from jobs import Ranks, free_port, torchrun
from standin import on_gpu
from support import MODELS, check, read_safetensors, run, same_file

import numpy as np

# Steps that graphs run: all but the first on each of the two inputs. One rank validates the U-Net on three batches, two on two.
CAPTURED = STEPS - 2
VALIDATED = {("unet2d", 1): 1}

# The convolution beside the norm makes a large gradient of a large pixel: that of a convolution ahead of a norm is none.
SMALL = """model small(batch = 4) {
  input image : f32[batch, 1, 8, 8]
  input target : f32[batch, 4]
  plain = conv(image, 8, kernel = 3, padding = same, name = "plain")
  normed = batch_norm(conv(image, 8, kernel = 3, padding = same, bias = false, name = "conv"), name = "norm")
  y = dense(flatten(relu(plain + relu(normed))), 4, name = "head")
  loss = 0.03 * mse(y, target)
}
train { optimizer = adam(lr = 0.001); clip_norm = 0.5; ema = 0.75 }
"""


def srun(rank, ranks):
    return {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_STEP_NUM_TASKS": str(ranks), "SLURM_NTASKS": str(ranks),
            "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0"}


class Pair(standin.Pair):
    def compare(self):
        for plan in "strict", "bf16", "f16":
            artifact = self.compiled_as_text(*OPTIONS[plan])
            same_file(self.trained_on_gpu(artifact, f"gpu-{plan}", launches=self.captured()), self.trained(artifact, f"emulated-{plan}"),
                      f"{self.model} {plan}")

    def captured(self, ranks=1):
        """Launches of graphs by each rank."""
        return CAPTURED + VALIDATED.get((self.model, ranks), 0)

    def repeat(self):
        """Other orders of streams, micro-batches, a cut; figures of captured steps and of timed ones; metrics."""
        artifact = self.compiled_as_text("--math=strict")
        whole = self.trained_on_gpu(artifact, "whole", launches=CAPTURED)
        parts = self.trained_on_gpu(artifact, "parts", "--accumulate", 3, launches=3 * CAPTURED)
        same_file(parts, self.trained(artifact, "emulated-parts", "-np", 1, "--accumulate", 3), "micro-batches")
        for seed in 1, 2:
            same_file(self.trained_on_gpu(artifact, f"whole-{seed}", seed=seed), whole, "another order")
            same_file(self.trained_on_gpu(artifact, f"parts-{seed}", "--accumulate", 3, seed=seed), parts, "another order of micro-batches")
        stored = self.compiled_as_text("--math=strict", "--source=image=u8", name="stored")
        same_file(self.trained_on_gpu(stored, "stored"), whole, "images that are normalised on the GPU")
        self.trained_on_gpu(artifact, "cut", steps=2)
        same_file(self.trained_on_gpu(artifact, "cut", "--resume"), whole, "a run that was cut")

        cores = len(os.sched_getaffinity(0))
        printed, _ = on_gpu("dlc-run", "train", artifact, *self.data, *RATE, "--steps", STEPS, "--run", self.directory / "told")
        check(re.search(f"\ndata: [1-9][0-9]* samples/s a thread, {cores} threads? per rank\n", printed), printed)

        figures = json.loads(on_gpu("dlc-run", "bench", artifact, "--iters", 1, "--batches-per-iter", 2, "--warmup", 3, "--json")[0])
        check(figures["step_ms"] > 0 and max(figures["instruction_ns"]) < 60e9, str(figures))

        self.profile(artifact)
        self.show_ranges(artifact)
        # Of two ranks: sums of two numbers have one order.
        two = self.trained_on_gpu(artifact, "two", "-np", 2, launches=CAPTURED)
        same_file(two, self.trained(artifact, "emulated-two", "-np", 2), "two ranks")
        self.start_by_others(artifact, two)
        same_file(self.trained_on_gpu(artifact, "two-parts", "-np", 2, "--accumulate", 2),
                  self.trained(artifact, "emulated-two-parts", "-np", 2, "--accumulate", 2), "micro-batches of two ranks")
        self.trained_on_gpu(artifact, "two-cut", "-np", 2, steps=2)
        same_file(self.trained_on_gpu(artifact, "two-cut", "-np", 2, "--resume"), two, "a run of two ranks that was cut")

        def metrics(program):
            return json.loads(program("eval", artifact, *self.data, "--init", whole, "--json")[0])

        got, wanted = metrics(lambda *words: on_gpu("dlc-run", *words)), metrics(lambda *words: run(self.emulated, *words))
        check(got == wanted, f"eval says {got}, on the emulated device {wanted}")

    def start_by_others(self, artifact, wanted):
        """Ranks that torchrun or a plain srun has started, each on the GPU of its number on the host."""
        port = free_port()
        for name, told in ("torchrun", lambda rank: torchrun(rank, 2, port)), ("srun", lambda rank: srun(rank, 2)):
            weights = self.directory / f"{name}.safetensors"
            Ranks(["train", artifact, *self.data, *RATE, "--steps", STEPS, "--save", weights, "--run", self.directory / name],
                  [{**standin.environment(), **told(rank)} for rank in range(2)]).end()
            same_file(weights, wanted, f"two ranks of {name}")

    def near_cpu(self, most):
        """On one rank and on two: variables, running statistics and averages of parameters, each by what the CPU makes of them."""
        cpu, gpu = self.compiled("cpu:native", "--math=strict"), self.compiled_as_text("--math=strict")
        for ranks in 1, 2:
            for steps in 1, STEPS:
                self.trained(cpu, f"cpu-{ranks}-{steps}", "-np", ranks, program="dlc-run", steps=steps)
            self.trained_on_gpu(gpu, f"gpu-{ranks}", "-np", ranks, launches=self.captured(ranks))
            start, end, got = (read_safetensors(self.directory / f"{name}/last.safetensors")
                               for name in (f"cpu-{ranks}-1", f"cpu-{ranks}-{STEPS}", f"gpu-{ranks}"))
            check(got.keys() == end.keys(), f"{self.model}: {got.keys() ^ end.keys()}")
            kinds = collections.defaultdict(list)
            for name in end:
                kinds[re.search("running|optimizer[.]ema|optimizer|$", name)[0]].append(name)
            for kind, names in kinds.items():
                moved, apart = (np.sqrt(sum(np.square((one[name] - end[name]).astype(np.float64)).sum() for name in names))
                                for one in (start, got))
                print(f"{self.model}, {ranks} ranks: {kind or 'parameters'} are {apart / moved:.1e} of the way apart")
                check(moved > 0 and apart < most * moved, f"{self.model}, {ranks} ranks: {kind} {apart} apart after {moved}")

    def predict(self, weights, *images):
        """What the CPU predicts; on two ranks, to the bit what one does."""
        cpu, gpu = self.compiled("cpu:native", "--math=strict"), self.compiled_as_text("--math=strict")

        def predicted(program, name, artifact, *options):
            program("dlc-run", *options, "predict", artifact, *images, "--init", weights, "-o", self.directory / name, "--format=npy")
            file, = (self.directory / name).glob("*.npy")
            return np.load(file)

        wanted, got = predicted(run, "predicted-cpu", cpu), predicted(on_gpu, "predicted", gpu)
        check(got.tobytes() == predicted(on_gpu, "predicted-two", gpu, "-np", 2).tobytes(), f"{self.model}: two ranks predict otherwise")
        apart = np.abs(got - wanted).max() / np.ptp(wanted)
        print(f"{self.model}: predictions are {apart:.1e} apart")
        check(got.shape == wanted.shape and apart < MOST, f"{self.model} predicts {apart} apart")

    def profile(self, artifact):
        """Kernels beside bounds of this GPU: library kernels beside their time alone, generated ones by the bytes that are planned,
        since stores fetch no lines."""
        figures = json.loads(on_gpu("dlc-run", "bench", artifact, "--iters", 1, "--batches-per-iter", 2, "--warmup", 3, "--profile=kernels",
                                    "--json")[0])
        rows = {row["kernel"]: row for row in figures["profile.kernels"] if row["kind"] != "all-reduce"}
        program, = (each for each in json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"] if each["name"] == "train")
        planned = collections.Counter()
        for dispatch in program["dispatches"]:
            planned[dispatch["kernel"]] += dispatch["bytes"]
        generated = {kernel for kernel, row in rows.items() if row["implementation"] == "generated"}
        check(rows.keys() == planned.keys() and 0 < len(generated) < len(rows), f"{rows.keys()} beside {planned.keys()}")
        for kernel, row in rows.items():
            check(kernel not in generated or abs(row["bytes"] / planned[kernel] - 1) < 1e-6, f"{row}, {planned[kernel]} bytes are planned")
            check(kernel in generated or 0 < row["bound_ms"] < 1000 * row["best_ms"], f"{row}")
        check(figures["machine.dram.copy_gb_per_s"] > 0 and figures["machine.l2.copy_gb_per_s"] > 0 and figures["profile.step_over_bound"] > 0,
              f"{figures}")

    def show_ranges(self, artifact):
        """Steps, and one by one the layers of their instructions, as NVIDIA's tools see them."""
        tool = standin.STANDINS / "libdlc_nvtx.so"
        if not tool.exists():
            check("DLC_REQUIRE_CUDA" not in os.environ, "built without NVTX's headers")
            print("skipped: built without NVTX's headers")
            return
        seen, last = self.directory / "ranges", self.directory / "ranges-run"
        run("dlc-run", "train", artifact, *self.data, *RATE, "--steps", 2, "--no-graph", "--run", last,
            env={**standin.environment(ranges=seen), "NVTX_INJECTION64_PATH": str(tool)})
        open_ranges, layers = [], {1: set(), 2: set()}
        for line in seen.read_text().splitlines():
            if line == "<":
                open_ranges.pop()
                continue
            name, number = line[2:].rsplit(" ", 1)
            check(bool(open_ranges) == (name != "step"), f"{line} within {open_ranges}")
            if open_ranges and name != "upload":
                layers[open_ranges[0]].add(name)
            open_ranges.append(int(number))
        check(not open_ranges and layers[1] == layers[2] >= {"conv1", "conv2", "fc1", "fc2"}, f"{open_ranges}, {layers}")

    def round(self):
        """Gradients in 16 bits are added up as the emulated device has it, whose sums are the host's: in a graph or not, cut or not."""
        artifact = self.compiled_as_text("--math=strict", "--wire=bf16", "--bucket-size=100000", name="rounded")
        whole = self.trained_on_gpu(artifact, "rounded", "-np", 2, launches=CAPTURED)
        same_file(whole, self.trained(artifact, "emulated-rounded", "-np", 2), "gradients in 16 bits")
        self.trained_on_gpu(artifact, "rounded-cut", "-np", 2, steps=2)
        plain, counts = self.directory / "rounded-plain.safetensors", self.directory / "rounded-plain.counts"
        said, _ = on_gpu("dlc-run", "train", artifact, "-np", 2, "--no-graph", *self.data, *RATE, "--steps", STEPS, "--save", plain,
                         "--run", self.directory / "rounded-cut", "--resume", seed=1, counts=counts)
        same_file(plain, whole, "gradients in 16 bits of a run that was cut and goes on without a graph")
        check(standin.launched(counts) == [0, 0], f"{standin.launched(counts)} graphs are launched in spite of --no-graph")

        described = json.loads(run("dlc", "inspect", "--json", artifact)[0])
        buckets = [bucket["bytes"] for bucket in described["programs"][0]["buckets"]]
        planned, wanted = float(re.search(r" ([0-9.]+) MiB planned", said)[1]), (described["memory"]["bytes"] + 2 * max(buckets)) / (1 << 20)
        check(len(buckets) > 1 and abs(planned - wanted) < 0.06, f"{planned} MiB, not {wanted}, with {buckets}")


class Overflow(standin.Pair):
    """Steps in f16 of which one sample in one micro-batch of one rank overflows. The loss of such steps is finite, and what they
    make of the running statistics, too."""
    GOOD, BATCH = 2, 4  # steps ahead of them; samples

    def __init__(self, directory):
        self.directory, self.source, self.sets = directory, directory / "small.dl", []
        directory.mkdir()
        self.source.write_text(SMALL)
        self.artifact = self.compiled_as_text("--precision=f16")

    def resumed(self, name, images, targets, steps, *options):
        """The checkpoint of a run that goes on from that of its name, if there is one."""
        files = {"image": images, "target": targets}
        for key, values in files.items():
            np.save(self.directory / f"{key}.npy", values)
        last = self.directory / name / "last.safetensors"
        on_gpu("dlc-run", "train", self.artifact, *options, "--no-shuffle", "--epochs", 1, "--steps", steps, "--run", last.parent,
               *(word for key in files for word in ("--data", f"{key}={self.directory / key}.npy")), *["--resume"] * last.exists())
        return read_safetensors(last)

    def compare(self, ranks, pieces):
        """One such step for each micro-batch of each rank, then a step as if there had been none but for the loss scale."""
        skipped, rows = ranks * pieces, ranks * pieces * self.BATCH  # steps; samples of each
        first, last = self.GOOD * rows, (self.GOOD + skipped) * rows
        random = np.random.default_rng(2)
        images, targets = (random.standard_normal((last + rows, *shape)).astype(np.float32) for shape in ((1, 8, 8), (4,)))
        for i in range(skipped):
            images[first + i * (rows + self.BATCH) + i % self.BATCH, 0, 3, 4] = 3e4
        options, name, clean = ["-np", ranks, "--accumulate", pieces], f"overflow-{ranks}-{pieces}", f"clean-{ranks}-{pieces}"

        before = self.resumed(name, images, targets, self.GOOD, *options)
        check(before["optimizer.skipped_steps"] == 0, "a step that has no large pixel is skipped")
        shutil.copytree(self.directory / name, self.directory / clean)
        scale = before["optimizer.loss_scale"] / 2**skipped
        after = self.resumed(name, images, targets, self.GOOD + skipped, *options)
        counts = {"optimizer.loss_scale": scale, "optimizer.good_steps": 0, "optimizer.skipped_steps": skipped}
        self.same(before | counts, after, "steps that are skipped")

        end = self.resumed(name, images, targets, self.GOOD + skipped + 1, *options)
        overwrite(self.directory / clean / "last.safetensors", "optimizer.loss_scale", scale)
        wanted = self.resumed(clean, *(np.concatenate([each[:first], each[last:], each[first:last]]) for each in (images, targets)),
                              self.GOOD + 1, *options, "--override", "data")
        self.same(wanted | counts | {"optimizer.good_steps": 1}, end, "a step behind them")
        still = [key for key in before if np.array_equal(before[key], end[key])]
        check(not still, f"does not train: {still}")

    @staticmethod
    def same(wanted, got, what):
        apart = [key for key in wanted | got if key not in wanted or key not in got or not np.array_equal(wanted[key], got[key])]
        check(not apart, f"{what}: {', '.join(apart)} are not as they should be: {[got.get(key) for key in apart[:4]]}")


def synchronised(case):
    """The U-Net, whose norms take their figures over all ranks, and which predicts images in tiles."""
    pair = Pair(case.model, case.emulated, case.directory / "synchronised")
    pair.source = pair.directory / "unet2d.dl"
    shutil.copy(MODELS / "unet2d.dl", pair.source)
    blocks, norms = re.subn(r"batch_norm\(x, ", "batch_norm(x, sync = true, ", (MODELS / "blocks.dl").read_text())
    check(norms == 1, f"{norms} norms of the U-Net's blocks")
    (pair.directory / "blocks.dl").write_text(blocks)
    pair.sets += ["--set", "predict.size=64", "--set", "train.optimizer=sgd(lr=0.05, momentum=0.9)"]
    pair.near_cpu(MOST)
    image = pair.directory / "large.npy"
    np.save(image, np.random.default_rng(3).integers(40, 200, (3, 88, 72), np.uint8))
    pair.predict(pair.directory / "gpu-1.safetensors", "--data", f"image={image}")


def clipped(case):
    """Gradients whose common norm is cut, and averages of parameters, which predict in their place."""
    pair = Pair(case.model, case.emulated, case.directory / "clipped")
    pair.sets += ["--set", "train.clip_norm=0.25", "--set", "train.ema=0.75"]
    pair.near_cpu(10 * MOST)
    pair.predict(pair.directory / "gpu-1/last.safetensors", *pair.data[:2])


def main():
    standin.require_standins()
    cases = emulated.cases("mnist_cnn", "unet2d")
    pairs = [Pair(case.model, case.emulated, case.directory / "pair") for case in cases]
    for pair in pairs:
        pair.compare()
    pairs[0].repeat()
    pairs[0].round()
    clipped(cases[0])
    synchronised(cases[1])
    overflow = Overflow(cases[0].directory / "overflow")
    for ranks, pieces in (1, 3), (2, 1), (2, 3):
        overflow.compare(ranks, pieces)


main()
