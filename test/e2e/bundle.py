#!/usr/bin/python3
"""scripts/bundle: its archive, unpacked elsewhere, compiles, trains and predicts as a user without rights, and loads no
library of this system's but the C library."""
import os
import pathlib
import re
import shutil
import subprocess

from support import BIN, ROOT, check, digits, skip, workspace

HOST = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv))\.so")
NOBODY = 65534


def main():
    if not shutil.which("setpriv") or os.getuid() != 0:
        skip("becoming another user takes root and setpriv")
    directory = workspace()
    archive, home = directory / "bundle.tar", directory / "home"
    done = subprocess.run([ROOT / "scripts" / "bundle", archive], capture_output=True, text=True, env=dict(os.environ, DLC_BIN=str(BIN)))
    check(done.returncode == 0 and f"wrote {archive}" in done.stdout, done.stdout + done.stderr)
    home.mkdir()
    subprocess.run(["tar", "-C", home, "-xf", archive], check=True)
    root, = home.iterdir()
    moved = home / "somewhere else"  # with a blank
    root.rename(moved)
    data = digits(home)
    for path in (directory, home, *home.iterdir()):
        os.chown(path, NOBODY, NOBODY)

    def run(program, *arguments, **environment):
        """Nothing of ours is in the environment, nor in PATH."""
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env",
                   *(f"{name}={value}" for name, value in environment.items()), moved / "bin" / program, *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=home, timeout=200,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(home)})
        check(done.returncode == 0, f"{program} {arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    # The loader tells what each process loads, of modules that are opened and of the linker, too.
    loaded = home / "loaded"
    loaded.mkdir()
    os.chown(loaded, NOBODY, NOBODY)
    watched = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(loaded / "of")}
    model = moved / "models" / "mnist_cnn.dl"
    run("dlc", "compile", model, "--set", "batch=8", "--threads=1", "-o", "m.dlx", **watched)
    check("cuDNN" in run("dlc-run", "--check"), "the bundle knows no GPUs")
    train = ["train", "m.dlx", *data, "--threads", 1, "--steps", 3]
    run("dlc-run", *train, "--run", "one", **watched)
    run("dlc-run", "predict", "m.dlx", *data[:2], "--threads", 1, "--init", "one/last.safetensors", "-o", "made", **watched)
    check((home / "made").is_dir(), "no predictions")
    libraries = {path for file in loaded.iterdir() for path in re.findall(r"calling init: (\S.*)", file.read_text())}
    names = {pathlib.Path(path).name for path in libraries}
    check({"libdnnl.so.2", "dlc_cpu.so"} <= names and any(name.startswith("libMLIR") for name in names), f"loaded: {names}")
    strangers = [path for path in libraries if not HOST.match(pathlib.Path(path).name) and not path.startswith(("/memfd:", "/proc/"))
                 and moved not in pathlib.Path(os.path.realpath(path)).parents]
    check(not strangers, f"libraries of this system's: {strangers}")
    programs = {path for file in loaded.iterdir() for path in re.findall(r"initialize program: (\S.*)", file.read_text())}
    check(str(moved / "libexec" / "ld.lld") in programs, f"the linker is none of the bundle's: {programs}")

    run("dlc-run", "--check")
    run("dlc-run", "train", model, "--set", "batch=8", *data, "--threads", 1, "--steps", 2, "--run", "from-model")
    if shutil.which("mpirun"):
        out = run("dlc-run", "-np", 2, *train, "--run", "two")
        check("2 ranks x batch 8" in out, out)


main()
