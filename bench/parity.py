"""Judges the gradients of compiled programs, in f32, beside PyTorch's in f32 by the reference evaluator's in f64.

With --math=strict every tensor must satisfy |dlc - f64| <= 2 |PyTorch - f64| + 1e-6 |f64|, and without batch norm be
within 1e-5 of f64; --math=fast must be within 1e-3 of strict. Gradients are read off one step of SGD whose rate is
2^20, on both sides, so that the weights' own rounding does not hide them; the loss and new running statistics are
compared likewise.

A ReLU whose operand is 0 but for rounding may open in one correct program and stay shut in another, which moves
gradients by 1e-3; so weights are drawn until no ReLU and no max pool decides that narrowly. In ResNets and Inception
V3 errors grow too much on the way for that: batch norm's biases are lifted, so that one ReLU in a thousand is shut and
hardly one is near that; and a tensor's error is random where PyTorch's happens to be small, so that twice the median of
PyTorch's relative errors is added to its bound. Where ReLUs are open, what a convolution ahead of a batch norm hands back sums to
0 over the positions of a channel, and so does the gradient of the bias before them: fast's error there is taken by the
size that such a sum has when its terms' signs are random. Among the millions of decisions of a model at its real size some always
are narrow, and which tensors they move is chance. Such cases (whole-*) are judged as a whole: the median of all tensors' relative errors may be twice the median of PyTorch's, the
largest twice PyTorch's largest, strict and fast alike; and since the evaluator's plain loops would take hours, by
PyTorch's f64, as are the lifted networks: bench/gradients.py shows that it agrees with the evaluator. Where predict computes what the training step
does (no batch norm, no dropout), dlc's activations are read off it, and each side is judged by an f64 that opens the
same ReLUs; those that it opens otherwise must be within rounding of 0. PyTorch and numpy come from bench/peers.

    build/peers/bin/python bench/parity.py [--bin build/release/bin] [--target cpu:avx2] [CASE...]
"""

import argparse
import functools
import itertools
import json
import pathlib
import re
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file

from torch_decisions import DecidedAlike, Margin, Narrow, Noted
from torch_cases import (NETWORKS, ROOT, SEED, evaluator_results, mnist_cnn, random_sums, run, settings, tested, torch_results,
                         unet2d, write_batch)

sys.path.insert(0, str(ROOT / "test" / "e2e"))
from support import without_data  # noqa: E402

RATE = 2**20
MARGIN = 3e-6  # of a decision, relative to its operand's spread; f32 errs by 1e-6 at most here
MARGINS = {"inception_v3 with aux": 1e-6}  # a million windows leave no more; they are in its first layers, which err by less
LIFT = 3.0
DOUBT = {"PyTorch": 3e-6, "strict": 3e-6, "fast": 3e-5}  # from where on a decision other than f64's is wrong, likewise


def lifted(case):
    case = tested(case)
    with torch.no_grad():
        for norm in {module for module, _ in case.peer.running().values()}:
            norm.bias += LIFT
    return case


LIFTED = {name: functools.partial(lifted, case) for name, case in NETWORKS.items() if name.startswith(("resnet", "inception"))}
# Of U-Nets channels below, at and off the multiples of 16 in which layouts are blocked.
CASES = {name: functools.partial(tested, case) for name, case in NETWORKS.items()} | LIFTED | {
    f"unet2d-{base}-{norm}": functools.partial(unet2d, base, depth, norm, rows=rows)
    for base, depth, rows in ((6, 3, 4), (16, 2, 4), (20, 2, 4), (32, 3, 2)) for norm in ("batch", "none")}

# Real sizes: partial results are split over threads and chunks only there.
WHOLE = {"whole-mnist": functools.partial(mnist_cnn, rows=64),
         "whole-unet2d-batch": functools.partial(unet2d, 16, 4, rows=8, size=256),
         "whole-unet2d-none": functools.partial(unet2d, 32, 4, "none", rows=4, size=256)}


def drawn(name, ranks):
    """A case whose every decision is clear when its batch is split among so many ranks."""
    for seed in itertools.count():
        torch.manual_seed(seed)
        case = CASES[name]()
        try:
            with Margin(MARGINS.get(name, MARGIN)):
                torch_results(case, ranks, torch.float64)
            return case
        except Narrow:
            pass


def dlc_step(bin, case, ranks, how, folder):
    """What one step of a compiled program leaves: loss, gradients, new running statistics."""
    model = without_data(case.path.name, folder, case.folder)
    if "train {" not in model.read_text():
        model.write_text(model.read_text() + "\ntrain { optimizer = sgd(lr = 1) }\n")
    artifact, out, log = (folder / name for name in ("model.dlx", "out.safetensors", "log.jsonl"))
    run(bin / "dlc", "compile", model, *settings(case, ranks), "--set", f"train.optimizer=sgd(lr={RATE}.0)",
        "--set", "train.schedule=[]", *how, "--threads=2", "-o", artifact)
    data = [part for name in case.inputs for part in ("--data", f"{name}={folder / name}.npy")]
    run(bin / "dlc-run", "-np", ranks, "train", artifact, *data, "--steps", 1, "--seed", SEED, "--no-shuffle",
        "--threads", 2 // ranks, "--init", folder / "weights.safetensors", "--save", out, "--log", log,
        "--run", tempfile.mkdtemp(dir=folder))
    before, after = load_file(folder / "weights.safetensors"), load_file(out)
    results = {"loss": json.loads(log.read_text().splitlines()[0])["loss"]}
    for name, value in after.items():
        if "running" in name:
            results["assigned." + name] = value
        else:
            results["gradient." + name] = (before[name].astype(np.float64) - value) / RATE
    return results


def dlc_activations(bin, case, ranks, how, folder):
    """Results of the compiled predict program's ReLUs, in the order of ranks."""
    text, artifact, out = folder / "nn.mlir", folder / "activations.dlx", folder / "activations"
    run(bin / "dlc", "compile", folder / f"{case.name}.dl", *settings(case, ranks), "--set", f"predict.size={case.sets['size']}",
        "--set", f"predict.batch={case.rows // ranks}", "--emit=nn", "-o", text)
    rest, predict = text.read_text().split("nn.program @predict")
    predict, count = re.subn(r"(?P<line>(?P<value>%\w+) = nn\.relu .*-> (?P<type>tensor<[^>]*>).*)",
                             lambda relu: f'{relu["line"]}\nnn.output "relu.{relu.start()}", {relu["value"]} : {relu["type"]}', predict)
    text.write_text(rest + "nn.program @predict" + predict)
    run(bin / "dlc", "compile", text, *how, "--threads=2", "-o", artifact)
    run(bin / "dlc-run", "predict", artifact, "--data", f"image={folder / 'image.npy'}", "--init", folder / "weights.safetensors",
        "--threads", 2 // ranks, "-o", out)
    files = sorted(out.glob("relu.*.npy"), key=lambda path: int(path.name.split(".")[1]))
    assert len(files) == count
    return [torch.from_numpy(part) for rank in range(ranks) for file in files for part in [np.split(np.load(file), ranks)[rank]]]


def torch_step(case, ranks):
    """The same of PyTorch in f32."""
    results = torch_results(case, ranks, torch.float32)
    for name, weight in case.model.state_dict().items():
        gradient = results.get("gradient." + name)
        if gradient is not None:
            after = weight.numpy() - np.float32(RATE) * gradient
            results["gradient." + name] = (weight.numpy().astype(np.float64) - after) / RATE
    return results


def worst_of(errors):
    """Largest (ratio to the bound, relative error, name); what is not a number is infinitely wrong."""
    return max((np.nan_to_num(error / bound, nan=np.inf), error / norm, name) for name, (error, bound, norm) in errors.items())


def scales(truth):
    """What a tensor's error is relative to: its norm, but that of the largest gradient if its own is 0 but for rounding, as
    of a bias ahead of batch norm."""
    norms = {name: np.linalg.norm(value) for name, value in truth.items()}
    largest = max(norm for name, norm in norms.items() if name.startswith("gradient."))
    return {name: largest if name.startswith("gradient.") and norm < 1e-12 * largest else norm for name, norm in norms.items()}


def judge_strict(ours, peer, truth, slack):
    errors, has_norm = {}, any(name.startswith("assigned.") for name in truth)
    for name, norm in scales(truth).items():
        bound = 2 * np.linalg.norm(peer[name] - truth[name]) + slack * norm
        errors[name] = np.linalg.norm(ours[name] - truth[name]), bound if has_norm else min(bound, 1e-5 * norm), norm
    return worst_of(errors)


def judge_fast(fast, strict, truth, least):
    """`least`: of some tensors what their errors are relative to where their own norms are less."""
    norms = {name: max(norm, least.get(name, 0)) for name, norm in scales(truth).items()}
    return worst_of({name: (np.linalg.norm(fast[name] - strict[name]), 1e-3 * norm, norm) for name, norm in norms.items()})


def relative(results, truth):
    return {name: np.linalg.norm(results[name] - truth[name]) / norm for name, norm in scales(truth).items()}


def median(errors):
    return float(np.median(list(errors.values())))


def judge_whole(ours, truth, peer, peer_truth):
    """The worse of median and largest, as worst_of."""
    mine, theirs = relative(ours, truth), relative(peer, peer_truth)
    largest = max(mine, key=lambda name: np.nan_to_num(mine[name], nan=np.inf))
    return worst_of({f"median of {len(mine)} tensors": (median(mine), 2 * median(theirs) + 1e-6, 1),
                     largest: (mine[largest], 2 * max(theirs.values()) + 1e-6, 1)})


def check_names(truth, *steps):
    for results in steps:
        if results.keys() != truth.keys():
            sys.exit(f"names differ: {', '.join(sorted(results.keys() ^ truth.keys()))}")


def truth_deciding_like(who, results, activations, case, ranks, truth):
    """f64 that opens the ReLUs that `who` opened; prints how much of the distance from f64 that explains."""
    with DecidedAlike(activations) as decisions:
        alike = torch_results(case, ranks, torch.float64)
    print(f"  {who} opens {decisions.others} ReLUs otherwise than f64, their operands within {decisions.widest:.0e} of 0")
    for what, errors in (("off f64", relative(results, truth)), ("f64 with its ReLUs off f64", relative(alike, truth)),
                         ("off f64 with its ReLUs", relative(results, alike))):
        print(f"    {what:28} median {median(errors):.1e}, largest {max(errors.values()):.1e}", flush=True)
    if decisions.widest > DOUBT[who]:
        sys.exit(f"  that is not rounding: more than {DOUBT[who]:.0e}")
    return alike


def judge_at_real_size(bin, target, name, ranks, folder):
    torch.manual_seed(0)
    case = WHOLE[name]()
    write_batch(case, folder)
    truth = torch_results(case, ranks, torch.float64)
    with Noted() as noted:
        peer = torch_step(case, ranks)
    alike = case.sets.get("norm") == "none"
    peer_truth = truth_deciding_like("PyTorch", peer, noted.activations, case, ranks, truth) if alike else truth
    for math in ("strict", "fast"):
        how = [f"--target={target}", f"--math={math}"]
        ours, own_truth = dlc_step(bin, case, ranks, how, folder), truth
        check_names(truth, ours, peer)
        if alike:
            activations = dlc_activations(bin, case, ranks, how, folder)
            own_truth = truth_deciding_like(math, ours, activations, case, ranks, truth)
        yield math, *judge_whole(ours, own_truth, peer, peer_truth)


def judge(bin, target, name, ranks, folder):
    """Yields (math, ratio to the bound, relative error, tensor)."""
    if name in WHOLE:
        yield from judge_at_real_size(bin, target, name, ranks, folder)
        return
    case = drawn(name, ranks)
    if name in LIFTED:
        write_batch(case, folder)
        truth = torch_results(case, ranks, torch.float64)
    else:
        truth = evaluator_results(bin, case, ranks, folder)
    peer = torch_step(case, ranks)
    strict, fast = (
        dlc_step(bin, case, ranks, [f"--target={target}", f"--math={math}"], folder) for math in ("strict", "fast"))
    check_names(truth, peer, strict, fast)
    yield "strict", *judge_strict(strict, peer, truth, 1e-6 + (2 * median(relative(peer, truth)) if name in LIFTED else 0))
    yield "fast", *judge_fast(fast, strict, truth, random_sums(case, ranks) if name in LIFTED else {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin")
    parser.add_argument("--target", default="cpu:native")
    parser.add_argument("cases", nargs="*", default=[*CASES, *WHOLE], help=" ".join([*CASES, *WHOLE]))
    arguments = parser.parse_args()
    failures = 0
    print(f"PyTorch {torch.__version__}; error over its bound, relative error, of the tensor nearest to its bound")
    for name in arguments.cases:
        for ranks in NETWORKS[name].steps if name in NETWORKS else (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                verdicts = judge(arguments.bin.resolve(), arguments.target, name, ranks, pathlib.Path(folder))
                for math, ratio, error, tensor in verdicts:
                    good = ratio <= 1
                    failures += not good
                    print(f"{name:23} ranks {ranks}  {math:6}  {ratio:8.3f}  {error:.1e}  {tensor}  {'ok' if good else 'FAILED'}",
                          flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
