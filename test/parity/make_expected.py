"""Trains the cases (cases.py) in PyTorch, in f64, and keeps losses and sketches of how variables changed in expected/.
PyTorch and numpy come from bench/peers.

A ReLU whose operand is 0 but for rounding may open in one correct program and stay shut in another, and a max pooling may
choose another of two operands that are all but equal; then gradients differ by far more than rounding. A case without norms
is compared to a share that knows no such turns, so a large one names for each step a batch that is far from all of them; a
case whose batches are not is refused, and those that are are found for it.

    build/peers/bin/python test/parity/make_expected.py [CASE...]
"""
import argparse
import itertools
import sys

import numpy as np
import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

import groups
from cases import CASES, EXPECTED, ROOT, drawn_variables, sketch

sys.path.insert(0, str(ROOT / "bench"))
from torch_peers import MAKERS, peer_of  # noqa: E402

MAKERS["sharing"] = lambda case, draws: (groups.Sharing(), lambda y, batch: F.mse_loss(y, batch["target"]))
# The others' networks give the loss of the batch of all ranks.
MAKERS |= {module.__name__.lower(): lambda case, draws, module=module: (module(), None)
           for module in (groups.Activations, groups.Constants, groups.Norms, groups.Synchronised, groups.Moves, groups.Windows,
                          groups.Reductions, groups.Losses)}


def optimizer(case, parameters):
    kind, options = case.optimizer
    options = dict(options)
    if "beta1" in options:
        options["betas"] = options.pop("beta1"), options.pop("beta2")
    return {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}[kind](parameters, **options)


# Of the operands' root mean square: 32 roundings of f32. Those of VGG-16's f32 come to a few.
FAR = 2.0**-19


class NearestTurn(TorchFunctionMode):
    """How near ReLUs and max poolings of two dimensions come to another decision, relative to their operands' root mean square."""

    def __init__(self):
        super().__init__()
        self.distance = float("inf")

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kind = function.__name__.strip("_")
        if kind in ("relu", "max_pool2d"):
            x = args[0].detach()
            nearest = x.abs().min() if kind == "relu" else self.nearest_of_pool(x, *args[1:])
            self.distance = min(self.distance, (nearest / x.square().mean().sqrt()).item())
        return function(*args, **(kwargs or {}))

    @staticmethod
    def nearest_of_pool(x, kernel, stride=None, padding=0, *_):
        """Windows of zeros, whose ReLUs are shut, decide nothing."""
        first, second = F.unfold(x.flatten(0, 1)[:, None], kernel, padding=padding, stride=stride or kernel).topk(2, dim=1).values.unbind(1)
        return (first - second)[first > 0].min()


def tensors(batch):
    return {name: torch.from_numpy(value.astype(np.float64) if value.dtype == np.float32 else value) for name, value in batch.items()}


def draw_far_from_turns(case, peer, step, ranks):
    """The first draw of the step's batch with which no decision is near another."""
    for draw in itertools.count():
        with NearestTurn() as nearest, torch.no_grad():
            peer.loss_of(tensors(case.batch(step, draw)), ranks)
        if nearest.distance >= FAR:
            return draw


def train(case, ranks):
    """The loss of each step, and by name how every parameter and running statistic changed."""
    peer = peer_of(case)
    with torch.no_grad():
        drawn = drawn_variables({name: tuple(value.shape) for name, value in peer.variables().items()})
        for name, value in peer.variables().items():
            value.copy_(torch.from_numpy(drawn[name]))
    start = {name: value.detach().clone().numpy() for name, value in peer.variables().items()}
    update = optimizer(case, [value for value in peer.network.parameters() if value.requires_grad])
    batches = tensors(case.batches())
    losses, draws = [], []
    for step in range(case.steps[ranks]):
        peer.draws.step = step
        batch = {name: value[step * case.rows:(step + 1) * case.rows] for name, value in batches.items()}
        if case.draws:
            draws.append(draw_far_from_turns(case, peer, step, ranks))
            batch = tensors(case.batch(step, draws[-1]))
        update.zero_grad()
        value = peer.loss_of(batch, ranks)
        value.backward()
        update.step()
        losses.append(value.item())
    if tuple(draws) != case.draws[:len(draws)]:
        sys.exit(f"{case.name}: some of draws = {case.draws} come near a turn; take draws = {tuple(draws)}")
    return losses, {name: value.detach().numpy() - start[name] for name, value in peer.variables().items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", default=[case.name for case in CASES])
    chosen = parser.parse_args().cases
    EXPECTED.mkdir(exist_ok=True)
    for case in CASES:
        if case.name not in chosen:
            continue
        kept = {}
        for ranks in case.steps:
            losses, changes = train(case, ranks)
            names = sorted(changes)
            kept |= {f"losses.{ranks}": np.array(losses), f"changes.{ranks}": np.array([sketch(name, changes[name]) for name in names])}
            print(f"{case.name}, {ranks} ranks: losses {' '.join(f'{loss:.4f}' for loss in losses)}", flush=True)
        np.savez_compressed(EXPECTED / f"{case.name.replace(' ', '_')}.npz", names=np.array(names), **kept)


main()
