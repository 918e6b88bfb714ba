#!/usr/bin/python3
"""cuda_loads.py [MODEL:PRECISION...]: what hides the time that memory takes: of generated kernels that move more than a megabyte, those that keep less than half of a
multiprocessor's threads have 24 KB of loads on their way there, in the order in which the assembler has put the instructions."""
import json
import os
import re
import shutil
import subprocess
import sys

from support import MODELS, check, run, skip, workspace

CASES = [("resnet50", "bf16"), ("inception_v3", "bf16"), ("n2v3d", "f32"), ("unet2d", "f32"), ("vgg16", "f32"), ("mnist_cnn", "bf16")]
# Of bytes that such kernels move, in kernels that have neither: of what is known none, but versions of the assembler differ.
MOST = 0.005
ENOUGH = 24 << 10
BYTES = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def tool(name):
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin"
    return shutil.which(name) or shutil.which(name, path=toolkit)


def registers(text):
    return {int(number) + i for number, wide in re.findall(r"\bR(\d+)(\.64)?", text) for i in range(2 if wide else 1)}


def loads_on_their_way(code):
    """By kernel, the most bytes that a thread has asked of global memory before the first of them is needed: instructions start
    in order, so that one which needs a load waits for it and those before it."""
    most = {}
    for part in re.split(r"^\.text\.", code, flags=re.MULTILINE)[1:]:
        waiting, found = [], 0
        for operation, operands in re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?([A-Z0-9_.]+)\s*([^;]*);", part):
            words = operation.split(".")
            result, _, rest = operands.partition(",")
            needed = registers(operands if words[0] in ("STG", "STS", "STL", "BRA") else rest)
            if words[0].startswith("D") or "F64" in words:  # whose operands are pairs
                needed |= {register + 1 for register in needed}
            if words[0] == "STG" and (stored := re.search(r"R(\d+)$", operands.strip())):
                needed |= {int(stored[1]) + i for i in range(max(BYTES.get(words[-1], 4) // 4, 1))}
            last = max((i for i, (_, loaded) in enumerate(waiting) if loaded & needed), default=-1)
            waiting = waiting[last + 1:]
            if words[0] == "LDG":
                size = next((BYTES[word] for word in words if word in BYTES), 4)
                first, = registers(result)
                waiting.append((size, set(range(first, first + max(size // 4, 1)))))
                found = max(found, sum(size for size, _ in waiting))
        most[part.partition(":")[0]] = found
    return most


def share_below(home, model, precision):
    options = ["dlc", "compile", MODELS / f"{model}.dl", "--target=cuda:h200", f"--precision={precision}"]
    text, binary, artifact = home / "m.ptx", home / "m.cubin", home / "m.dlx"
    run(*options, "--emit=ptx", "-o", text)
    run(*options, "-o", artifact)
    subprocess.run([tool("ptxas"), "-arch=sm_90", "--split-compile=0", "-o", binary, text], check=True)
    asked = loads_on_their_way(subprocess.run([tool("nvdisasm"), "-c", binary], check=True, capture_output=True, text=True).stdout)
    program, = (each for each in json.loads(run("dlc", "inspect", "--json", artifact)[0])["programs"] if each["name"] == "train")
    moved, below = 0, 0
    for dispatch in program["dispatches"]:
        launch = dispatch["launch"]
        if dispatch["implementation"] != "generated" or dispatch["bytes"] <= 1 << 20:
            continue
        on_their_way = launch["occupancy"] * 2048 * asked[launch["symbol"]]
        check(on_their_way > 0, f"{dispatch['kernel']} loads nothing")
        moved += dispatch["bytes"]
        if launch["occupancy"] < 0.5 and on_their_way < ENOUGH:
            below += dispatch["bytes"]
            print(f"{model} {precision}: {dispatch['kernel']} has {launch['occupancy']:.0%} of the threads and {on_their_way / 1024:.0f} KB on "
                  f"their way, and moves {dispatch['bytes'] / 1e6:.0f} MB")
    return below / moved


def main():
    for name in "ptxas", "nvdisasm":
        check(tool(name) or "DLC_REQUIRE_CUDA" not in os.environ, f"{name} was not found")
    if not tool("ptxas") or not tool("nvdisasm"):
        skip("no ptxas, or no nvdisasm")
    home = workspace()
    for model, precision in [case.split(":") for case in sys.argv[1:]] or CASES:
        share = share_below(home, model, precision)
        check(share <= MOST, f"{model} {precision}: {share:.1%} of the bytes are moved by fewer threads and loads")
        print(f"{model} {precision}: {share:.1%}")


main()
