"""Faults of CONVOLUTION, FOLD and LOCAL_RESPONSE_NORMALIZATION_GRAD: wrong elements of windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import Desc
from dmlconf.faults.computed import Computed
from dmlconf.permitted.numbers.half import STORES
from dmlconf.precision.allowance import SumErrors
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.numbers.half import Store
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "first_group_of_filter_and_input",
    "one_product_of_filter_and_input",
    "squares_left_out",
    "zeros_of_a_dilation_of_zero",
]


def one_product_of_filter_and_input(case: Case) -> Computed | None:
    """Return CONVOLUTION's outputs if the filter has the input's spatial sizes and is applied once.

    Input element i is multiplied by filter element i, without dilation, and the products are added
    up. The sum is 0 unless StartPadding is 0 or, backward, (filter size - 1) * dilation. Then the
    bias is added. For an input [3, 5], a filter [7, 11], a StartPadding of 1 and no bias, the
    output is 0, not 3 * 11. None for other convolutions, as `_is_one_product` says.
    """
    desc = case.desc
    if not _is_one_product(desc):
        return None
    filters = desc["FilterTensor"].Sizes[2:]
    ones = (1,) * len(filters)
    reach = tuple(size - 1 for size in filters)
    before = desc["StartPadding"]
    if desc["Direction"] == "BACKWARD":
        windows = zip(reach, desc["Dilations"], before, strict=True)
        before = tuple(size * dilation - start for size, dilation, start in windows)
        start = reach
    else:
        start = (0,) * len(filters)
    plain: dict[str, Any] = {**desc, "StartPadding": start, "EndPadding": start, "Dilations": ones}
    inputs = case.inputs()
    if any(before):
        inputs["FilterTensor"] = np.zeros_like(inputs["FilterTensor"])
    wrong = replace(case, desc=plain).with_data(inputs)
    return Computed(evaluate(wrong), around=wrong)


def first_group_of_filter_and_input(case: Case) -> Computed | None:
    """Return CONVOLUTION's outputs for groups of a filter with the input's spatial sizes.

    With G groups of n outputs, output i < n is the first group's input times filter G * i. The
    other outputs are 0. Then the bias is added. For an input [1, 10] in two groups and the filters
    [2, 3, 4, 5], the outputs are [2, 4, 0, 0], not [2, 3, 40, 50]. None for one group.
    """
    desc, inputs = case.desc, case.inputs()
    groups = desc["GroupCount"]
    if groups == 1 or not _is_one_product(desc):
        return None
    filters = inputs["FilterTensor"]
    inputs["FilterTensor"] = np.zeros_like(filters)
    inputs["FilterTensor"][: len(filters) // groups] = filters[::groups]
    wrong = case.with_data(inputs)
    return Computed(evaluate(wrong), around=wrong)


def _is_one_product(desc: Desc) -> bool:
    """Return whether a forward cross-correlation has one window, as large as the input.

    A backward convolution also counts if it has one group, strides of 1, and the size 1 for one of
    the filter's first two axes. Swapping these axes then keeps the order of elements.
    """
    kind = desc["Mode"], desc["Direction"]
    filters = desc["FilterTensor"].Sizes
    backward = kind == ("CONVOLUTION", "BACKWARD") and 1 in filters[:2]
    backward &= desc["GroupCount"] == 1 and all(stride == 1 for stride in desc["Strides"])
    whole = filters[2:] == desc["InputTensor"].Sizes[2:]
    behind = zip(desc["OutputTensor"].Sizes[2:], desc["OutputPadding"], strict=True)
    one = all(size - padding == 1 for size, padding in behind)
    return (kind == ("CROSS_CORRELATION", "FORWARD") or backward) and whole and one


def zeros_of_a_dilation_of_zero(case: Case) -> Computed | None:
    """Return zeros, which FOLD gives if a dilation is 0; None if none is 0."""
    if all(case.desc["Dilations"]):
        return None
    outputs = evaluate(case)
    return Computed({name: np.zeros_like(array) for name, array in outputs.items()})


_SLICE = 16
"""The number of squares in a slice of a window is a multiple of this."""


def squares_left_out(case: Case) -> Computed | None:
    """Return the gradient of a local response normalization if one slice of the squares is used.

    Where the window is about as large as the tensor, DirectML cuts its LocalSize * LocalSize
    squares into slices, row by row. It uses only the first slice. Squares outside the tensor are 0.
    Measured: a slice has a multiple of 16 squares, from 32 of 13 * 13 to 288 of 33 * 33.

    Let `g` be InputGradientTensor, `x` the input, and `sum` a sum over the window. Let `b` be Bias
    + Alpha / LocalSize times the sum of the first slice's squares. The gradient is `g / b ** Beta -
    2 * Alpha * Beta / LocalSize * x * sum(g * x / b ** (Beta + 1))`. None with CrossChannel.
    """
    desc = case.desc
    if desc["CrossChannel"]:
        return None
    return replace(next(_gradients(case)), others=lambda: islice(_gradients(case), 1, None))


def _gradients(case: Case) -> Iterator[Computed]:
    """Yield the gradient for each size of the first slice; in FLOAT16, also for each store."""
    desc = case.desc
    x = case.inputs()["InputTensor"].astype(np.float64)
    stores: Iterable[Store | None] = (None,)
    if desc["InputTensor"].DataType is DataType.FLOAT16:
        stores = (None, *STORES)
    for store in stores:
        squares = x * x if store is None else store(x * x)
        for sums in _first_slices(squares, desc["LocalSize"]):
            yield _with_sums(case, sums, store or (lambda values: values))


def _with_sums(case: Case, sums: Array, store: Store) -> Computed:
    """Return the gradient from sums of squares; `store` rounds the sums and the bases `b`."""
    desc, inputs = case.desc, case.inputs()
    x = inputs["InputTensor"].astype(np.float64)
    g = inputs["InputGradientTensor"].astype(np.float64)
    alpha, beta, bias = (float(np.float32(desc[name])) for name in ("Alpha", "Beta", "Bias"))
    size = desc["LocalSize"]
    with np.errstate(all="ignore"):
        base = store(bias + alpha / size * store(sums))
        first = g / np.power(base, beta)
        shares = g * x / np.power(base, beta + 1)
        factor = 2 * alpha * beta / size * x
        gradient = first - factor * _sums(shares, size)
        terms = np.abs(first) + np.abs(factor) * _sums(np.abs(shares), size)
        name = "OutputGradientTensor"
        stored = gradient.astype(desc[name].DataType.dtype)
    return Computed({name: stored}, terms={name: SumErrors(terms)})


def _first_slices(squares: Array, size: int) -> Iterator[Array]:
    """Yield each window's sum of squares in a first slice of 0 squares, of 16, of 32, and so on."""
    height, width = squares.shape[-2:]
    before, after = (size - 1) // 2, size // 2
    sums = np.zeros_like(squares)
    yield sums.copy()
    end = _SLICE
    for row in range(max(-before, 1 - height), min(after, height - 1) + 1):
        for column in range(max(-before, 1 - width), min(after, width - 1) + 1):
            at = (row + before) * size + column + before
            if at >= end:
                yield sums.copy()
                end = at // _SLICE * _SLICE + _SLICE
            inside = (..., _shifted(-row, height), _shifted(-column, width))
            there = (..., _shifted(row, height), _shifted(column, width))
            sums[inside] += squares[there]


def _shifted(step: int, size: int) -> slice:
    """Return the indices i of an axis for which i - step is also an index."""
    return slice(max(step, 0), size + min(step, 0))


def _sums(values: Array, size: int) -> Array:
    """Return the sum over the window around each element, along the last two axes."""
    for axis in (-2, -1):
        count = values.shape[axis]
        sums = np.zeros_like(values)
        for at in range(count):
            begin, end = max(at - (size - 1) // 2, 0), min(at + size // 2 + 1, count)
            window = np.take(values, range(begin, end), axis).sum(axis)
            sums[(..., at, slice(None)) if axis == -2 else (..., at)] = window
        values = sums
    return values
