"""Trains the cases (cases.py) in PyTorch, in f64, and keeps losses and sketches of how variables changed in expected/.
PyTorch and numpy come from bench/peers.

    build/peers/bin/python test/parity/make_expected.py [CASE...]
"""
import argparse
import sys

import numpy as np
import torch
from torch.nn import functional as F

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


def train(case, ranks):
    """The loss of each step, and by name how every parameter and running statistic changed."""
    peer = peer_of(case)
    with torch.no_grad():
        drawn = drawn_variables({name: tuple(value.shape) for name, value in peer.variables().items()})
        for name, value in peer.variables().items():
            value.copy_(torch.from_numpy(drawn[name]))
    start = {name: value.detach().clone().numpy() for name, value in peer.variables().items()}
    update = optimizer(case, [value for value in peer.network.parameters() if value.requires_grad])
    batches = {name: torch.from_numpy(value) for name, value in case.batches().items()}
    batches = {name: value.double() if value.is_floating_point() else value for name, value in batches.items()}
    losses = []
    for step in range(case.steps[ranks]):
        peer.draws.step = step
        update.zero_grad()
        value = peer.loss_of({name: value[step * case.rows:(step + 1) * case.rows] for name, value in batches.items()}, ranks)
        value.backward()
        update.step()
        losses.append(value.item())
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
