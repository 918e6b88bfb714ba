#!/usr/bin/python3
"""scripts/gpu-bundle packs what scripts/gpu-check trains elsewhere: here on stand-ins for NVIDIA's libraries."""
import json
import os
import subprocess

from standin import environment, require_standins
from support import BIN, ROOT, check, workspace

PLANS = "strict", "fast", "f16", "bf16"


def main():
    require_standins()
    home = workspace()
    nowhere = {**os.environ, "DLC_BIN": str(BIN), "DLC_GPU": "h200", "CUDA_HOME": str(home / "nowhere")}  # the stand-ins take texts alone
    nowhere["PATH"] = os.pathsep.join(place for place in os.environ["PATH"].split(os.pathsep) if not os.path.exists(f"{place}/ptxas"))
    bundle = home / "bundle.tar.xz"
    subprocess.run([ROOT / "scripts/gpu-bundle", bundle, "mnist_cnn"], env=nowhere, check=True)
    done = subprocess.run(["/usr/bin/python3", ROOT / "scripts/gpu-check", bundle, home, "steps"], env=environment(gpus=1), capture_output=True, text=True)
    check(done.returncode == 0 and done.stdout.endswith("all passed\n"), done.stdout + done.stderr)
    record = json.loads((home / "steps.json").read_text())
    check(record.keys() == {f"mnist_cnn {plan}" for plan in PLANS}, str(record))
    check(all(found["equal_bits"] and found["equal_without_graph"] and 0 < found["of_the_way"] < 0.25 for found in record.values()), str(record))


main()
