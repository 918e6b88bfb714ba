#!/usr/bin/python3
"""--save-every: checkpoints within an epoch, written while training goes on. A run that is killed again and again, also
while it writes, leaves a whole checkpoint each time and ends with the bits of one that nothing stopped."""
import os
import random
import re
import signal
import time

from jobs import Job, steps_done
from support import MODELS, check, digits, read_safetensors, run, same_file, workspace


def main():
    directory = workspace()
    data = digits(directory, 4000)  # 250 steps an epoch of 2 ranks: no end of one comes between
    artifact = directory / "m.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--threads=1", "-o", artifact)
    every, seen, moments = 3, 0, random.Random(1)
    for kill in range(4):
        # The first time, Job waits for the checkpoint of step 3, later for one that is newer than it found.
        resume = ["--resume"] if kill else ["--save-every", every]
        job = Job(directory, artifact, data, "killed", *resume)
        time.sleep(moments.uniform(0, 0.2))
        job.kill(0, 20)
        done = steps_done(job.checkpoint)
        check(done > seen and (done % every == 0 or done % 250 == 0), f"a checkpoint of step {done}, the one before of {seen}")
        seen = done
        read_safetensors(job.checkpoint)  # whole
    rest = ["--threads", 1, "--steps", seen + 4]
    run("dlc-run", "-np", 2, "train", artifact, *data, *rest, "--resume", "--run", directory / "killed", "--save", directory / "killed.st")
    out, _ = run("dlc-run", "-np", 2, "train", artifact, *data, *rest, "--epochs", 100000, "--run", directory / "whole", "--save",
                 directory / "whole.st")
    check("--save-every" not in out, out)
    same_file(directory / "killed.st", directory / "whole.st", "weights of a killed run and one that nothing stopped")
    same_file(directory / "killed" / "last.safetensors", directory / "whole" / "last.safetensors", "their checkpoints")

    # The copy is planned: parameters, their slots and state in f32, and room to convert the largest one.
    out, _ = run("dlc-run", "train", artifact, *data, "--threads", 1, "--steps", 5, "--save-every", 2, "--run", directory / "short")
    told = float(re.search(r"^the copy for --save-every takes ([\d.]+) (?:K|M)iB of rank 0's memory", out, re.M).group(1))
    sizes = [tensor.nbytes for tensor in read_safetensors(directory / "short" / "last.safetensors").values()]
    unit = 1024 if "KiB of rank 0" in out else 1 << 20
    check(sum(sizes) <= told * unit * 1.01 and told * unit <= (sum(sizes) + 2 * max(sizes)) * 1.01, f"{told} of {sum(sizes)}")

    # A signal waits for the file, then writes its own.
    job = Job(directory, artifact, data, "stopped", "--save-every", 1)
    job.process.send_signal(signal.SIGTERM)
    line = job.ends("interrupted by .* after step .*; continue with --resume --run", 20)
    check(f"after step {steps_done(job.checkpoint)} " in line, f"{line}, but last is of step {steps_done(job.checkpoint)}")
    check(not os.path.exists(f"{job.checkpoint}.partial"), "half a file is left")


main()
