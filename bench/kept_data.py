#!/usr/bin/python3
"""How many samples a loader thread makes in a second where a GPU keeps the data and where it has no room for them, on the
stand-ins for NVIDIA's libraries: networks that take means of samples, with the data steps of MNIST, dsb2018, SVHN and Noise2Void.

    bench/kept_data.py FOLDER [--binaries build/release] [--rounds 2]

FOLDER has mnist/, dsb2018/, svhn_grey/ and nuclei_psnr_3d/ with their files. One process has one core, which the emulated GPU takes its turn on."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

DEVICE_BYTES = 4 << 30  # of the stand-in
SPARE = 1 << 20  # that is free beside the plan where there is no room

CLASSIFIER = "softmax_cross_entropy(dense(mean(image, axes = [2, 3]), 10, name = \"head\"), label)"
SEGMENTER = "mse(dense(mean(image, axes = [2, 3]), 1, name = \"head\"), mean(mask, axes = [2, 3]))"
DENOISER = "mse(dense(mean(image * mask, axes = [2, 3, 4]), 1, name = \"head\"), mean(target, axes = [2, 3, 4]))"
# Inputs, loss, data steps, sources as files hold them, steps, and files.
CASES = {
    "mnist": ("batch = 64", ["image : f32[batch, 1, 28, 28]", "label : i32[batch]"], CLASSIFIER,
              ["source image : axes = \"NYX\"", "image -> normalize(mean = 33.318421, std = 78.567490) -> image"], ["image=u8"], 150,
              {"image": "mnist/train-images-idx3-ubyte.gz", "label": "mnist/train-labels-idx1-ubyte.gz"}),
    "dsb2018": ("batch = 8", ["image : f32[batch, 1, 256, 256]", "mask : f32[batch, 1, 256, 256]"], SEGMENTER,
                ["source image : axes = \"NYX\"", "source mask : axes = \"NYX\"", "image -> normalize(per_image) -> image",
                 "image, mask -> flip -> rotate90 -> image, mask"], ["image=u8", "mask=u8"], 40,
                {"image": "dsb2018/train_images.npy", "mask": "dsb2018/train_masks.npy"}),
    "svhn": ("batch = 64", ["image : f32[batch, 1, 32, 32]", "label : i32[batch]"], CLASSIFIER,
             ["source image : axes = \"NCYX\"", "image -> normalize(per_image) -> random_crop(32, padding = 2) -> image"], [], 150,
             {"image": "svhn_grey/train_images.npy", "label": "svhn_grey/train_labels.npy"}),
    "nuclei": ("batch = 4", [f"{name} : f32[batch, 1, 16, 64, 64]" for name in ("image", "target", "mask")], DENOISER,
               ["source volume : axes = \"ZYX\"", "volume -> normalize(dataset) -> patches([16, 64, 64])"
                " -> blind_spot(percent = 0.198) -> flip -> rotate90 -> image, target, mask"], ["volume=u16"], 40,
               {"volume": "nuclei_psnr_3d/train_noisy.npy"}),
}


def source(name, batch, inputs, loss, steps):
    lines = [f"model {name}({batch}) {{", *(f"  input {each}" for each in inputs), f"  loss = {loss}", "}", "data {",
             *(f"  {each}" for each in steps), "}", "train { optimizer = sgd(lr = 0.01) }"]
    return "\n".join(lines) + "\n"


def rate(binaries, artifact, words, taken):
    """Samples a second of the thread, and whether the data were kept."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(binaries / "lib" / "standin"), "DLC_STANDIN_TAKEN": str(taken)}
    with tempfile.TemporaryDirectory() as run:
        done = subprocess.run(["taskset", "-c", "0", binaries / "bin" / "dlc-run", "train", artifact, *words, "--run", f"{run}/run"], env=environment,
                              capture_output=True, text=True, check=True)
    return int(re.search(r"\ndata: (\d+) samples/s a thread", done.stdout)[1]), "the GPU keeps" in done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--binaries", type=pathlib.Path, default="build/release")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    binaries = arguments.binaries.resolve()
    for name, (batch, inputs, loss, steps, sources, count, files) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            model, artifact = pathlib.Path(folder, f"{name}.dl"), pathlib.Path(folder, f"{name}.dlx")
            model.write_text(source(name, batch, inputs, loss, steps))
            # Without the assembler: the stand-ins run no binaries.
            subprocess.run([binaries / "bin" / "dlc", "compile", model, "--target=cuda:h200", "--math=strict", *(f"--source={each}" for each in sources),
                            "-o", artifact], env={**os.environ, "PATH": folder, "CUDA_HOME": folder}, check=True, capture_output=True)
            planned = json.loads(subprocess.run([binaries / "bin" / "dlc", "inspect", "--json", artifact], check=True, capture_output=True).stdout)
            words = ["--steps", str(count), *(word for key, path in files.items() for word in ("--data", f"{key}={arguments.folder / path}"))]
            for _ in range(arguments.rounds):
                (kept, is_kept), (staged, is_staged) = (rate(binaries, artifact, words, taken)
                                                      for taken in (0, DEVICE_BYTES - planned["memory"]["bytes"] - SPARE))
                assert is_kept and not is_staged
                print(f"{name}: {kept:,} samples/s kept, {staged:,} not: {kept / staged:.2f}")


main()
