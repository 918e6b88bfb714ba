"""Runs that end badly: commands that must fail, and jobs of two ranks that meet with a fault under way."""
import os
import re
import signal
import socket
import subprocess
import time

from support import BIN, check, run

PATIENCE = 30


def fails(pattern, *command, **options):
    """The command must end with exit code 1 and, as its last line, an error that matches."""
    _, err = run("dlc-run", *command, expect=1, **options)
    last = err.strip().split("\n")[-1]
    check(last.startswith("dlc-run: error: ") and re.search(pattern, last), f"wanted /{pattern}/, got: {err}")
    check("Traceback" not in err and "terminate called" not in err, err)


def steps_done(checkpoint):
    """Steps of the run that wrote a checkpoint; 0 if there is none."""
    if not checkpoint.exists():
        return 0
    return int(re.search(rb'"step\\":(\d+)', checkpoint.read_bytes()[:20000]).group(1))


def await_steps(process, checkpoint, before=0):
    """Returns once a run has written a checkpoint of its own, where one of step `before` may be."""
    deadline = time.time() + 60
    while steps_done(checkpoint) == before:
        check(process.poll() is None and time.time() < deadline, "the run does not get under way")
        time.sleep(0.01)


def children(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return [int(child) for child in found]


class Job:
    """A training run that has written a checkpoint of its own."""

    def __init__(self, directory, artifact, data, name, *options, ranks=2, env=None):
        self.run, self.checkpoint = directory / name, directory / name / "last.safetensors"
        before = steps_done(self.checkpoint)
        command = [BIN / "dlc-run", "-np", ranks, "train", artifact, *data, "--epochs", 100000, "--run", self.run, "--threads",
                   1, *options]
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, env=env)
        await_steps(self.process, self.checkpoint, before)
        if ranks == 1:
            self.ranks = [self.process.pid]
            return
        processes = children(self.process.pid)
        if len(processes) == 1: # mpirun
            processes = children(processes[0])
        self.ranks = sorted(processes, key=lambda pid: re.search(rb"(?:OMPI_COMM_WORLD|DLC)_RANK=(\d+)", environment(pid)).group(1))

    def kill(self, rank, seconds):
        """Ends one rank. Who started it notices, or the other rank does."""
        os.kill(self.ranks[rank], signal.SIGKILL)
        self.ends(rf"rank {rank} (was ended by signal 9 |\(process {self.ranks[rank]}\) has died; )", seconds)

    def ends(self, pattern, seconds):
        """The job must end with exit code 1 within this time and, as its last line, an error that matches. Returns that
        line."""
        begin = time.time()
        try:
            _, err = self.process.communicate(timeout=seconds + 20)
        except subprocess.TimeoutExpired:
            for pid in self.ranks:  # which ends mpirun, too
                os.kill(pid, signal.SIGKILL)
            check(False, f"the job does not end: wanted /{pattern}/")
        last = err.strip().split("\n")[-1]
        check(self.process.returncode == 1, f"exit code {self.process.returncode}: {err}")
        check(re.search(pattern, last), f"wanted /{pattern}/, got: {err}")
        check(time.time() - begin < seconds, f"took {time.time() - begin:.1f} s to end")
        return last


def environment(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()


def damage_memory(pid, value):
    """Flips a bit of each copy of `value` that a process holds. Returns how many there are."""
    found, largest = 0, 1 << 30
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in maps:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if " rw" not in line or end - begin > largest or line.endswith("]\n") and "heap" not in line:
                continue
            memory.seek(begin)
            held = memory.read(end - begin)
            at = held.find(value)
            while at >= 0:
                memory.seek(begin + at)
                memory.write(bytes([value[0] ^ 1]))
                found, at = found + 1, held.find(value, at + 1)
    return found


def free_port():
    """Of two that follow each other, the first."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                other.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                continue


def torchrun(rank, ranks, port, host="127.0.0.1"):
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": host, "MASTER_PORT": str(port),
            "TORCHELASTIC_RUN_ID": "test"}


class Ranks:
    """Processes that somebody else has started as ranks."""

    def __init__(self, command, environments):
        self.processes = [subprocess.Popen([str(part) for part in (BIN / "dlc-run", *command)], env={**os.environ, **facts},
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for facts in environments]

    def end(self, expect=0):
        """What they say to stderr."""
        try:
            said = [process.communicate(timeout=PATIENCE)[1] for process in self.processes]
        finally:
            for process in self.processes:
                process.kill()
        for process, text in zip(self.processes, said):
            check(process.returncode == expect, f"exit code {process.returncode}, not {expect}: {said}")
        return said
