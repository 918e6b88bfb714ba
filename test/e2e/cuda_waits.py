#!/usr/bin/python3
"""Each wait of a stream for an event in three training steps of two ranks is left out once, on stand-ins for NVIDIA's
libraries: in some order of the streams another result or an error comes. Two steps are started call by call, one for each
slot of inputs, and the third is a graph. A wait that nobody misses is one that another wait, or the host, makes up for:
each of these is named here, and may be left out in any order."""
import json
import os
import shutil

from jobs import PATIENCE, Ranks, free_port, torchrun
from standin import environment, require_standins
from support import check, run, workspace

import numpy as np

MODEL = """model small(batch = 2) {
  input image : f32[batch, 1, 6, 6]
  input target : f32[batch, 4]
  x = relu(dense(flatten(image), 8, name = "a"))
  x = relu(dense(x, 8, name = "b"))
  loss = mse(dense(x, 4, name = "c"), target)
}
train { optimizer = sgd(lr = 0.05) }
"""
STEPS, BUCKETS = 3, 4
# Orders of the streams that are tried until one shows that a wait is missing. One in eight shows the rarest: computation
# has to run ahead of a sum, and its other waits for sums may bring that one about in time.
SEEDS = 96

# The waits of a step, in the order of their calls: for the inputs, by which all begins; of the other streams for the
# step's begin; of the program, for the inputs, for each bucket's gradients and for its sum; for the other streams' ends.
INPUTS, COMM_BEGINS, COPY_BEGINS, PROGRAM_INPUTS = range(4)
COMM_ENDS, COPY_ENDS = 4 + 2 * BUCKETS, 5 + 2 * BUCKETS
WAITS = 6 + 2 * BUCKETS

# By place, what makes up for a wait in a step that is started call by call, and in a graph.
CALLED = {
    INPUTS: "the program waits for an event that is recorded behind the uploads, too",
    COPY_BEGINS: "the copy stream has uploads alone, before which the host waits until their slot is free",
    PROGRAM_INPUTS: "computation has begun behind the uploads",
}
CAPTURED = {
    PROGRAM_INPUTS: "the graph is launched behind the uploads, none of which it has",
}
ALWAYS = {
    COMM_BEGINS: "all-reduces wait for gradients, which are computed behind the step's begin",
    COMM_ENDS: "computation has waited for the last all-reduce's sum",
    COPY_ENDS: "the copy stream has uploads alone, for which computation has waited",
}
# Waits that make up for each other, and so are missed together.
TOGETHER = [(INPUTS, PROGRAM_INPUTS)]


def compiled(directory):
    """As text, which is all that the stand-ins run, and data for it."""
    source, artifact, nowhere = directory / "small.dl", directory / "small.dlx", directory / "nowhere"
    source.write_text(MODEL)
    nowhere.mkdir()
    run("dlc", "compile", source, "--target=cuda:h200", "--bucket-size=256", "-o", artifact,
        env={**os.environ, "PATH": str(nowhere), "CUDA_HOME": str(nowhere)})
    train = next(each for each in json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"] if each["name"] == "train")
    check(len(train["buckets"]) == BUCKETS, f"{len(train['buckets'])} buckets")
    random, data = np.random.default_rng(0), []
    for name, shape in ("image", (32, 1, 6, 6)), ("target", (32, 4)):
        np.save(directory / f"{name}.npy", random.normal(size=shape).astype(np.float32))
        data += ["--data", f"{name}={directory}/{name}.npy"]
    return artifact, data


class Training:
    def __init__(self, directory):
        self.directory, (self.artifact, self.data) = directory, compiled(directory)

    def outcome(self, seed, dropped=(), **facts):
        """The weights, or none where an error came."""
        home, weights, port = self.directory / "run", self.directory / "weights.safetensors", free_port()
        shutil.rmtree(home, ignore_errors=True)
        facts = environment(seed=seed, drop_wait=",".join(map(str, dropped)), **facts)
        processes = Ranks(["train", self.artifact, *self.data, "--epochs", 1, "--steps", STEPS, "--save", weights, "--run", home, "--timeout", 10],
                          [{**facts, **torchrun(rank, 2, port)} for rank in range(2)]).processes
        try:
            said = [process.communicate(timeout=PATIENCE)[1] for process in processes]
        finally:
            for process in processes:
                process.kill()
        codes = [process.returncode for process in processes]
        if codes == [0, 0]:
            return weights.read_bytes()
        check(codes == [1, 1] and any("dlc-run: error: " in each for each in said), f"{dropped}, seed {seed}: {codes}: {said}")
        return None

    def count(self):
        """Waits of each rank, and that they are those which have names here."""
        path = self.directory / "waits"
        weights = self.outcome(0, waits=path)
        check(weights and path.read_text() == 2 * f"waits {STEPS * WAITS}\n", f"waits are not those that are named: {path.read_text()}")
        return weights


def main():
    require_standins()
    training = Training(workspace())
    wanted = training.count()
    for seed in range(1, 4):
        check(training.outcome(seed) == wanted, f"seed {seed}: nothing was left out")

    def is_missed(*dropped):
        return any(training.outcome(seed, dropped) != wanted for seed in range(SEEDS))

    for step in range(STEPS):
        made_up = {**ALWAYS, **(CAPTURED if step == 2 else CALLED)}
        for place in range(WAITS):
            number = step * WAITS + place
            if place not in made_up:
                check(is_missed(number), f"step {step + 1}: nobody misses wait {place}")
                continue
            for seed in range(3):
                check(training.outcome(seed, [number]) == wanted, f"step {step + 1}, seed {seed}: wait {place} is missed, though {made_up[place]}")
        for places in TOGETHER:
            check(is_missed(*(step * WAITS + place for place in places)), f"step {step + 1}: nobody misses waits {places}")


main()
