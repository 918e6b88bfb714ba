#!/usr/bin/python3
"""What keeps an artifact from running on a GPU, or ends its run there, is told in one line that says what to do: on
stand-ins for NVIDIA's libraries (test/cuda/standin), which fail as they are told to."""
import ctypes.util
import json
import re
import shutil
import signal
import subprocess
import time

import emulated
from jobs import Ranks, await_steps, free_port, torchrun
from standin import STANDINS, Pair, environment, on_gpu, require_standins
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
    check("; GPU 0 of 1: " in found, found)
    device = home / "device.json"
    run(home / "bin" / "dlc-run", "--check", "--device-json", device, env=environment(gpus=1))
    described = json.loads(device.read_text())
    check(described["deviceVer"] == 900 and described["memoryBusWidth"] == 1024, f"{described}")
    device.unlink()
    _, said = run(home / "bin" / "dlc-run", "--check", "--device-json", device, expect=1, env=environment(gpus=0))
    check("no GPU to describe in" in said and not device.exists(), said)
    # Ranks train, and open no library of oneDNN, LLVM or MPI. The loader tells what is opened.
    run(home / "bin" / "dlc-run", "train", case.compiled_as_text("--math=strict"), "-np", 2, *case.data, "--epochs", 1, "--steps", 2,
        "--run", home / "run", env={**environment(), "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(home / "opened")})
    opened = [file.read_text() for file in home.glob("opened.*")]
    check(sum("libcudnn.so.9" in each and "libnccl.so.2" in each for each in opened) == 2, f"{len(opened)} processes open no cuDNN")
    foreign = set(re.findall(r"file=(\S*(?:dnnl|LLVM|MLIR|mpi|dlc_cpu)\S*)", "".join(opened)))
    check(not foreign, f"opened: {foreign}")


class Machine:
    """One that has no libraries of NVIDIA's but the stand-ins, without one, in a folder."""

    def __init__(self, folder, absent):
        self.folder, self.nothing = folder, folder / "nothing"
        self.nothing.mkdir(parents=True)
        for path in STANDINS.iterdir():
            if path.name != absent:
                (folder / path.name).symlink_to(path)

    def hides(self):
        """Whether this user may hide what else there is."""
        return subprocess.run(self.command("true")).returncode == 0

    def command(self, *words):
        hide = f'mount --bind {self.nothing} /usr/local && exec "$@"'
        return [str(word) for word in ("unshare", "--map-root-user", "--mount", "sh", "-c", hide, "sh", *words)]

    def run(self, program, *words, expect=1, **facts):
        """What is said to both."""
        done = subprocess.run(self.command(BIN / program, *words), capture_output=True, text=True,
                              env={**environment(**facts), "LD_LIBRARY_PATH": str(self.folder), "CUDA_HOME": str(self.nothing)})
        check(done.returncode == expect, f"exit code {done.returncode}, not {expect}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr


def libraries(case):
    """Which one is missing, or of another version, and where it was looked for or found."""
    train = "train", case.compiled_as_text("--math=strict"), *case.data, "--epochs", 1, "--steps", 1, "--run"
    trains = ["dlc-run", *train, case.directory / "no-run"]
    compiles = ["dlc", "compile", case.source, *case.sets, "--target=cuda:h200", "-o", case.directory / "no.dlx"]

    def refuses(commands, wanted, **facts):
        for program, *words in commands:
            said = machine.run(program, *words, **facts)
            doing = "dlc-run: error: cannot run on a GPU" if program == "dlc-run" else "error: cannot plan for cuda:h200"
            check(re.fullmatch(f"{doing}: {wanted}\n", said), f"wanted '{wanted}':\n{said}")

    for name, commands in ("libcudart.so.13", [trains]), ("libcudnn.so.9", [trains, compiles]), ("libcublasLt.so.13", [trains]), \
            ("libnccl.so.2", [[*trains, "-np", 2]]):
        machine = Machine(case.directory / f"without-{name}", absent=name)
        if not machine.hides():
            print("skipped: a user without rights cannot hide the libraries of this machine")
            return
        file = machine.folder / name
        refuses(commands, re.escape(f"cannot find {name}: it is neither on the loader's path nor in lib64 or lib of $CUDA_HOME or of /usr/local/cuda"))
        file.write_bytes(b"no library")
        refuses(commands, f"cannot open {name}: {file}: file too short")
        file.write_bytes((STANDINS / "libdlc_standin.so").read_bytes())
        refuses(commands, f"{file} lacks [a-zA-Z]+: it is of another version")
        if name == "libnccl.so.2":
            machine.run("dlc-run", *train, case.directory / "alone", expect=0)
    if not ctypes.util.find_library("cuda"):
        machine = Machine(case.directory / "without-driver", absent=None)
        refuses([compiles], re.escape("cuDNN 9.27.0 needs the driver's libcuda.so.1, or CUDA's stub of it to plan with: cannot find libcuda.so.1: it is neither "
                                      "on the loader's path nor in lib64 or lib of $CUDA_HOME or of /usr/local/cuda; install either, or cuDNN 9.26"),
                cudnn=92700)
    _, said = on_gpu(*compiles, expect=1, cudnn=90700)
    check(f"{STANDINS}/libcudnn.so.9 is cuDNN 9.7.0, which cannot plan without a GPU: install 9.8.0 or newer" in said, said)
    _, said = on_gpu(*trains, "-np", 2, expect=1, nccl=21805)
    check(f"{STANDINS}/libnccl.so.2 is NCCL 2.18.5, which registers no memory: install 2.19.0 or newer" in said, said)
    check(not (case.directory / "no-run").exists() and not (case.directory / "no.dlx").exists(), "what is refused leaves files")


def no_module(case):
    """A build whose module for GPUs is missing refuses their artifacts and their targets."""
    build = case.directory / "build"
    (build / "bin").mkdir(parents=True)
    (build / "lib").mkdir()
    for program in "dlc", "dlc-run":
        shutil.copy(BIN / program, build / "bin")
    for module in (BIN.parent / "lib").glob("dlc_*.so"):
        if module.name != "dlc_cuda.so":
            shutil.copy(module, build / "lib")
    out = case.directory / "no.dlx"
    for command in (["dlc-run", "train", case.compiled_as_text("--math=strict"), *case.data, "--run", case.directory / "no-run"],
                    ["dlc", "compile", case.source, *case.sets, "--target=cuda:h200", "-o", out]):
        done = subprocess.run([build / "bin" / command[0], *map(str, command[1:])], capture_output=True, text=True, env=environment())
        wanted = "error: .*this build has no back end for target 'cuda:h200'"
        check(done.returncode == 1 and re.search(wanted, done.stderr) and done.stderr.count("\n") == 1, done.stderr)
    check(not (case.directory / "no-run").exists() and not out.exists(), "what is refused leaves files")


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


def identities(case):
    """Ranks have GPUs of their own, or slices of GPUs, which their UUIDs tell; and one artifact."""
    artifact = case.compiled_as_text("--math=strict")
    other = case.compiled_as_text("--math=strict", "--bucket-size=100000", name="other-buckets")
    pair = Peers(case, artifact)
    one = "ranks 0 and 1 have the same GPU: start as many ranks on a host as it has GPUs"
    pair.all_refuse(one, uuids="7,7")
    pair.all_refuse(one, each=({"uuids": 7}, {"uuids": 7}), gpus=1)
    pair.all_refuse("ranks run different artifacts: rank 1 differs from rank 0; give every rank the same file", artifacts=(artifact, other))
    check(not (case.directory / "no-run").exists(), "a run that was refused has a directory")

    # Slices: each rank sees its own one, as number 0.
    for algorithm, given in ("^NVLS,NVLSTree", {}), ("Ring", {"NCCL_ALGO": "Ring", "NCCL_LOCAL_REGISTER": "0"}):
        home = case.directory / f"slices-{len(given)}"
        said, codes = pair.ended(pair.start("--steps", 1, home=home, each=({"uuids": 1}, {"uuids": 2}), variables=given, gpus=1))
        check(codes == [0, 0], f"{codes}: {said}")
        platform = json.loads((home / "config.json").read_text())["platform"]
        check(f"NCCL 2.28.3, NCCL_ALGO={algorithm}, " in platform, platform)


def memory(case):
    """What is planned, what is free, and how to find the largest batch that fits."""
    taken = (4 << 30) - (200 << 20)
    sets, case.sets = case.sets, [*case.sets, "--set", "batch=10000"]
    artifact = case.compiled_as_text("--math=strict")
    case.sets = sets
    planned = json.loads(run("dlc", "inspect", "--json", artifact)[0])["memory"]["bytes"] / (1 << 20)
    pattern = r"the plan takes ([0-9.]+) MiB of the device's memory, of which 200\.0 MiB are free: compile the model for a smaller batch, of less than (\d+) " \
              r"\((--memory-limit=\d+) finds the largest\), or end"
    _, said = on_gpu("dlc-run", "bench", artifact, expect=1, taken=taken)
    found = re.search(pattern, said)
    check(found and abs(float(found[1]) - planned) < 0.1, f"{planned} MiB are planned: {said}")
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
            *train, "--run", last.parent, fault=launch(kernels, 3, len(kernels) // 2))
    # One by one, the instruction that failed is named, of cuDNN, cuBLASLt or our own.
    for kind in "cudnn", "cublas", "generated":
        number = max(index for index, kernel in enumerate(kernels) if kernel["implementation"].startswith(kind))
        refused(rf"cannot run kernel {kernels[number]['kernel']} \(instruction \d+\) in step 2 on {UUID}: an uncorrectable ECC error was found$",
                *train[:-2], "--no-graph", "--run", case.directory / f"named-{kind}", fault=launch(kernels, 1, number))
    # During validation, in which averages have the parameters' places and cannot leave them.
    sets, case.sets = case.sets, [*case.sets, "--set", "train.ema=0.75"]
    averaging = case.compiled_as_text("--math=strict", name="averaging")
    case.sets = sets
    averaged, = (program["dispatches"] for program in json.loads(run("dlc", "inspect", "--json", averaging)[0])["programs"]
                 if program["name"] == "train")
    averages = case.directory / "averages"
    refused(f" on {UUID}: an uncorrectable ECC error was found; the last checkpoint is '{averages}/last.safetensors'$", "train", averaging,
            *train[2:-2], "--val", case.data[1], "--val", case.data[3], "--run", averages, fault=launch(averaged, 5, 0))
    refusals(case, artifact, [kernel["implementation"] for kernel in kernels], [kernel["kernel"] for kernel in kernels])
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


def launch(kernels, step, number):
    """When a step launches one of its kernels, all counted from 0: each step has gathered its images first."""
    return step * (1 + len(kernels)) + 1 + number


def refusals(case, artifact, implementations, names):
    """What is refused when it is called, in a step as it is or while it is captured."""
    train = ["train", artifact, *case.data, "--epochs", 1, "--steps", 5, "--run"]
    refused(r"cannot allocate [1-9][0-9.]* [KMG]iB on the GPU, of whose 4\.00 GiB [0-9.]+ GiB are free: out of memory$", *train, case.directory / "no-run",
            full=3)
    check(not (case.directory / "no-run").exists(), "a run that had no memory has a directory")
    for kind, steps, said in ("cudnn", 2, "cuDNN says CUDNN_STATUS_EXECUTION_FAILED"), \
            ("cublas", 0, "cuBLASLt says CUBLAS_STATUS_EXECUTION_FAILED"), ("generated", 2, "too many resources requested for launch"):
        number = max(index for index, name in enumerate(implementations) if name.startswith(kind))
        refused(f"cannot run kernel {names[number]}: {said}$", *train, case.directory / f"refused-{kind}", refuse=launch(names, steps, number))


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


class Peers:
    """Two ranks, started by somebody else."""

    def __init__(self, case, artifact):
        self.case, self.artifact = case, artifact
        self.patience = 60  # seconds within which all have ended

    def start(self, *options, home="no-run", artifacts=None, each=({}, {}), variables={}, **facts):
        """`facts`: of the environment of both, `each`: of the one or the other."""
        port, processes = free_port(), []
        for rank, artifact in enumerate(artifacts or 2 * [self.artifact]):
            train = ["train", artifact, *self.case.data, "--epochs", 1, *options, "--run", self.case.directory / home]
            processes += Ranks(train, [{**environment(**facts, **each[rank]), **variables, **torchrun(rank, 2, port)}]).processes
        return processes

    def ended(self, processes):
        """What they have said to stderr when all have ended, and their exit codes."""
        end = time.time() + self.patience
        try:
            said = [process.communicate(timeout=max(end - time.time(), 0.1))[1] for process in processes]
        except subprocess.TimeoutExpired:
            check(False, f"a rank has not ended after {self.patience:.0f} s")
        finally:
            for process in processes:
                process.kill()
        return said, [process.returncode for process in processes]

    def failed(self, seconds, *options, **facts):
        """Likewise, of ranks whose exchanges may take so many seconds."""
        said, codes = self.ended(self.start("--timeout", seconds, *options, **facts))
        check(all(each.count("\n") <= 1 for each in said), f"more than a line: {said}")
        return said, codes

    def all_refuse(self, error, **facts):
        said, codes = self.failed(300, **facts)
        check(codes == [1, 1] and all(each.startswith("dlc-run: error: ") and error in each for each in said), f"{codes}: {said}")

    def second_fails(self, error, home="no-run", **facts):
        """Rank 1, which alone has the facts, says so in one line, and rank 0 hears of it."""
        said, codes = self.failed(300, "--steps", 5, home=home, each=({}, facts))
        check(codes == [1, 1] and re.search(f"^dlc-run: error: rank 1: {error}$", said[1], re.M) and
              re.search(f"^dlc-run: error: another rank gave up: {error}$", said[0], re.M), f"{codes}: {said}")


def peers(case):
    """A rank that dies, or does not come, ends the others, which name it. They end soon, though aborting a communicator waits
    for graphs that have its work."""
    artifact = case.compiled_as_text("--math=strict")
    program = next(each for each in json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"] if each["name"] == "train")
    kernels, buckets = program["dispatches"], len(program["buckets"])
    pair, counts, begin = Peers(case, artifact), case.directory / "counts", time.time()
    said, codes = pair.ended(pair.start("--steps", 5, home="orderly", counts=counts))
    check(codes == [0, 0] and not any(said), f"{codes}: {said}")
    check(counts.read_text() == 2 * "captures 2 launches 3\n", f"two slots' steps are captured, three launched: {counts.read_text()}")
    pair.patience = 12 + 3 * (time.time() - begin)  # 3 s of a timeout, 5 s for a GPU to end, and as much time to come there

    said, codes = pair.failed(300, absent="1:0")
    check(codes == [1, -signal.SIGKILL] and "rank 1 has died: its connection is closed" in said[0], f"{codes}: {said}")
    said, codes = pair.failed(2, absent="1:100")
    check(codes == [1, 1] and "cannot join the ranks' GPUs: not all have come within 2 s; NCCL_DEBUG=INFO shows" in said[0], f"{codes}: {said}")
    check(not (case.directory / "no-run").exists(), "a run that was refused has a directory")

    # The last kernel of the third step, which is captured, never ends: behind its buckets and before those of the
    # fourth, so that the network is not at fault.
    said, codes = pair.failed(3, hang=launch(kernels, 2, len(kernels) - 1))
    late = r"all-reduce of bucket 0 .* in step 4 did not complete within 3 s: rank 0.*, rank 1.* has not started it"
    errors = [each.count("dlc-run: error: ") for each in said]
    check(codes == errors == [1, 1] and re.search(late, said[0]), f"{codes}: {said}")

    # The same in a validation, which has no buckets.
    said, codes = pair.failed(3, "--steps", 5, "--val", case.data[1], "--val", case.data[3], home="validated", hang=launch(kernels, 5, 0))
    check(codes == [1, 1] and re.search(r"cannot run step \d+: it does not end, or other ranks have given up", said[0]), f"{codes}: {said}")

    # In its third step a rank does not come to a bucket.
    for bucket in range(buckets):
        said, codes = pair.failed(3, stall=f"1:{2 * buckets + bucket}")
        late = rf"all-reduce of bucket {bucket} \([a-z0-9., ]+\) in step 3 did not complete within 3 s: rank 1 (\(process \d+\) )?has not started it; find out what"
        check(codes == [1, 1] and re.search(late, "".join(said)), f"{codes}: {said}")

    # A rank is killed while the other one waits for it in a graph.
    home = case.directory / "killed"
    processes = pair.start("--steps", 9, "--save-every", 4, home=home, stall=f"1:{6 * buckets}")
    try:
        await_steps(processes[0], home / "last.safetensors")
    finally:
        processes[1].kill()
    said, codes = pair.ended(processes)
    check(codes == [1, -signal.SIGKILL] and re.search(r"rank 1 (\(process \d+\) )?has died", said[0]), f"{codes}: {said}")


def losses(case):
    """What fails on one rank's GPU alone is told by that rank, and the other one hears of it."""
    artifact = case.compiled_as_text("--math=strict")
    program = next(each for each in json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"] if each["name"] == "train")
    kernels, buckets, pair = program["dispatches"], len(program["buckets"]), Peers(case, artifact)
    lost = r"cannot run step {}: NCCL says remote process exited or there was a network error"
    # In a step that runs as it is, then in one of a graph: behind its last bucket.
    pair.second_fails(lost.format(1), home="lost-1", loss=f"1:{buckets}")
    pair.second_fails(lost.format(4), home="lost-4", loss=f"1:{4 * buckets}")
    pair.second_fails(r"cannot allocate [1-9][0-9.]* [KMG]iB on the GPU, of whose 4\.00 GiB [0-9.]+ GiB are free: out of memory", full=2)
    number = max(index for index, kernel in enumerate(kernels) if kernel["implementation"] == "generated")
    pair.second_fails(f"cannot run kernel {kernels[number]['kernel']}: too many resources requested for launch", home="refused",
                      refuse=launch(kernels, 3, number))


def main():
    require_standins()
    mnist = emulated.cases("mnist_cnn")[0]
    case = Pair(mnist.model, mnist.emulated, mnist.directory / "errors")
    for test in checks, libraries, no_module, starts, identities, memory, failures, other_machines, peers, losses:
        test(case)


main()
