#!/usr/bin/python3
"""Padding lanes of blocked tensors stay zero: of variables, optimizer slots, gradients and everything that a kernel writes, in every
combination of precision, math and wire. dlc-padding looks at them after every instruction, on memory that was filled with NaN."""
import json
import re

from support import MODELS, ROOT, check, has, run, workspace

# What is not 0 where its operand is: nothing but the bounds of the lanes keeps their padding zero.
GATES = """model gates(batch = 2) {
  input image : f32[batch, 1, 16, 16]
  x = sigmoid(conv(image, 10, kernel = 3, padding = same, name = "a"))
  x = exp(conv(x, 20, kernel = 3, padding = same, name = "b") + 1.0)
  y = conv(x, 1, kernel = 3, padding = same, name = "c")
  output p = y
  loss = mse(y, image)
}
"""


def write_blocked(path):
    """A machine on which convolutions of unblocked tensors are slow, so that the plan blocks them whatever their size."""
    table = json.loads((ROOT / "runtime/cpu/targets/avx512.json").read_text())
    for entry in table["efficiency"]:
        if entry["implementation"] in ("brg", "gemm"):
            for kernel in ("conv", "conv_grad_data", "conv_grad_filter"):
                entry[kernel] = [[0, 0.001]]
    path.write_text(json.dumps(table))


def check_padding(directory, model, *options):
    """Blocked tensors with padding must be among variables, slots, gradients and transient tensors."""
    artifact = directory / "padded.dlx"
    run("dlc", "compile", *model, "--threads=1", *options, "-o", artifact)
    printed, _ = run("dlc-padding", artifact)
    counts = dict(re.findall(r"(\w+) (\d+)", printed))
    check(counts.keys() == {"Variables", "Slots", "Gradients", "Transient"}, f"{model}, {options}: {printed}")


def main():
    directory = workspace()
    blocked, gates = directory / "blocked.json", directory / "gates.dl"
    write_blocked(blocked)
    gates.write_text(GATES)
    unet = [MODELS / "unet2d.dl"]
    for value in ("base=10", "depth=2", "size=16", "predict.size=16", "batch=2"):
        unet += ["--set", value]
    plans = [["--target=cpu:avx2"]]
    if has("avx512f"):
        plans = [[f"--target=cpu:{blocked}", f"--math={math}"] for math in ("fast", "strict")]
    if has("avx512_bf16"):
        plans.append(["--precision=bf16"])
    else:
        print("skipped in bf16: this processor has no bf16 instructions")
    for plan in plans:
        for wire in ("f32", "bf16"):
            check_padding(directory, unet, *plan, f"--wire={wire}")
        if "--precision=bf16" not in plan:
            check_padding(directory, [gates], *plan)


main()
