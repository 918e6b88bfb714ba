#!/usr/bin/python3
"""On a device whose memory the host cannot touch, which begins as NaN, and whose streams run late in an order drawn by
chance, training, resuming, several ranks and batches a step, evaluation and prediction give the CPU's bits."""
import os

from combinations import Combination, plans_here
from support import MODELS, check, digits, on_test_device, run, same_file, workspace

STEPS, CUT = 5, 2


class Runs:
    """What one dlc-run makes of an artifact."""

    def __init__(self, program, artifact, data, directory):
        self.program, self.artifact, self.data, self.directory = program, artifact, data, directory
        directory.mkdir()

    def train(self, name, ranks, *options, steps=STEPS):
        weights = self.directory / f"{name}.safetensors"
        run(self.program, "-np", ranks, "train", self.artifact, *self.data, "--val", self.data[1], "--val", self.data[3], "--threads", 1,
            "--steps", steps, "--save", weights, "--run", self.directory / name, *options)
        return [weights, self.directory / name / "last.safetensors"]

    def all(self):
        """The files and texts that must not depend on the device."""
        files = self.train("alone", 1) + self.train("ranks", 2) + self.train("batches", 1, "--accumulate", 3)
        self.train("cut", 2, steps=CUT)
        files += self.train("cut", 2, "--resume")
        weights = files[0]
        figures, _ = run(self.program, "eval", self.artifact, *self.data, "--init", weights, "--threads", 1, "--json")
        into = self.directory / "predicted"
        run(self.program, "predict", self.artifact, *self.data[:2], "--init", weights, "--threads", 1, "-o", into)
        return files + sorted(into.iterdir()), figures


def compare(what, late, artifact, data, directory):
    directory.mkdir()
    files, figures = Runs("dlc-run", artifact, data, directory / "cpu").all()
    for seed in (1, 2):
        os.environ["DLC_ASYNCHRONOUS_SEED"] = str(seed)
        others, other_figures = Runs(late, artifact, data, directory / f"late-{seed}").all()
        check(len(files) == len(others) > 8, f"{what}: {len(files)} and {len(others)} files")
        for one, other in zip(files, others):
            same_file(one, other, f"{what}, order {seed}")
        check(figures == other_figures, f"{what}, order {seed}: {figures} and {other_figures}")


def main():
    directory = workspace()
    late = on_test_device(directory, "dlc_cpu.so")
    artifact = directory / "mnist.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--threads=1", "--bucket-size=100000", "-o", artifact)
    data = digits(directory)
    compare("mnist", late, artifact, data, directory / "mnist")
    ignoring = directory / "ignoring.dl" # whose count depends on the labels
    ignoring.write_text((MODELS / "mnist_cnn.dl").read_text().replace("softmax_cross_entropy(logits, label)",
                                                                      "softmax_cross_entropy(logits, label, ignore = 3)"))
    run("dlc", "compile", ignoring, "--set", "batch=8", "--threads=1", "-o", artifact)
    check("ignore" in ignoring.read_text(), "the model ignores nothing")
    compare("mnist without 3", late, artifact, data, directory / "ignoring")
    for plan in (plan for plan in plans_here() if plan.endswith("fast")):
        unet = Combination(directory, plan, "f32")
        compare(f"U-Net in {plan}", late, unet.compiled("model", "--bucket-size=20000"), unet.data, unet.directory / "runs")


main()
