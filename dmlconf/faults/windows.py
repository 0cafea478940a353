"""CONVOLUTION, FOLD and LOCAL_RESPONSE_NORMALIZATION_GRAD: wrong elements in a window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array

__all__ = ["one_product_of_filter_and_input", "squares_left_out", "zeros_of_a_dilation_of_zero"]


def one_product_of_filter_and_input(case: Case) -> Computed | None:
    """Return what CONVOLUTION gives of a filter with the sizes of the input, for one element.

    It multiplies input and filter as they lie, without the dilation; with padding before the input
    it multiplies nothing. Of an input {3, 5} and a filter {7, 11} that reaches 1 place before it,
    the output is 0, not 3 * 11.
    """
    desc = case.desc
    if desc["Mode"] != "CROSS_CORRELATION" or desc["Direction"] != "FORWARD":
        return None
    spatial = desc["InputTensor"].Sizes[2:]
    output = desc["OutputTensor"].Sizes[2:]
    if desc["FilterTensor"].Sizes[2:] != spatial or any(size != 1 for size in output):
        return None
    none = (0,) * len(spatial)
    ones = (1,) * len(spatial)
    plain: dict[str, Any] = {**desc, "StartPadding": none, "EndPadding": none, "Dilations": ones}
    inputs = case.inputs()
    if any(desc["StartPadding"]):
        inputs["FilterTensor"] = np.zeros_like(inputs["FilterTensor"])
    wrong = replace(case, desc=plain).with_data(inputs)
    return Computed(evaluate(wrong), around=wrong)


def zeros_of_a_dilation_of_zero(case: Case) -> Computed | None:
    """Return zeros, which FOLD gives if a dilation is 0."""
    if all(case.desc["Dilations"]):
        return None
    outputs = evaluate(case)
    return Computed({name: np.zeros_like(array) for name, array in outputs.items()})


def squares_left_out(case: Case) -> Computed | None:
    """Return the gradient of a local response normalization whose base is Bias alone.

    With `g` for the gradient, `x` for the input and a sum over the window,
    `g / Bias ** Beta - 2 * Alpha * Beta / LocalSize * x * sum(g * x) / Bias ** (Beta + 1)`.
    """
    desc = case.desc
    if desc["CrossChannel"]:
        return None
    inputs = case.inputs()
    x = inputs["InputTensor"].astype(np.float64)
    g = inputs["InputGradientTensor"].astype(np.float64)
    alpha, beta, bias = (float(np.float32(desc[name])) for name in ("Alpha", "Beta", "Bias"))
    size = desc["LocalSize"]
    with np.errstate(all="ignore"):
        first = g / np.power(bias, beta)
        factor = 2 * alpha * beta / size * x / np.power(bias, beta + 1)
        gradient = first - factor * _sums(g * x, size)
        terms = np.abs(first) + np.abs(factor) * _sums(np.abs(g * x), size)
    name = "OutputGradientTensor"
    dtype = desc[name].DataType.dtype
    return Computed({name: gradient.astype(dtype)}, terms={name: terms})


def _sums(values: Array, size: int) -> Array:
    """Return the sum of the window around each element, along the last two axes."""
    for axis in (-2, -1):
        count = values.shape[axis]
        sums = np.zeros_like(values)
        for place in range(count):
            begin, end = max(place - (size - 1) // 2, 0), min(place + size // 2 + 1, count)
            window = np.take(values, range(begin, end), axis).sum(axis)
            sums[(..., place, slice(None)) if axis == -2 else (..., place)] = window
        values = sums
    return values
