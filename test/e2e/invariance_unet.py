#!/usr/bin/python3
"""The same for a network with batch norm, whose statistics are reduced and saved too, in every combination of
precision, math and wire: no bit depends on overlap, buckets, interruption, or on whether a rank's batches come one
after the other."""
import itertools

from combinations import WIRES, Combination, plans_here
from support import check, distance, run, same_file, workspace

STEPS, CUT = 5, 3  # of 2 an epoch


class Bits(Combination):
    def compiled(self, name, *options):
        return super().compiled(name, "--set", "train.schedule=[]", *options)

    def trained(self, artifact, ranks, name, *options, steps=STEPS):
        return super().trained(artifact, ranks, name, *options, steps=steps)

    def check_schedules(self, ranks):
        """Returns the weights to which any schedule of the communication comes."""
        base = self.trained(self.base, ranks, f"base-{ranks}")
        same_file(base, self.trained(self.other, ranks, f"other-{ranks}"),
                  f"{self.what}: {ranks} ranks with and without overlap, in large and small buckets")
        return base

    def check_bits(self):
        """Returns the weights to which 3 ranks come."""
        self.base, self.other = self.compiled("base"), self.compiled("other", "--no-overlap", "--bucket-size=20000")
        weights = self.check_schedules(3)
        if self.wire == "bf16":
            return weights
        self.check_schedules(2)
        self.trained(self.base, 3, "cut", steps=CUT)
        same_file(weights, self.trained(self.base, 3, "cut", "--resume"), f"{self.what}: resumed and uninterrupted run")
        same_file(self.directory / "base-3" / "last.safetensors", self.directory / "cut" / "last.safetensors", "their checkpoints")
        same_file(weights, self.trained(self.base, 1, "alone", "--accumulate", 3), f"{self.what}: 3 batches on one rank and 3 ranks")
        return weights


def main():
    directory = workspace()
    plans = plans_here()
    results = {(plan, wire): Bits(directory, plan, wire).check_bits() for plan, wire in itertools.product(plans, WIRES)}
    for plan in plans:
        check(results[plan, "f32"].read_bytes() != results[plan, "bf16"].read_bytes(), f"{plan}: a wire of bf16 leaves no trace")
        two = Bits(directory, plan, "f32", threads=2)
        artifact = two.compiled("base", "--set", "train.optimizer=sgd(lr=0.01)")
        first, second = (two.trained(artifact, 1, name, "--threads", 2, steps=2) for name in ("first", "second"))
        same_file(first, second, f"{plan}: the same run on two threads twice")
        error = distance(first, two.trained(artifact, 1, "one-thread", "--threads", 1, steps=2))
        check(error < 1e-2, f"{plan}: one thread and two differ by {error:.1e}")
    check(results["f32 fast", "f32"].read_bytes() != results["f32 strict", "f32"].read_bytes(), "fast has no Winograd kernel here")


main()
