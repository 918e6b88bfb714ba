"""lit suite of dlc: .mlir, .dl and .test files outside unit/ and e2e/ (those run under ctest)."""

import ctypes
import os
import shutil

import lit.formats

config.name = "dlc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".dl", ".test"]
config.excludes = ["Inputs", "unit", "e2e", "reference", "networks", "parity"]
config.test_source_root = os.path.dirname(__file__)

# Programs are found on PATH, this build's first. They are not text substitutions: `dlc` would also
# match inside arguments such as --dlc-nn-pipeline.
config.environment["PATH"] = os.pathsep.join(
    [config.dlc_bin_dir, config.llvm_tools_dir, os.environ["PATH"]])
for name in ("HOME", "DLC_BIN", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%python", config.python_executable))
config.substitutions.append(("%dialects", os.path.join(config.dlc_source_dir, "dialects")))
config.substitutions.append(("%docs", os.path.join(config.dlc_source_dir, "docs")))
config.substitutions.append(("%models", os.path.join(config.dlc_source_dir, "models")))
config.substitutions.append(("%targets", os.path.join(config.dlc_source_dir, "runtime", "cuda", "targets")))

# Tests of instruction sets name their target and run where the host has it: REQUIRES: avx512.
with open("/proc/cpuinfo") as cpuinfo:
    flags = next((line for line in cpuinfo if line.startswith("flags")), "").split()
for feature, flag in (("avx2", "avx2"), ("avx512", "avx512f"), ("avx512-bf16", "avx512_bf16"),
                      ("amx", "amx_bf16")):
    if flag in flags:
        config.available_features.add(feature)

# And those of NVIDIA's kernels where its library is, where runtime/cuda looks for it; with
# DLC_REQUIRE_CUDA they fail where it is not.
places = ["", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"]
if os.environ.get("CUDA_HOME"):
    config.environment["CUDA_HOME"] = os.environ["CUDA_HOME"]
    places += [os.path.join(os.environ["CUDA_HOME"], folder, "") for folder in ("lib64", "lib")]
def plans_without_device(place):
    try:
        return ctypes.CDLL(place + "libcudnn.so.9").cudnnGetVersion() >= 90800
    except OSError:
        return False


if os.environ.get("DLC_REQUIRE_CUDA") or any(map(plans_without_device, places)):
    config.available_features.add("cudnn")
assembler = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "ptxas")
if os.environ.get("DLC_REQUIRE_CUDA") or shutil.which("ptxas") or os.path.exists(assembler):
    config.available_features.add("ptxas")
