#!/usr/bin/python3
"""--save-every: checkpoints within an epoch, written while training goes on. A run that is killed again and again, also
while it writes, leaves a whole checkpoint each time and ends with the bits of one that nothing stopped. No step waits
for a file to be written, and none for long while the variables are copied."""
import json
import os
import random
import re
import signal
import stat
import struct
import subprocess
import time

from jobs import Job, await_steps, steps_done
from support import BIN, MODELS, check, digits, read_safetensors, run, same_file, workspace

import numpy as np


def logged(kept):
    """Milliseconds of each step that a run's log has, by its number."""
    records = [json.loads(line) for line in (kept / "log.jsonl").read_text().splitlines(True) if line.endswith("\n")]
    return {record["step"]: record["step_ms"] for record in records if record["event"] == "step"}


def recorded(kept):
    """Wall time, in milliseconds, at which each step was told to TensorBoard: a run's only record of the time between
    steps."""
    blob, at, times = next(kept.glob("events.*")).read_bytes(), 0, {}
    while at < len(blob):
        length, = struct.unpack_from("<Q", blob, at)
        event, at = blob[at + 12:at + 12 + length], at + 16 + length
        if event[9] == 0x10:  # its second field, the step: 7 bits a byte
            step = next(i for i in range(10, length) if event[i] < 128)
            number = sum((event[i] & 127) << 7 * (i - 10) for i in range(10, step + 1))
            times[number] = 1e3 * struct.unpack_from("<d", event, 1)[0]
    return times


def one_epoch(directory, batch):
    """An artifact whose epochs have no end that a test would come to: there training waits for files."""
    artifact = directory / f"batch-{batch}.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", f"batch={batch}", "--set", "train.steps_per_epoch=1000000", "--threads=1",
        "-o", artifact)
    return artifact


def train_past_a_file(directory, data):
    """Nobody reads the pipe in the place of `last`, so that the writing of a checkpoint does not end. Training goes on;
    what the pipe gives at last is the checkpoint of the step at which the writing began."""
    every, kept = 10, directory / "blocked"
    last, command = kept / "last.safetensors", ["train", one_epoch(directory, 8), *data, "--threads", 1]
    job = subprocess.Popen([str(part) for part in (BIN / "dlc-run", *command, "--save-every", every, "--run", kept)],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    await_steps(job, last)
    step = latest = max(logged(kept))
    deadline = time.time() + 60
    while step < latest + 8 * every:
        if not stat.S_ISFIFO(last.stat().st_mode):  # not yet, or a file begun before has replaced the pipe
            os.mkfifo(kept / "pipe")
            earliest = max(logged(kept))
            os.replace(kept / "pipe", last)
            latest = max(logged(kept)) + 2 * every
        check(job.poll() is None and time.time() < deadline, f"training waits for the checkpoint to be written, at step {step}")
        time.sleep(0.01)
        step = max(logged(kept))
    with open(last, "rb") as pipe:
        last.unlink()  # what follows is a file again
        (directory / "piped.safetensors").write_bytes(pipe.read())
    step = steps_done(directory / "piped.safetensors")
    check(step % every == 0 and earliest <= step <= latest, f"a checkpoint of step {step}, not of {earliest} to {latest}")
    await_steps(job, last)
    job.send_signal(signal.SIGTERM)
    out, err = job.communicate(timeout=60)
    done = re.search(r"interrupted by SIGTERM after step (\d+) of .*; continue with --resume --run", err)
    check(job.returncode == 1 and done and steps_done(last) == int(done.group(1)), f"not interrupted: {err}")
    notes = re.findall(r"^note: no checkpoint after step (\d+), since the one before is still being written", out, re.M)
    check(len(notes) == 1 and int(notes[0]) % every == 0 and int(notes[0]) <= step + every, f"one note of a slow disk: {out}")
    run("dlc-run", *command, "--epochs", 5, "--steps", step, "--run", directory / "to-there")
    ours, theirs = (read_safetensors(path) for path in (directory / "piped.safetensors", directory / "to-there" / "last.safetensors"))
    check(ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours),
          "the checkpoint holds variables of another step")


def wait_for_copies(directory, data):
    """Between the step of a save and the next one, at the median of many, less than two steps' time passes."""
    every, kept = 5, directory / "timed"
    run("dlc-run", "train", one_epoch(directory, 32), *data, "--threads", 1, "--steps", 15 * every, "--save-every", every, "--run", kept)
    steps, times = logged(kept), recorded(kept)
    between = {step: times[step + 1] - times[step] - steps[step + 1] for step in steps if step + 1 in steps}
    saves = [gap for step, gap in between.items() if step % every == 0]
    stall, others = np.median(saves), np.median([gap for step, gap in between.items() if step % every])
    step = np.median(list(steps.values()))
    check(len(saves) == 14 and others < stall <= 2 * step, f"{stall:.1f} ms at saves, {others:.1f} ms elsewhere, of steps of {step:.1f} ms")
    print(f"saves hold training up for {stall:.1f} ms, where a step takes {step:.1f} ms")


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

    train_past_a_file(directory, data)
    wait_for_copies(directory, data)


main()
