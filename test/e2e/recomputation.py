#!/usr/bin/python3
"""What runs again in backward instead of being kept changes no bit, and takes less memory: the U-Net's first
convolution, with batch norm behind it and without."""
import json
import shutil

from combinations import disks
from support import MODELS, blocked_target, check, has, run, same_file, workspace

SETS = ["base=16", "depth=2", "size=64", "predict.size=64", "batch=4", "train.schedule=[]"]
SCHEDULE = ("dlc-lower-composites", "dlc-combine-equal", "dlc-assign-layouts{{threads=1 target={target} math={math}}}", "dlc-fuse", "dlc-rematerialize-producers",
            "dlc-split-gradients", "dlc-plan-kernels", "dlc-recompute-kernels", "dlc-combine-all-reduces", "dlc-overlap-all-reduces")


def compiled(directory, name, text, passes):
    """The schedule of a train stage by these passes. Returns what its artifact says of itself."""
    schedule = directory / f"{name}.mlir"
    run("dlc-opt", text, "--mlir-print-debuginfo", f"--pass-pipeline=builtin.module(nn.model({','.join(passes)}))", "-o", schedule)
    run("dlc", "compile", schedule, "--threads=1", "-o", directory / f"{name}.dlx")
    return json.loads(run("dlc", "inspect", directory / f"{name}.dlx", "--json")[0])


def trained(directory, name, data):
    weights = directory / f"{name}.safetensors"
    run("dlc-run", "-np", 2, "train", directory / f"{name}.dlx", *data, "--steps", 4, "--save", weights, "--run", directory / name)
    return weights


def main():
    whole = workspace()
    data = disks(whole)
    target = blocked_target(whole) if has("avx512f") else "cpu:native"
    for norm, math in (("batch", "strict"), ("none", "fast")):
        what = f"norm {norm}, {math}"
        directory = whole / math
        directory.mkdir()
        text = directory / "train.mlir"
        run("dlc", "compile", MODELS / "unet2d.dl", *[part for value in [*SETS, f"norm={norm}"] for part in ("--set", value)],
            "--threads=1", "--emit=train", "-o", text)
        passes = [each.format(target=target, math=math) for each in SCHEDULE]
        again = compiled(directory, "again", text, passes)
        kept = compiled(directory, "kept", text, [each for each in passes if each != "dlc-recompute-kernels"])
        run("dlc", "compile", text, "--threads=1", f"--target={target}", f"--math={math}", "-o", directory / "whole.dlx")
        same_file(directory / "whole.dlx", directory / "again.dlx", f"{what}: what dlc compile does")

        twice = [each for each in again["programs"][0]["dispatches"] if each["recomputed"]]
        check(any(each["layer"] == "down.0.conv.0" and each["phase"] == "Backward" for each in twice), f"{what}: {twice}")
        report, _ = run("dlc", "inspect", directory / "again.dlx")
        check("conv.forward of down.0.conv.0 runs again in " in report, report)
        saved = kept["memory"]["bytes"] - again["memory"]["bytes"]
        check(saved >= 4 * 16 * 64 * 64 * 4 / 2, f"{what}: {saved} bytes less")
        check(not any(each["recomputed"] for each in kept["programs"][0]["dispatches"]), f"{what}: the pass was left out")
        same_file(trained(directory, "kept", data), trained(directory, "again", data), f"{what}: weights with and without")
    shutil.rmtree(whole)


main()
