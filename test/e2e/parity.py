#!/usr/bin/python3
"""Some steps of training beside PyTorch's in f64 (training_parity.py): the smaller models, the networks of test/networks and groups of operators.

    parity.py [--verbose] [CASE...]
"""
from training_parity import main
from cases import SMALL

main(SMALL)
