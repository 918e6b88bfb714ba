#!/usr/bin/python3
"""A small network on the emulated GPU; a loss scale that is too large, other orders of streams, a cut and ranks."""
from emulated import cases

for case in cases("mnist_cnn"):
    case.compare()
    case.overflow()
    case.overflow("-np", 2)
    case.overflow("-np", 1, "--accumulate", 2)
    case.repeat()
