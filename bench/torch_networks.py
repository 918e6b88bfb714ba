"""The networks of test/networks/*.dl in PyTorch, with the same parameter names: those that are not torchvision's."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Excited(nn.Module):
    def __init__(self, width, reduction=4):
        super().__init__()
        self.squeeze, self.excite = nn.Conv2d(width, width // reduction, 1), nn.Conv2d(width // reduction, width, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.excite(F.silu(self.squeeze(x.mean((2, 3), keepdim=True)))))


class SqueezeExcitation(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv, self.block = nn.Conv2d(width, width, 3, padding=1), Excited(width)
        self.head = nn.Linear(6 * width, 10)

    def forward(self, image):
        x = F.silu(self.norm(self.stem(image)))
        x = x + self.block(self.conv(x))
        return self.head(F.adaptive_avg_pool2d(x, (2, 3)).flatten(1))


class Gate(nn.Module):
    def __init__(self, width, signals):
        super().__init__()
        self.theta, self.phi = nn.Conv2d(width, width, 2, 2), nn.Conv2d(signals, width, 1)
        self.psi = nn.Conv2d(width, 1, 1)

    def forward(self, skip, signal):
        gate = torch.sigmoid(self.psi(F.silu(self.theta(skip) + self.phi(signal))))
        return skip * F.interpolate(gate, scale_factor=2, mode="bilinear")


class NormalisedBlock(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.conv = nn.ModuleList(nn.Conv2d(c, width, 3, padding=1, bias=False) for c in (inputs, width))
        self.norm = nn.ModuleList(nn.InstanceNorm2d(width, affine=True) for _ in range(2))

    def forward(self, x):
        for conv, norm in zip(self.conv, self.norm):
            x = F.silu(norm(conv(x)))
        return x


class GatedUp(NormalisedBlock):
    def __init__(self, inputs, width):
        super().__init__(2 * width, width)
        self.expand = nn.ConvTranspose2d(inputs, width, 2, 2)

    def forward(self, x, skip):
        return super().forward(torch.cat([skip, self.expand(x)], 1))


class AttentionUNet(nn.Module):
    def __init__(self, base=6, depth=2):
        super().__init__()
        widths = [base << level for level in range(depth + 1)]
        inputs = [1] + widths
        self.down = nn.ModuleList(NormalisedBlock(inputs[i], widths[i]) for i in range(depth))
        self.bottom = NormalisedBlock(inputs[depth], widths[depth])
        self.gate = nn.ModuleList(Gate(widths[i], widths[i + 1]) for i in range(depth))
        self.up = nn.ModuleList(GatedUp(widths[i + 1], widths[i]) for i in range(depth))
        self.head = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            skips.append(block(x))
            x = F.avg_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for gate, up, skip in zip(reversed(self.gate), reversed(self.up), reversed(skips)):
            x = up(x, gate(skip, x))
        return self.head(x)


class SuperResolution(nn.Module):
    def __init__(self, width=16, factor=2):
        super().__init__()
        self.factor = factor
        self.conv1, self.conv2 = nn.Conv2d(1, width, 5, padding=2), nn.Conv2d(width, width, 3)
        self.conv3 = nn.Conv2d(width, factor**2, 3, padding=1)

    def forward(self, image):
        x = torch.tanh(self.conv1(image))
        x = torch.tanh(self.conv2(F.pad(x, (1, 1, 1, 1), "reflect")))
        x = F.pixel_shuffle(self.conv3(x), self.factor)
        return x + F.interpolate(image, x.shape[2:], mode="bilinear")


class VariationalAutoencoder(nn.Module):
    """Gives logits, means and logarithms of variances. `normal(shape, name)` is given from outside, since draws are
    Philox's."""

    def __init__(self, size=8, width=12, code=5, normal=lambda shape, name: torch.randn(shape)):
        super().__init__()
        self.normal, self.shape = normal, (width, size // 2, size // 2)
        count = width * (size // 2) ** 2
        self.encode = nn.Conv2d(1, width, 3, 2, padding=1)
        self.mean, self.log_variance, self.expand = nn.Linear(count, code), nn.Linear(count, code), nn.Linear(code, count)
        self.decode = nn.ConvTranspose2d(width, 1, 2, 2)

    def forward(self, image):
        x = F.silu(self.encode(image)).flatten(1)
        mu, spread = self.mean(x), self.log_variance(x).clamp(-10, 10)
        z = mu + torch.exp(0.5 * spread) * self.normal(mu.shape, "noise").to(mu.dtype)
        return self.decode(F.silu(self.expand(z).reshape(-1, *self.shape))), mu, spread


def constant(value):
    """A constant of a graph is held in f32."""
    return float(np.float32(value))


def variational_error(outputs, batch):
    logits, mu, spread = outputs
    divergence = (mu**2 + spread.exp() - spread - 1).mean()
    return F.binary_cross_entropy_with_logits(logits, batch["image"].sigmoid()) + 0.01 * divergence


class Embedding(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, width, 3, 2, padding=1, bias=False), nn.BatchNorm2d(width)
        self.head = nn.Linear(width * (size // 2) ** 2, 6)

    def forward(self, x):
        return self.head(torch.tanh(self.norm(self.conv(x))).flatten(1))


class Siamese(nn.Module):
    """Gives the embeddings of both images."""

    def __init__(self, size=8, width=8):
        super().__init__()
        self.net = Embedding(size, width)

    def forward(self, image, other):
        return self.net(image), self.net(other)


def contrastive_error(outputs, batch):
    one, other = outputs
    distance = torch.sqrt(((one - other) ** 2).sum(1, keepdim=True) + constant(0.001))
    same = batch["same"]
    return (same * distance**2 + (1 - same) * (2 - distance).clamp(min=0) ** 2).mean()


class AtrousPyramid(nn.Module):
    def __init__(self, width=8, classes=4):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 2 * width, 3, padding=1), nn.GroupNorm(4, 2 * width)
        self.point, self.level = nn.Conv2d(2 * width, width, 1), nn.Conv2d(2 * width, width, 1)
        self.rate1, self.rate2, self.rate4 = (
            nn.Conv2d(2 * width, width, 3, padding=rate, dilation=rate) for rate in (1, 2, 4))
        self.head = nn.Conv2d(5 * width, classes, 1)

    def forward(self, image):
        x = F.silu(self.norm(self.stem(image)))
        level = self.level(x.mean((2, 3), keepdim=True)).expand(-1, -1, *x.shape[2:])
        return self.head(F.silu(torch.cat([self.point(x), self.rate1(x), self.rate2(x), self.rate4(x), level], 1)))
