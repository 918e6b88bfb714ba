#!/usr/bin/python3
"""Damaged artifacts for GPUs whose hash fits: refused in one line that says what is damaged, or sound steps; never a signal, and never
kernels of other operands. On stand-ins for NVIDIA's libraries (test/cuda/standin)."""
import json
import os
import random
import re
import shutil
import subprocess

from corruption import SMALL, bench
from standin import Pair, environment, require_standins
from support import BIN, check, run, workspace

ROUNDS = 60
CHANGES = 7  # that dlc-mutate makes of a 1
MUTATED = {"f32": 25, "bf16": 60}  # one field of so many


class Damaged(Pair):
    """An artifact that holds texts alone, and copies of it."""

    def __init__(self, directory, precision):
        self.directory, self.source, self.sets, self.precision = directory, directory / "small.dl", [], precision
        self.source.write_text(SMALL)
        self.artifact = self.compiled_as_text(f"--precision={precision}", name=precision)
        self.sound = self.artifact.read_bytes().decode("latin1")
        self.kernels = {each["kernel"]: each for program in json.loads(run("dlc", "inspect", "--json", self.artifact)[0])["programs"]
                        for each in program["dispatches"]}

    def plans(self):
        """Where the texts of the plans that run are in the file: each is the last of its kernel, behind its alternatives."""
        for kernel in re.finditer(r"DLCG(?:(?!DLCG).)*", self.sound, re.S):
            begin = kernel[0].rfind('{"cudnnVersion"')
            if begin >= 0:
                yield kernel.start() + begin, self.sound.index("\0", kernel.start() + begin)

    def ended(self, at, text):
        """What is said of a copy in which there is another text of the same length, or what is not printed of its run."""
        copy = self.directory / "damaged.dlx"
        copy.write_bytes((self.sound[:at] + text + self.sound[at + len(text):]).encode("latin1"))
        run("dlc-mutate", "--seal", copy)
        said = None
        for command in [BIN / "dlc-run", *bench(copy)], [BIN / "dlc", "inspect", copy]:
            done = subprocess.run([str(word) for word in command], env=environment(), capture_output=True, text=True, errors="replace",
                                  timeout=60)
            lines = done.stderr.strip().split("\n")
            check(done.returncode == 0 or (done.returncode == 1 and len(lines) == 1 and re.match(r"dlc(-run: error)?: \S", lines[0])),
                  f"{self.precision}, {text[:100]}...: exit code {done.returncode}\n{done.stderr}")
            said = said or (lines[0] if done.returncode else None)
        return said


def fields(artifact):
    """Numbers of all tables, and those on which it depends which kernels run."""
    def mutated(*options):
        figures, _ = run("dlc-mutate", artifact.artifact, "--seed", 1, *options, env=environment())
        print(f"{artifact.precision} {' '.join(map(str, options))}: {figures}", end="")
        return [int(number) for number in re.findall(r"(\d+) (?:tried|accepted|of them ran)", figures)]

    tried, accepted, ran = mutated("--every", MUTATED[artifact.precision], "--inspect", BIN / "dlc")
    check(tried > 300 and accepted > ran > 10, f"{tried} tried, {accepted} accepted, {ran} ran")
    # What a launch or a library is given is right, or nothing runs.
    for field in "launch.threads", "symbol", "plan.kernel.exact", "plan.kernel.m", "plan.kernel.n", "plan.kernel.k", "plan.kernel.factors", "plan.kernel.result":
        tried, _, ran = mutated("--every", 10**9, "--all", f"kernels[*].{field}")
        check(tried > 10 and ran == 0, f"of {tried} artifacts with another {field} {ran} run")
    library = sum(kernel["launch"] is None for kernel in artifact.kernels.values())
    for field in "extent", "chunk":
        tried, _, ran = mutated("--every", 10**9, "--all", f"kernels[*].{field}")
        check(tried > 100 and ran <= CHANGES * library, f"of {tried} artifacts with another {field} {ran} run, though only {library} kernels have none")


# What is changed in a stored plan, and what is said then.
OTHER = r"the plan of kernel conv\w* of layer conv is for other operands than the artifact says; compile the model again"
PLANNED = r"kernel conv\w* of layer conv cannot be had as planned: .*"
PLAN_CHANGES = [
    (r'("dim":\[)\d', r"\g<1>3", OTHER),  # a batch of 2
    (r'("stride":\[)\d', r"\g<1>9", OTHER),
    (r'"CUDNN_DATA_(B?)FLOAT(16)?","dim"', lambda found: found[0].replace("_D", "_d"), OTHER),
    (r'("name":")1', r"\g<1>4", OTHER),
    (r'("X":")1', r"\g<1>3", OTHER),
    (r'("Y":")5', r"\g<1>1", OTHER),
    (r'("B":")3', r"\g<1>2", OTHER),
    (r'("alpha1":)1', r"\g<1>2", OTHER),
    (r'("alpha":)1', r"\g<1>2", OTHER),
    (r'("beta":)0', r"\g<1>1", OTHER),
    (r'("isVirtual":)false', r"\g<1>true ", OTHER),
    (r"_FORWARD_", "_BACKWARD", OTHER),
    (r"\{", "[", OTHER),
    (r'("pad":\[)1', r"\g<1>0", PLANNED),
    (r'("dilation":\[)1', r"\g<1>2", PLANNED),
    (r'("nodes".*?"stride":\[)1', r"\g<1>2", PLANNED),
    (r'"engineId"', '"engineIe"', PLANNED),
    # The stand-in's engine that does not repeat its bits.
    (r'"engineId":(\d+),"smVersion":900,', lambda found: f'"engineId":1000,"smVersion":{"9" * (len(found[1]) - 1)},',
     PLANNED + "its engine, cudnn:1000, gives other bits each time, .*"),
    (r'("deviceVer":)9', r"\g<1>8", PLANNED + "planned for compute capability 8.0, this device has 9.0; compile the model for it"),
    (r'"GPUProfile"', '"GPUprofile"', PLANNED + "a stored plan is damaged: .*")]


def plans(artifact):
    begin, end = list(artifact.plans())[-1]
    plan = artifact.sound[begin:end]
    for pattern, other, wanted in PLAN_CHANGES:
        changed = re.sub(pattern, other, plan, count=1)
        check(changed != plan and len(changed) == len(plan), f"'{pattern}' is not in {plan}")
        said = artifact.ended(begin, changed)
        check(re.fullmatch(f"dlc-run: error: {wanted}", said or "it runs"), f"{artifact.precision}, '{pattern}': {said}")


def flips(artifact, generator, places):
    """A bit or two of texts in these places."""
    ran = 0
    for _ in range(ROUNDS):
        begin, end = generator.choice(places)
        text = list(artifact.sound[begin:end])
        for _ in range(generator.randint(1, 2)):
            at = generator.randrange(len(text))
            text[at] = chr(ord(text[at]) ^ 1 << generator.randrange(7))
        ran += artifact.ended(begin, "".join(text)) is None
    print(f"{artifact.precision}: {ran} of {ROUNDS} ran")
    check(0 < ran < ROUNDS, f"{ran} of {ROUNDS} damaged artifacts ran")


def texts(artifact, generator):
    """Of the kernels' text what declares them. What damaged instructions do nobody can say."""
    begin, end = artifact.sound.index(".version 8.0"), artifact.sound.rindex("}")
    for pattern, other, wanted in (
            (r"\.version", ".versiom", "cannot load the artifact's code: .*"),
            (r"(\.entry cluster_\d+_)\w{8}", r"\g<1>00000000", r"cannot find kernel \w+ of layer [\w.]+: .*"),
            (r"(\.reqntid )\d", r"\g<1>7", "cannot run step 1 .* threads where the text demands .*")):
        said = artifact.ended(begin, re.sub(pattern, other, artifact.sound[begin:end], count=1))
        check(re.fullmatch(f"dlc-run: error: {wanted}", said or "it runs"), f"{artifact.precision}, '{pattern}': {said}")
    lines = [(begin + line.start(), begin + line.end()) for line in
             re.finditer(r"^.*(?:\.version|\.target|\.entry|\.param \.|\.reqntid|\.shared).*$", artifact.sound[begin:end], re.M)]
    flips(artifact, generator, lines)


def binaries(directory):
    """A binary of which a part is missing is refused before a driver reads it."""
    if not (shutil.which("ptxas") or shutil.which("ptxas", path=os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin")):
        check("DLC_REQUIRE_CUDA" not in os.environ, "ptxas was not found")
        return
    case = Damaged(directory, "f32")
    case.artifact = directory / "binary.dlx"
    run("dlc", "compile", case.source, "--target=cuda:h200", "-o", case.artifact)
    case.sound = case.artifact.read_bytes().decode("latin1")
    begin = case.sound.index("\x7fELF")
    whole = case.ended(begin, "\x7fELF")
    check("error: cannot load the artifact's code: " in (whole or ""), f"stand-ins take no binaries: {whole}")
    for at, text in (0, "\x7fELG"), (0x28, "\xff" * 8), (0x28, "\0\0\0\1"), (0x3c, "\xff\xff"):
        said = case.ended(begin + at, text)
        check(said and said.endswith("damaged.dlx is corrupt: module 0 'sm_90': its code is damaged"), f"{at}: {said}")


def main():
    require_standins()
    generator = random.Random(7)
    for precision in MUTATED:
        artifact = Damaged(workspace(), precision)
        fields(artifact)
        plans(artifact)
        flips(artifact, generator, list(artifact.plans()))
        texts(artifact, generator)
    binaries(workspace())


main()
