#!/usr/bin/python3
"""What keeps an artifact from running on a GPU, or ends its run there, is told in one line that says what to do: on
stand-ins for NVIDIA's libraries (test/cuda/standin), which fail as they are told to."""
import json
import re
import shutil
import signal

import emulated
from jobs import Ranks, free_port, torchrun
from standin import Pair, environment, on_gpu, require_standins
from support import BIN, MODELS, check, run, same_file

UUID = "GPU-00000000-0000-0000-0000-000000000000"


def refused(pattern, *command, **facts):
    """The program ends with a line that matches."""
    _, said = on_gpu("dlc-run", *command, expect=1, **facts)
    lines = [line for line in said.splitlines() if line.startswith("dlc-run: error: ")]
    check(len(lines) == 1 and re.search(pattern, lines[0]), f"wanted '{pattern}':\n{said}")


def checks(case):
    """A build for GPUs alone is of use where there is one."""
    home = case.directory / "gpus-alone"
    for file in "bin/dlc-run", "lib/dlc_cuda.so":
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BIN.parent / file, home / file)
    for gpus, expect in (0, 1), (1, 0):
        found, _ = run(home / "bin" / "dlc-run", "--check", expect=expect, env=environment(gpus=gpus))
        check("cpu          not available" in found and "cuda         cuDNN 9.19.0; " in found, found)


def starts(case):
    artifact = case.compiled_as_text("--math=strict")
    train = ["train", artifact, *case.data, "--steps", 1, "--run", case.directory / "no-run"]
    two = [*train, "-np", 2]
    refused("this machine has no NVIDIA driver", *train, driver=0)
    refused(r"the driver is for CUDA 12\.8, older than CUDA 13\.0 of libcudart; install a newer driver", *train, driver=12080)
    refused("there is none", *train, gpus=0)
    refused(r"Tesla V100 is sm_70, older than sm_80 \(Ampere\)", *train, names="Tesla V100", capability=70)
    refused("the artifact is for cuda:h200, sm_90, this GPU is sm_100; compile the model for it", *train, capability=100)
    refused("the artifact is for cuda:b200, sm_100, this GPU is sm_90; compile the model for it",
            "train", case.compiled_as_text("--math=strict", target="cuda:b200", name="b200"), *case.data)
    refused("ranks 0 and 1 have the same GPU: start as many ranks on a host as it has GPUs", *two, gpus=1)
    refused(r"rank 1 has NVIDIA B \(sm_90\), CUDA 13\.0, .*NCCL 2\.28\.3, .*, but rank 0 has NVIDIA A \(sm_90\), .*: give all ranks the same",
            *two, names="NVIDIA A,NVIDIA B")
    check(not (case.directory / "no-run").exists(), "a run that was refused has a directory")


def memory(case):
    """What is planned, what is free, and how to find the largest batch that fits."""
    taken = (4 << 30) - (200 << 20)
    sets, case.sets = case.sets, [*case.sets, "--set", "batch=10000"]
    artifact = case.compiled_as_text("--math=strict")
    case.sets = sets
    planned = json.loads(run("dlc", "inspect", "--json", artifact)[0])["memory"]["bytes"] / (1 << 30)
    pattern = r"the plan takes ([0-9.]+) GiB of the device's memory, of which 0\.20 GiB are free: compile the model for a smaller batch, of less than (\d+) " \
              r"\((--memory-limit=\d+) finds the largest\), or end"
    _, said = on_gpu("dlc-run", "bench", artifact, expect=1, taken=taken)
    found = re.search(pattern, said)
    check(found and abs(float(found[1]) - planned) < 0.01, f"{planned} GiB are planned: {said}")
    # What gradients in 16 bits are added up in has no room where all else has.
    rounded = case.compiled_as_text("--math=strict", "--wire=bf16", name="rounded")
    pages = json.loads(run("dlc", "inspect", "--json", rounded)[0])["memory"]["bytes"]
    train = ["train", rounded, *case.data, "--steps", 1, "-np", 2, "--run", case.directory / "no-run"]
    refused("the plan takes", *train, taken=(4 << 30) - pages - 4096)
    on_gpu("dlc-run", *train[:-1], case.directory / "room", taken=(4 << 30) - pages - (4 << 20))

    _, said = run("dlc", "compile", MODELS / "mnist_cnn.dl", *sets, "--set", "batch=10000", "--target=cuda:h200", "--math=strict", found[3],
                  "-o", artifact, expect=1)
    largest = re.search(r"largest batch .* is (\d+)", said)
    check(largest and 3000 < int(largest[1]) < int(found[2]), f"less than {found[2]} fit: {said}")


def failures(case):
    """A device that fails ends the run; what was trained before is kept, named, and goes on elsewhere to the same bits."""
    artifact = case.compiled_as_text("--math=strict")
    kernels = [dispatch for program in json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"] for dispatch in program["dispatches"]
               if program["name"] == "train"]
    last = case.directory / "failed" / "last.safetensors"
    train = ["train", artifact, *case.data, "--epochs", 1, "--steps", 5, "--save-every", 2]
    kept = f"; the last checkpoint is '{last}'$"
    # Of four runs, each of which calls all kernels, the fourth: the second of its slot, which is captured.
    refused(f"cannot (run step [34]|copy from the GPU|launch a step's graph|record an event).* on {UUID}: an uncorrectable ECC error was found{kept}",
            *train, "--run", last.parent, fault=3 * len(kernels) + len(kernels) // 2)
    # One by one, the instruction that failed is named, of cuDNN, cuBLASLt or our own.
    for kind in "cudnn", "cublas", "generated":
        number = max(index for index, kernel in enumerate(kernels) if kernel["implementation"].startswith(kind))
        refused(rf"cannot run kernel {kernels[number]['kernel']} \(instruction \d+\) in step 2 on {UUID}: an uncorrectable ECC error was found$",
                *train[:-2], "--no-graph", "--run", case.directory / f"named-{kind}", fault=len(kernels) + number)
    # During validation, in which averages have the parameters' places and cannot leave them.
    sets, case.sets = case.sets, [*case.sets, "--set", "train.ema=0.75"]
    averaging = case.compiled_as_text("--math=strict", name="averaging")
    case.sets = sets
    steps = 5 * sum(len(program["dispatches"]) for program in json.loads(run("dlc", "inspect", "--json", averaging)[0])["programs"]
                    if program["name"] == "train")
    refused(f" on {UUID}: an uncorrectable ECC error was found", "train", averaging, *train[2:-2], "--val", case.data[1], "--val", case.data[3],
            "--run", case.directory / "averages", fault=steps + 1)
    one, plain = case.directory / "one.safetensors", case.directory / "plain.safetensors"
    on_gpu("dlc-run", *train, "--no-graph", "--run", case.directory / "one", "--save", one)
    on_gpu("dlc-run", *train, "--run", case.directory / "plain", "--save", plain)
    same_file(one, plain, "instructions one by one")
    run("dlc", "compile", MODELS / "mnist_cnn.dl", *case.sets, "-o", case.directory / "cpu.dlx")
    refused("--no-graph is for GPUs", "train", case.directory / "cpu.dlx", *case.data, "--no-graph")
    whole, rest = case.directory / "whole.safetensors", case.directory / "rest.safetensors"
    on_gpu("dlc-run", *train, "--run", case.directory / "whole", "--save", whole)
    on_gpu("dlc-run", *train[:-2], "--run", last.parent, "--resume", "--save", rest)
    same_file(rest, whole, "a run whose GPU failed")


def other_machines(case):
    """A run that goes on with other GPUs or libraries is told that bits may differ."""
    artifact = case.compiled_as_text("--math=strict")
    home = case.directory / "moved"
    train = ["train", artifact, *case.data, "--epochs", 1, "--run", home]
    on_gpu("dlc-run", *train, "--steps", 1, names="NVIDIA A")
    platform = json.loads((home / "config.json").read_text())["platform"]
    check(re.fullmatch(r"NVIDIA A \(sm_90\), CUDA 13\.0, cuDNN 9\.19\.0, cuBLASLt 13\.\d+\.\d+", platform), platform)
    same, _ = on_gpu("dlc-run", *train, "--steps", 2, "--resume", names="NVIDIA A")
    check("bit-exact" not in same, same)
    other, _ = on_gpu("dlc-run", *train, "--steps", 3, "--resume", names="NVIDIA B")
    check(f"a run on {platform}; it may not be bit-exact" in other and "resuming on NVIDIA B" in other, other)


def peers(case):
    """A rank that dies, or does not come, ends the others, which name it."""
    artifact = case.compiled_as_text("--math=strict")
    train = ["train", artifact, *case.data, "--epochs", 1]

    def started(seconds, *options, home="no-run", **facts):
        port = free_port()
        ranks = Ranks([*train, *options, "--run", case.directory / home, "--timeout", seconds], [{**environment(**facts), **torchrun(rank, 2, port)} for rank in range(2)])
        try:
            said = [process.communicate(timeout=60)[1] for process in ranks.processes]
        finally:
            for process in ranks.processes:
                process.kill()
        return said, [process.returncode for process in ranks.processes]

    said, codes = started(300, absent="1:0")
    check(codes == [1, -signal.SIGKILL] and "rank 1 has died: its connection is closed" in said[0], f"{codes}: {said}")
    said, codes = started(2, absent="1:100")
    check(codes == [1, 1] and "cannot join the ranks' GPUs: not all have come within 2 s; NCCL_DEBUG=INFO shows" in said[0], f"{codes}: {said}")
    check(not (case.directory / "no-run").exists(), "a run that was refused has a directory")

    # The last kernel of the third step, which is captured, never ends: behind its buckets and before those of the
    # fourth, so that the network is not at fault.
    kernels = sum(len(program["dispatches"]) for program in json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"]
                  if program["name"] == "train")
    said, codes = started(3, hang=3 * kernels - 1)
    late = r"all-reduce of bucket 0 .* in step 4 did not complete within 3 s: rank 0.*, rank 1.* has not started it"
    errors = [each.count("dlc-run: error: ") for each in said]
    check(codes == errors == [1, 1] and re.search(late, said[0]), f"{codes}: {said}")

    # The same in a validation, which has no buckets.
    said, codes = started(3, "--steps", 5, "--val", case.data[1], "--val", case.data[3], home="validated", hang=5 * kernels + 1)
    check(codes == [1, 1] and re.search(r"cannot run step \d+: it does not end, or other ranks have given up", said[0]), f"{codes}: {said}")

    # In its third step a rank does not come to a bucket.
    buckets = json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"][0]["buckets"]
    for bucket in range(len(buckets)):
        said, codes = started(3, stall=f"1:{2 * len(buckets) + bucket}")
        late = rf"all-reduce of bucket {bucket} \([a-z0-9., ]+\) in step 3 did not complete within 3 s: rank 1 (\(process \d+\) )?has not started it; find out what"
        check(codes == [1, 1] and re.search(late, "".join(said)), f"{codes}: {said}")


def main():
    require_standins()
    mnist = emulated.cases("mnist_cnn")[0]
    case = Pair(mnist.model, mnist.emulated, mnist.directory / "errors")
    for test in checks, starts, memory, failures, other_machines, peers:
        test(case)


main()
