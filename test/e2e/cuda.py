#!/usr/bin/python3
"""Whole artifacts for GPUs, where there is none: every model compiles, its kernels for every device that is known, and
no kernel keeps registers in memory."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess

from support import BIN, MODELS, NETWORKS, check, run, skip, workspace

DEVICES = {"a100": "sm_80", "rtx4090": "sm_89", "h100": "sm_90", "h200": "sm_90", "b200": "sm_100", "rtx5090": "sm_120"}

PRECISIONS = ("bf16", "f16")

# Of f32 the texts are assembled, too.
FLOATS = ("n2v3d",)

# Models with batch norms. Sums of biases' gradients come with the backward passes of those whose convolutions have biases.
NORMALIZED, BIASED = ("resnet", "inception", "unet", "n2v"), ("n2v",)

# Within which two cores are to compile a model, if not in 20.
SECONDS = {"resnet50": 8}

# What the library's kernels may take beside their operands in any case.
SLAB = 32 << 20


def models():
    for model in sorted(MODELS.glob("*.dl")):
        if f"\nmodel {model.stem}(" in model.read_text():
            yield model


def compiles(home):
    """A binary for the device and the text for others, as small as the bound allows."""
    side_by_side(lambda model, precision: compiled(home / f"{model.stem}-{precision}.dlx", model, precision),
                 [(model, precision) for model in models() for precision in PRECISIONS])


def side_by_side(function, calls):
    """On two cores. The first failure is the whole one's."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(function, *call) for call in calls]:
            done.result()


def compiled(artifact, model, precision):
    with open(artifact.with_suffix(".txt"), "w+") as said:
        process = subprocess.Popen([BIN / "dlc", "compile", model, "--target=cuda:h200", f"--precision={precision}", "-o", artifact], stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        said.seek(0)
        text = said.read()
    check(status == 0 and "warning" not in text, f"{model.stem}: {text}")
    seconds, most = used.ru_utime + used.ru_stime, 2 * SECONDS.get(model.stem, 20)
    check(seconds <= most, f"{model.stem} takes {seconds:.1f} s of a core to compile, more than {most}")
    described = json.loads(run("dlc", "inspect", artifact, "--json")[0])
    check(described["target"]["name"] == "cuda:h200", described["target"])
    check(described["target"]["precision"] == precision, described["target"])
    memory = described["memory"]
    check(memory["bytes"] <= 1.10 * memory["lower_bound"], f"{model.stem}: {memory}")
    dispatches = [dispatch for program in described["programs"] for dispatch in program["dispatches"]]
    for dispatch in dispatches:
        launch = dispatch["launch"]
        check((launch is not None) == (dispatch["implementation"] == "generated"), dispatch)
        check(not launch or (launch["blocks"] > 0 and 0 < launch["threads"] <= 1024 and 0 < launch["registers"] <= 255), dispatch)
        check(not launch or launch["occupancy"] > 0, f"{model.stem}: a multiprocessor has no room for a block of {dispatch}")
        check(dispatch["workspace"] <= max(SLAB, memory["bytes"] / 10), f"{model.stem}: {dispatch}")
    check(any(dispatch["launch"] and dispatch["launch"]["shared_bytes"] for dispatch in dispatches), f"{model.stem} reduces nothing")
    train = next(program for program in described["programs"] if program["name"] == "train")
    if precision == "bf16":
        updates(model.stem, train)
    if model.stem.startswith(NORMALIZED):
        batch_norms(model.stem, train["dispatches"])


def updates(model, program):
    """One a bucket of what is updated alike: with decay, without, running statistics; what shares a gradient has its own."""
    count = sum(dispatch["category"] == "optimizer" for dispatch in program["dispatches"])
    check(0 < count <= 4 * len(program["buckets"]) + 8, f"{model} has {count} updates for {len(program['buckets'])} buckets")


def batch_norms(model, dispatches):
    """Each is two launches for its sums, and one with what follows."""
    norms = {name.removesuffix(".running_var") for dispatch in dispatches for name in dispatch["variables"] if name.endswith(".running_var")}
    check(len(norms) >= 10, f"{model} has {len(norms)} batch norms")
    for phase in ("Forward",) if model.startswith(BIASED) else ("Forward", "Backward"):
        launches = [dispatch["layer"] for dispatch in dispatches if dispatch["phase"] == phase and
                    (dispatch["category"] == "norm" or dispatch["layer"] in norms)]
        check(0 < len(launches) <= 3 * len(norms), f"{model}, {phase}: {len(launches)} launches of {len(norms)} batch norms")
        for norm in norms:
            check(launches.count(norm) <= 3, f"{model}, {phase}: {launches.count(norm)} launches of batch norm {norm}")


def depthwise(home):
    """Convolutions in which each channel has a filter of its own are no library's, and need no memory beside."""
    for precision in ("f32", "f16", "bf16"):
        _, said = run("dlc", "compile", NETWORKS / "mobilenetv2.dl", "--set", "counts=[1, 1, 1, 1, 1, 1, 1]", "--target=cuda:h200",
                      f"--precision={precision}", "-o", home / "m.dlx")
        check("warning" not in said, said)
        found = {}
        for dispatch in json.loads(run("dlc", "inspect", home / "m.dlx", "--json")[0])["programs"][0]["dispatches"]:
            if any(re.match(r"\d+x1x3x3x", operand) for operand in dispatch["operands"]) and dispatch["category"] != "optimizer":
                check(dispatch["implementation"] == "generated" and dispatch["workspace"] == 0, f"{dispatch}")
                found[dispatch["category"]] = found.get(dispatch["category"], 0) + 1
        check(all(found.get(f"conv.{part}", 0) >= 7 for part in ("forward", "grad_data", "grad_filter")), f"{precision}: {found}")


def assembles(home):
    """Texts are for all devices."""
    ptxas = shutil.which("ptxas") or shutil.which("ptxas", path=os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin")
    check(ptxas, "ptxas was not found")
    side_by_side(lambda model: assembled(home / f"{model.stem}.ptx", model, ptxas), [(model,) for model in models()])


def assembled(text, model, ptxas):
    precision = "f32" if model.stem in FLOATS else "bf16"
    run("dlc", "compile", model, "--target=cuda:h200", f"--precision={precision}", "--emit=ptx", "-o", text)
    for architecture in sorted(set(DEVICES.values())):
        done = subprocess.run([ptxas, f"-arch={architecture}", "-v", "-o", text.with_suffix(".cubin"), text], capture_output=True, text=True)
        check(done.returncode == 0, f"{model.stem}, {architecture}: {done.stderr}")
        kept = [int(count) for count in re.findall(r"(\d+) bytes (?:stack frame|spill stores)", done.stderr)]
        check(kept and not any(kept), f"{model.stem}, {architecture}: kernels keep registers in memory")


def devices(home):
    """A binary for whatever device is known, and plans in all precisions."""
    for device in DEVICES:
        run("dlc", "compile", MODELS / "mnist_cnn.dl", f"--target=cuda:{device}", "-o", home / "m.dlx")
    side_by_side(lambda device, precision: run("dlc", "compile", MODELS / "resnet50.dl", f"--target=cuda:{device}", f"--precision={precision}",
                                               "--emit=schedule", "-o", home / f"{device}-{precision}.mlir"),
                 [(device, precision) for device in DEVICES for precision in (*PRECISIONS, "f32")])


def without_assembler(home):
    """The artifact has the text alone, and a line says so; where there is no GPU, it does not run."""
    hidden = {**os.environ, "PATH": "/nowhere", "CUDA_HOME": str(home)}
    _, said = run("dlc", "compile", MODELS / "mnist_cnn.dl", "--target=cuda:h200", "-o", home / "m.dlx", env=hidden)
    check("warning: ptxas was not found" in said and said.strip().count("\n") == 0, said)
    if not pathlib.Path("/dev/nvidiactl").exists():
        for verb in "bench", "tune":
            _, said = run("dlc-run", verb, home / "m.dlx", expect=1)
            check("cannot run on a GPU: " in said and said.strip().count("\n") == 0, said)
    for start in (["dlc", "compile"], ["dlc-run", "bench"]):
        _, said = run(*start, MODELS / "mnist_cnn.dl", "--target=cuda:h200", "--threads=2", expect=1)
        check("--threads plans for the cores of a CPU; leave it out for cuda:h200" in said, said)
    _, said = run("dlc-run", "bench", home / "m.dlx", "--threads", 2, expect=1)
    check("--threads is for CPUs" in said and said.strip().count("\n") == 0, said)
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--target=cpu:avx2", "-o", home / "c.dlx")
    _, said = run("dlc-run", "tune", home / "c.dlx", expect=1)
    check("kernels for a CPU are chosen by its table" in said, said)


def main():
    found = run("dlc-run", "--check")[0]
    if "cuda         cuDNN" not in found:
        check("DLC_REQUIRE_CUDA" not in os.environ, found)
        skip("no cuDNN, which plans for GPUs")
    home = workspace()
    for test in (compiles, depthwise, assembles, devices, without_assembler):
        test(home)


main()
