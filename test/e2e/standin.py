"""Programs on stand-ins for NVIDIA's libraries (test/cuda/standin)."""
import os
import re

from emulated import CASES, OPTIONS, RATE, STEPS, Case
from support import BIN, check, run, skip

import numpy as np

STANDINS = BIN.parent / "lib" / "standin"


def small_digits(directory, brightest=255):
    """Noise of ten classes, of a size at which the emulator is fast."""
    random = np.random.default_rng(0)
    np.save(directory / "image.npy", random.integers(0, brightest, (160, 12, 12), dtype=np.uint8))
    np.save(directory / "label.npy", random.integers(0, 10, 160, dtype=np.uint8))
    return ["--data", f"image={directory}/image.npy", "--data", f"label={directory}/label.npy"]


CASES.update({"mnist_cnn": (small_digits, ["batch=8", "size=12"])})


def environment(**facts):
    """In which NVIDIA's libraries are the stand-ins, two GPUs unless `facts` say otherwise: seed=1 for the stand-in's
    DLC_STANDIN_SEED, and so on."""
    facts = {"gpus": 2, **facts}
    return {**os.environ, "LD_LIBRARY_PATH": str(STANDINS), **{f"DLC_STANDIN_{name.upper()}": str(value) for name, value in facts.items()}}


def on_gpu(*command, expect=0, **facts):
    return run(*command, expect=expect, env=environment(**facts))


def launched(counts):
    """Of each process that was told counts=FILE, how many graphs it has launched."""
    return [int(launches) for launches in re.findall(r"^captures \d+ launches (\d+)$", counts.read_text(), re.M)]


def require_standins():
    """Ends the test where they cannot run: as one that was skipped, unless all that needs CUDA is wanted."""
    def end(reason):
        check("DLC_REQUIRE_CUDA" not in os.environ, reason)
        skip(reason)

    if not STANDINS.exists():
        end("this build has no stand-ins")
    found = run("dlc-run", "--check")[0]
    if "cuDNN 9.19.0" not in found:
        end(f"the stand-ins take plans of cuDNN 9.19.0 alone:\n{found}")


class Pair(Case):
    """A case on both devices."""

    def compiled_as_text(self, *options, target="cuda:h200", name="text"):
        """Without the assembler: the stand-ins run no binaries."""
        nowhere = self.directory / "nowhere"
        nowhere.mkdir(exist_ok=True)
        artifact = self.directory / f"{name}.dlx"
        _, said = run("dlc", "compile", self.source, *self.sets, f"--target={target}", *options, "-o", artifact,
                      env={**os.environ, "PATH": str(nowhere), "CUDA_HOME": str(nowhere)})
        check("ptxas was not found" in said, said)
        return artifact

    def trained_on_gpu(self, artifact, name, *options, seed=0, steps=STEPS, launches=None):
        """`launches`: of graphs, by each rank, if that is known."""
        weights, counts = self.directory / f"{name}.safetensors", self.directory / f"{name}.counts"
        counts.unlink(missing_ok=True)
        on_gpu("dlc-run", "train", artifact, *options, *self.data, *RATE, "--steps", steps, "--save", weights, "--run",
               self.directory / name, seed=seed, counts=counts)
        ranks = options[options.index("-np") + 1] if "-np" in options else 1
        check(launches is None or launched(counts) == [launches] * ranks, f"{name}: ranks launch {launched(counts)} graphs, not {launches} each")
        return weights
