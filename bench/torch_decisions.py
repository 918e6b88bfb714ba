"""ReLU and max pool decide, and an operand within rounding of 0 may be decided either way: these modes of PyTorch note
what one run decided and make another decide alike. A max pool is taken to pool the last ReLU's result."""

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode


class Noted(TorchFunctionMode):
    """Collects the result of every ReLU."""

    def __init__(self):
        super().__init__()
        self.activations = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function is F.relu:
            self.activations.append(result.detach())
        return result


class DecidedAlike(TorchFunctionMode):
    """Opens each ReLU where the activation given for it is positive, and pools the element at which that is largest.

    `others` counts the ReLUs that would have decided otherwise; `widest` is how far from 0 their operands were,
    relative to the spread.
    """

    def __init__(self, activations):
        super().__init__()
        self.activations, self.last = iter(activations), None
        self.others, self.widest = 0, 0.0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.relu:
            return self.relu(args[0], next(self.activations))
        if function is torch.max_pool2d:
            return self.pool(*args[:2])
        return function(*args, **(kwargs or {}))

    def relu(self, x, activation):
        self.last, is_open = activation, activation > 0
        others = x.detach()[is_open != (x.detach() > 0)]
        self.others += others.numel()
        if others.numel():
            self.widest = max(self.widest, (others.abs().max() / x.detach().std()).item())
        return x * is_open

    def pool(self, x, size):
        assert self.last.shape == x.shape
        _, index = F.max_pool2d(self.last, size, return_indices=True)
        return x.flatten(2).gather(2, index.flatten(2)).view(index.shape)
