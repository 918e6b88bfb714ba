#!/usr/bin/python3
"""scripts/gpu-bundle packs what scripts/gpu-check trains elsewhere: here on stand-ins for NVIDIA's libraries."""
import gzip
import json
import os
import re
import struct
import subprocess
import sys

from standin import environment, launched, require_standins
from support import BIN, ROOT, check, workspace

import numpy as np

SANITIZER = """#!/bin/sh
echo "========= ERROR SUMMARY: 0 errors --kernel-regex"
[ "$1" = --help ] && exit
while [ "${1##*/}" != dlc-run ]; do shift; done
exec "$@"
"""
PLANS = "strict", "fast", "f16", "bf16"
STAGES = ["facts", "plans", "steps", "memory", "sanitizer", "repeats", "ranks", "data", "bench", "profile", "tune"]


def sevens(folder):
    """Noise in the files of MNIST, of one class: every network learns that."""
    random = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for part, count in ("train", 32), ("t10k", 8):
        for kind, values in ("images", random.integers(0, 255, (count, 12, 12), np.uint8)), ("labels", np.full(count, 7, np.uint8)):
            head = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
            (folder / f"{part}-{kind}-idx{values.ndim}-ubyte.gz").write_bytes(gzip.compress(head + values.tobytes()))


class Bundle:
    """Of one small case."""

    def __init__(self, home):
        self.home, self.file = home, home / "bundle.tar.xz"
        # The stand-ins take texts alone: a compiler that finds no assembler.
        (home / "bin").mkdir()
        (home / "lib").symlink_to(BIN.parent / "lib")
        (home / "bin/dlc-run").symlink_to(BIN / "dlc-run")
        self.write("bin/dlc", f"#!/bin/sh\nPATH=/nowhere CUDA_HOME=/nowhere exec {BIN}/dlc \"$@\"\n")
        sevens(home / "data/mnist")
        facts = {"DLC_BIN": str(home / "bin"), "DLC_GPU": "h200", "DLC_DATA": str(home / "data")}
        subprocess.run([ROOT / "scripts/gpu-bundle", self.file, "mnist_cnn"], env={**os.environ, **facts}, check=True)

    def write(self, name, text):
        (self.home / name).write_text(text)
        (self.home / name).chmod(0o755)

    def change(self, edit):
        """What is packed."""
        subprocess.run(["tar", "-C", self.home, "-xJf", self.file], check=True)
        edit(self.home / "dlc-gpu")
        subprocess.run(["tar", "-C", self.home, "-cJf", self.file, "dlc-gpu"], env={**os.environ, "XZ_OPT": "-0"}, check=True)

    def checked(self, out, *options):
        where = environment(gpus=1, counts=self.home / f"{out}.counts") | {"PATH": f"{self.home}/bin:{os.environ['PATH']}"}
        done = subprocess.run([sys.executable, ROOT / "scripts/gpu-check", self.file, self.home / out, *options], env=where, capture_output=True,
                              text=True)
        return done, json.loads((self.home / out / "record.json").read_text())


def passes(bundle):
    # No compute-sanitizer looks at stand-ins: this one finds nothing.
    bundle.write("bin/compute-sanitizer", SANITIZER)
    done, record = bundle.checked("out", "--patience", "20", "--share", "0.03")
    check(done.returncode == 0 and done.stdout.endswith("all passed\n"), done.stdout + done.stderr)
    check(list(record) == STAGES, str(record.keys()))
    check("deviceName" in record["facts"]["properties"] and "multiProcessorCount" not in record["facts"]["planned for another"], str(record["facts"]))
    free = record["memory"]["free"]
    check(list(free) == ["CUDA", "cuDNN", "cuBLASLt", "NCCL"] and min(free.values()) > 0, str(free))
    check(record["plans"]["mnist_cnn-bf16"] == {"equal_without_graph": True}, str(record["plans"]))
    said = record["plans"]["mnist_cnn-bf16's kernels"]["said"]
    found = re.match(r"11 library kernels, (\d\d) plans, 0 of them wrong", said)
    check(found, said)
    check(record["repeats"]["mnist_cnn"] == {"steps": 6, "equal_bits": True, "equal_without_graph": True}, str(record["repeats"]))
    counts = " ".join(map(str, launched(bundle.home / "out.counts")))
    # A plan alone runs three times, the last two by graph.
    for wanted in f"4 0 {2 * int(found[1])}" + len(PLANS) * " 3 0", "4 4 0":
        check(f" {wanted} " in f" {counts} ", f"plans, steps and repeats launch {counts} graphs")
    for i in range(2):
        killed = record["ranks"][f"killed {i}"]
        check(killed["exit code"] == 1 and killed["ranks"] == 2 and re.search(r"rank [01] (\(process \d+\) )?(was killed|has died)", killed["said"]), str(killed))
    trained = [record["steps"][f"mnist_cnn {plan}"] for plan in PLANS] + [record["ranks"][plan] for plan in ("strict", "wire")]
    check(all(found["equal_without_graph"] and 0 < found["of_the_way"] < 0.25 for found in [*trained, record["tune"]["mnist_cnn tuned"]]), str(trained))
    found = record["sanitizer"]
    check(all(found[f"mnist_cnn-bf16 {tool}"]["summary"] for tool in ("memcheck", "racecheck", "synccheck", "initcheck")), str(found))
    check(record["data"]["mnist"]["epochs"][-1]["val_accuracy"] == 1, str(record["data"]))
    check(record["bench"]["mnist_cnn-bf16"]["step_ms"] > 0 and record["profile"]["mnist_cnn-bf16"]["profile.step_over_bound"] > 0, str(record["bench"]))


def fails(bundle):
    """Where there is no time, no tool or nothing to do. Other stages go on."""
    done, _ = bundle.checked("hurried", "--patience", "0.03", "steps")
    check(done.returncode == 1 and re.search("failed|no time was left", done.stdout), done.stdout)
    check(not subprocess.run(["pgrep", "-f", "dlc-gpu/bin/dlc-run"], capture_output=True).stdout, "a run goes on behind its limit")
    bundle.write("bin/compute-sanitizer", "#!/bin/sh\necho '========= ERROR SUMMARY: 1 error'; exit 9\n")
    done, record = bundle.checked("wrong", "sanitizer", "memory")
    check(done.returncode == 1 and "failed: mnist_cnn-bf16 memcheck finds, " in done.stdout and "free" in record["memory"], done.stdout)
    bundle.change(lambda root: (root / "data/mnist/wanted.json").write_text(json.dumps({"metric": "val_accuracy", "least": 1.01, "options": ["--epochs", "1"]})))
    done, record = bundle.checked("unreached", "data", "--patience", "20")
    check(done.returncode == 1 and "failed: mnist's val_accuracy" in done.stdout and record["data"]["mnist"]["epochs"], done.stdout)
    bundle.change(lambda root: [path.unlink() for path in (root / "bench").iterdir()])
    done, _ = bundle.checked("empty", "bench")
    check(done.returncode == 1 and "bench: there was nothing to do" in done.stdout, done.stdout)


def main():
    require_standins()
    bundle = Bundle(workspace())
    passes(bundle)
    fails(bundle)


main()
