"""ReLU and max pool decide, and an operand within rounding of 0 may be decided either way: these modes of PyTorch watch
how narrowly a run decides, note what it decided and make another decide alike."""

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

MAX_POOLS = F.max_pool2d, F.max_pool3d, torch.max_pool2d, torch.max_pool3d  # a mode sees the former since PyTorch 2.15


def windows(x, kernel_size, stride=None, padding=0, **options):
    """Of a max pool, along the last axis."""
    axes = x.dim() - 2
    kernel, stride, padding = ([part] * axes if isinstance(part, int) else part for part in (kernel_size, stride or kernel_size, padding))
    x = F.pad(x, [part for part in reversed(padding) for _ in range(2)], value=-torch.inf)
    for axis in range(axes):
        x = x.unfold(2 + axis, kernel[axis], stride[axis])
    return x.flatten(2 + axes)


class Narrow(Exception):
    pass


class Margin(TorchFunctionMode):
    """Throws Narrow if operands are not so far from where a derivative jumps, relative to their spread: from 0 of a ReLU
    and of an absolute value, from 0 and 6 of a ReLU6, of a max pool how far apart the two largest of a window are."""

    def __init__(self, least):
        super().__init__()
        self.least = least

    def __torch_function__(self, function, types, args=(), kwargs=None):
        x, kwargs = args[0] if args else None, kwargs or {}
        if function in (F.relu, torch.Tensor.abs):
            self.observe(x.abs(), x)
        elif function is F.hardtanh:
            self.observe(torch.minimum((x - kwargs["min_val"]).abs(), (x - kwargs["max_val"]).abs()), x)
        elif function is F.l1_loss:
            self.observe((x - args[1]).abs(), x)
        elif function in MAX_POOLS:
            first, second = windows(*args, **kwargs).topk(2).values.unbind(-1)
            self.observe((first - second)[first > 0], x)
        return function(*args, **kwargs)

    def observe(self, distances, x):
        if distances.min() < self.least * x.std():
            raise Narrow


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
    """Opens each ReLU where the activation given for it is positive, and pools the element at which that is largest: a max
    pool is taken to pool the last ReLU's result.

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
        if function in MAX_POOLS:
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
