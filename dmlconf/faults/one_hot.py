"""Faults of ONE_HOT: it misreads indices or its second value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array

__all__ = [
    "first_value_in_place_of_the_second",
    "low_word_as_index",
    "second_value_after_the_first",
    "unsigned_index_as_signed",
]


def low_word_as_index(case: Case) -> Computed | None:
    """Return ONE_HOT's outputs if only the low word and the sign of an INT64 index count.

    4294967297 has the low word 1, and selects the second of two elements. If the index is negative,
    the axis size is added to the low word: -4294967295 becomes 1 + 2.
    """
    inputs = case.inputs()
    if inputs["IndicesTensor"].dtype != np.int64:
        return None
    return Computed(evaluate(case, _with_low_words(case, inputs)))


def unsigned_index_as_signed(case: Case) -> Computed | None:
    """Return ONE_HOT's outputs if UINT64 indices are taken for INT64, by their low words.

    18446744073709551615 is then -1, which selects the last element.
    """
    inputs = case.inputs()
    indices = inputs["IndicesTensor"]
    if indices.dtype != np.uint64:
        return None
    signed = {**inputs, "IndicesTensor": indices.view(np.int64)}
    return Computed(evaluate(case, _with_low_words(case, signed)))


def _with_low_words(case: Case, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the inputs with each index's low word, UINT32; negative ones plus the axis size."""
    indices = inputs["IndicesTensor"]
    size = np.uint32(case.desc["OutputTensor"].Sizes[case.desc["Axis"]])
    return {**inputs, "IndicesTensor": indices.astype(np.uint32) + (indices < 0) * size}


def first_value_in_place_of_the_second(case: Case) -> Computed | None:
    """Return ONE_HOT's outputs in a graph if the last dimension of ValuesTensor has 1 element.

    The kernel looks for the second value along that dimension, and reads the first value again.
    """
    if case.desc["ValuesTensor"].Sizes[-1] != 1:
        return None
    inputs = case.inputs()
    values = inputs["ValuesTensor"]
    return _with_second(case, values.ravel()[0])


def second_value_after_the_first(case: Case) -> Computed | None:
    """Return ONE_HOT's outputs if the second value is read at the last dimension's stride.

    The stride of a dimension of 1 element may lead into a gap with unknown content, or beyond the
    buffer, where zeros are read. None if the dimension has more elements, or without strides.
    """
    tensor = case.desc["ValuesTensor"]
    if tensor.Sizes[-1] != 1 or tensor.Strides is None:
        return None
    buffer: dict[int, Any] = {}
    values = case.inputs()["ValuesTensor"]
    for coordinates in np.ndindex(*tensor.Sizes):
        offset = sum(at * stride for at, stride in zip(coordinates, tensor.Strides, strict=True))
        buffer.setdefault(offset, values[coordinates])
    offset = tensor.Strides[-1]
    computed = _with_second(case, buffer.get(offset, values.dtype.type(0)))
    inside = offset * tensor.DataType.bits // 8 < -(-tensor.TotalTensorSizeInBytes // 4) * 4
    if offset in buffer or not inside:
        return computed
    unknown = _with_second(case, values.dtype.type(0), first=values.dtype.type(1))
    return replace(computed, unknown={"OutputTensor": unknown.outputs["OutputTensor"] == 0})


def _with_second(case: Case, second: Array | Any, first: Array | Any | None = None) -> Computed:
    """Return ONE_HOT's output with another second value, and perhaps another first value."""
    inputs = case.inputs()
    if first is None:
        first = inputs["ValuesTensor"].ravel()[0]
    marked = np.zeros_like(inputs["ValuesTensor"])
    along = next(at for at in reversed(range(marked.ndim)) if marked.shape[at] > 1)
    marked[tuple(1 if at == along else 0 for at in range(marked.ndim))] = 1
    hot = evaluate(case, {**inputs, "ValuesTensor": marked})["OutputTensor"]
    chosen = np.where(hot != 0, second, first).astype(marked.dtype)
    return Computed({"OutputTensor": chosen})
