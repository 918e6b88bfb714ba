"""What the end-to-end tests share: running the programs, small data sets, comparing files."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("DLC_BIN", ROOT / "build" / "dev" / "bin"))
MODELS = ROOT / "models"
NETWORKS = ROOT / "test" / "networks"
TIMEOUT = int(os.environ.get("DLC_TEST_TIMEOUT", "300")) - 20  # ctest's, less time to report


def run(*command, expect=0, **options):
    """Runs a program and returns (stdout, stderr); the exit code must be `expect`."""
    command = [str(part) for part in command]
    command[0] = str(BIN / command[0])
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, **options)
    if done.returncode != expect:
        sys.exit(f"exit code {done.returncode}, expected {expect}: {' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def check(condition, message):
    if not condition:
        sys.exit("FAILED: " + message)


def skip(reason):
    """Ends the test; ctest calls it skipped (SKIP_RETURN_CODE in CMakeLists.txt)."""
    print("skipped: " + reason)
    sys.exit(77)


def has(flag):
    """True if this processor has the instructions."""
    with open("/proc/cpuinfo") as lines:
        return any(line.startswith("flags") and f" {flag} " in line + " " for line in lines)


def blocked_target(directory):
    """A target for processors with AVX-512 whose table makes convolutions of unblocked tensors slow: plans block
    tensors whatever their size, and so have padding lanes and, where math is fast, Winograd kernels."""
    table = json.loads((ROOT / "runtime/cpu/targets/avx512.json").read_text())
    for entry in table["efficiency"]:
        if entry["implementation"] in ("brg", "gemm"):
            for kernel in ("conv", "conv_grad_data", "conv_grad_filter"):
                entry[kernel] = [[0, 0.001]]
    path = pathlib.Path(directory) / "blocked.json"
    path.write_text(json.dumps(table))
    return f"cpu:{path}"


def workspace():
    return pathlib.Path(tempfile.mkdtemp(prefix="dlc-e2e-"))


def on_test_device(directory, module):
    """dlc-run with a back end for tests in the place of the one of that name."""
    modules = BIN.parent / "lib"
    if not (modules / "asynchronous" / module).exists():
        check(module != "dlc_cuda.so" or "DLC_REQUIRE_CUDA" not in os.environ, f"this build has no {module} for tests")
        skip(f"this build has no {module} for tests")
    for folder in ("bin", "lib"):
        (directory / folder).mkdir()
    shutil.copy(BIN / "dlc-run", directory / "bin")
    shutil.copy(modules / "asynchronous" / module, directory / "lib")
    shutil.copy(modules / "dlc_comm_mpi.so", directory / "lib")
    return directory / "bin" / "dlc-run"


def digits(directory, count=96, seed=0):
    """Learnable 28 x 28 images: class k has a bright square at place k. Returns the --data arguments."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 10, count)
    image = random.integers(0, 60, (count, 28, 28))
    for i, k in enumerate(label):
        row, column = 4 + 12 * (k // 5), 2 + 5 * (k % 5)
        image[i, row:row + 6, column:column + 4] += 150
    np.save(directory / "image.npy", image.astype(np.uint8))
    np.save(directory / "label.npy", label.astype(np.uint8))
    return ["--data", f"image={directory}/image.npy", "--data", f"label={directory}/label.npy"]


def read_safetensors(path):
    """Name -> f32 array."""
    blob = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:8 + size])
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32}
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(blob[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def distance(one, two):
    """Of two weight files: largest difference of a tensor, relative to its norm; not a number if any value is not."""
    one, two = read_safetensors(one), read_safetensors(two)
    check(one.keys() == two.keys(), f"weights of other names: {', '.join(one.keys() ^ two.keys())}")
    return np.max([np.linalg.norm(one[name] - value) / max(np.linalg.norm(value), 1e-6) for name, value in two.items()])


def write_safetensors(path, tensors):
    """f32 arrays by name."""
    header, offset = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [offset, offset + value.size * 4]}
        offset += value.size * 4
    text = json.dumps(header).encode()
    data = b"".join(value.astype(np.float32).tobytes() for value in tensors.values())
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def without_data(model, directory, folder=MODELS):
    """A copy of a model that takes its inputs as they are: its data block is left out, and parameters of that alone."""
    for part in folder.glob("*.dl"):
        shutil.copy(part, directory)
    copy = pathlib.Path(directory) / model
    text = re.sub(r"^data \{.*?^\}\n", "", copy.read_text(), flags=re.M | re.S)
    code = re.sub(r"//.*", "", text)
    for parameter, name in re.findall(r"(,\s*(\w+) = (?:\[\]|[^][,(){}]+))(?=[,)])", code[code.index("model "):code.index("{")]):
        if len(re.findall(rf"\b{name}\b", code)) == 1:
            text = text.replace(parameter, "")
    copy.write_text(text)
    return copy


def same_file(a, b, what):
    check(pathlib.Path(a).read_bytes() == pathlib.Path(b).read_bytes(), f"{what}: {a} and {b} differ")


def png(width, height, pixels):
    """Of grey values, as bytes of a file."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[y * width:(y + 1) * width] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
