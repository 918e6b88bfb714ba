#!/usr/bin/python3
"""Some steps of training beside PyTorch's in f64 (training_parity.py): VGG-16, the ResNets and Inception V3.

    parity_large.py [--verbose] [CASE...]
"""
from training_parity import main
from cases import LARGE

main(LARGE)
