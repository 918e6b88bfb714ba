#!/usr/bin/python3
"""Starting: runs at one time get directories of their own, failed starts leave none, one process trains in a directory,
native code is kept where only we can write, and weights are taken over from a network of other classes."""
import os
import re
import socket
import struct
import subprocess
import threading

from jobs import await_steps, fails, steps_done
from support import BIN, MODELS, check, digits, read_safetensors, run, workspace

import numpy as np


def run_directories(directory, artifact, data):
    here = directory / "here"
    here.mkdir()
    command = [str(part) for part in (BIN / "dlc-run", "train", artifact, *data, "--steps", 1, "--threads", 1)]
    jobs = [subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    taken = []
    for job in jobs:
        out, err = job.communicate(timeout=120)
        check(job.returncode == 0, err)
        taken.append(re.search(r"planned; (runs/\S+)", out)[1])
    check(sorted(taken) == [f"runs/mnist_cnn-{k}" for k in range(1, 9)], f"eight runs at one time: {taken}")

    fails("cannot open", "train", artifact, "--data", "image=none.npy", *data[2:], cwd=here)
    fails("cannot open", "train", artifact, *data, "--init", "none.safetensors", cwd=here)
    check(len(list((here / "runs").iterdir())) == 8, "a start that failed left a directory")
    fails("cannot open", "-np", 2, "train", artifact, "--data", "image=none.npy", *data[2:], "--run", here / "own")
    check(not (here / "own").exists(), "a start that failed left its directory")


def one_at_a_time(directory, artifact, data):
    """A directory belongs to the process that trains in it, until that ends, however it ends."""
    kept = directory / "taken"
    train = ["train", artifact, *data, "--threads", 1, "--run", kept]
    first = subprocess.Popen([str(part) for part in (BIN / "dlc-run", *train, "--epochs", 1000000)], stdout=subprocess.DEVNULL)
    try:
        await_steps(first, kept / "last.safetensors")
        for ranks in (1, 2):
            fails(f"another process trains in '{kept}'; let it end, or choose another --run$", "-np", ranks, *train, "--resume")
    finally:
        first.kill()
        first.wait()
    step = steps_done(kept / "last.safetensors")
    run("dlc-run", *train, "--resume", "--steps", step + 1)


def cache(directory):
    bench = ["dlc-run", "bench", MODELS / "mnist_cnn.dl", "--set", "batch=4", "--threads", 1, "--warmup", 0, "--iters", 1]
    bare = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    temporary = directory / "temporary"
    temporary.mkdir()
    for ranks in (1, 2):
        run(*bench, "-np", ranks, env=bare | {"TMPDIR": str(temporary)})
        check(not any(temporary.iterdir()), f"left behind: {list(temporary.iterdir())}")
    run(*bench[:-4], "--iters", 1, "--batches", "2,4", env=bare | {"TMPDIR": str(temporary)})

    home = directory / "home"
    home.mkdir()
    run(*bench, env=bare | {"HOME": str(home)})
    kept = home / ".cache" / "dlc"
    check(kept.stat().st_mode & 0o777 == 0o700 and len(list(kept.iterdir())) == 1, "the cache in HOME")
    kept.chmod(0o755)
    run(*bench, env=bare | {"HOME": str(home)})
    check(kept.stat().st_mode & 0o777 == 0o700, "a cache that others may read")
    kept.chmod(0o777)
    _, err = run(*bench, expect=1, env=bare | {"HOME": str(home)})
    check(f"cannot keep compiled models in '{kept}': other users may write there; set XDG_CACHE_HOME" in err, err)
    if os.geteuid() != 0:
        print("skipped: only root can make another user's directory")
        return
    kept.chmod(0o700)
    os.chown(kept, 12345, 12345)
    _, err = run(*bench, expect=1, env=bare | {"HOME": str(home)})
    check("it belongs to user 12345, not to user 0" in err, err)


def other_classes(directory, artifact, data):
    """A network that was trained for ten digits goes on with five: all but its last layer is taken over."""
    kept = directory / "ten"
    run("dlc-run", "train", artifact, *data, "--steps", 3, "--threads", 1, "--run", kept)
    np.save(directory / "five.npy", np.load(directory / "label.npy") % 5)
    train = ["train", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--set", "classes=5", "--set", "train.optimizer=sgd(lr=0)",
             "--set", "train.schedule=[]", *data[:2], "--data", f"label={directory}/five.npy",
             "--init", kept / "last.safetensors", "--steps", 1, "--threads", 1]
    fails("fc2", *train)
    fails("--init-except other.* matches nothing", *train, "--init-except", "other.*")
    run("dlc-run", *train, "--init-except", "fc2.*", "--save", directory / "five.safetensors", "--run", directory / "five")
    ten, after = read_safetensors(kept / "last.safetensors"), read_safetensors(directory / "five.safetensors")
    check(after["fc2.weight"].shape[0] == 5 and np.any(after["fc2.weight"]), "the last layer starts anew")
    taken = [name for name in after if not name.startswith("fc2.")]
    check(len(taken) >= 6 and all(np.array_equal(after[name], ten[name]) for name in taken), "the others are taken over")


def spellings(artifact):
    bench = ["bench", artifact, "--threads", 1, "--warmup", 0, "--iters", 1]
    for ranks in (["--np=2"], ["-np=2"], ["--np", 2], ["-np", 2]):
        for command in ([*ranks, *bench], [*bench, *ranks]):
            out, _ = run("dlc-run", *command)
            check("Total img/sec on 2 CPU(s)" in out, f"{command}: {out}")


def displays(artifact):
    """Nothing in a job looks for an X display: where "localhost" cannot be looked up, that takes minutes."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.bind("\0/tmp/.X11-unix/X9")
    except OSError:
        print("skipped: there is a display :9")
        return
    server.listen()
    callers, heard = [], threading.Event()

    def answer():
        while True:
            try:
                caller = server.accept()[0]
                pid = struct.unpack("iii", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
                caller.close()
                with open(f"/proc/{pid}/cmdline") as command:
                    callers.append(command.read().replace("\0", " "))
            except (FileNotFoundError, ProcessLookupError):
                callers.append(f"process {pid}, which has ended")
            except OSError:
                return
            heard.set()

    threading.Thread(target=answer, daemon=True).start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.connect("\0/tmp/.X11-unix/X9")
        check(heard.wait(10), "a caller is not heard")
    callers.clear()
    run("dlc-run", "-np", 2, "bench", artifact, "--threads", 1, "--warmup", 0, "--iters", 1)
    server.close()
    # Others may run jobs, too; whoever has ended may be ours.
    asked = [line for line in callers if str(artifact) in line or "ended" in line]
    check(not asked, f"display :9 is asked by {asked}")


def main():
    directory = workspace()
    data = digits(directory)
    artifact = directory / "mnist.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--threads=1", "-o", artifact)
    run_directories(directory, artifact, data)
    one_at_a_time(directory, artifact, data)
    other_classes(directory, artifact, data)
    spellings(artifact)
    displays(artifact)
    cache(directory)


main()
