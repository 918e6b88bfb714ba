#!/usr/bin/python3
"""scripts/convert-svhn on MATLAB 5 files written by the letter of the format, as MATLAB stores them: whole or deflated,
numbers in the smallest type that holds them, short elements beside their tags; the model trains on what it writes."""
import struct
import subprocess
import sys
import zlib

from support import ROOT, check, run, workspace

import numpy as np


def element(kind, data):
    if len(data) <= 4:
        return struct.pack("<HH", kind, len(data)) + data.ljust(4, b"\0")
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(name, values, mclass, kind):
    shape = struct.pack(f"<{values.ndim}i", *values.shape)
    data = element(6, struct.pack("<II", mclass, 0)) + element(5, shape) + element(1, name) + element(kind, values.tobytes("F"))
    return struct.pack("<II", 14, len(data)) + data


def deflated(data):
    data = zlib.compress(data)
    return struct.pack("<II", 15, len(data)) + data


def mat(*parts):
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM" + b"".join(parts)


def convert(path, prefix, *options):
    return subprocess.run([sys.executable, ROOT / "scripts" / "convert-svhn", *options, path, prefix], capture_output=True, text=True)


def refused(directory, data, *parts):
    (directory / "bad.mat").write_bytes(data)
    done = convert(directory / "bad.mat", directory / "bad")
    check(done.returncode == 1 and done.stderr.count("\n") == 1, f"one line: {done.stderr}")
    for part in ("convert-svhn: cannot read", "bad.mat'", *parts):
        check(part in done.stderr, f"'{part}' is not in: {done.stderr}")
    check(not (directory / "bad-images.npy").exists(), "nothing is written for a bad file")


directory = workspace()
# Pixel (y, x) of channel c of image n.
images = np.fromfunction(lambda y, x, c, n: 10 * y + x + 60 * c + 7 * n, (32, 32, 3, 3), dtype=int).astype(np.uint8)
labels = np.array([[1], [10], [7]], np.uint8)
whole = [matrix(b"X", images, 9, 2), matrix(b"y", labels, 6, 2)]  # y: doubles, stored as bytes
for name, parts in (("whole", whole), ("deflated", [deflated(part) for part in whole])):
    (directory / f"{name}.mat").write_bytes(mat(*parts))
    done = convert(directory / f"{name}.mat", directory / name)
    check(done.returncode == 0 and done.stdout == "3 digits; of each: 1 1 0 0 0 0 0 1 0 0\n", done.stdout + done.stderr)
    pixels = np.load(directory / f"{name}-images.npy")
    check(pixels.shape == (3, 3, 32, 32) and pixels.dtype == np.uint8 and pixels.flags.c_contiguous, str(pixels.shape))
    check(pixels[2, 1, 5, 9] == 50 + 9 + 60 + 14 and pixels[0, 0, 0, 1] == 1 and pixels[1, 0, 1, 0] == 17, "pixels")
    check(list(np.load(directory / f"{name}-labels.npy")) == [1, 0, 7], "10 stands for 0")

done = convert(directory / "whole.mat", directory / "grey", "--grey")
check(done.returncode == 0, done.stderr)
pixels = np.load(directory / "grey-images.npy")
# (4, 64, 124) of red, green and blue: 1.196 + 37.568 + 14.136
check(pixels.shape == (3, 1, 32, 32) and pixels.dtype == np.uint8 and pixels[0, 0, 0, 4] == 53, f"{pixels[0, 0, 0, 4]}")
for prefix, channels in (("grey", 1), ("whole", 3)):
    data = [part for name, kind in (("image", "images"), ("label", "labels"))
            for part in ("--data", f"{name}={directory / prefix}-{kind}.npy")]
    run("dlc", "compile", ROOT / "models" / "resnet50_svhn.dl", "--set", f"channels={channels}", "--set", "batch=2",
        "-o", directory / "svhn.dlx")
    run("dlc-run", "train", directory / "svhn.dlx", *data, "--steps", "1", "--run", directory / f"run-{prefix}")

refused(directory, mat(*whole)[:5000], "truncated")
refused(directory, mat(deflated(whole[0])[:-9] + bytes(9), whole[1]))
refused(directory, b"\x89HDF\r\n", "no MATLAB 5 file", "train_32x32.mat")
refused(directory, mat(whole[0]), "it holds X; wanted X and y")
refused(directory, mat(whole[0], struct.pack("<II", 14, 0)), "lacks its class, shape or name")
refused(directory, mat(whole[0], struct.pack("<II", 14, 24) + element(6, b"") + element(5, b"") + element(1, b"")), "lacks its class")
refused(directory, mat(whole[0], deflated(b"")), "0 elements are compressed")
refused(directory, mat(matrix(b"X", images[..., :0], 9, 2), whole[1]), "X is 32 x 32 x 3 x 0 of uint8")
refused(directory, mat(whole[0], matrix(b"y", labels[:2], 6, 2)), "y does not hold a digit of each of the 3 images")
refused(directory, mat(matrix(b"X", images[:, :, 0, 0], 9, 2), whole[1]), "X is 32 x 32 of uint8; wanted 32 x 32 x 3 x N")

(directory / "one.mat").write_bytes(mat(matrix(b"X", images[..., 0], 9, 2), matrix(b"y", labels[:1], 6, 2)))
done = convert(directory / "one.mat", directory / "one")
check(done.returncode == 0 and np.load(directory / "one-images.npy").shape == (1, 3, 32, 32), done.stdout + done.stderr)
done = convert(directory / "one.mat", directory / "nowhere" / "one")
check(done.returncode == 1 and done.stderr == f"convert-svhn: cannot write '{directory}/nowhere/one-images.npy': No such file or directory\n",
      done.stderr)
