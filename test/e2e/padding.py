#!/usr/bin/python3
"""Padding lanes of blocked tensors stay zero: of variables, optimizer slots, gradients and everything that a kernel
writes, in every combination of precision, math and wire. dlc-padding looks at them after every instruction, on memory
that was filled with NaN."""
import re

from support import MODELS, blocked_target, check, has, run, workspace

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

# Weights of 6 channels a group, which their layout pads, with gradients that are summed without padding.
GROUPS = """model groups(batch = 1) {
  input image  : f32[batch, 32, 8, 9, 11]
  input target : f32[batch, 24, 8, 9, 11]
  x = conv_transpose(image, 24, kernel = 3, padding = 1, groups = 4, name = "a")
  x = conv_transpose(x, 24, kernel = 3, padding = 1, groups = 4, name = "b")
  output y = x
  loss = mse(x, target)
}
"""


ALL = {"Variables", "Slots", "Gradients", "Transient"}


def check_padding(directory, model, *options, threads=1, padded=ALL):
    """Blocked tensors with padding must be among variables, slots, gradients and transient tensors, or those named."""
    artifact = directory / "padded.dlx"
    run("dlc", "compile", *model, f"--threads={threads}", *options, "-o", artifact)
    printed, _ = run("dlc-padding", artifact)
    counts = dict(re.findall(r"(\w+) (\d+)", printed))
    check(counts.keys() == padded, f"{model}, {options}: {printed}")


def main():
    directory = workspace()
    gates = directory / "gates.dl"
    gates.write_text(GATES)
    unet = [MODELS / "unet2d.dl"]
    for value in ("base=10", "depth=2", "size=16", "predict.size=16", "batch=2"):
        unet += ["--set", value]
    target = blocked_target(directory) if has("avx512f") else "cpu:avx2"
    plans = [[f"--target={target}", f"--math={math}"] for math in ("fast", "strict")]
    if has("avx512_bf16"):
        plans.append(["--precision=bf16"])
    else:
        print("skipped in bf16: this processor has no bf16 instructions")
    for plan in plans:
        for wire in ("f32", "bf16"):
            check_padding(directory, unet, *plan, f"--wire={wire}")
        if "--precision=bf16" not in plan:
            check_padding(directory, [gates], *plan)
    groups = directory / "groups.dl"
    groups.write_text(GROUPS)
    # For AVX2 the weights stay plain, and Winograd, which the fast plan has there, pads nothing.
    plan, padded = (plans[0], ALL - {"Gradients"}) if has("avx512f") else (plans[1], {"Transient"})
    check_padding(directory, [groups], *plan, threads=2, padded=padded)


main()
