"""What WebNN in Chromium, with LiteRT and XNNPACK, computes instead of the right outputs."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.windows.sliding import elements, windows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "averages_that_count_padding",
    "exponential_of_nan_as_0",
    "logarithms_up_to_88",
    "roots_of_large_numbers",
    "roots_scaled_to_whole_windows",
    "softplus_up_to_88",
    "transpositions_of_constants_left_out",
    "zero_minus_numbers",
]

_HIGHEST: Final = np.float32(88.37626647949219)
"""127.5 times the logarithm of 2."""
_OF_NAN: Final = np.float32(88.78173065185547)
_LARGE: Final = 2.0**126
"""Its reciprocal is the smallest normal number of FLOAT32."""


def _scaled(case: Case) -> Array:
    """Return what the operator takes: its input, scaled, FLOAT32, with 0 for subnormal numbers."""
    tensor, by = case.inputs()["InputTensor"].astype(np.float32), case.desc["ScaleBias"]
    with np.errstate(all="ignore"):
        if by is not None:
            tensor = tensor * np.float32(by["Scale"]) + np.float32(by["Bias"])
    small = np.abs(tensor) < np.finfo(np.float32).tiny
    return np.where(small, np.float32(0), tensor)


@of_operators("ELEMENT_WISE_LOG")
def logarithms_up_to_88(case: Case) -> Computed | None:
    """Return what ELEMENT_WISE_LOG gives if no logarithm exceeds 88.376, but for 88.782 of NaN."""
    tensor = _scaled(case)
    with np.errstate(all="ignore"):
        logarithm = np.minimum(np.log(tensor), _HIGHEST)
    logarithm = np.where(np.isnan(tensor), _OF_NAN, logarithm)
    return Computed({"OutputTensor": logarithm.astype(case.desc["OutputTensor"].DataType.dtype)})


@of_operators("ACTIVATION_SOFTPLUS", "ACTIVATION_PARAMETRIC_SOFTPLUS")
def softplus_up_to_88(case: Case) -> Computed | None:
    """Return what ACTIVATION_SOFTPLUS gives if its logarithm is 88.376 at most, and 0 of NaN."""
    desc, right = case.desc, evaluate(case)["OutputTensor"]
    if desc.get("Steepness") == 0:
        return None
    factor = desc["Alpha"] if "Alpha" in desc else 1 / desc["Steepness"]
    with np.errstate(all="ignore"):
        logarithm = np.minimum(right.astype(np.float64) / factor, _HIGHEST)
        whole = np.where(np.isnan(right), 0, logarithm) * factor
    return Computed({"OutputTensor": whole.astype(right.dtype)})


@of_operators("ELEMENT_WISE_SQRT")
def roots_of_large_numbers(case: Case) -> Computed | None:
    """Return what ELEMENT_WISE_SQRT gives: beyond 2^126 half as much again, and NaN of infinity."""
    tensor = _scaled(case)
    with np.errstate(all="ignore"):
        root = np.sqrt(tensor)
        root = np.where(tensor > _LARGE, root * np.float32(1.5), root)
    root = np.where(np.isposinf(tensor), np.float32(np.nan), root)
    return Computed({"OutputTensor": root.astype(case.desc["OutputTensor"].DataType.dtype)})


@of_operators("AVERAGE_POOLING", "AVERAGE_POOLING1")
def averages_that_count_padding(case: Case) -> Computed | None:
    """Return what AVERAGE_POOLING gives if padding counts: of 3 and 4 in a window of 3, 7 / 3."""
    if case.desc["IncludePadding"]:
        return None
    other = replace(case, desc={**case.desc, "IncludePadding": True})
    return Computed(evaluate(other), around=other)


@of_operators("LP_POOLING", "LP_POOLING1")
def roots_scaled_to_whole_windows(case: Case) -> Computed | None:
    """Return what LP_POOLING gives if a window with padding counts for as much as a whole one.

    Of 1 and 2 in a window of 3 that is the root of (1 + 4) * 3 / 2, not of 1 + 4.
    """
    desc, tensor = case.desc, case.inputs()["InputTensor"]
    sizes = desc["Strides"], desc["WindowSize"], desc["StartPadding"], desc.get("Dilations")
    over = windows(tensor.shape, desc["OutputTensor"].Sizes, *sizes)
    right = evaluate(case)["OutputTensor"]
    with np.errstate(all="ignore"):
        root = right * np.sqrt(prod(desc["WindowSize"]) / elements(over))
    return Computed({"OutputTensor": root.astype(right.dtype)})


@of_operators("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", "SPACE_TO_DEPTH", "SPACE_TO_DEPTH1")
def transpositions_of_constants_left_out(case: Case) -> Computed | None:
    """Return what DEPTH_TO_SPACE gives of an input that is a constant: its elements as they are."""
    if "OWNED_BY_DML" not in case.desc["InputTensor"].Flags:
        return None
    sizes = case.desc["OutputTensor"].Sizes
    return Computed({"OutputTensor": case.inputs()["InputTensor"].reshape(sizes)})


@of_operators("ELEMENT_WISE_NEGATE")
def zero_minus_numbers(case: Case) -> Computed | None:
    """Return what ELEMENT_WISE_NEGATE gives as 0 - x: 0 of 0, and 0 of subnormal numbers."""
    tensor = case.inputs()["InputTensor"]
    if tensor.dtype.kind != "f":
        return None
    small = np.abs(tensor) < np.finfo(tensor.dtype).tiny
    zero = tensor.dtype.type(0)
    return Computed({"OutputTensor": np.where(small, zero, zero - tensor)})


@of_operators("ELEMENT_WISE_EXP")
def exponential_of_nan_as_0(case: Case) -> Computed | None:
    """Return what ELEMENT_WISE_EXP gives if the exponential of NaN is 0."""
    right = evaluate(case)["OutputTensor"]
    return Computed({"OutputTensor": np.where(np.isnan(right), right.dtype.type(0), right)})
