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


class DoubleConv(nn.Module):
    def __init__(self, inputs, width, norm):
        super().__init__()
        self.conv = nn.ModuleList(
            nn.Conv2d(c, width, 3, padding=1, bias=not norm) for c in (inputs, width))
        self.norm = nn.ModuleList(nn.BatchNorm2d(width) if norm else nn.Identity() for _ in range(2))

    def forward(self, x):
        for conv, norm in zip(self.conv, self.norm):
            x = F.relu(norm(conv(x)), inplace=True)
        return x


class Up(DoubleConv):
    def __init__(self, inputs, width, norm):
        super().__init__(2 * width, width, norm)
        self.expand = nn.ConvTranspose2d(inputs, width, 2, 2)

    def forward(self, x, skip):
        return super().forward(torch.cat([skip, self.expand(x)], 1))


class UNet2d(nn.Module):
    """models/unet2d.dl."""

    def __init__(self, base=32, depth=4, channels=1, norm=True):
        super().__init__()
        widths = [base << level for level in range(depth + 1)]
        inputs = [channels] + widths
        self.down = nn.ModuleList(DoubleConv(inputs[i], widths[i], norm) for i in range(depth))
        self.bottom = DoubleConv(widths[depth - 1], widths[depth], norm)
        self.up = nn.ModuleList(Up(widths[i + 1], widths[i], norm) for i in range(depth))
        self.head = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            skips.append(block(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for block, skip in zip(reversed(self.up), reversed(skips)):
            x = block(x, skip)
        return self.head(x)


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
