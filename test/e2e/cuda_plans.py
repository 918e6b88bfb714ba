#!/usr/bin/python3
"""Plans of cuDNN that are made again, on stand-ins for NVIDIA's libraries (test/cuda/standin), whose engines all compute the
same: `dlc-run tune` puts the fastest engine first, and a cuDNN of another version than the compiler's plans at start, by the
same engine if it has that. Neither changes what is trained here; what cannot be planned is refused in one line."""
import collections
import json
import re
import shutil

import standin
from standin import on_gpu, require_standins
from support import check, run, same_file, workspace

import numpy as np

PLANNED, NEWER = 91900, 92600  # versions of cuDNN
NOTICE = "other engines than planned for"
FIRST, SECOND = 1001, 1002  # engines that are there already and repeat their bits, in the order in which the stand-in suggests them
SLAB = 32 << 20  # bytes of workspace that kernels are planned with
SLOWER = 1000  # microseconds, half of what engines take more than the one that is to be the fastest

# Extents, strides, paddings and dilations differ, each from the others and from one dimension to the other.
SOURCE = """model windows(batch = 4) {
  input image : f32[batch, 3, 13, 10]
  input target : f32[batch, 4]
  x = relu(conv(image, 8, kernel = [3, 2], stride = [2, 1], padding = [1, 0], name = "strided"))
  x = x + conv(x, 8, kernel = 3, dilation = [1, 2], padding = [1, 2], name = "dilated")
  y = dense(flatten(relu(conv(x, 4, kernel = [2, 3], name = "last"))), 4, name = "head")
  loss = mse(y, target)
}
train { optimizer = sgd(lr = 0.05, momentum = 0.9) }
"""


class Windows(standin.Pair):
    """The model, its data, and what is trained with the compiler's plans."""

    def __init__(self, directory):
        self.directory, self.source, self.sets = directory, directory / "windows.dl", []
        self.source.write_text(SOURCE)
        random, self.data = np.random.default_rng(0), []
        for name, shape in ("image", (3, 13, 10)), ("target", (4,)):
            np.save(directory / f"{name}.npy", random.standard_normal((48, *shape)).astype(np.float32))
            self.data += ["--data", f"{name}={directory}/{name}.npy"]
        self.artifact = self.compiled_as_text("--math=strict")
        self.wanted = {ranks: self.trained_on_gpu(self.artifact, f"planned-{ranks}", "-np", ranks) for ranks in (1, 2)}
        self.planned = engines(self.artifact)
        check(len(self.planned) == 8 and not {FIRST, SECOND} & set(self.planned.values()), f"planned: {self.planned}")

    def trains(self, artifact, name, ranks=1, steps=(standin.STEPS,), **facts):
        """To the same bits as with the plans of the compiler's cuDNN. Returns what is said."""
        weights, said = self.directory / f"{name}.safetensors", ""
        for i, step in enumerate(steps):
            said += on_gpu("dlc-run", "train", artifact, "-np", ranks, *self.data, *standin.RATE, "--steps", step, "--save", weights, "--run",
                           self.directory / name, *["--resume"] * (i > 0), **(facts if i == len(steps) - 1 else {}))[0]
        same_file(weights, self.wanted[ranks], name)
        return said

    def refused(self, pattern, *command, **facts):
        """In one line, before anything is written."""
        before = sorted(self.directory.rglob("*"))
        _, said = on_gpu("dlc-run", *command, expect=1, **facts)
        check(re.fullmatch(f"dlc-run: error: {pattern}\n", said), f"wanted '{pattern}':\n{said}")
        check(sorted(self.directory.rglob("*")) == before, "what is refused leaves files")


def described(artifact):
    return json.loads(run("dlc", "inspect", "--json", artifact)[0])


def library_kernels(description):
    return {each["kernel"]: each for program in description["programs"] for each in program["dispatches"]
            if each["implementation"] != "generated"}


def engines(artifact):
    """Of each convolution's kernel, the number."""
    found = {kernel: each["implementation"] for kernel, each in library_kernels(described(artifact)).items()}
    return {kernel: int(name.removeprefix("cudnn:")) for kernel, name in found.items() if name.startswith("cudnn:")}


def stored_plans(artifact):
    """How many plans of convolutions there are by version and engine."""
    file, counts = artifact.read_bytes().decode("latin1"), collections.Counter()
    for text in re.finditer(r'\{"(?=GPUProfile"|cudnnVersion")', file):
        plan, _ = json.JSONDecoder().raw_decode(file, text.start())
        counts[plan["cudnnVersion"], plan["engine"]["engineId"]] += 1
    return counts


def without_times(value):
    """What `inspect` says but for how long kernels take, and by which engine."""
    if isinstance(value, dict):
        times = "nanoseconds", "implementation", "forecast", "kinds", "buckets"
        return {key: without_times(each) for key, each in value.items() if key not in times}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def tuned(windows, artifact, name=None, **facts):
    """The artifact, in a file of its name or its own, and of each convolution's kernel the engine, the number of those that were
    timed, the time in microseconds, and that as planned. The artifact says the same; all else in it stays."""
    output, before = windows.directory / f"{name}.dlx" if name else artifact, described(artifact)
    version = facts.get("cudnn", PLANNED)
    said, _ = on_gpu("dlc-run", "tune", artifact, *(["-o", output] if name else []), **facts)
    *lines, last = said.splitlines()
    check(last == f"{output} written", said)
    found = {}
    for line in lines:
        parts = re.fullmatch(r"(\w+): ([0-9.]+) us by cudnn:(\d+), the best of (\d+); "
                             r"(?:as planned ([0-9.]+) us|planned by another cuDNN)", line)
        check(parts and (parts[5] is None) == (version != PLANNED), f"tune says '{line}'")
        found[parts[1]] = int(parts[3]), int(parts[4]), float(parts[2]), float(parts[5] or "inf")
    check(found.keys() == windows.planned.keys(), said)
    after = described(output)
    check(after["target"]["library"] == f"cuDNN {version // 10000}.{version // 100 % 100}.{version % 100}", f"{after['target']}")
    before["target"]["library"] = after["target"]["library"]
    check(without_times(after) == without_times(before), "tune changes more than plans")
    for kernel, dispatch in library_kernels(after).items():
        if kernel in found:
            check(dispatch["implementation"] == f"cudnn:{found[kernel][0]}" and abs(dispatch["nanoseconds"] / 1e3 - found[kernel][2]) < 0.1,
                  f"{said}\n{dispatch}")
        else:
            check(dispatch == library_kernels(before)[kernel], f"tune changes {dispatch}")
    return output, found


def chosen(found):
    return {engine for engine, *_ in found.values()}


def tune(windows):
    """Whichever engine is the fastest here becomes the first, unless the planned one is as fast."""
    second, found = tuned(windows, windows.artifact, "second", fast=SECOND)
    check(chosen(found) == {SECOND} and all(count == 2 and time + SLOWER < planned for _, count, time, planned in found.values()), f"{found}")
    check(stored_plans(second) == dict.fromkeys([(PLANNED, FIRST), (PLANNED, SECOND)], len(found)), f"{stored_plans(second)}")
    for ranks in 1, 2:
        check(NOTICE not in windows.trains(second, f"second-{ranks}", ranks), "a notice of plans of this version")

    both = windows.directory / "both.dlx"
    shutil.copy(second, both)
    _, found = tuned(windows, both, fast=FIRST)  # of what is planned, in its own file
    check(chosen(found) == {FIRST} and all(time + SLOWER < planned for _, _, time, planned in found.values()), f"{found}")
    _, found = tuned(windows, both, fast=FIRST)
    check(chosen(found) == {FIRST} and all(planned < time + SLOWER for _, _, time, planned in found.values()), f"not the first: {found}")
    windows.trains(both, "both")

    fast = windows.planned["conv_0"]
    kept, found = tuned(windows, windows.artifact, "kept", fast=fast)
    own = {kernel for kernel, engine in windows.planned.items() if engine == fast}
    check(all(found[kernel][0] == fast and found[kernel][2] == found[kernel][3] for kernel in own), f"{fast} is not kept: {found}")
    check(stored_plans(kept)[PLANNED, fast] >= len(own), f"{stored_plans(kept)}")
    windows.trains(kept, "kept")


def tune_refusals(windows):
    before = windows.artifact.read_bytes()
    windows.refused("kernel conv_0: cuDNN has no engine for it: CUDNN_STATUS_NOT_SUPPORTED", "tune", windows.artifact, engines=0)
    for engines in 1, 2:  # which vary from run to run, and which are compiled first
        windows.refused("kernel conv_0: cuDNN has no engine for it that is there already, deterministic and exact enough", "tune",
                        windows.artifact, engines=engines)
    windows.refused(f"kernel conv_0 needs a workspace of {2 * SLAB} bytes here, planned were {SLAB}; .*", "tune", windows.artifact,
                    workspace=4 * SLAB)
    windows.refused("the artifact is for cuda:h200, sm_90, this GPU is sm_100; compile the model for it", "tune", windows.artifact,
                    capability=100)
    check(windows.artifact.read_bytes() == before, "an artifact is overwritten by what was refused")


def other_version(windows):
    """Engines that are not offered are told once, whatever the number of ranks; those of a tuned artifact are found again."""
    for ranks in 1, 2:
        said = windows.trains(windows.artifact, f"newer-{ranks}", ranks, cudnn=NEWER)
        told = re.findall(rf"^note: {NOTICE} (\w+), (\w+), (\w+) and (\d+) more, which this machine's cuDNN does not offer: bits differ",
                          said, re.M)
        check(len(told) == 1 and set(told[0][:3]) < windows.planned.keys() and int(told[0][3]) == len(windows.planned) - 3, said)
    said = windows.trains(windows.artifact, "moved", steps=(2, standin.STEPS), cudnn=NEWER)
    check(re.search(r"note: resuming on .*cuDNN 9\.26\.0.* a run on .*cuDNN 9\.19\.0.*; it may not be bit-exact", said), said)

    second, _ = tuned(windows, windows.artifact, "again", fast=SECOND)
    check(NOTICE not in windows.trains(second, "again", cudnn=NEWER), "a notice, though the engine is offered")
    check(NOTICE in windows.trains(second, "gone", cudnn=NEWER, engines=3), "no notice, though the engine is not offered")

    newer, found = tuned(windows, windows.artifact, "newer", fast=SECOND, cudnn=NEWER)
    check(chosen(found) == {SECOND} and {version for version, _ in stored_plans(newer)} == {NEWER}, f"{found}, {stored_plans(newer)}")
    for version in NEWER, PLANNED:
        check(NOTICE not in windows.trains(newer, f"of-{version}", cudnn=version), f"a notice of {version}, which has the engine")


def workspaces(windows):
    """Engines that need more than is planned are left out, and refused where there is no other. Theirs is NaN while they run."""
    most = SLAB * 3 // 2  # of the first; the second needs half of that
    _, found = tuned(windows, windows.artifact, "small", cudnn=NEWER, workspace=most)
    check(chosen(found) == {SECOND} and all(count == 1 for _, count, *_ in found.values()), f"{found}")
    first, _ = tuned(windows, windows.artifact, "first", fast=FIRST)
    check(NOTICE not in windows.trains(first, "room", cudnn=NEWER, workspace=SLAB), "a notice, though the engine has room")
    check(NOTICE in windows.trains(first, "no-room", cudnn=NEWER, workspace=most), "no notice, though the engine has no room")
    train = *windows.data, "--steps", 1, "--run", windows.directory / "no-run"
    advice = f"planned were {SLAB}; compile the model on this machine"
    windows.refused(rf"kernel conv\w+ of layer [\w.]+ needs a workspace of {most} bytes here, {advice}", "train", first, *train, workspace=most)
    for ranks in 1, 2:  # the least that there is
        windows.refused(rf"kernel conv\w+ of layer [\w.]+ needs a workspace of {2 * SLAB} bytes here, {advice}", "train", windows.artifact, "-np", ranks,
                        *train, cudnn=NEWER, workspace=4 * SLAB)


def refusals(windows):
    train = "train", windows.artifact, *windows.data, "--steps", 1, "--run", windows.directory / "no-run"
    no_engine = r"kernel conv\w+ of layer [\w.]+ cannot be had as planned: cuDNN has no engine for it"
    windows.refused(f"{no_engine}: CUDNN_STATUS_NOT_SUPPORTED", *train, cudnn=NEWER, engines=0)
    for ranks in 1, 2:
        windows.refused(f"{no_engine} that is there already, deterministic and exact enough", *train, "-np", ranks, cudnn=NEWER, engines=ranks)
    # The compiler says it of the first one, with its place in the model and its operands.
    for precision, engines, why in ("bf16", 0, ": CUDNN_STATUS_NOT_SUPPORTED"), ("f32", 2, " that is there already, deterministic and exact enough"):
        _, said = on_gpu("dlc", "compile", windows.source, "--target=cuda:h200", f"--precision={precision}", "-o", windows.directory / "no.dlx",
                         expect=1, engines=engines)
        wanted = rf"{windows.source}:4:12: error: strided: .* of 'tensor<4x3x13x10x{precision}>', .*: cuDNN has no engine for it{why}\n"
        check(re.fullmatch(wanted, said), f"wanted '{wanted}':\n{said}")
        check(not (windows.directory / "no.dlx").exists(), "what cannot be planned leaves an artifact")
    windows.refused(rf"cannot run on a GPU: {standin.STANDINS}/libcudnn\.so\.9 is cuDNN 9\.7\.0, which cannot plan without a GPU: install 9\.8\.0 or newer",
                    *train, cudnn=90700)


def main():
    require_standins()
    windows = Windows(workspace())
    for test in tune, tune_refusals, other_version, workspaces, refusals:
        test(windows)


main()
