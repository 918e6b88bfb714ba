"""Whole training steps of artifacts for GPUs, without one: their PTX on the emulator, their library kernels as their
plans' own graphs say, on streams that run late. What five steps make of the weights in strict f32 is what the CPU makes
of them; cuda_precision.py has the other precisions."""
import json
import os
import struct

from combinations import disks
from support import MODELS, NETWORKS, check, digits, on_test_device, read_safetensors, run, same_file, skip, workspace

import numpy as np

STEPS = 5
RATE = ["--epochs", 1]  # in which it falls, however few of its steps are run
MOST = 1e-5  # of how far the weights move; less than 1e-6 is seen
OPTIONS = {"strict": ["--math=strict"], "fast": [], "f16": ["--precision=f16"], "bf16": ["--precision=bf16"]}


def pictures(directory, planes=False):
    """Noise of ten classes; `planes`: one after the other, about as large as a network wants it."""
    random = np.random.default_rng(0)
    image = random.integers(0, 255, (32, 16, 16, 3), dtype=np.uint8)
    np.save(directory / "image.npy", image.transpose(0, 3, 1, 2).astype(np.float32) / 128 - 1 if planes else image)
    np.save(directory / "label.npy", random.integers(0, 10, 32, dtype=np.int32))
    return ["--data", f"image={directory}/image.npy", "--data", f"label={directory}/label.npy"]


# Sizes at which sums of a normalization have terms enough to be stable. Blocks start as their shortcuts: noise that
# deep does not grow from step to step.
CASES = {
    "mnist_cnn": (digits, ["batch=8"]),
    "unet2d": (lambda directory: disks(directory, size=32), ["base=8", "depth=2", "size=32", "predict.size=32", "batch=2"]),
    "mobilenetv2": (lambda directory: pictures(directory, planes=True),
                    ["size=16", "classes=10", "batch=4", "widths=[16, 24, 32]", "counts=[1, 2, 1]", "strides=[1, 1, 2]"]),
    "resnet50": (pictures, ["stem=small", "size=16", "classes=10", "batch=2", "zero_init_residual=true"]),
}


def source_of(model, directory):
    """A model's file; where it says no optimizer, another one in the directory: Adam would make steps of what only rounding keeps
    from zero."""
    source = MODELS / f"{model}.dl"
    if not source.exists():
        source = directory / f"{model}.dl"
        source.write_text((NETWORKS / f"{model}.dl").read_text() + "\ntrain {\n  optimizer = sgd(lr = 0.05)\n}\n")
    return source


def overwrite(path, name, value):
    """The first number of a tensor in f32."""
    blob = bytearray(path.read_bytes())
    size = struct.unpack("<Q", blob[:8])[0]
    begin = 8 + size + json.loads(blob[8:8 + size])[name]["data_offsets"][0]
    blob[begin:begin + 4] = struct.pack("<f", value)
    path.write_bytes(blob)


class Case:
    def __init__(self, model, emulated, directory):
        self.model, self.emulated, self.directory = model, emulated, directory
        make, sets = CASES[model]
        directory.mkdir()
        self.source = source_of(model, directory)
        self.data = make(directory)
        self.sets = [word for each in sets for word in ("--set", each)]

    def compiled(self, target, *options):
        artifact = self.directory / f"{target.replace(':', '-')}.dlx"
        run("dlc", "compile", self.source, *self.sets, f"--target={target}", *options, "-o", artifact)
        return artifact

    def trained(self, artifact, name, *options, program=None, steps=STEPS):
        """`options`, if there are any: of the launcher, a pair, then of training."""
        weights = self.directory / f"{name}.safetensors"
        run(program or self.emulated, *options[:2], "train", artifact, *options[2:], *self.data, *RATE, "--steps", steps,
            "--save", weights, "--run", self.directory / name)
        return weights

    def compare(self):
        cpu, gpu = (self.compiled(target, "--math=strict") for target in ("cpu:native", "cuda:h200"))
        start, end = (read_safetensors(self.trained(cpu, f"cpu-{steps}", program="dlc-run", steps=steps)) for steps in (1, STEPS))
        got = read_safetensors(self.trained(gpu, "gpu"))
        check(got.keys() == end.keys(), f"{self.model}: {got.keys() ^ end.keys()}")
        names = [name for name in end if end[name].dtype == np.float32]
        moved, apart = (np.sqrt(sum(np.square((one[name] - end[name]).astype(np.float64)).sum() for name in names))
                        for one in (start, got))
        print(f"{self.model}: {apart / moved:.1e} of the way")
        check(moved > 0 and apart < MOST * moved, f"{self.model}: {apart} apart after {moved}")

    def overflow(self, *options):
        """A step whose gradients leave f16 changes nothing but the loss scale, the next ones go on."""
        artifact, name = self.compiled("cuda:h200", "--precision=f16"), "overflow" + "".join(map(str, options))
        self.trained(artifact, name, *options, steps=2)
        checkpoint = self.directory / name / "last.safetensors"
        before = read_safetensors(checkpoint)

        def resume(steps, scale):
            overwrite(checkpoint, "optimizer.loss_scale", scale)
            said = "".join(run(self.emulated, *options[:2], "train", artifact, *self.data, *RATE, *options[2:], "--steps", steps,
                               "--run", self.directory / name, "--resume"))
            return said, read_safetensors(checkpoint)

        def changed(state):
            return {name for name in before if not np.array_equal(before[name], state[name])}

        for steps, scale, skipped in (3, 2.0**40, 1), (4, 2.0**39, 2):
            said, state = resume(steps, scale)
            check(f"skipped_steps {skipped} " in said, said)
            check(state["optimizer.loss_scale"] == scale / 2 and state["optimizer.skipped_steps"] == skipped, f"after {steps}: {state}")
            check(changed(state) <= {"optimizer.loss_scale", "optimizer.good_steps", "optimizer.skipped_steps"}, changed(state))
        _, state = resume(5, 2.0**10)
        check(state["optimizer.skipped_steps"] == 2 and "conv1.weight" in changed(state), "the step behind them does not train")
        check(all(np.isfinite(value).all() for value in state.values()), "not finite")

    def repeat(self):
        """Other orders of streams, a cut and ranks."""
        artifact = self.compiled("cuda:h200", "--bucket-size=100000")
        os.environ["DLC_ASYNCHRONOUS_SEED"] = "1"
        whole, ranks = self.trained(artifact, "whole"), self.trained(artifact, "ranks", "-np", 2)
        os.environ["DLC_ASYNCHRONOUS_SEED"] = "2"
        same_file(self.trained(artifact, "again"), whole, "another order")
        same_file(self.trained(artifact, "again-ranks", "-np", 2), ranks, "another order, two ranks")
        self.trained(artifact, "cut", steps=2)
        weights = self.directory / "resumed.safetensors"
        run(self.emulated, "train", artifact, *self.data, *RATE, "--steps", STEPS, "--save", weights, "--run", self.directory / "cut", "--resume")
        same_file(weights, whole, "a run that was cut")


def emulated_device(directory):
    """dlc-run for the emulated GPU, where there is a library that plans for GPUs."""
    if "cuda         cuDNN" not in run("dlc-run", "--check")[0]:
        check("DLC_REQUIRE_CUDA" not in os.environ, "cuDNN was not found")
        skip("no cuDNN, which plans for GPUs")
    return on_test_device(directory, "dlc_cuda.so")


def cases(*models):
    directory = workspace()
    emulated = emulated_device(directory)
    return [Case(model, emulated, directory / model) for model in models]
