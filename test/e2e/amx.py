#!/usr/bin/python3
"""What is planned for AMX, on processors without it: oneDNN has kernels of its own there. A preloaded library computes
their tile instructions (test/amx/TileEmulator.cpp), and a copy of oneDNN asks it for the processor's features."""
import os
import pathlib
import re
import shutil
import subprocess

from precision import RoundedCase, near_evaluator, near_evaluator_in_integers
from support import BIN, MODELS, check, has, run, skip, workspace

import numpy as np

OBJDUMP = "/usr/lib/llvm-22/bin/llvm-objdump"
TRAPS = {"cpuid": (b"\x0f\xa2", b"\x0f\x0b"), "xgetbv": (b"\x0f\x01\xd0", b"\x0f\xff\xd0")}


def ask_emulator(library, copy):
    """Writes a copy of this library whose questions for the processor's features trap."""
    code = bytearray(library.read_bytes())
    listing = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True).stdout
    places = re.findall(r"^\s*([0-9a-f]+):\s+(cpuid|xgetbv)\s*$", listing, re.MULTILINE)
    for place, name in places:
        old, new = TRAPS[name]
        start = int(place, 16)
        check(code[start:start + len(old)] == old, f"{library} does not lie in the file as in memory")
        code[start:start + len(old)] = new
    check({name for _, name in places} == set(TRAPS), f"{library} does not ask for the processor's features")
    copy.write_bytes(code)


def main():
    emulator = BIN.parent / "lib" / "libdlc_tiles.so"
    if has("amx_bf16") or not has("avx512_bf16"):
        skip("this processor " + ("has AMX itself" if has("amx_bf16") else "has no bf16 instructions"))
    linked = subprocess.run(["ldd", BIN.parent / "lib" / "dlc_cpu.so"], capture_output=True, text=True, check=True).stdout
    directory = workspace()
    library = pathlib.Path(re.search(r"libdnnl\.so\.\d+ => (\S+)", linked)[1])
    ask_emulator(library, directory / library.name)
    products = directory / "products"
    os.environ |= {"LD_LIBRARY_PATH": str(directory), "LD_PRELOAD": str(emulator), "DLC_TILE_PRODUCTS": str(products)}

    for tests in "RandomConvolution.BF16*", "TileKernels*":
        run("cpu-tests", f"--gtest_filter={tests}")
        check(products.exists(), f"no kernel of {tests} used tiles")
        products.unlink()
    random = np.random.default_rng(4)
    near_evaluator(random)
    near_evaluator_in_integers(random, RoundedCase)
    check(products.exists(), "no kernel of a whole step used tiles")
    text = directory / "vgg16.mlir"
    run("dlc", "compile", MODELS / "vgg16.dl", "--set", "size=64", "--precision=bf16", "--emit=schedule", "-o", text)
    convolutions = re.findall(r"nn\.conv.*?#nn\.kernel<\"([^\"]+)\"", text.read_text())
    check(convolutions and not any("gemm" in name for name in convolutions), f"VGG-16's convolutions are {set(convolutions)}")
    shutil.rmtree(directory)


main()
