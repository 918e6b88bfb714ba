#!/usr/bin/python3
"""A segmentation network and a residual one on the emulated GPU."""
from emulated import cases

for case in cases("unet2d", "resnet50"):
    case.compare()
