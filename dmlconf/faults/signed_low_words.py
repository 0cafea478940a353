"""A fault of INT64 comparisons: DirectML compares the low words as signed numbers.

In the right order, high words are compared as signed, low words as unsigned numbers. In DirectML,
2147483648 has the low word 0x80000000 and comes before 1, since -2147483648 < 1.

Let x' be x with bit 31 inverted. DirectML's order of a and b is the right order of a' and b', so
its maximum of a and b is max(a', b')'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.bounds import clipped, passed_gradient
from dmlconf.faults.computed import Computed
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array

__all__ = ["low_words_compared_as_signed"]

_BIT_31: Final = np.int64(1 << 31)

_CHOSEN: Final[Mapping[str, frozenset[str]]] = {
    "ARGMAX": frozenset(),
    "ARGMIN": frozenset(),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": frozenset(),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": frozenset(),
    "ELEMENT_WISE_LOGICAL_LESS_THAN": frozenset(),
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": frozenset(),
    "ELEMENT_WISE_MAX": frozenset({"OutputTensor"}),
    "ELEMENT_WISE_MIN": frozenset({"OutputTensor"}),
    "MAX_POOLING": frozenset({"OutputTensor"}),
    "MAX_POOLING1": frozenset({"OutputTensor"}),
    "MAX_POOLING2": frozenset({"OutputTensor"}),
    "TOP_K": frozenset({"OutputValueTensor"}),
    "TOP_K1": frozenset({"OutputValueTensor"}),
}
"""The outputs of each operator that are elements of its inputs; other outputs are indices or
Booleans."""

_REDUCTIONS: Final[Mapping[str, frozenset[str]]] = {
    "MIN": frozenset({"OutputTensor"}),
    "MAX": frozenset({"OutputTensor"}),
    "ARGMIN": frozenset(),
    "ARGMAX": frozenset(),
}
"""The same outputs, by the Function of REDUCE."""

_CLIP_GRADIENTS: Final = frozenset({"ELEMENT_WISE_CLIP_GRAD", "ELEMENT_WISE_CLIP_GRAD1"})

_POOLING: Final = frozenset({"MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"})

_CLIPPING: Final = frozenset({"ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1"})


def low_words_compared_as_signed(case: Case) -> Computed | None:
    """Return the outputs of an operator that compares INT64 numbers in the wrong order.

    The operators are those of `_CHOSEN`, CLIP, CLIP_GRAD, and REDUCE with a function of
    `_REDUCTIONS`. None for others, or if no input is INT64.
    """
    inputs = case.inputs()
    if not any(array.dtype == np.int64 for array in inputs.values()):
        return None
    if case.operator_name in _CLIPPING:
        return Computed({"OutputTensor": clipped(case, _inverted)})
    if case.operator_name in _CLIP_GRADIENTS:
        return Computed({"OutputGradientTensor": passed_gradient(case, _unchanged, _inverted)})
    chosen = _chosen(case)
    if chosen is None:
        return None
    outputs = evaluate(case, {name: _inverted(array) for name, array in inputs.items()})
    start = _start(case)
    for name in chosen:
        if start is not None:
            choose, number = start
            outputs[name] = choose(outputs[name], _inverted(np.array(number, np.int64)))
            if "OutputIndicesTensor" in outputs and case.operator_name in _POOLING:
                first = evaluate(case, dict.fromkeys(inputs, np.zeros_like(inputs["InputTensor"])))
                none = outputs[name] <= _inverted(np.array(number, np.int64))
                indices = outputs["OutputIndicesTensor"]
                outputs["OutputIndicesTensor"] = np.where(
                    none, first["OutputIndicesTensor"], indices
                )
        outputs[name] = _inverted(outputs[name])
    return Computed(outputs)


def _start(case: Case) -> tuple[np.ufunc, int] | None:
    """Return `np.maximum` or `np.minimum`, and the number that a kernel starts with; None if none.

    That number may become the result: in the wrong order, 0x7fffffff00000000 exceeds the greatest
    INT64, since its low word 0 exceeds -1.
    """
    limits = np.iinfo(np.int64)
    if case.operator_name in _POOLING or case.desc.get("Function") == "MAX":
        return np.maximum, int(limits.min)
    return (np.minimum, int(limits.max)) if case.desc.get("Function") == "MIN" else None


def _chosen(case: Case) -> frozenset[str] | None:
    """Return the outputs that are elements of the inputs; None for other operators."""
    if case.operator_name == "REDUCE":
        return _REDUCTIONS.get(case.desc["Function"])
    return _CHOSEN.get(case.operator_name)


def _unchanged(name: str, bound: Array) -> Array:
    return bound


def _inverted(array: Array) -> Array:
    """Return INT64 numbers with bit 31 inverted, and other numbers as they are."""
    return array ^ _BIT_31 if array.dtype == np.int64 else array
