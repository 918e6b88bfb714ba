"""Compares what two builds of dlc make of the same models: `dlc inspect --json` and the artifact's bytes, but for the
producer's version.

The compiler is a pure function of its inputs, so two builds that plan alike write the same bytes. One line per case:
model, options, and what differs, the first values of the description that do and the first byte. A case that both
builds refuse with the same message is alike. With --emit=STAGE among the options the text is compared instead, for
targets that this machine cannot run. --keep DIR keeps what the first build wrote and reads it there the next time.
--ignore=PATTERN is for builds between which the format changed: fields of the description whose path the regular
expression matches are left out, and bytes are not compared.

    python3 bench/compare_plans.py BEFORE AFTER [MODEL.dl[:NAME=VALUE...]...] [--options="--math=strict"]... [--keep DIR] [--ignore PATTERN] [--show 3]

BEFORE and AFTER are directories with the program dlc in them. Without models: all models of models/. Without options: f32 fast
and strict, and bf16, each with gradients in f32 and bf16 on the wire.
"""

import argparse
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
REFUSED = b"refused: "  # begins what stands for a plan that a build did not make
OPTIONS = [f"{kind} --wire={wire}" for kind in ("--math=fast", "--math=strict", "--precision=bf16") for wire in ("f32", "bf16")]


def all_models():
    """The files of models/ that have a model; others hold what several models share."""
    return sorted(str(path) for path in (ROOT / "models").glob("*.dl") if re.search(r"^model\b", path.read_text(), re.M))


def call(*command):
    return subprocess.run([str(part) for part in command], capture_output=True)


def plan(directory, case, options, target):
    """Writes what a build makes of a case to `target`, or what it says instead of making anything."""
    model, *sets = case.split(":")
    command = [directory / "dlc", "compile", model, "-o", target, *shlex.split(options)]
    done = call(*command, *(f"--set={text}" for text in sets))
    if done.returncode != 0:
        target.write_bytes(REFUSED + done.stderr.replace(str(target).encode(), b"FILE"))


def kept_plan(keep, directory, case, options):
    """The same in a file that stays, from an earlier run if there was one."""
    model = pathlib.Path(case.split(":")[0])
    name = hashlib.sha256(f"{case} {options}".encode() + model.read_bytes()).hexdigest()[:16]
    target = keep / f"{model.stem}-{name}.dlx"
    if not target.exists():
        part = target.with_suffix(".part")
        plan(directory, case, options, part)
        part.rename(target)
    return target


def describe(directory, path, is_artifact):
    """The artifact's description, or nothing for what is no artifact or cannot be read."""
    done = call(directory / "dlc", "inspect", "--json", path) if is_artifact else None
    return json.loads(done.stdout) if done and done.returncode == 0 else {}


def differences(a, b, path=""):
    """Where two descriptions differ, with both values."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            yield from differences(a.get(key), b.get(key), f"{path}.{key}" if path else key)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (left, right) in enumerate(zip(a, b)):
            yield from differences(left, right, f"{path}[{i}]")
    elif a != b:
        yield path, *(f"{len(it)} entries" if isinstance(it, list) else json.dumps(it) for it in (a, b))


def without_producer(content, description, producer):
    """An artifact less its hash, with the producer's name replaced."""
    own = description["producer"].encode()
    return content[:-8].replace(own, producer.encode(), 1) if len(own) == len(producer) else content


def first_difference(a, b):
    if a == b:
        return None
    if len(a) != len(b):
        return f"{len(a)} and {len(b)} bytes"
    return f"byte {next(i for i, (left, right) in enumerate(zip(a, b)) if left != right)}"


def compare(args, case, options, scratch):
    """What differs, as texts; and a word on what was compared."""
    if args.keep:
        before = kept_plan(args.keep, args.before, case, options)
    else:
        before = scratch / "before.dlx"
        plan(args.before, case, options, before)
    after = scratch / "after.dlx"
    plan(args.after, case, options, after)
    contents = [path.read_bytes() for path in (before, after)]
    is_artifact = "--emit" not in options and not any(it.startswith(REFUSED) for it in contents)
    described = [describe(directory, path, is_artifact) for directory, path in ((args.before, before), (args.after, after))]
    if is_artifact and not args.ignore:
        contents = [without_producer(content, own, described[0]["producer"]) for content, own in zip(contents, described)]
    ignored = re.compile(args.ignore or "^producer$")
    found = [f"{where}: {left} -> {right}" for where, left, right in differences(*described) if not ignored.search(where)]
    if not (is_artifact and args.ignore) and (difference := first_difference(*contents)):
        found.append(difference)
    refusals = [content.decode().splitlines()[0] for content in contents if content.startswith(REFUSED)]
    return found, refusals[0] if refusals else f"{len(contents[1])} bytes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("models", nargs="*", default=all_models())
    parser.add_argument("--options", action="append")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--ignore", metavar="PATTERN", help="paths in the description to leave out")
    parser.add_argument("--show", type=int, default=3, help="differences of a case to print")
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    differ = 0
    with tempfile.TemporaryDirectory() as scratch:
        for case in args.models:
            for options in args.options or OPTIONS:
                found, what = compare(args, case, options, pathlib.Path(scratch))
                more = f", {len(found) - args.show} more" if len(found) > args.show else ""
                verdict = "DIFFERS " + "; ".join(found[:args.show]) + more if found else "same"
                print(f"{case} {options}: {verdict} ({what})", flush=True)
                differ += bool(found)
    sys.exit(f"{differ} cases differ" if differ else 0)


if __name__ == "__main__":
    main()
