#!/usr/bin/python3
"""Random networks, compiled and run, against the evaluator in f64: training steps, evaluation, prediction, memory.

How far a correct program may be from the evaluator depends on the network: a bias ahead of a batch norm has no gradient
but rounding errors, a ReLU that decides narrowly may turn over. So the evaluator runs again with random errors a few
times as large as those of the arithmetic in use (dlc-reference --noise), and what these move is what the compiled
program may be off. Gradients are compared with differences of the loss, too, since evaluator and compiler derive them
by the same rules. What may be off by more than CAP is not checked, so a run in CI fails if one of its networks has such
tensors that LOOSE does not name.

    random_models.py [--seed FIRST] [--count N] [--jobs J] [--verbose]      one seed: --seed K --count 1
"""
import argparse
import collections
import concurrent.futures
import json
import random
import re
import shutil
import subprocess
import sys
import traceback

import numpy as np

import random_edits
import random_graph
from support import ROOT, check, has, read_safetensors, run, workspace, write_safetensors

# Of a run in CI: SEEDS, on whose networks nothing much depends on a narrow decision (see CAP), and which random_coverage.py
# says to have everything, and those that once found a defect.
SEEDS = (14, 20, 27, 35, 40, 42, 61, 67, 75, 77, 80, 94, 104, 111, 116, 133, 135, 142, 167, 188, 205, 209, 214, 231, 236,
         249, 288, 293, 305, 347, 349, 364, 430, 636, 758, 785, 1411, 1489, 1915, 2563)
FOUND_DEFECTS = (66, 140, 2038)
# Of a seed, parameters whose first step of AdamW is a sign of rounding errors: a batch norm ahead of another has nearly no
# gradient, nor have some elements ahead of it.
LOOSE = {2038: ("batch_norm.1.weight", "conv.4.weight", "conv_transpose.1.weight")}

# Relative size of the errors that are simulated, and what is allowed beyond them. strict: one rounding is 2^-24, and a
# sum of a thousand products has ten of them; fast: Winograd's transforms lose two bits more; bf16: as f32, but where
# sums fall on another side of the middle between two bf16 values, an element is off by 2^-8, and with few elements no
# sample may see it.
Arithmetic = collections.namedtuple("Arithmetic", "noise floor")
STRICT, FAST, BF16 = Arithmetic(2**-19, 2**-22), Arithmetic(2**-17, 2**-20), Arithmetic(2**-17, 2**-8)
MARGIN = 4  # times the largest of so few samples
CAP = 0.05  # of a tensor's norm, of a variable's change
DIFFERENCES = 30  # networks, at least, whose gradients are compared with differences of the loss


class Mismatch(Exception):
    pass


def value_of(expression, means):
    """Of a function of means, in postfix (runtime/artifact/Formula.h)."""
    one = {"neg": lambda x: -x, "abs": abs, "exp": np.exp, "log": np.log, "log10": np.log10, "sqrt": np.sqrt, "tanh": np.tanh,
           "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: max(x, 0.0)}
    two = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y}
    stack = []
    for word in expression.split():
        if word in two:
            stack[-2:] = [two[word](*stack[-2:])]
        elif word in one:
            stack[-1:] = [one[word](stack[-1])]
        elif word.startswith("m"):
            stack.append(np.nanmean([means[int(mean[1:])] for mean in word.split("|")]))
        else:
            stack.append(float(word))
    return np.float64(stack[0])


class Options:
    def __init__(self, generator, has_all):
        """All are drawn whatever the processor can do, so that a seed means the same network everywhere. Seeds with
        `has_all` may force the family of layouts that activations lie in."""
        choice = generator.choice
        math, precision = choice(("strict", "fast")), choice(("f32", "f32", "f32", "bf16", "bf16") if has_all else ("f32", "f32", "f32", "bf16"))
        self.target = choice(("native", "native", "native", "avx2"))
        self.threads = choice((1, 1, 2))
        self.steps = choice((1, 1, 1, 2))
        self.parts = choice(("ranks", "micro", *["one"] * 5))
        self.is_edited = generator.random() < 0.3
        self.is_bf16 = precision == "bf16"
        self.skipped = self.is_bf16 and not has("avx512_bf16")
        if self.skipped:
            precision = "f32"
        if precision == "bf16":  # a second step would blow its roundings up to a tenth of the result
            self.steps = 1
            self.target = "native"
        self.compile = [f"--math={math}", f"--threads={self.threads}"]
        self.precision = [f"--precision={precision}"]
        self.compile += choice(([], [], ["--no-overlap"], ["--bucket-size=1"], ["--bucket-size=4096"], ["--bucket-size=1000000000"]))
        self.arithmetic = BF16 if precision == "bf16" else STRICT if math == "strict" else FAST
        self.world = 1 if self.parts == "one" else 2
        self.family = choice(("", "channels_last", "channels_last", "blocked", "blocked")) if has_all else ""

    def __str__(self):
        return " ".join([f"--target=cpu:{self.target}", *self.compile, *self.precision, f"steps {self.steps}, two of: {self.parts}",
                         self.family, "edited" * self.is_edited])

    def target_file(self, directory):
        """The target, or its table where activations lie in the forced family alone."""
        if not self.family:
            return f"cpu:{self.target}"
        sets = {"amx_bf16": "amx", "avx512_bf16": "avx512-bf16", "avx512f": "avx512"} if self.target == "native" else {}
        best = next((name for flag, name in sets.items() if has(flag)), "avx2")
        table = json.loads((ROOT / "runtime/cpu/targets" / f"{best}.json").read_text())
        table["families"] = [self.family]
        path = directory / "target.json"
        path.write_text(json.dumps(table))
        return f"cpu:{path}"


def drawn(seed):
    """What a seed means: options, network, and the generator for what is drawn after these."""
    generator, has_all = random.Random(1000003 * seed + 1), seed not in FOUND_DEFECTS
    options, graph = Options(generator, has_all), random_graph.Graph(seed, has_all)
    if options.parts == "micro" and "sync = true" in graph.text():  # which micro-batches do not go with
        options.parts = "ranks"
    return options, graph, generator


class Case:
    def __init__(self, seed):
        self.seed, self.directory = seed, workspace()
        self.options, self.graph, generator = drawn(seed)
        self.random = np.random.default_rng(seed)
        self.model, self.nn = self.directory / "m.dl", self.directory / "nn.mlir"
        self.nn_in_f32 = self.directory / "nn-f32.mlir"
        self.artifact, self.weights = self.directory / "m.dlx", self.directory / "weights.safetensors"
        self.model.write_text(self.graph.text())
        self.family = ""   # of layouts, that the plan has chosen
        self.allowed = {}  # by what is compared, relative to its norm or change
        self.averages = {}
        self.are_differences = False  # of the loss compared with gradients
        self.flat = ()     # parameters without a gradient, a bias ahead of a batch norm for one: what an optimizer makes of rounding
        if self.options.is_edited:
            text = run("dlc", "compile", self.model, "--emit=nn")[0]
            self.model = self.directory / "edited.mlir"
            self.model.write_text(random_edits.edited(text, generator))

    def compile(self):
        """What the artifact tells of itself."""
        target = f"--target={self.options.target_file(self.directory)}"
        run("dlc", "compile", self.model, target, *self.options.compile, *self.options.precision, "-o", self.artifact)
        description = json.loads(run("dlc", "inspect", self.artifact, "--json")[0])
        self.plan, self.family = description["memory"], description["layouts"][0]["family"].replace(" ", "_")
        check(self.options.family in ("", self.family), f"seed {self.seed}: {self.family}, not {self.options.family}")

    def prepare(self):
        self.compile()
        run("dlc", "compile", self.model, *self.options.precision, "--emit=nn", "-o", self.nn)
        run("dlc", "compile", self.model, "--emit=nn", "-o", self.nn_in_f32)
        text = self.nn.read_text()
        variables = re.findall(r"nn.variable @([\w.]+) : tensor<([^>]*)> {.*kind = #nn<kind (?:parameter|state)>", text)
        self.start = {name: self.draw_variable(name, [int(extent) for extent in kind.split("x")[:-1]]) for name, kind in variables}
        write_safetensors(self.weights, self.start)
        if "ema = " in self.graph.settings:
            self.averages = {f"optimizer.ema.{name}": self.start[name] for name, kind in variables if "running" not in name}
        rows, steps = self.graph.batch * self.options.world, self.options.steps
        for name, (kind, shape) in self.graph.inputs.items():
            values = self.draw_input(kind, (rows * steps, *shape[1:]))
            np.save(self.directory / f"{name}.npy", values)
            for step in range(steps):
                np.save(self.directory / f"{name}-{step}.npy", values[step * rows:(step + 1) * rows])

    def draw_variable(self, name, shape):
        """Near what training starts from, but no bias is 0 and no scale is 1."""
        normal = self.random.standard_normal(shape).astype(np.float32)
        if name.endswith("running_var"):
            return 0.5 + abs(normal)
        if len(shape) < 2:
            return (1 if "norm" in name and name.endswith("weight") else 0) + 0.3 * normal
        return normal * np.sqrt(1.5 / np.prod(shape[1:]), dtype=np.float32)

    def draw_input(self, kind, shape):
        if kind == "f32":
            return self.random.standard_normal(shape).astype(np.float32)
        if kind == "mask":
            mask = (self.random.random(shape) < 0.4).astype(np.float32)
            mask.reshape(len(mask), -1)[:, 0] = 1  # no mean of nothing
            return mask
        if kind == "unit":
            return self.random.random(shape).astype(np.float32)
        if kind == "weights":
            return (0.2 + self.random.random(shape)).astype(np.float32)
        if kind == "shares":
            parts = np.exp(self.random.standard_normal(shape))
            return (parts / parts.sum(axis=1, keepdims=True)).astype(np.float32)
        labels = self.random.integers(0, getattr(kind, "classes", kind), shape).astype(np.int32)
        if isinstance(kind, random_graph.Labels):
            ignored = self.random.random(shape) < 0.2
            ignored.reshape(len(ignored), -1)[::self.graph.batch, 0] = False  # no mean of nothing
            labels[ignored] = kind.ignored
            labels.reshape(len(labels), -1)[::self.graph.batch, 0] = 0
        return labels

    def data(self, suffix="", option="--data", names=None):
        return [part for name in names or self.graph.inputs for part in (option, f"{name}={self.directory / name}{suffix}.npy")]

    def rate(self):
        return float(re.search(r"lr = ([\d.]+)", self.graph.optimizer)[1])

    # Comparison

    def reference(self, program, noise, *options, suffix="-0", weights=None, text=None):
        """What the evaluator prints and writes; noise: None or which; text: at stage nn, self.nn if not given."""
        out = self.directory / "reference.safetensors"
        if noise is not None:
            options += "--noise", self.options.arithmetic.noise, "--noise-seed", noise
        inputs = self.data(suffix, "--input")
        printed, _ = run("dlc-reference", text or self.nn, "--program", program, *inputs, "--weights", weights or self.weights,
                         "--scalar", f"seed={3 if program == 'train' else 0}", "-o", out, *options)
        tensors = {key: value for key, value in read_safetensors(out).items() if key != "loss"}
        numbers = {key: np.float64(value) for key, value in json.loads(re.sub(r"-?nan\b", "NaN", printed)).items()}
        return tensors | numbers | self.functions(program, numbers)

    def functions(self, program, numbers):
        """Metrics that are functions of others, which the evaluator leaves to those who pool."""
        header = re.search(rf"nn.program @{program}\(.*", self.nn.read_text())[0]
        found = {}
        for expression, means, name in re.findall(r'\{expression = "([^"]*)", means = (\d+) : i64, name = "(\w+)"\}', header):
            found[name] = value_of(expression, [numbers[f"{name}.{i}"] for i in range(int(means))])
        return found

    def compare(self, what, ours, evaluate):
        """evaluate(noise) -> tensors by name; so must be ours."""
        exact = evaluate(None)
        samples = []
        wrong = {key: "" for key in exact}
        for more in (2, 8):  # eight where two do not excuse what was found
            samples += [evaluate(len(samples) + i) for i in range(more)]
            wrong = {key: text for key in wrong if (text := self.difference(what, key, ours, exact, samples))}
            if not wrong:
                return
        raise Mismatch("\n".join(f"{what}: {key} {text}" for key, text in wrong.items()))

    def loose(self):
        """What is compared, but may be off by so much that little is said."""
        known = (*self.flat, *LOOSE.get(self.seed, ()))
        return [f"{what} by {share:.0%}" for what, share in self.allowed.items()
                if not share <= CAP and not any(what.endswith("." + name) for name in known)]

    def difference(self, what, key, ours, exact, samples):
        """What is wrong with one tensor, or nothing."""
        truth = exact[key]
        if truth.shape == () and np.isnan(truth):  # the share of a class that does not occur
            return f"is {ours[key]}, evaluator: nothing" if key in ours and not np.isnan(ours[key]) else None
        if key not in ours:
            return "is missing"
        if ours[key].shape != truth.shape:
            return f"has shape {ours[key].shape}, evaluator: {truth.shape}"
        norm, error = np.linalg.norm(truth), np.linalg.norm(ours[key] - truth)
        spread = max(np.linalg.norm(sample[key] - truth) for sample in samples)
        moved = norm  # what was computed, of a variable and its average the change
        if (name := key.removeprefix("assigned.")) in self.start | self.averages:
            moved = np.linalg.norm(truth - (self.start | self.averages)[name])
        allowed = MARGIN * spread + self.options.arithmetic.floor * moved + STRICT.floor * norm + 1e-30
        self.allowed[f"{what}: {key}"] = allowed / (moved or norm or 1)
        if error <= allowed < np.inf:
            return None
        worst = np.unravel_index(np.argmax(abs(ours[key] - truth)), truth.shape)
        many = np.count_nonzero(~(abs(ours[key] - truth) <= allowed / np.sqrt(truth.size)))
        return (f"of norm {norm:.3g} differs by {error:.2e}, allowed {allowed:.2e}; {many} of {truth.size} elements of {truth.shape}, most "
                f"at {tuple(map(int, worst))}: {ours[key][worst]:.7g}, evaluator {truth[worst]:.7g}")

    # What is checked

    def train(self):
        options = self.options
        out, log = self.directory / "out.safetensors", self.directory / "log.jsonl"
        parts = {"ranks": ["-np", 2], "micro": ["-np", 1], "one": ["-np", 1]}[options.parts]
        run("dlc-run", *parts, "train", self.artifact, *self.data(), "--init", self.weights, "--steps", options.steps, "--no-shuffle",
            "--seed", 3, "--threads", 1 if options.parts == "ranks" else options.threads, "--save", out, "--log", log,
            "--run", self.directory / "run", "--on-nan=continue", *["--accumulate=2"] * (options.parts == "micro"))
        ours = read_safetensors(self.directory / "run" / "last.safetensors")
        records = [entry for entry in map(json.loads, log.read_text().splitlines()) if entry["event"] == "step"]
        ours = {f"assigned.{key}": value for key, value in ours.items()}
        for step, record in enumerate(records):
            ours |= {f"{key} of step {step}": np.float64(value) for key, value in record.items() if isinstance(value, (int, float))}
        self.compare("train", ours, self.trained)

    def trained(self, noise):
        """Variables after all steps, losses and metrics of each."""
        weights, results = self.directory / "next.safetensors", {}
        write_safetensors(weights, self.start | self.averages)
        for step in range(self.options.steps):
            outcome = self.reference("train", noise, "--update", "--scalar", f"lr={self.rate()}", "--scalar", f"step={step}",
                                     "--ranks", self.options.world, suffix=f"-{step}", weights=weights)
            results |= {key: value for key, value in outcome.items() if key.startswith("assigned.")}
            results |= {f"{key} of step {step}": value for key, value in outcome.items()
                        if not key.startswith(("assigned.", "gradient.", "output."))}
            write_safetensors(weights, self.start | self.averages | {key.removeprefix("assigned."): value for key, value in results.items()
                                                                     if key.startswith("assigned.")})
        return results

    def evaluate(self):
        """Fewer rows than a batch: the evaluator takes those that pad it from what follows."""
        rows = int(self.random.integers(1, self.graph.batch + 1))
        for name in self.graph.inputs:
            np.save(self.directory / f"{name}-some.npy", np.load(self.directory / f"{name}.npy")[:rows])
        ours = json.loads(run("dlc-run", "eval", self.artifact, *self.data("-some"), "--init", self.weights, "--json",
                              "--threads", self.options.threads)[0])
        ours = {key: np.float64(value) for key, value in ours.items()}
        self.compare(f"eval of {rows} rows", ours, lambda noise: self.reference("eval", noise, "--scalar", f"valid_rows={rows}"))

    def predict(self):
        program = re.search(r"nn.program @predict\((.*)\)", self.nn.read_text())
        if not program:  # edited, with no value to give out
            return
        names = re.findall(r'nn.input = "(\w+)"', program[1])
        run("dlc-run", "predict", self.artifact, *self.data("-0", names=names), "--init", self.weights, "-o", self.directory / "out",
            "--threads", self.options.threads)
        ours = {f"output.{path.stem}": np.load(path) for path in (self.directory / "out").glob("*.npy")}

        def predicted(noise):  # in batches, as the evaluator's ranks are
            outcome = self.reference("predict", noise, "--ranks", self.options.world)
            return {key: value for key, value in outcome.items() if key.startswith("output.")}
        self.compare("predict", ours, predicted)

    def memory(self):
        bench = json.loads(run("dlc-run", "bench", self.artifact, "--warmup", 0, "--iters", 1, "--batches-per-iter", 1, "--json")[0])
        if bench["arena_bytes"] != self.plan["bytes"]:
            raise Mismatch(f"planned {self.plan['bytes']} bytes, allocated {bench['arena_bytes']}")

    def gradients(self):
        """The evaluator's in f32, which has no jumps of roundings, along a random direction, against the difference of two
        losses; a corner between them is passed by a smaller step."""
        def trained(weights):
            return self.reference("train", None, "--scalar", "step=0", weights=weights, text=self.nn_in_f32)
        exact = trained(self.weights)
        norms = {key.removeprefix("gradient."): np.linalg.norm(value) for key, value in exact.items() if key.startswith("gradient.")}
        names = list(norms)
        self.flat = [name for name in names if norms[name] < 1e-9 * max(norms.values())]
        if "stop_gradient" in self.graph.text():  # gradients are not the loss's then
            return
        self.are_differences = True
        found = []
        for size in (2e-4, 2e-5, 2e-6, 4e-7):
            along, losses = 0, []
            direction = {name: self.random.standard_normal(self.start[name].shape) * size for name in names}
            for sign in (1, -1):
                moved = self.start | {name: (self.start[name] + sign * direction[name]).astype(np.float32) for name in names}
                write_safetensors(self.directory / "moved.safetensors", moved)
                losses.append(trained(self.directory / "moved.safetensors")["loss"])
                along += sum(sign * np.sum(exact[f"gradient.{name}"] * (moved[name].astype(np.float64) - self.start[name])) for name in names)
            whole = np.sqrt(sum(np.sum((exact[f"gradient.{name}"] * direction[name])**2) for name in names))
            found.append(abs(losses[0] - losses[1] - along) / (whole + 1e-12))
            if found[-1] < 5e-3:
                return
        raise Mismatch(f"gradients differ from differences of the loss by {', '.join(f'{error:.1e}' for error in found)}")

    def check(self):
        self.prepare()
        self.gradients()
        self.train()
        self.evaluate()
        self.predict()
        self.memory()


def judge(seed):
    """(What is wrong or nothing, the case)"""
    case = Case(seed)
    try:
        case.check()
        shutil.rmtree(case.directory)
        return None, case
    except (Mismatch, SystemExit, subprocess.TimeoutExpired) as error:
        return str(error), case
    except Exception:
        return traceback.format_exc(), case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    seeds = SEEDS + FOUND_DEFECTS if arguments.seed is None else range(arguments.seed, arguments.seed + arguments.count)
    failed, differences = [], 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for seed, (error, case) in zip(seeds, pool.map(judge, seeds)):
            if error:
                failed.append(seed)
                print(f"FAILED: seed {seed} ({case.options})\n{case.graph.text()}{error}\nin {case.directory}", flush=True)
            elif arguments.verbose:
                print(f"seed {seed}: {case.options}; {case.family}; {len(case.allowed)} tensors, median tolerance "
                      f"{np.median(list(case.allowed.values())):.1e}, {len(case.loose())} above {CAP:.0%}", flush=True)
            if not error and arguments.seed is None and case.loose():
                failed.append(seed)
                print(f"FAILED: seed {seed} ({case.options}) checks little: off may be {', '.join(case.loose())}", flush=True)
            differences += case.are_differences
            if case.options.skipped:
                print(f"skipped: this processor has no bf16 instructions; seed {seed} ran in f32")
    print(f"gradients of {differences} of {len(seeds)} networks compared with differences of the loss")
    if failed:
        sys.exit(f"{len(failed)} of {len(seeds)} failed: {' '.join(map(str, failed))}")
    if arguments.seed is None and differences < DIFFERENCES:
        sys.exit(f"FAILED: at least {DIFFERENCES} should be")


if __name__ == "__main__":
    main()
