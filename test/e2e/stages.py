#!/usr/bin/python3
"""Every stage's text can be read back: by dlc-opt, and by dlc compile, which goes on to the same artifact. An option is needed until
what it says is decided; after that the text knows."""
from support import MODELS, has, run, same_file, workspace

UNET = ["base=6", "depth=2", "size=32", "batch=2", "predict.size=32"]
CASES = [
    ("mnist_cnn.dl", ["batch=4"], {}),
    ("mnist_cnn.mlir", [], {}),
    ("unet2d.dl", UNET, {}),
    ("unet2d.dl", UNET, {"--math=strict": "train", "--wire=bf16": "nn"}),
]
STAGES = ("nn", "train", "schedule", "exec")


def main():
    directory = workspace()
    if has("avx512_bf16"):
        CASES.append(("unet2d.dl", UNET, {"--precision=bf16": None, "--wire=bf16": "nn"}))
    else:
        print("skipped in bf16: this processor has no bf16 instructions")
    for model, sets, options in CASES:
        sets = [option for value in sets for option in ("--set", value)]
        lasting = {"--threads=1": "train", **options}  # and the last stage whose text needs them
        whole = directory / "whole.dlx"
        run("dlc", "compile", MODELS / model, *sets, *lasting, "-o", whole)
        for number, stage in enumerate(STAGES):
            text, resumed = directory / f"{stage}.mlir", directory / f"{stage}.dlx"
            run("dlc", "compile", MODELS / model, *sets, *lasting, f"--emit={stage}", "-o", text)
            run("dlc-opt", text, "-o", "/dev/null")
            needed = [option for option, last in lasting.items() if last and STAGES.index(last) >= number]
            run("dlc", "compile", text, *needed, "-o", resumed)
            same_file(whole, resumed, f"{model} {' '.join(options)} resumed from {stage}")


main()
