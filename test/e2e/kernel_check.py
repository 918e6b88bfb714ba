#!/usr/bin/python3
"""`dlc-run --check --kernels`: each library kernel of an artifact beside sums in f64, on the CPU and on stand-ins for
NVIDIA's libraries; and what it says of kernels that err, or do not repeat their bits."""
import json
import re

import standin
from standin import on_gpu
from support import ROOT, check, has, run, workspace

# Windows and products of many kinds: one-sided padding, strides, dilations, groups, one and three dimensions, odd extents.
SOURCE = """model kinds(batch = 3) {
  input image : f32[batch, 3, 13, 10]
  input volume : f32[batch, 2, 5, 6, 7]
  input line : f32[batch, 4, 33]
  input target : f32[batch, 5]
  x = relu(conv(image, 16, kernel = [3, 2], stride = [2, 1], padding = [1, 0], name = "strided"))
  x = relu(conv(x, 32, kernel = 3, dilation = [1, 2], padding = [1, 2], groups = 2, name = "grouped"))
  x = max_pool(x, kernel = 3, stride = 2, padding = 1)
  x = relu(conv_transpose(x, 24, kernel = 2, stride = 2, name = "transposed"))
  v = conv(volume, 16, kernel = 3, padding = 1, name = "solid")
  v = max_pool(relu(conv(v, 16, kernel = 1, name = "mixed")), 2)
  l = relu(conv(line, 8, kernel = 5, stride = 3, name = "line"))
  y = dense(concat([flatten(x), flatten(v), flatten(l)], axis = 1), 37, name = "wide")
  y = dense(relu(y), 5, name = "head")
  loss = mse(y, target)
}
train { optimizer = sgd(lr = 0.05) }
"""
SUMMARY = r"(\d+) library kernels, (\d+) plans, (\d+) of them wrong; furthest from f64: \w+, ([\d.]+) of what rounding may do"


class Kinds(standin.Pair):
    """The model alone, compiled for the stand-ins."""

    def __init__(self, directory, source):
        self.directory, self.source, self.sets = directory, source, []


def checked(command, artifact, expect=0, **facts):
    """Kernels and plans looked at, and the lines of what is wrong."""
    out = command("dlc-run", "--check", "--kernels", artifact, expect=expect, **facts)[0]
    kernels, plans, wrong, error = re.search(SUMMARY, out).groups()
    lines = re.findall(r"^wrong: (.*)$", out, re.M)
    check(int(wrong) == len(lines) and (float(error) <= 1 or lines), out)
    return int(kernels), int(plans), lines


def library_kernels(artifact):
    programs = json.loads(run("dlc", "inspect", artifact, "--json")[0])["programs"]
    return len({each["kernel"] for program in programs for each in program["dispatches"] if each["implementation"] != "generated"})


def on_cpu(directory, source):
    models = [(source, []), (ROOT / "models/mnist_cnn.dl", []), (ROOT / "models/unet2d.dl", ["--set", "base=8", "--set", "size=32", "--set", "batch=2"])]
    for options in [], ["--math=strict"], *([["--precision=bf16"]] if has("avx512_bf16") else []):
        for model, sets in models:
            artifact = directory / "cpu.dlx"
            run("dlc", "compile", model, *sets, *options, "-o", artifact)
            kernels, plans, wrong = checked(run, artifact)
            check(kernels == plans == library_kernels(artifact) > 8 and not wrong, f"{model} {options}: {kernels} kernels, {wrong}")
    # For fewer threads than there are.
    run("dlc", "compile", source, "--threads=1", "-o", artifact)
    _, plans, wrong = checked(run, artifact)
    check(plans > 8 and not wrong, f"for one thread: {wrong}")
    check("excludes" in run("dlc-run", "--check", "--kernels", artifact, "-np", "2", expect=2)[1], "ranks are ignored")
    check(run("dlc-run", "--check", "--kernels", "", expect=2)[1].count("\n") == 1, "no file is the whole check")
    # Nothing has run, and the file is named.
    blob = bytearray(artifact.read_bytes())
    blob[len(blob) // 2] ^= 1
    artifact.write_bytes(blob)
    check("cpu.dlx" in run("dlc-run", "--check", "--kernels", artifact, expect=1)[1], "a damaged artifact is not named")


def on_standins(directory, source):
    standin.require_standins()
    case = Kinds(directory, source)
    for options in ["--math=strict"], ["--precision=f32"], ["--precision=bf16"], ["--precision=f16"]:
        artifact = case.compiled_as_text(*options)
        kernels, plans, wrong = checked(on_gpu, artifact)
        check(kernels == library_kernels(artifact) > 8 and plans > kernels and not wrong, f"{options}: {kernels} kernels, {plans} plans, {wrong}")
    for off, said in (1, r"\w+ by \S+ gives \S+ where f64 gives \S+, of element 0(, 0)+"), (2, r"\w+ by \S+ gives other bits when it runs again"):
        _, plans, wrong = checked(on_gpu, artifact, expect=1, off=off)
        check(len(wrong) == plans and all(re.fullmatch(said, line) for line in wrong), f"off {off}: {plans} plans, {wrong[:3]}")
    # Another cuDNN plans each again, and what it plans is looked at.
    _, again, wrong = checked(on_gpu, artifact, cudnn=92600)
    check(again == plans and not wrong, f"by another cuDNN: {again} of {plans} plans, {wrong}")


def main():
    directory = workspace()
    source = directory / "kinds.dl"
    source.write_text(SOURCE)
    on_cpu(directory, source)
    on_standins(directory, source)


main()
