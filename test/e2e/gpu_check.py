#!/usr/bin/python3
"""scripts/gpu-bundle packs what scripts/gpu-check trains elsewhere: here on stand-ins for NVIDIA's libraries."""
import json
import os
import re
import subprocess
import sys

from standin import environment, require_standins
from support import BIN, ROOT, check, workspace

PLANS = "strict", "fast", "f16", "bf16"
STAGES = "facts", "steps", "repeats", "ranks"


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
    done = subprocess.run([sys.executable, ROOT / "scripts/gpu-check", bundle, home, "--patience", "20", "--repeats", "8", *STAGES], env=environment(gpus=1),
                          capture_output=True, text=True)
    check(done.returncode == 0 and done.stdout.endswith("all passed\n"), done.stdout + done.stderr)
    record = json.loads((home / "steps.json").read_text())
    check(record.keys() == {f"mnist_cnn {plan}" for plan in PLANS}, str(record))
    facts = json.loads((home / "facts.json").read_text())
    check(list(facts["memory"]) == ["CUDA", "cuDNN", "cuBLASLt", "NCCL"] and min(facts["memory"].values()) > 0, str(facts))
    repeats = json.loads((home / "repeats.json").read_text())
    check(repeats == {"mnist_cnn": {"steps": 8, "equal_bits": True, "equal_without_graph": True}}, str(repeats))
    ranks = json.loads((home / "ranks.json").read_text())
    check(ranks["killed"]["exit code"] == 1 and re.search("rank [01] (was killed|has died)", ranks["killed"]["said"]), str(ranks))
    record |= {plan: ranks[plan] for plan in ("strict", "wire")}
    check(all(found["equal_bits"] and found["equal_without_graph"] and 0 < found["of_the_way"] < 0.25 for found in record.values()), str(record))


main()
