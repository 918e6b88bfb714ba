#!/usr/bin/python3
"""Faults in every combination of precision, math and wire: a run that was killed, then terminated, ends with the bits
of one that nothing disturbed; what is not a number, and ranks that no longer hold the same, are found before a
checkpoint is written."""
import itertools
import os
import signal
from concurrent.futures import ThreadPoolExecutor

from combinations import WIRES, Combination, plans_here
from jobs import Job, damage_memory, fails, steps_done
from support import check, read_safetensors, run, same_file, workspace


class Faults(Combination):
    def __init__(self, directory, plan, wire):
        super().__init__(directory, plan, wire)
        self.artifact = self.compiled("model")

    def interruptions(self):
        job = Job(self.directory, self.artifact, self.data, "disturbed")
        job.kill(1, 20)
        killed = steps_done(job.checkpoint)
        job = Job(self.directory, self.artifact, self.data, "disturbed", "--resume")
        job.process.send_signal(signal.SIGTERM)
        job.ends("interrupted by .* after step .*; continue with --resume --run", 20)
        done = steps_done(job.checkpoint)
        check(0 < killed < done, f"{self.what}: killed after step {killed}, terminated after {done}")
        whole = self.trained(self.artifact, 2, "whole", "--threads", 1, steps=done + 2)
        same_file(whole, self.trained(self.artifact, 2, "disturbed", "--threads", 1, "--resume", steps=done + 2),
                  f"{self.what}: killed, terminated and undisturbed run")
        same_file(self.directory / "whole" / "last.safetensors", job.checkpoint, "their checkpoints")

    def damaged_checkpoint(self):
        checkpoint = self.directory / "whole" / "last.safetensors"
        checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
        fails("last.safetensors': it is truncated", "train", self.artifact, *self.data, "--resume", "--run", checkpoint.parent)

    def not_a_number(self):
        fails("(the loss is .* in step |is not finite after step ).*--on-nan=continue", "-np", 2, "train", self.artifact, *self.data,
              "--lr", "1e30", "--run", self.directory / "overflow", "--threads", 1)
        check(not (self.directory / "overflow" / "last.safetensors").exists(), f"{self.what}: a checkpoint holds what is not a number")

    def diverging_ranks(self):
        """At a learning rate of 0 weights stay as they are, damaged or not."""
        job = Job(self.directory, self.artifact, self.data, "damaged", "--lr", 0)
        os.kill(job.ranks[1], signal.SIGSTOP)
        weight = read_safetensors(job.checkpoint)["head.weight"]
        check(damage_memory(job.ranks[1], weight.tobytes()) > 0, f"{self.what}: the weights are not where they were looked for")
        os.kill(job.ranks[1], signal.SIGCONT)
        job.ends("ranks do not hold the same variables after step .*: head.weight of rank 1 differs from that of rank 0", 20)
        check((read_safetensors(job.checkpoint)["head.weight"] == weight).all(), f"{self.what}: a checkpoint is of damaged weights")


def check_combination(directory, plan, wire):
    case = Faults(directory, plan, wire)
    case.interruptions()
    case.damaged_checkpoint()
    case.not_a_number()
    case.diverging_ranks()


def main():
    directory = workspace()
    # Several at a time, since mpirun takes two seconds to end a job, in which it waits.
    with ThreadPoolExecutor(3) as pool:
        cases = [pool.submit(check_combination, directory, *case) for case in itertools.product(plans_here(), WIRES)]
        for case in cases:
            case.result()


main()
