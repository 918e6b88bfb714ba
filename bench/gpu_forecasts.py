#!/usr/bin/env python3
"""What plans for GPUs say, as CSV: a row for each model, device and precision.

Columns: seconds of a core to compile (with code for the device by ptxas where it is there), MB planned, that over its
lower bound, MB of the largest workspace, dispatches of a training step, those that are generated, milliseconds that are
forecast of a step's kernels, those of the roofline, images a second by both, percent of the forecast in libraries'
kernels. A plan that is refused has the reason in the place of the figures.

    bench/gpu_forecasts.py [--bin build/release/bin] [--devices a100,...] [--precisions bf16,...] [MODEL:BATCH...] > docs/gpu_forecasts.csv
"""
import argparse
import csv
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ["mnist_cnn:64", "unet2d:4", "unet3d:2", "n2v2d:4", "n2v3d:4", "vgg16:32", "resnet50:32", "resnet50_svhn:32", "resnet101:32", "inception_v3:32"]
DEVICES = ["a100", "h100", "h200", "b200", "rtx4090", "rtx5090"]
PRECISIONS = ["bf16", "f16", "f32"]
COLUMNS = ["model", "batch", "device", "precision", "compile_s", "planned_mb", "over_lower_bound", "workspace_mb", "dispatches", "generated", "forecast_ms",
           "roofline_ms", "forecast_img_s", "roofline_img_s", "libraries_percent"]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def figures(binaries, model, batch, device, precision):
    with tempfile.NamedTemporaryFile(suffix=".dlx") as artifact:
        begin = processor_seconds()
        done = subprocess.run([binaries / "dlc", "compile", ROOT / f"models/{model}.dl", "--set", f"batch={batch}", f"--target=cuda:{device}",
                               f"--precision={precision}", "-o", artifact.name], capture_output=True, text=True)
        seconds = processor_seconds() - begin
        if done.returncode != 0:
            return [done.stderr.strip().splitlines()[-1]]
        found = json.loads(subprocess.run([binaries / "dlc", "inspect", "--json", artifact.name], capture_output=True, text=True, check=True).stdout)
    dispatches = next(program for program in found["programs"] if program["name"] == "train")["dispatches"]

    def total(name, of=dispatches):
        return sum(each[name] for each in of)

    forecast, roofline = total("nanoseconds") / 1e6, total("roofline_ns") / 1e6
    library = [each for each in dispatches if each["launch"] is None]
    memory = found["memory"]
    workspace = max(each["workspace"] for each in dispatches)
    return [f"{seconds:.1f}", round(memory["bytes"] / 1e6), f"{memory['bytes'] / memory['lower_bound']:.3f}", round(workspace / 1e6, 1), len(dispatches),
            len(dispatches) - len(library), f"{forecast:.2f}", f"{roofline:.3f}", round(1e3 * batch / forecast), round(1e3 * batch / roofline),
            round(100 * total("nanoseconds", library) / total("nanoseconds"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--devices", default=",".join(DEVICES))
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("models", nargs="*", default=MODELS)
    options = parser.parse_args()
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(COLUMNS)
    for model, batch in (each.split(":") for each in options.models):
        for device in options.devices.split(","):
            for precision in options.precisions.split(","):
                out.writerow([model, batch, device, precision, *figures(options.bin, model, int(batch), device, precision)])
                sys.stdout.flush()


main()
