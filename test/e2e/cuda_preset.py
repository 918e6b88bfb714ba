#!/usr/bin/python3
"""The preset for GPUs alone builds the compiler and dlc-run, or dlc-run alone, without oneDNN, MPI and tests: configured, not
built."""
import re
import shutil
import subprocess

from support import ROOT, check, skip, workspace

RUNTIME = {"bin/dlc-run", "lib/dlc_cuda.so"}


def built(home, *options):
    """Programs and modules of a build, and whether it has tests."""
    done = subprocess.run(["cmake", "--preset", "cuda", "-B", home, *options], cwd=ROOT, capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)
    rules = (home / "build.ninja").read_text()
    return set(re.findall(r"^build ((?:bin|lib)/\S+): CXX_(?:EXECUTABLE|MODULE_LIBRARY)_LINKER", rules, re.M)), f"{ROOT}/test/" in rules


def main():
    if not shutil.which("clang++-22"):
        skip("no clang 22, which presets take")
    home = workspace()
    found = built(home / "both")
    check(found == (RUNTIME | {"bin/dlc", "bin/dlc-opt"}, False), f"a build for GPUs has {found}")
    found = built(home / "runtime", "-DDLC_COMPILER=OFF")
    check(found == (RUNTIME, False), f"one that only runs artifacts has {found}")


main()
