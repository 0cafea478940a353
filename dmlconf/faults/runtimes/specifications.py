"""Formulas of specifications that demand other results than DirectML's documentation."""

from __future__ import annotations

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators

__all__ = [
    "greatest_of_crossed_bounds",
    "logarithms_of_sums_as_written",
    "shrink_of_negative_thresholds",
]


@of_operators("ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1")
def greatest_of_crossed_bounds(case: Case) -> Computed | None:
    """Return what ELEMENT_WISE_CLIP gives by ONNX if Min exceeds Max: Max everywhere."""
    desc = case.desc
    if not desc["Min"] > desc["Max"]:
        return None
    output = desc["OutputTensor"]
    with np.errstate(over="ignore"):
        greatest = np.array(desc["Max"]).astype(output.DataType.dtype)
    return Computed({"OutputTensor": np.full(output.Sizes, greatest)})


@of_operators("ACTIVATION_SHRINK")
def shrink_of_negative_thresholds(case: Case) -> Computed | None:
    """Return what ACTIVATION_SHRINK gives by ONNX if Threshold is negative.

    Numbers below -Threshold come first, with x + Bias; of the others, those above Threshold give
    x - Bias.
    """
    desc, tensor = case.desc, case.inputs()["InputTensor"]
    if not desc["Threshold"] < 0 or tensor.dtype.kind != "f":
        return None
    numbers, bias = tensor.astype(np.float32), np.float32(desc["Bias"])
    below, above = numbers < -desc["Threshold"], numbers > desc["Threshold"]
    shrunk = np.where(below, numbers + bias, np.where(above, numbers - bias, np.float32(0)))
    return Computed({"OutputTensor": shrunk.astype(tensor.dtype)})


@of_operators("REDUCE")
def logarithms_of_sums_as_written(case: Case) -> Computed | None:
    """Return the outputs of REDUCE if LOG_SUM_EXP is log(sum(exp(x))) in FLOAT32: -inf of -512."""
    desc = case.desc
    if desc["Function"] != "LOG_SUM_EXP":
        return None
    tensor = case.inputs()["InputTensor"].astype(np.float32)
    with np.errstate(all="ignore"):
        logarithm = np.log(np.sum(np.exp(tensor), axis=tuple(desc["Axes"]), keepdims=True))
        return Computed({"OutputTensor": logarithm.astype(desc["OutputTensor"].DataType.dtype)})
