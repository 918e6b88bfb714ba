#!/usr/bin/python3
"""Includes point one way between folders, and no folder is too large to find one's way in it.

ALLOWED names, for each folder of the product, the folders whose headers its sources may include; it has no cycle, and
nothing that no source uses. Tests may include what they test. The includes of `.td` files are not read.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = ("dialects", "frontend", "passes", "runtime", "tools")

MOST_LINES = 4000
LARGE = {"dialects/NN"}  # docs/overview.md says why

# From what stands on nothing to what stands on all.
ALLOWED = {
    "runtime/artifact": "",
    "runtime/core": "runtime/artifact",
    "runtime/cpu/kernels": "runtime/core",
    "runtime/cpu": "runtime/artifact runtime/core runtime/cpu/kernels",
    "runtime/cuda/libraries": "runtime/artifact",
    "runtime/cuda/plans": "runtime/artifact runtime/core runtime/cuda/libraries",
    "runtime/cuda": "runtime/artifact runtime/core runtime/cuda/libraries runtime/cuda/plans",
    "runtime/comm": "runtime/artifact runtime/core",
    "runtime/comm/mpi": "runtime/artifact runtime/core runtime/comm",
    "runtime/data/steps": "runtime/artifact runtime/core",
    "runtime/data/readers": "runtime/artifact runtime/data/steps",
    "runtime/data": "runtime/artifact runtime/core runtime/data/steps runtime/data/readers",
    "runtime/record": "runtime/artifact runtime/core runtime/data",
    "runtime/train": "runtime/artifact runtime/core runtime/data runtime/record",
    "runtime/predict": "runtime/artifact runtime/core runtime/data/steps runtime/data/readers runtime/data runtime/record runtime/train",
    "runtime/profile": "runtime/artifact runtime/core runtime/data runtime/record runtime/train",
    "dialects/NN": "runtime/artifact",
    "dialects/Comm": "dialects/NN",
    "dialects/Exec": "dialects/NN",
    "frontend/syntax": "",
    "frontend/operators": "dialects/NN frontend/syntax runtime/artifact runtime/core",
    "frontend/emitters": "dialects/NN frontend/operators runtime/artifact",
    "frontend": "dialects/NN frontend/syntax frontend/operators runtime/artifact",
    "passes/codegen": "dialects/NN dialects/Exec runtime/artifact runtime/core",
    "passes/codegen/cpu/vectorize": "passes/codegen",
    "passes/codegen/cpu": "dialects/NN dialects/Exec passes/codegen passes/codegen/cpu/vectorize runtime/core",
    "passes/codegen/gpu": "dialects/NN dialects/Exec passes/codegen runtime/core",
    "passes/planning": "dialects/NN dialects/Comm dialects/Exec passes/codegen runtime/artifact runtime/core",
    "passes": "dialects/NN dialects/Comm dialects/Exec passes/planning",
    "passes/nn": "dialects/NN dialects/Comm dialects/Exec passes runtime/artifact runtime/data/steps",
    "passes/train": "dialects/NN passes passes/nn runtime/artifact",
    "passes/schedule": "dialects/NN dialects/Comm passes passes/nn passes/planning passes/codegen",
    "passes/exec": "dialects/NN dialects/Comm dialects/Exec passes passes/nn passes/planning passes/codegen runtime/artifact runtime/core",
    "tools": "",
    "tools/driver": "dialects/NN dialects/Comm dialects/Exec frontend passes passes/nn passes/exec passes/planning passes/codegen passes/codegen/cpu passes/codegen/gpu runtime/artifact",
    "tools/dlc": "dialects/NN frontend passes/planning runtime/artifact runtime/core tools tools/driver",
    "tools/dlc-opt": "passes tools/driver",
    "tools/dlc-run": "runtime/artifact runtime/core runtime/comm runtime/data runtime/record runtime/train runtime/predict runtime/profile tools",
}


def includes(path):
    """Folders of the project whose headers a source includes, its own apart."""
    folder = path.parent.as_posix()
    for header in re.findall(r'^#include "([^"]+)"', (ROOT / path).read_text(), re.MULTILINE):
        other = pathlib.PurePosixPath(header).parent.as_posix()
        if other != folder and other.split("/")[0] in (*PRODUCT, "test", "bench"):
            yield other


def main():
    sources = [path.relative_to(ROOT) for folder in PRODUCT for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cpp")]
    used, wrong = collections.defaultdict(set), []
    for path in sources:
        folder = path.parent.as_posix()
        if folder not in ALLOWED:
            wrong.append(f"{folder}: a folder that ALLOWED does not know")
            continue
        for other in includes(path):
            used[folder].add(other)
            if other not in ALLOWED[folder].split():
                wrong.append(f"{path} includes a header of {other}, which {folder} may not")
    before = set()
    for folder, others in ALLOWED.items():
        for other in others.split():
            if other not in before:
                wrong.append(f"ALLOWED: {folder} stands on {other}, which comes later")
            if other not in used[folder]:
                wrong.append(f"ALLOWED: no source of {folder} includes a header of {other}")
        before.add(folder)
    lines = collections.Counter()
    for path in (path for folder in PRODUCT for path in (ROOT / folder).rglob("*.*")):
        lines[path.parent.relative_to(ROOT).as_posix()] += path.read_bytes().count(b"\n")
    for folder, count in lines.items():
        if count > MOST_LINES and folder not in LARGE:
            wrong.append(f"{folder} has {count} lines, more than {MOST_LINES}: divide it by what its files are about")
    print("\n".join(sorted(set(wrong))) or f"{len(sources)} sources in {len(ALLOWED)} folders")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
