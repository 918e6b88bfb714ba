"""The groups of operators (*.dl) in PyTorch: each is a module with the parameters of its model, and gives the loss of a batch
of all ranks; only `Sharing`, with its batch norm, sees a rank's rows at a time."""
import torch
import torchvision
from torch import nn
from torch.nn import functional as F


class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)

    def forward(self, batch):
        x, target = self.first(batch["image"]), batch["target"]
        x = F.silu(x) + F.leaky_relu(x, 0.125) + F.elu(x) + F.softplus(x, threshold=1e9) + x.clamp(-0.5, 0.75)
        y = self.second(0.125 * x)
        z = torch.where(y > 0.25, y**3, torch.log(1 + y.abs()))
        z = z + torch.log(2 + torch.exp(y)) + torch.sqrt(y**2 + 0.25) + torch.tanh(y) * torch.sigmoid(y) + y.detach() * y
        z = z + torch.maximum(y, 0.5 * target) - torch.minimum(y, target) / (1.5 + F.relu(y))
        return F.mse_loss(self.third(z), target)


class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 1)

    def forward(self, batch):
        x = self.first(batch["image"])
        x = F.gelu(x) + F.hardswish(x) + torch.log10(1 + x**2) + x.var((2, 3), keepdim=True)
        y = F.avg_pool2d(x, 3, 2, 1, count_include_pad=False) + x.mean((2, 3), keepdim=True)
        z = F.interpolate(self.second(y), (5, 5), mode="bilinear")
        return F.mse_loss(F.avg_pool2d(z, 3, 2, 1), batch["target"])


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.group = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8)
        self.b, self.instance = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.InstanceNorm2d(8, affine=True)
        self.c, self.layer = nn.Conv2d(8, 8, 3, padding=1), nn.LayerNorm([8, 6, 6])
        self.gain, self.head = nn.Parameter(torch.zeros(1, 8, 1, 1)), nn.Conv2d(8, 8, 1)

    def forward(self, batch):
        x = torch.tanh(self.group(self.a(batch["image"])))
        x = x + self.instance(self.b(x))
        return F.mse_loss(self.head(self.layer(self.c(x)) * self.gain), batch["target"])


class Synchronised(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.first = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.b, self.left = nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8, momentum=0.25)
        self.c, self.right = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.head = nn.Conv2d(8, 8, 1)

    def forward(self, batch):
        x = torch.tanh(self.first(self.a(batch["image"])))
        return F.mse_loss(self.head(torch.tanh(self.left(self.b(x)) + self.right(self.c(x)))), batch["target"])


class Moves(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(11, 8, 3), nn.Conv2d(2, 8, 3)
        self.gain, self.d = nn.Parameter(torch.zeros(1, 8, 1, 1)), nn.Linear(280, 280)

    def forward(self, batch):
        x = torch.tanh(self.a(batch["image"]))
        x = F.pad(x, (0, 1, 1, 2), "reflect") + F.pad(x, (1, 0, 2, 1), "replicate") - F.pad(x, (1, 0, 0, 3))
        x = torch.cat([x[:, 1:7:2], x], 1).permute(0, 1, 3, 2)
        y = F.pixel_shuffle(torch.tanh(self.b(x)), 2)
        y = self.c(y[:, :, -10:-1, ::2])
        return F.mse_loss(self.gain * self.d(y.flatten(1)).reshape(-1, 8, 7, 5), batch["target"])


class Windows(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 6, 3, padding=2, dilation=2)
        self.b = nn.Conv2d(6, 6, (3, 1), padding=(1, 0), groups=3)
        self.c = nn.Conv2d(24, 6, 1)
        self.d = nn.ConvTranspose2d(6, 6, 3, 2, padding=1, output_padding=1)
        self.e = nn.Conv2d(12, 6, 3, 2)

    def forward(self, batch):
        x = torch.tanh(self.a(batch["image"]))
        x = x + torch.tanh(self.b(x))
        weight = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype) / 4
        blur = F.conv2d(F.pad(x, (0, 1, 0, 1)), torch.outer(weight, weight).expand(6, 1, 3, 3), stride=2, groups=6)
        parts = [F.avg_pool2d(x, 2), F.avg_pool2d(x, 4, 2, 1), F.max_pool2d(x, 3, 2, 1), blur]
        x = torch.tanh(self.d(self.c(torch.cat(parts, 1))))
        y = torch.cat([F.interpolate(x, scale_factor=2), F.interpolate(x, scale_factor=2, mode="bilinear")], 1)
        y = self.e(F.pad(y, (0, 1, 0, 1)))
        y = F.interpolate(y, (4, 4), mode="bilinear") + F.interpolate(y, (4, 4)) * F.adaptive_avg_pool2d(y, 1)
        return F.mse_loss(y + F.interpolate(F.adaptive_avg_pool2d(x, (4, 2)), (4, 4)), batch["target"])


class Reductions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 5)

    def forward(self, batch):
        x = torch.tanh(self.a(batch["image"]))
        x = x.softmax(1) * x + 0.5 * x.log_softmax(1)
        y = x.amax((2, 3)) + 4 * x.var((2, 3), correction=0) - x.mean((2, 3)) + 0.125 * (x**2).sum((2, 3))
        y = y + x.var(3, correction=0).mean(2)
        logits = self.head(y) * (0.0078125 * x.flatten(1).argmax(1, keepdim=True))
        return F.cross_entropy(logits, batch["label"].long()) + F.mse_loss(y, batch["target"])


class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 1)

    def forward(self, batch):
        y, target, mask = self.head(torch.tanh(self.body(batch["image"]))), batch["target"], batch["mask"]
        one = y[:, :1]
        weights = torch.tensor([1, 2, 0.5, 1.5], dtype=y.dtype)
        classes = F.cross_entropy(y, batch["label"].long(), weights, ignore_index=3, label_smoothing=0.125)
        classes = classes + 0.5 * F.cross_entropy(y, target.softmax(1))
        binary = F.binary_cross_entropy_with_logits(one, mask, pos_weight=torch.tensor(2.0, dtype=y.dtype))
        binary = binary + 0.25 * torchvision.ops.sigmoid_focal_loss(one, mask, alpha=0.75, gamma=2, reduction="mean")
        p = one.sigmoid()
        binary = binary + (1 - (2 * (p * mask).sum((2, 3)) + 0.5) / (p.sum((2, 3)) + mask.sum((2, 3)) + 0.5)).mean()
        where = mask.expand_as(y)
        squared = (where * (y - target)**2).sum() / where.sum()
        huber = (where * F.huber_loss(y, target, delta=0.5, reduction="none")).sum() / where.sum()
        return classes + binary + squared + F.l1_loss(y, target) + 0.5 * huber


class Sharing(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 1)
        self.conv, self.norm = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.frozen = nn.Conv2d(8, 8, 3, padding=1).requires_grad_(False)

    def forward(self, image):
        x = torch.tanh(self.first(image))
        for _ in range(2):
            x = torch.tanh(self.norm(self.conv(x)))
        return self.head(self.frozen(x))
