#!/usr/bin/python3
"""scripts/gpu-bundle packs what scripts/gpu-check trains elsewhere: here on stand-ins for NVIDIA's libraries."""
import json
import os
import re
import subprocess
import sys

from standin import environment, launched, require_standins
from support import BIN, ROOT, check, workspace

SANITIZER = """#!/bin/sh
echo "========= ERROR SUMMARY: 0 errors --kernel-regex"
[ "$1" = --help ] && exit
while [ "${1##*/}" != dlc-run ]; do shift; done
exec "$@"
"""
PLANS = "strict", "fast", "f16", "bf16"
STAGES = "facts", "steps", "repeats", "ranks", "sanitizer"


def main():
    require_standins()
    home = workspace()
    # The stand-ins take texts alone: a compiler that finds no assembler.
    (home / "bin").mkdir()
    (home / "lib").symlink_to(BIN.parent / "lib")
    (home / "bin/dlc-run").symlink_to(BIN / "dlc-run")
    (home / "bin/dlc").write_text(f"#!/bin/sh\nPATH=/nowhere CUDA_HOME=/nowhere exec {BIN}/dlc \"$@\"\n")
    (home / "bin/dlc").chmod(0o755)
    bundle = home / "bundle.tar.xz"
    subprocess.run([ROOT / "scripts/gpu-bundle", bundle, "mnist_cnn"], env={**os.environ, "DLC_BIN": str(home / "bin"), "DLC_GPU": "h200"}, check=True)
    # No compute-sanitizer looks at stand-ins: this one finds nothing.
    (home / "bin/compute-sanitizer").write_text(SANITIZER)
    (home / "bin/compute-sanitizer").chmod(0o755)

    def checked(out, *options):
        where = environment(gpus=1, counts=home / f"{out}.counts") | {"PATH": f"{home}/bin:{os.environ['PATH']}"}
        done = subprocess.run([sys.executable, ROOT / "scripts/gpu-check", bundle, home / out, *options], env=where, capture_output=True, text=True)
        return done, json.loads((home / out / "record.json").read_text())

    done, record = checked("out", "--patience", "20", "--repeats", "8", *STAGES)
    check(done.returncode == 0 and done.stdout.endswith("all passed\n"), done.stdout + done.stderr)
    check(list(record) == list(STAGES), str(record.keys()))
    facts = record["facts"]
    check(list(facts["memory"]) == ["CUDA", "cuDNN", "cuBLASLt", "NCCL"] and min(facts["memory"].values()) > 0, str(facts))
    check("deviceName" in facts["properties"] and "multiProcessorCount" not in facts["planned for another"], str(facts))
    check(record["repeats"]["mnist_cnn"] == {"steps": 8, "equal_bits": True, "equal_without_graph": True}, str(record["repeats"]))
    counts = launched(home / "out.counts")
    runs = counts[counts.index(3):] if 3 in counts else []
    check(runs[:3 * len(PLANS) + 3] == [3, 3, 0] * len(PLANS) + [6, 6, 0], f"runs of five steps, then of eight, launch {counts} graphs")
    for i in range(2):
        killed = record["ranks"][f"killed {i}"]
        check(killed["exit code"] == 1 and killed["ranks"] == 2 and re.search("rank [01] (was killed|has died)", killed["said"]), str(killed))
    trained = [record["steps"][f"mnist_cnn {plan}"] for plan in PLANS] + [record["ranks"][plan] for plan in ("strict", "wire")]
    check(all(found["equal_bits"] and found["equal_without_graph"] and 0 < found["of_the_way"] < 0.25 for found in trained), str(trained))
    found = record["sanitizer"]
    check(all(found[f"mnist_cnn {tool}"]["summary"] for tool in ("memcheck", "racecheck", "synccheck", "initcheck")), str(found))

    done, record = checked("hurried", "--patience", "0.03", "steps")
    check(done.returncode == 1 and re.search("failed|no time was left", done.stdout), done.stdout)
    check(not subprocess.run(["pgrep", "-f", "dlc-gpu/bin/dlc-run"], capture_output=True).stdout, "a run goes on behind its limit")
    done, record = checked("wrong", "bench")
    check(done.returncode == 1 and "bench: there was nothing to do" in done.stdout, done.stdout)


main()
