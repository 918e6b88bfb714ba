"""A small network with batch norm in every combination of precision, math and wire that can differ on this
processor."""
from support import MODELS, blocked_target, has, run

import numpy as np

PLANS = {"f32 fast": [], "f32 strict": ["--math=strict"], "bf16 fast": ["--precision=bf16"],
         "bf16 strict": ["--precision=bf16", "--math=strict"]}
WIRES = ("f32", "bf16")
SMALL = ["--set", "base=16", "--set", "depth=2", "--set", "size=64", "--set", "predict.size=64", "--set", "batch=4"]


def strict_is_fast(*model):
    """True if strict math gives the kernels, memory and instructions of fast math here: then all that one does the
    other does."""
    fast, strict = (run("dlc", "compile", *model, f"--math={math}", "--emit=exec")[0] for math in ("fast", "strict"))
    return strict.replace('math = "strict"', 'math = "fast"') == fast


def plans_here():
    plans = list(PLANS)
    if not has("avx512_bf16"):
        print("skipped in bf16: this processor has no bf16 instructions")
        plans = plans[:2]
    elif strict_is_fast(MODELS / "unet2d.dl", *SMALL, "--precision=bf16"):
        print("bf16 strict is the plan of bf16 fast, which stands for both")
        plans.remove("bf16 strict")
    return plans


def disks(directory, count=24, size=64):
    """Bright disks on noise, and their masks in {0, 255}. Returns the --data arguments."""
    random = np.random.default_rng(1)
    y, x = np.mgrid[:size, :size]
    place, radius = random.integers(10, size - 10, (2, count, 1, 1)), random.integers(5, 12, (count, 1, 1))
    mask = (y - place[0]) ** 2 + (x - place[1]) ** 2 < radius ** 2
    image = random.integers(40, 100, (count, size, size)) + 100 * mask
    np.save(directory / "image.npy", image.astype(np.uint8))
    np.save(directory / "mask.npy", (255 * mask).astype(np.uint8))
    return ["--data", f"image={directory}/image.npy", "--data", f"mask={directory}/mask.npy"]


class Combination:
    """The U-Net in one of the combinations, with blocked layouts and Winograd kernels where plans of f32 can have
    them."""

    def __init__(self, directory, plan, wire, threads=1):
        self.what, self.wire = f"{plan}, wire of {wire}", wire
        self.directory = directory / f"{plan}-{wire}-{threads}".replace(" ", "-")
        self.directory.mkdir()
        self.options = [*SMALL, *PLANS[plan], f"--wire={wire}", f"--threads={threads}"]
        if plan.startswith("f32") and has("avx512f"):
            self.options.append(f"--target={blocked_target(self.directory)}")
        self.data = disks(self.directory)

    def compiled(self, name, *options):
        artifact = self.directory / f"{name}.dlx"
        run("dlc", "compile", MODELS / "unet2d.dl", *self.options, *options, "-o", artifact)
        return artifact

    def trained(self, artifact, ranks, name, *options, steps):
        """Weights after a run in directory `name`."""
        out = self.directory / f"{name}.safetensors"
        run("dlc-run", "-np", ranks, "train", artifact, *self.data, "--steps", steps, "--save", out, "--run", self.directory / name,
            *options)
        return out
