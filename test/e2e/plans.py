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
# Of ResNet-50 by precision: norms over such an activation, and reorders of one; that of the image casts it, too, in bf16.
# Both follow from the model and the target's table alone.
PLANS = {"f32": ("avx512", 46, {"Forward": 1}), "bf16": ("avx512-bf16", 35, {})}
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


def check_plan(precision):
    target, count, wanted = PLANS[precision]
    artifact = workspace() / "resnet50.dlx"
    run("dlc", "compile", MODELS / "resnet50.dl", "--set", f"batch={BATCH}", f"--target=cpu:{target}", f"--precision={precision}", "--threads=2",
        "-o", artifact)
    program, = (entry for entry in json.loads(run("dlc", "inspect", artifact, "--json")[0])["programs"] if entry["name"] == "train")
    norms, reorders = (passes(program["dispatches"], category) for category in ("norm", "reorder"))
    print(f"{precision}: passes of norms over large activations: {dict(norms)}; reorders of them: {dict(reorders)}")
    check(norms == {"Forward": 2 * count, "Backward": 2 * count}, f"{precision}: {dict(norms)} passes for {count} batch norms")
    check(reorders == wanted, f"{precision}: large activations are reordered: {dict(reorders)}")


def main():
    if not has("avx512f"):
        skip("the target avx512 is not for this processor")
    check_plan("f32")
    if has("avx512_bf16"):
        check_plan("bf16")
    else:
        print("skipped in bf16: this processor has no bf16 instructions")


main()
