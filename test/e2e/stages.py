#!/usr/bin/python3
"""Every stage's text can be read back: by dlc-opt, and by dlc compile, which goes on to the same artifact. An option is
needed until what it says is decided; after that the text knows, and an option that contradicts it is refused."""
from support import MODELS, check, has, run, same_file, workspace

UNET = ["base=6", "depth=2", "size=32", "batch=2", "predict.size=32"]
CASES = [
    ("mnist_cnn.dl", ["batch=4"], {}),
    ("mnist_cnn.mlir", [], {}),
    ("unet2d.dl", UNET, {}),
    ("unet2d.dl", UNET, {"--math=strict": "train", "--wire=bf16": "nn", "--link=1:100": "train", "--bucket-size=4096": "train",
                         "--no-overlap": "train", "--target=cpu:avx2": "train"}),
]
STAGES = ("nn", "train", "schedule", "exec")
# What text of a stage made with the options of the last case above contradicts.
CONTRADICTIONS = {
    "train": ("--wire=f32", "--precision=bf16"),
    "schedule": ("--wire=f32", "--precision=bf16", "--math=fast", "--link=shm", "--bucket-size=0", "--no-overlap=false", "--threads=2",
                 "--target=cpu:avx512"),
}


def refused(text, stage):
    for option in CONTRADICTIONS.get("schedule" if stage == "exec" else stage, ()):
        if option == "--target=cpu:avx512" and not has("avx512f"):
            continue
        name, value = option.split("=")
        error = run("dlc", "compile", text, option, "-o", "/dev/null", expect=1)[1]
        check(f"is at stage {stage} and was made with {name}=" in error and f"leave {name} out" in error and len(error.split("\n")) == 2,
              f"{option} at stage {stage}: {error}")


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
            if "--no-overlap" in options:
                refused(text, stage)
            if stage != "nn":  # what says the same contradicts nothing
                run("dlc", "compile", text, *lasting, "-o", resumed)
            same_file(whole, resumed, f"{model} {' '.join(options)} resumed from {stage}")


main()
