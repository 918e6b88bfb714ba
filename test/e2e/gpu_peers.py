#!/usr/bin/python3
"""bench/gpu_peers.py trains the networks of models/*.dl as they are: on a CPU, where bench/peers has set up PyTorch."""
import json
import re
import subprocess

from support import MODELS, ROOT, check, run, skip, workspace

PYTHON = ROOT / "build/peers/bin/python"

# Each network on no device: batch, parameters and the image's shape.
DESCRIBE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import gpu_peers, torch
found = {}
for name, model in gpu_peers.MODELS.items():
    with torch.device("meta"):
        network, image, _ = model.make(model.batch)
    found[name] = {"batch": model.batch, "parameters": sum(p.numel() for p in network.parameters()), "image": list(image.shape)}
print(json.dumps(found))
"""


def python(*words, expect=0):
    done = subprocess.run([PYTHON, *map(str, words)], capture_output=True, text=True)
    check(done.returncode == expect, f"exit code {done.returncode}, not {expect}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def networks():
    for name, found in json.loads(python("-c", DESCRIBE, ROOT / "bench")).items():
        inspected = json.loads(run("dlc", "inspect", "--json", MODELS / f"{name}.dl")[0])
        shape = json.loads(inspected["inputs"][0]["type"].removeprefix("f32"))
        wanted = {"batch": inspected["batch"], "parameters": inspected["parameter_count"], "image": shape}
        check(found == wanted, f"{name} is {found}, not {wanted}")


def table(home):
    """A line and a record for each case; one that fails is told with its reason."""
    out = python(ROOT / "bench/gpu_peers.py", "--device", "cpu", "--models", "mnist_cnn:8", "--modes", "eager,graph", "--precisions", "bf16", "--json",
                 home / "out.json")
    record = json.loads((home / "out.json").read_text())
    eager, graph = record["cases"]
    check(record["machine"]["torch"] and eager["status"] == "ok" and (eager["model"], eager["batch"], eager["precision"]) == ("mnist_cnn", 8, "bf16"), out)
    check(eager["ms"] > 0 and eager["images_per_s"] > 0 and 0 < eager["last_loss"] < 10, out)
    check(graph["status"] == "failed" and out.count("failed: ValueError: CUDA graphs need --device cuda") == 2, out)
    check(len(re.findall(r"^mnist_cnn +8 +bf16 +(?:eager|graph) ", out, re.M)) == 2, out)
    for option, value in ("--models", "lenet"), ("--modes", "jit"):
        said = python(ROOT / "bench/gpu_peers.py", option, value, expect=2)
        check(value in said.splitlines()[-1], said)


def main():
    if not PYTHON.exists():
        skip("no PyTorch: bench/peers sets it up")
    networks()
    table(workspace())


main()
