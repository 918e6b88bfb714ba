#!/usr/bin/python3
"""Ranks need no MPI: where there is no mpirun, dlc-run starts them itself, and those that torchrun or a plain srun have
started find each other; bits are the same. Who dies, hangs, is missing, or is a stranger is told, and nothing is left."""
import os
import signal
import socket
import time

from jobs import Job, Ranks, fails, free_port, steps_done, torchrun
from support import BIN, MODELS, check, digits, run, same_file, workspace


def without_mpirun(directory):
    """The environment where PATH has what starting takes, and no mpirun."""
    programs = directory / "programs"
    programs.mkdir()
    (programs / "env").symlink_to("/usr/bin/env")
    return {**os.environ, "PATH": str(programs)}


def srun(rank, ranks, job):
    return {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_STEP_NUM_TASKS": str(ranks), "SLURM_NTASKS": str(ranks),
            "SLURM_STEP_NODELIST": f"{socket.gethostname()},node[07-09]", "SLURM_JOB_ID": str(job), "SLURM_STEP_ID": "0"}


class Runs:
    def __init__(self, home):
        self.home = home
        self.artifact = home / "m.dlx"
        run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--threads=1", "--bucket-size=100000", "-o", self.artifact)
        self.data = digits(home)
        self.bare = without_mpirun(home)

    def command(self, name, *options, steps=12):
        return ["train", self.artifact, *self.data, "--threads", 1, "--steps", steps, "--save", self.weights(name), "--run",
                self.home / name, *options]

    def weights(self, name):
        return self.home / f"{name}.safetensors"


def bits(runs):
    """However they are started, ranks make the same of it."""
    for ranks in 2, 3:
        run("dlc-run", "-np", ranks, *runs.command(f"mpirun-{ranks}"))
        run("dlc-run", "-np", ranks, *runs.command(f"own-{ranks}"), env=runs.bare)
        same_file(runs.weights(f"own-{ranks}"), runs.weights(f"mpirun-{ranks}"), f"{ranks} ranks of our own")
        port = free_port()
        Ranks(runs.command(f"torchrun-{ranks}"), [torchrun(rank, ranks, port) for rank in reversed(range(ranks))]).end()
        same_file(runs.weights(f"torchrun-{ranks}"), runs.weights(f"mpirun-{ranks}"), f"{ranks} ranks of torchrun")
    job = os.getpid()
    Ranks(runs.command("srun-2"), [srun(rank, 2, job) for rank in (0, 1)]).end()
    same_file(runs.weights("srun-2"), runs.weights("mpirun-2"), "two ranks of srun")
    # One rank is alone, whatever there is around it.
    run("dlc-run", *runs.command("one"), env={**os.environ, **torchrun(0, 1, free_port())})
    said, _ = run("dlc-run", "-np", 2, "eval", runs.artifact, *runs.data, "--init", runs.weights("own-2"), "--json", env=runs.bare)
    alone, _ = run("dlc-run", "-np", 2, "eval", runs.artifact, *runs.data, "--init", runs.weights("own-2"), "--json")
    check(said == alone, f"eval says {said}, with mpirun {alone}")


def strangers(runs):
    """Whoever connects to the port without being a rank is turned away."""
    port = free_port()
    late = torchrun(1, 2, port)
    first = Ranks(runs.command("strangers"), [torchrun(0, 2, port)])

    def visit(words):
        for _ in range(100):
            try:
                return socket.create_connection(("127.0.0.1", port + 1)).sendall(words)
            except ConnectionRefusedError:
                time.sleep(0.05)
        check(False, "rank 0 does not listen")

    def other_run():
        Ranks(runs.command("stranger"), [{**late, "TORCHELASTIC_RUN_ID": "other"}]).end(expect=1)

    for words in b"GET / HTTP/1.0\r\n\r\n", b"", b"\xff" * 5000:
        visit(words)
    other_run()
    Ranks(runs.command("strangers"), [late]).end()
    first.end()
    same_file(runs.weights("strangers"), runs.weights("mpirun-2"), "a run that strangers have visited")


def refusals(runs):
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", port + 1))
        taken.listen()
        said = Ranks(runs.command("taken"), [torchrun(0, 2, port)]).end(expect=1)[0]
        check(f"cannot wait for the other ranks at port {port + 1}: Address already in use; end what uses it, or start the ranks anew" in said, said)
    said = Ranks(runs.command("missing", "--timeout", 2), [torchrun(0, 3, port), torchrun(2, 3, port)]).end(expect=1)
    check(f"rank 0 of 3 waited for rank 1 at port {port + 1}, which did not come within 2 s" in said[0], said)
    said = Ranks(runs.command("first-missing", "--timeout", 2), [torchrun(1, 2, port)]).end(expect=1)[0]
    check(f"rank 1 of 2 could not reach rank 0 at 127.0.0.1:{port + 1} (Connection refused) within 2 s" in said, said)
    said = Ranks(runs.command("others"), [torchrun(0, 2, port), torchrun(1, 3, port)]).end(expect=1)
    check("rank 1 was started as one of 3 ranks, rank 0 as one of 2: start all ranks of a run alike" in said[0], said)
    said = Ranks(runs.command("twice", "--timeout", 4), [torchrun(0, 3, port), torchrun(1, 3, port), torchrun(1, 3, port)]).end(expect=1)
    check("two processes were started as rank 1: give each a number of its own" in said[0], said)
    said = sorted(Ranks(runs.command("same", "--timeout", 2), [torchrun(0, 2, port)] * 2).end(expect=1))
    check("Address already in use" in said[0] and "did not come within 2 s" in said[1], f"two runs at one port: {said}")
    fails("only the launching process compiles", "bench", MODELS / "mnist_cnn.dl", env={**os.environ, **torchrun(0, 2, port)})
    check(not list(runs.home.glob("taken/*")), "a start that failed left a directory")


def faults(runs):
    for rank in 0, 1:
        Job(runs.home, runs.artifact, runs.data, f"killed-{rank}", "--save-every", 5, env=runs.bare).kill(rank, 10)
    job = Job(runs.home, runs.artifact, runs.data, "stopped", "--save-every", 5, "--timeout", 3, env=runs.bare)
    os.kill(job.ranks[1], signal.SIGSTOP)
    job.ends(r"did not complete within 3 s: rank 1 ", 20)
    check(not any(os.path.exists(f"/proc/{pid}") for pid in job.ranks), "ranks are left")

    job = Job(runs.home, runs.artifact, runs.data, "interrupted", "--save-every", 5, env=runs.bare)
    job.process.send_signal(signal.SIGINT)
    job.ends(r"interrupted by SIGINT after step \d+ of .*; continue with --resume --run ", 10)
    step = steps_done(job.checkpoint)
    # An own launcher that is killed takes its ranks along.
    job = Job(runs.home, runs.artifact, runs.data, "orphans", "--save-every", 5, env=runs.bare)
    job.process.kill()
    job.process.wait()
    deadline = time.time() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in job.ranks):
        check(time.time() < deadline, "ranks survive their launcher")
        time.sleep(0.05)
    for ranks, env in (2, runs.bare), (2, None): # the checkpoint is one of any launcher's
        run("dlc-run", "-np", ranks, "train", runs.artifact, *runs.data, "--threads", 1, "--steps", step + 3, "--resume", "--run",
            runs.home / "interrupted", env=env)
        step += 3
    check(steps_done(runs.home / "interrupted" / "last.safetensors") == step, "resumed")
    left = [name for name in os.listdir("/dev/shm") if name.startswith("dlc.") and not os.path.exists(f"/proc/{name.split('.')[1]}")]
    check(not left, f"left behind: {left}")


def main():
    runs = Runs(workspace())
    for test in bits, strangers, refusals, faults:
        test(runs)


main()
