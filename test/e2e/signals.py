#!/usr/bin/python3
"""A request to stop at any moment has one outcome: a checkpoint and how to continue once training has begun, else a
clean end."""
import os
import re
import signal
import subprocess
import time

from jobs import await_steps, steps_done
from support import BIN, MODELS, check, digits, run, workspace

import numpy as np

PATIENCE = 20  # seconds until a test gives up; what is promised is checked apart


def start(*command, env=None, ignored=()):
    def prepare():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    return subprocess.Popen([str(part) for part in (BIN / "dlc-run", *command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, preexec_fn=prepare, env=env)


def commands_with(text):
    """Command lines of the processes that name `text`."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            line = open(f"/proc/{entry}/cmdline").read() if entry.isdigit() else ""
        except OSError:
            continue
        if str(text) in line and int(entry) != os.getpid():
            found.append(line.replace("\0", " "))
    return found


def segments_left():
    """Shared memory of processes that are no more."""
    return [name for name in os.listdir("/dev/shm") if (pid := re.match(r"dlc\.(\d+)\.", name)) and not os.path.exists(f"/proc/{pid[1]}")]


def stop(process, delay, mark, by=signal.SIGTERM):
    """Sends a signal after `delay` seconds. The error's line, empty if the process was not under way; seconds until the
    end."""
    time.sleep(delay)
    begin = time.time()
    process.send_signal(by)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        check(False, f"does not end after {by.name} at {1000 * delay:.0f} ms: {process.args}")
    took = time.time() - begin
    what = f"{by.name} after {1000 * delay:.0f} ms: exit code {process.returncode}, '{err}'"
    left = commands_with(mark)
    check(not left, f"{what} left {left}")
    check(not segments_left(), f"{what} left /dev/shm/{segments_left()}")
    if process.returncode == -by and not err and not out:
        return "", took
    check(process.returncode == 1, what)
    check(re.fullmatch(rf"dlc-run: error: interrupted by {by.name}.*\n", err), f"{what}; stdout '{out}'")
    return err.strip(), took


def training(directory, artifact, data, ranks):
    """Delays from before main to the steps, which a sanitized build reaches later."""
    outcomes = set()
    for milliseconds in (0, 5, 10, 20, 30, 40, 50, 60, 80, 100, 130, 160, 200, 250, 300, 350, 400, 500, 600, 800, 1000, 1250, 1500,
                         3000, 6000, 12000):
        if milliseconds > 1500 and "resumable" in outcomes:
            break
        kept = directory / f"run-{ranks}-{milliseconds}"
        process = start("-np", ranks, "train", artifact, *data, "--epochs", 100000, "--run", kept, "--threads", 1)
        line, _ = stop(process, milliseconds / 1000, kept)
        if "after step" in line:
            step = int(re.search(r"after step (\d+) of \d+; continue with --resume --run", line)[1])
            check(steps_done(kept / "last.safetensors") == step, f"the checkpoint is not of step {step}")
            outcomes.add("resumable")
        else:
            # Before the command line is read, nothing tells that this is training; before main, nobody is there to
            # tell.
            early = ("", "dlc-run: error: interrupted by SIGTERM") if milliseconds < 800 else ()
            check(line in early or line.endswith("before the first step; nothing was written"), line)
            check(not kept.exists(), f"{kept} holds {list(kept.iterdir()) if kept.exists() else ''} after '{line}'")
            outcomes.add("clean")
    check(outcomes == {"clean", "resumable"}, f"the delays see only {outcomes}")
    out, _ = run("dlc-run", "-np", ranks, "train", artifact, *data, "--steps", step + 1, "--resume", "--run", kept, "--threads", 1)
    check(f" {step} of {step + 1}" in out, out)


def many_samples(directory):
    """Work for minutes."""
    np.save(directory / "many.npy", np.zeros((100000, 28, 28), np.uint8))
    np.save(directory / "labels.npy", np.zeros(100000, np.uint8))
    return ["--data", f"image={directory}/many.npy", "--data", f"label={directory}/labels.npy"]


def others(directory, artifact, weights):
    data = many_samples(directory)
    verbs = {"eval": [*data, "--init", weights], "predict": [*data[:2], "--init", weights, "-o", directory / "predictions"],
             "bench": ["--iters", 1000000]}
    for verb, options in verbs.items():
        for ranks in (1,) if verb == "predict" else (1, 2):
            for delay in (0.03, 0.1, 0.25, 0.5, 1):
                line, took = stop(start("-np", ranks, verb, artifact, *options, "--threads", 1), delay, artifact)
                # A process that has not reached main yet ends by the signal itself.
                check(line == "dlc-run: error: interrupted by SIGTERM" or (line == "" and delay < 0.2), f"{verb} after {delay} s: '{line}'")
                check(took < 4, f"{verb} on {ranks} ranks took {took:.1f} s to end")
    check(not any((directory / "predictions").glob("*")), "a prediction that is not whole")


def compiling(directory, weights):
    cache = directory / "cache"
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    model = [MODELS / "unet2d.dl"]
    mark = str(cache)
    for command in (["bench", *model], ["bench", *model, "--batches", "2,4"], ["-np", 2, "bench", *model]):
        line, took = stop(start(*command, env=env), 0.4, mark)
        check(line == "dlc-run: error: interrupted by SIGTERM" and took < 4, f"{line} after {took:.1f} s")
        check(not any((cache / "dlc").iterdir()), f"the cache holds {list((cache / 'dlc').iterdir())}")
    unkept = directory / "unkept"
    unkept.mkdir()
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")} | {"TMPDIR": str(unkept)}
    line, _ = stop(start("bench", *model, env=env), 0.4, str(unkept))
    check(line == "dlc-run: error: interrupted by SIGTERM" and not any(unkept.iterdir()), f"{line} {list(unkept.iterdir())}")
    # A compiler that a signal ends at any later moment leaves nothing either: it makes no temporary file.
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "-o", directory / "unlinked.dlx", env={**os.environ, "TMPDIR": str(directory / "none")})


def sweeping(artifact):
    command = ["bench", artifact, "--scaling", "weak", "--ranks", "2", "--iters", 1000000, "--threads", 1]
    for delay in (0.1, 1):
        line, took = stop(start(*command), delay, artifact)
        check(line == "dlc-run: error: interrupted by SIGTERM" and took < 4, f"{line} after {took:.1f} s")


def without_ranks(directory, artifact, data):
    """mpirun may not notice that a signal has ended its ranks: one that waits for ever, as then. What its library of
    events remarks about the pipes of ranks that are gone is nobody's business."""
    folder = directory / "stuck"
    folder.mkdir()
    (folder / "mpirun").write_text("#!/usr/bin/python3\nimport signal, sys\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n"
                                   "print('[warn] Epoll MOD(1) on fd 25 failed.', file=sys.stderr, flush=True)\n"
                                   "while True:\n    signal.pause()\n")
    (folder / "mpirun").chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    process = start("-np", 2, "train", artifact, *data, "--run", folder / "run", env=env)
    line, took = stop(process, 1, folder)
    check(line.endswith("before the first step; nothing was written") and took < 6, f"'{line}' after {took:.1f} s")


def ignored(directory, artifact, data):
    """As nohup starts a process; and the other signals."""
    for ranks in (1, 2):
        process = start("-np", ranks, "train", artifact, *data, "--epochs", 100000, "--run", directory / f"ignored-{ranks}",
                        "--threads", 1, ignored=[signal.SIGHUP])
        await_steps(process, directory / f"ignored-{ranks}" / "last.safetensors")
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        check(process.poll() is None, "a signal that was to be ignored ended the run")
        check("after step" in stop(process, 0, directory / f"ignored-{ranks}", signal.SIGINT)[0], "SIGINT")
        process = start("-np", ranks, "train", artifact, *data, "--epochs", 100000, "--run", directory / f"hung-up-{ranks}",
                        "--threads", 1)
        await_steps(process, directory / f"hung-up-{ranks}" / "last.safetensors")
        check("after step" in stop(process, 0, directory / f"hung-up-{ranks}", signal.SIGHUP)[0], "SIGHUP")


def main():
    directory = workspace()
    data = digits(directory)
    artifact, weights = directory / "mnist.dlx", directory / "weights.safetensors"
    # A rate at which batches of 8 can train for ever: a loss that is not finite would end the run first.
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--set", "train.optimizer=sgd(lr=0.002)", "--threads=1", "-o", artifact)
    run("dlc-run", "train", artifact, *data, "--steps", 1, "--run", directory / "base", "--save", weights)
    training(directory, artifact, data, 1)
    training(directory, artifact, data, 2)
    others(directory, artifact, weights)
    compiling(directory, weights)
    sweeping(artifact)
    without_ranks(directory, artifact, data)
    ignored(directory, artifact, data)


main()
