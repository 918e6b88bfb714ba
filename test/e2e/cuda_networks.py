#!/usr/bin/python3
"""A segmentation network, a residual one and one of depthwise convolutions on the emulated GPU."""
from emulated import cases

for case in cases("unet2d", "resnet50", "mobilenetv2"):
    case.compare()
