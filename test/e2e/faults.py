#!/usr/bin/python3
"""Bad input and faults: exit code 1 and one line that says what to do; checkpoints survive."""
import os
import re
import resource
import signal
import struct
import subprocess
import time

from jobs import Job, fails, steps_done
from support import BIN, MODELS, check, digits, read_safetensors, run, workspace, write_safetensors

import numpy as np


def bad_data(directory, artifact, data):
    train = ["train", artifact, "--run", directory / "bad"]
    image, label = data[1], data[3]
    fails("there is no data for label; add --data label=PATH", *train, "--data", image)
    fails("reads no data of this name; it reads image, label", *train, *data, "--data", "picture=x.npy")
    fails("cannot open .*none.npy", *train, "--data", f"image={directory}/none.npy", "--data", label)
    np.save(directory / "small.npy", np.zeros((96, 20, 20), np.uint8))
    fails("1 x 20 x 20, but the model's input image takes 1 x 28 x 28",
          *train, "--data", f"image={directory}/small.npy", "--data", label)
    np.save(directory / "range.npy", np.full(96, 10, np.uint8))
    fails(r"sample 0 has the value 10, but the loss or metric on input label takes 0\.\.9",
          *train, "--data", image, "--data", f"label={directory}/range.npy")
    np.save(directory / "float.npy", np.zeros(96, np.float32))
    fails("holds f32 elements, but the model's input label takes integers",
          *train, "--data", image, "--data", f"label={directory}/float.npy")
    np.save(directory / "few.npy", np.zeros(95, np.uint8))
    fails("96 samples, .* has 95", *train, "--data", image, "--data", f"label={directory}/few.npy")
    (directory / "cut.npy").write_bytes((directory / "image.npy").read_bytes()[:-1])
    fails("truncated or damaged", *train, "--data", f"image={directory}/cut.npy", "--data", label)


def bad_weights(directory, artifact, data, weights):
    cut = directory / "cut.safetensors"
    cut.write_bytes(weights.read_bytes()[:-100])
    fails("cut.safetensors': it is truncated", "eval", artifact, *data, "--init", cut)
    header = b'{"head.bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}'
    (directory / "other.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(12))
    fails(r"does not fit model mnist_cnn: it lacks .*\(32 x 1 x 3 x 3\).*the model has no head.bias \(3\)",
          "eval", artifact, *data, "--init", directory / "other.safetensors")
    three = directory / "three.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--set", "classes=3", "--threads=1", "-o", three)
    fails(r"does not fit model mnist_cnn: .*fc2.weight is 10 x 128, wanted 3 x 128", "predict", three, *data[:2], "--init", weights,
          "-o", directory / "three")
    # Where overflow shows first depends on the kernels: a library's ReLU takes what is not a number for 0.
    fails("(the loss is .* in step |is not finite after step ).*--on-nan=continue", "train", artifact, *data, "--lr", "1e30",
          "--run", directory / "nan", "--threads", 1)
    lost = dict(read_safetensors(weights))
    lost["fc1.weight"] = lost["fc1.weight"].copy()
    lost["fc1.weight"].flat[7] = np.nan
    write_safetensors(directory / "lost.safetensors", lost)
    fails("([a-z0-9.]+ is not finite after step |the loss is ).*--on-nan=continue", "train", artifact, *data, "--init",
          directory / "lost.safetensors", "--run", directory / "lost", "--threads", 1)
    check(not (directory / "lost" / "last.safetensors").exists(), "a checkpoint holds what is not a number")
    fails("threads asked for, but the artifact was planned for at most 1", "eval", artifact, *data, "--init", weights,
          "--threads", 7)


def bad_output(directory, artifact, data):
    fails("cannot write the run directory '/proc/none'", "train", artifact, *data, "--run", "/proc/none")
    unlogged = directory / "unlogged"
    fails("cannot write '/dev/full': No space left on device$", "-np", 2, "train", artifact, *data, "--run", unlogged, "--log", "/dev/full",
          "--threads", 1)
    check(not unlogged.exists(), "a run that could not log its first step left a directory")
    done = directory / "done"
    run("dlc-run", "train", artifact, *data, "--epochs", 1, "--run", done)
    fails("holds a run already; add --resume", "train", artifact, *data, "--epochs", 1, "--run", done)
    fails("cannot resume: there is no", "train", artifact, *data, "--resume", "--run", directory / "nothing")

    def full_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    before = (done / "last.safetensors").read_bytes()
    fails(f"cannot write .*safetensors.*; the file that was there is kept; once it can be written, continue with --resume --run {done}$",
          "train", artifact, *data, "--epochs", 2, "--resume", "--run", done, preexec_fn=full_disk)
    check((done / "last.safetensors").read_bytes() == before, "a failed write changed the checkpoint")


def target_above_the_host(directory):
    flags = next(line for line in open("/proc/cpuinfo") if line.startswith("flags")).split()
    target, feature = next(((t, f) for t, f in (("avx512", "avx512f"), ("avx512-bf16", "avx512_bf16"), ("amx", "amx_tile"))
                            if f not in flags), (None, None))
    if target is None:
        print("skipped: no target is above this host, which has AMX")
        return
    _, err = run("dlc", "compile", MODELS / "mnist_cnn.dl", f"--target=cpu:{target}", "-o", directory / "above.dlx", expect=1)
    check(re.fullmatch(rf"error: cannot plan for cpu:{target} here: this processor \(.*\) lacks .*\n", err), err)


def different_artifacts(directory, artifact, data):
    other = directory / "other.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--threads=1", "--bucket-size=65536", "-o", other)
    part = lambda file: ["-np", "1", str(BIN / "dlc-run"), "train", str(file), *data, "--run", str(directory / "mixed")]
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    done = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", *root, *part(artifact), ":", *part(other)],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode != 0 and "ranks run different artifacts" in done.stderr, done.stderr)


def stopped_rank(directory, artifact, data):
    """The other rank says what it waits for and for whom, wherever the rank stood. Almost always that is an all-reduce:
    runs are stopped until one was."""
    for attempt in range(5):
        job = Job(directory, artifact, data, f"stopped-{attempt}", "--timeout", 3)
        os.kill(job.ranks[1], signal.SIGSTOP)
        doing = r"(all-reduce of bucket \d+ \([a-z0-9., ]+\) in|sum of the metrics of|loading of the batches of|comparison of .* variables after) step \d+"
        error = job.ends(rf"{doing} did not complete within 3 s: rank 1 \(process {job.ranks[1]}\) has not .*; find out", 12)
        if "all-reduce of bucket" in error:
            return
    check(False, "no stopped run waited for an all-reduce")


def cut_file(directory, artifact, data, weights):
    """A file that somebody cuts while it is mapped: read, its pages are a signal, and zeros where the last one is
    cut."""
    np.save(directory / "many.npy", np.zeros((50000, 28, 28), np.uint8))
    command = [BIN / "dlc-run", "predict", artifact, "--data", f"image={directory}/many.npy", "--init", weights, "-o", directory / "many"]
    predict = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    mapped = 0  # times that it was seen: at first, its begin is looked at
    while mapped < 2:
        check(predict.poll() is None, "predict ended early")
        mapped += "many.npy" in open(f"/proc/{predict.pid}/maps").read()
        time.sleep(0.02)
    os.truncate(directory / "many.npy", os.path.getsize(directory / "many.npy") - 1)
    _, err = predict.communicate(timeout=60)
    check(re.search("many.npy' became shorter while it was read", err), err)
    check(not list((directory / "many").iterdir()), "predictions of a file that was cut")

    np.save(directory / "last.npy", np.zeros((96, 28, 28), np.uint8))
    job = Job(directory, artifact, ["--data", f"image={directory}/last.npy", *data[2:]], "cut-last")
    os.truncate(directory / "last.npy", os.path.getsize(directory / "last.npy") - 1)
    job.ends("last.npy' became shorter .*; what the steps up to [0-9]+ have trained is saved: .*--resume", 10)

    for ranks in (1, 2):
        for name in ("cut-image.npy", "cut.dlx"):
            image, compiled, mapped = directory / "cut-image.npy", directory / "cut.dlx", directory / name
            np.save(image, np.zeros((96, 28, 28), np.uint8))
            compiled.write_bytes(artifact.read_bytes())
            job = Job(directory, compiled, ["--data", f"image={image}", *data[2:]], f"{name}-{ranks}", ranks=ranks)
            os.truncate(mapped, 0)
            job.ends(rf"^dlc-run: error: '{mapped}' became shorter while it was read, .*--resume", 10)
            check(steps_done(job.checkpoint) > 0, "the checkpoint is gone")


def faults(directory, artifact, data):
    job = Job(directory, artifact, data, "killed")
    job.kill(1, 10)
    run("dlc-run", "eval", artifact, *data, "--init", job.checkpoint)
    stopped_rank(directory, artifact, data)

    job = Job(directory, artifact, data, "terminated")
    job.process.send_signal(signal.SIGTERM)
    job.ends("interrupted by .* after step .*; continue with --resume --run", 10)
    # `last` is of the very step, and the run goes on from there.
    done = steps_done(job.checkpoint)
    out, _ = run("dlc-run", "-np", 2, "train", artifact, *data, "--steps", done + 2, "--resume", "--run", job.run,
                 "--threads", 1)
    check(f"resuming after step {done} of {done + 2}" in out, out)


def main():
    directory = workspace()
    data = digits(directory)
    artifact = directory / "mnist.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--threads=1", "-o", artifact)
    weights = directory / "weights.safetensors"
    run("dlc-run", "train", artifact, *data, "--epochs", 1, "--run", directory / "base", "--save", weights)
    bad_data(directory, artifact, data)
    bad_weights(directory, artifact, data, weights)
    bad_output(directory, artifact, data)
    target_above_the_host(directory)
    different_artifacts(directory, artifact, data)
    cut_file(directory, artifact, data, weights)
    faults(directory, artifact, data)


main()
