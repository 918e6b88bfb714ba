"""The models of models/*.dl in PyTorch, with the same parameter names."""

import torch
from torch import nn
from torch.nn import functional as F


class MnistCnn(nn.Module):
    """models/mnist_cnn.dl. `dropout(x, rate, name)` is given from outside, since masks are Philox's."""

    def __init__(self, dropout=lambda x, rate, name: F.dropout(x, rate)):
        super().__init__()
        self.dropout = dropout
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(image)))), 2)
        x = self.dropout(x, 0.25, "dropout1")
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(self.dropout(x, 0.5, "dropout2"))


class Axes:
    """The layers of images or volumes."""

    def __init__(self, count):
        self.conv, self.expand, self.norm, self.max_pool = {
            2: (nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d, F.max_pool2d),
            3: (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d, F.max_pool3d)}[count]


class DoubleConv(nn.Module):
    def __init__(self, axes, inputs, width, norm):
        super().__init__()
        self.conv = nn.ModuleList(
            axes.conv(c, width, 3, padding=1, bias=not norm) for c in (inputs, width))
        self.norm = nn.ModuleList(axes.norm(width) if norm else nn.Identity() for _ in range(2))

    def forward(self, x):
        for conv, norm in zip(self.conv, self.norm):
            x = F.relu(norm(conv(x)), inplace=True)
        return x


class Up(DoubleConv):
    def __init__(self, axes, inputs, width, norm):
        super().__init__(axes, 2 * width, width, norm)
        self.expand = axes.expand(inputs, width, 2, 2)

    def forward(self, x, skip):
        return super().forward(torch.cat([skip, self.expand(x)], 1))


class UNet(nn.Module):
    """models/unet2d.dl, and models/unet3d.dl with 3 axes."""

    def __init__(self, base=32, depth=4, channels=1, norm=True, classes=1, axes=2):
        super().__init__()
        self.axes = Axes(axes)
        widths = [base << level for level in range(depth + 1)]
        inputs = [channels] + widths
        self.down = nn.ModuleList(DoubleConv(self.axes, inputs[i], widths[i], norm) for i in range(depth))
        self.bottom = DoubleConv(self.axes, widths[depth - 1], widths[depth], norm)
        self.up = nn.ModuleList(Up(self.axes, widths[i + 1], widths[i], norm) for i in range(depth))
        self.head = self.axes.conv(base, classes, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            skips.append(block(x))
            x = self.axes.max_pool(skips[-1], 2)
        x = self.bottom(x)
        for block, skip in zip(reversed(self.up), reversed(skips)):
            x = block(x, skip)
        return self.head(x)


def blurred(x):
    """The maximum of each pixel and the next ones, by [1 2 1] / 4 along each axis, every other one."""
    x = F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=-torch.inf), 2, 1)
    weight = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype) / 4
    weight = torch.outer(weight, weight).expand(x.shape[1], 1, 3, 3)
    return F.conv2d(F.pad(x, (0, 1, 0, 1)), weight, stride=2, groups=x.shape[1])


class Unit(nn.Module):
    def __init__(self, axes, inputs, width, kernel, linear=False):
        super().__init__()
        self.conv = axes.conv(inputs, width, kernel, padding=kernel // 2)
        self.norm = axes.norm(width)
        self.linear = linear

    def forward(self, x):
        x = self.norm(self.conv(x))
        return x if self.linear else F.relu(x)


class CsbdeepUNet(nn.Module):
    """csbdeep_unet of models/noise2void.dl."""

    def __init__(self, axes, base, depth, kernel, channels, blurpool, skip_skipone):
        super().__init__()
        self.pool = blurred if blurpool else lambda x: axes.max_pool(x, 2)
        self.skip_skipone = skip_skipone
        self.last = channels

        def unit(inputs, width, **options):
            self.last = width
            return Unit(axes, inputs, width, kernel, **options)
        widths = [base << level for level in range(depth + 1)]
        self.down = nn.ModuleList(nn.ModuleList(unit(self.last, width) for _ in range(2)) for width in widths[:-1])
        self.middle = nn.ModuleList(unit(self.last, width) for width in (widths[-1], widths[-2]))
        up = {}
        for level in reversed(range(depth)):
            joined = 0 if level == 0 and skip_skipone else widths[level]
            up[level] = nn.ModuleList([unit(self.last + joined, widths[level]),
                                       unit(self.last, widths[max(0, level - 1)], linear=level == 0)])
        self.up = nn.ModuleList(up[level] for level in range(depth))
        self.head = axes.conv(self.last, channels, 1)

    def forward(self, x):
        skips = []
        for units in self.down:
            for unit in units:
                x = unit(x)
            skips.append(x)
            x = self.pool(x)
        for unit in self.middle:
            x = unit(x)
        for level, units in reversed(list(enumerate(self.up))):
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            if level > 0 or not self.skip_skipone:
                x = torch.cat([x, skips[level]], 1)
            for unit in units:
                x = unit(x)
        return self.head(x)


class Denoiser(nn.Module):
    """models/n2v2d.dl, and models/n2v3d.dl with 3 axes."""

    def __init__(self, base=32, depth=2, kernel=3, channels=1, residual=False, single_net_per_channel=True, blurpool=False,
                 skip_skipone=False, axes=2):
        super().__init__()
        self.residual, self.apart = residual, single_net_per_channel and channels > 1

        def net(channels):
            return CsbdeepUNet(Axes(axes), base, depth, kernel, channels, blurpool, skip_skipone)
        self.net = nn.ModuleList(net(1) for _ in range(channels)) if self.apart else net(channels)

    def forward(self, image):
        if self.apart:
            x = torch.cat([net(part) for net, part in zip(self.net, image.split(1, 1))], 1)
        else:
            x = self.net(image)
        return x + image if self.residual else x


def masked_error(error, x, target, mask):
    """Over the pixels of the mask."""
    difference = x - target
    return (mask * (difference**2 if error == "mse" else difference.abs())).sum() / mask.sum()


class Vgg16(nn.Module):
    """models/vgg16.dl, torchvision's vgg16; `dropout(x, rate, name)` as in MnistCnn."""

    def __init__(self, size=224, classes=1000, dropout=lambda x, rate, name: F.dropout(x, rate)):
        super().__init__()
        self.dropout = dropout
        layers, inputs = [], 3
        for width, count in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
            for _ in range(count):
                layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)]
                inputs = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        # Torchvision's indices: ReLU and dropout stand between.
        self.classifier = nn.ModuleDict({
            "0": nn.Linear(512 * (size // 32) ** 2, 4096), "3": nn.Linear(4096, 4096), "6": nn.Linear(4096, classes)})

    def forward(self, image):
        x = self.features(image).flatten(1)
        x = self.dropout(F.relu(self.classifier["0"](x)), 0.5, "classifier.2")
        x = self.dropout(F.relu(self.classifier["3"](x)), 0.5, "classifier.5")
        return self.classifier["6"](x)
