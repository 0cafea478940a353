"""Recompute a sum of products in another order or precision: a defect or a legitimate difference.

More than 64 products are divided into parts of neighbours, each added up in FLOAT64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.precision import RuleKind
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.injection import Site
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["MOST_PARTS", "ORDERS", "added_up", "partial_sums", "summed_axis"]

MOST_PARTS: Final = 64
"""The most parts into which the terms of a sum are divided."""

_CHANNELS: Final = 1
"""The dimension of the channels, over which a convolution adds up its products."""


def summed_axis(case: Case) -> int:
    """Return an axis of the first input over which an operator sums.

    It is the greatest of Axes, or Axis, or -2 if TransA transposes, or for a convolution the
    channels, or else -1.
    """
    axes = case.desc.get("Axes")
    if isinstance(axes, Sequence) and axes:
        return int(max(axes))
    if isinstance(case.desc.get("Axis"), int):
        return int(case.desc["Axis"])
    if case.desc.get("TransA") == "TRANSPOSE":
        return -2
    return _CHANNELS if "FilterTensor" in case.desc else -1


_LEAST_TERMS: Final = 8
"""The fewest elements along the summed axis that are divided; the order of fewer matters little."""

_LEAST_PARTS: Final = 2
"""In some element of the output, this many parts must differ from 0, besides the one for a first
input of zeros; else the order makes no difference."""

_ROUNDING: Final = 1e-9
"""An operator is linear if its parts add up to its output within this share of the sum of the
output and the largest part."""


def partial_sums(site: Site) -> list[Array] | None:
    """Return FLOAT64 parts of an output that add up to it.

    The first part is the output for a first input of zeros, such as a bias. Each of at most
    `MOST_PARTS` others is what some elements of that input add.

    Returns:
        The parts; None if

        - the output is not a floating-point sum, or is not linear in the first input,
        - the first input has integers, or fewer than 8 elements along the axis,
        - an input or a sum is not finite,
        - or no element has two parts other than 0 after the first part.
    """
    if site.rule.kind != RuleKind.ACCUMULATE or site.correct.dtype.kind != "f":
        return None
    inputs = site.case.inputs()
    first, array = next(iter(inputs.items()))
    if array.dtype.kind != "f" or not all(np.isfinite(a).all() for a in inputs.values()):
        return None
    axis = summed_axis(site.case)
    size = array.shape[axis]
    if size < _LEAST_TERMS:
        return None
    step = -(-size // MOST_PARTS)
    nothing = _output(site, {**inputs, first: np.zeros_like(array)})
    parts = [nothing]
    for start in range(0, size, step):
        chosen = np.zeros_like(array)
        where: list[Any] = [slice(None)] * array.ndim
        where[axis] = slice(start, start + step)
        chosen[tuple(where)] = array[tuple(where)]
        with np.errstate(invalid="ignore"):  # Then `total` is not finite.
            parts.append(_output(site, {**inputs, first: chosen}) - nothing)
    if np.max(np.count_nonzero(parts[1:], axis=0), initial=0) < _LEAST_PARTS:
        return None
    with np.errstate(all="ignore"):
        total, whole = np.sum(parts, axis=0), _output(site, inputs)
        largest = np.max(np.abs(parts), initial=0.0)
        linear = np.allclose(total, whole, rtol=_ROUNDING, atol=_ROUNDING * largest)
    return parts if linear and np.isfinite(total).all() else None


def _output(site: Site, inputs: Mapping[str, Array]) -> Array:
    """Return the output for other inputs as FLOAT64, not rounded to its type."""
    tensors = tensors_of(site.case.entry, site.case.desc)
    wide = {
        name: TensorDesc(DataType.FLOAT64, tensor.Sizes)
        for name, _, tensor in tensors
        if tensor.DataType.is_float and name in site.case.desc
    }
    data = {
        name: array.astype(np.float64) if name in wide else array
        for name, array in {**site.case.inputs(), **inputs}.items()
    }
    case = replace(site.case, desc={**site.case.desc, **wide}, data=data)
    return evaluate(case, data)[site.name].astype(np.float64)


_Add = Callable[[Array, Array], Array]


def _forward(parts: Sequence[Array], add: _Add) -> Array:
    return reduce(add, parts)


def _backward(parts: Sequence[Array], add: _Add) -> Array:
    return reduce(add, reversed(parts))


def _pairwise(parts: Sequence[Array], add: _Add) -> Array:
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return add(_pairwise(parts[:half], add), _pairwise(parts[half:], add))


def _blocked(parts: Sequence[Array], add: _Add) -> Array:
    blocks = [reduce(add, parts[start : start + 8]) for start in range(0, len(parts), 8)]
    return reduce(add, blocks)


ORDERS: Final[Mapping[str, Callable[[Sequence[Array], _Add], Array]]] = {
    "forward": _forward,
    "backward": _backward,
    "pairwise": _pairwise,
    "blocked": _blocked,
}


def added_up(site: Site, order: str, precision: type[np.floating[Any]]) -> Array | None:
    """Return the output with its parts added up in an order, with all sums in `precision`.

    None if there are no `partial_sums`.

    Args:
        order: a name in `ORDERS`.
    """
    parts = partial_sums(site)
    if parts is None:
        return None
    with np.errstate(all="ignore"):
        rounded = [part.astype(precision) for part in parts]
        total = ORDERS[order](rounded, lambda a, b: (a + b).astype(precision))
        return total.astype(site.correct.dtype)
