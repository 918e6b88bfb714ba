#!/usr/bin/python3
"""VGG-16 against the evaluator in f64, at the least size: gradients, loss and metrics, predictions; masks of dropout
included."""
import shutil

import numpy as np

from reference import Case


def main():
    # A seed under which no ReLU and no max pool decides within 3e-6 of its operand's spread: f32 without Winograd errs
    # by 1e-6.
    random = np.random.default_rng(16)
    photos = {"image": random.standard_normal((2, 3, 32, 32), np.float32), "label": random.integers(0, 10, 2, np.int32)}
    case = Case("vgg16", "vgg16.dl", {"size": 32, "classes": 10, "batch": 2, "predict.batch": 2}, photos, "--math=strict")
    case.step(1)
    case.forward()
    shutil.rmtree(case.directory)  # most of a gigabyte


main()
