#!/usr/bin/python3
"""The CUDA back end, on stand-ins for NVIDIA's libraries (test/cuda/standin): their kernels and plans are computed as the
emulated GPU computes them, so that what is trained is equal to the bit. Streams run late, captures are held to CUDA's
rules, memory of the device is none of the host's."""
import collections
import json
import os
import re

import emulated
import standin
from emulated import OPTIONS, RATE, STEPS
from standin import on_gpu
from support import check, run, same_file


class Pair(standin.Pair):
    def compare(self):
        for plan in "strict", "bf16", "f16":
            artifact = self.compiled_as_text(*OPTIONS[plan])
            same_file(self.trained_on_gpu(artifact, f"gpu-{plan}"), self.trained(artifact, f"emulated-{plan}"),
                      f"{self.model} {plan}")

    def repeat(self):
        """Other orders of streams, micro-batches, a cut; figures of captured steps and of timed ones; metrics."""
        artifact = self.compiled_as_text("--math=strict")
        whole, parts = (self.trained_on_gpu(artifact, name, *options) for name, options in (("whole", ()), ("parts", ("--accumulate", 3))))
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
        two = self.trained_on_gpu(artifact, "two", "-np", 2)
        same_file(two, self.trained(artifact, "emulated-two", "-np", 2), "two ranks")
        same_file(self.trained_on_gpu(artifact, "two-parts", "-np", 2, "--accumulate", 2),
                  self.trained(artifact, "emulated-two-parts", "-np", 2, "--accumulate", 2), "micro-batches of two ranks")
        self.trained_on_gpu(artifact, "two-cut", "-np", 2, steps=2)
        same_file(self.trained_on_gpu(artifact, "two-cut", "-np", 2, "--resume"), two, "a run of two ranks that was cut")

        def metrics(program):
            return json.loads(program("eval", artifact, *self.data, "--init", whole, "--json")[0])

        got, wanted = metrics(lambda *words: on_gpu("dlc-run", *words)), metrics(lambda *words: run(self.emulated, *words))
        check(got == wanted, f"eval says {got}, on the emulated device {wanted}")

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
        artifact, steps = self.compiled_as_text("--math=strict", "--wire=bf16", "--bucket-size=100000", name="rounded"), 4 # the last two captured
        whole = self.trained_on_gpu(artifact, "rounded", "-np", 2, steps=steps)
        same_file(whole, self.trained(artifact, "emulated-rounded", "-np", 2, steps=steps), "gradients in 16 bits")
        self.trained_on_gpu(artifact, "rounded-cut", "-np", 2, steps=2)
        plain = self.directory / "rounded-plain.safetensors"
        said, _ = on_gpu("dlc-run", "train", artifact, "-np", 2, "--no-graph", *self.data, *RATE, "--steps", steps, "--save", plain,
                         "--run", self.directory / "rounded-cut", "--resume", seed=1)
        same_file(plain, whole, "gradients in 16 bits of a run that was cut and goes on without a graph")

        described = json.loads(run("dlc", "inspect", "--json", artifact)[0])
        buckets = [bucket["bytes"] for bucket in described["programs"][0]["buckets"]]
        planned, wanted = float(re.search(r" ([0-9.]+) MiB planned", said)[1]), (described["memory"]["bytes"] + 2 * max(buckets)) / (1 << 20)
        check(len(buckets) > 1 and abs(planned - wanted) < 0.06, f"{planned} MiB, not {wanted}, with {buckets}")


def main():
    standin.require_standins()
    cases = emulated.cases("mnist_cnn", "unet2d")
    pairs = [Pair(case.model, case.emulated, case.directory / "pair") for case in cases]
    for pair in pairs:
        pair.compare()
    pairs[0].repeat()
    pairs[0].round()


main()
