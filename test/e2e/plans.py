#!/usr/bin/python3
"""What the plan of a large network leaves out: a batch norm, with the addition and the ReLU behind it, reads and writes its
activations twice forward and twice backward, and no activation is brought into another layout, but for the image."""
import collections
import json
import math
import re

from support import MODELS, check, has, run, skip, workspace

LARGE = 1 << 20  # bytes
BATCH = 8
NORMS = 53  # of ResNet-50
BYTES = {"bool": 1, "bf16": 2, "f64": 8}


def bytes_of(operand):
    *extents, element = re.match(r"[\w]+", operand)[0].split("x")
    return math.prod(map(int, extents)) * BYTES.get(element, 1 if element.endswith("8") else 4)


def is_activation(operand):
    return operand.startswith(f"{BATCH}x") and bytes_of(operand) >= LARGE


def passes(dispatches, category):
    """Phase -> dispatches of a kind that touch a large activation; what is only run again saves memory and is not counted."""
    return collections.Counter(dispatch["phase"] for dispatch in dispatches if dispatch["category"] == category and
                               not dispatch["recomputed"] and any(map(is_activation, dispatch["operands"])))


def main():
    if not has("avx512f"):
        skip("the target avx512 is not for this processor")
    artifact = workspace() / "resnet50.dlx"
    run("dlc", "compile", MODELS / "resnet50.dl", "--set", f"batch={BATCH}", "--target=cpu:avx512", "--threads=2", "-o", artifact)
    train = json.loads(run("dlc", "inspect", artifact, "--json")[0])["programs"][0]["dispatches"]

    norms, reorders = passes(train, "norm"), passes(train, "reorder")
    print(f"passes of norms over large activations: {dict(norms)}; reorders of them: {dict(reorders)}")
    for phase in ("Forward", "Backward"):
        check(norms[phase] <= 2 * NORMS, f"{norms[phase]} passes for {NORMS} batch norms, {phase}")
    check(reorders == {"Forward": 1}, f"large activations are reordered: {dict(reorders)}")


main()
