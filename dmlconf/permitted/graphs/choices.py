"""Indices of a graph that are as right as the expected ones: which elements may come first.

Samples move all elements of an intermediate at once, so of many elements that are near each other
they show only a few as the greatest. Where numbers are ordered, each element's own range tells
more: it may take a rank if no more elements are before it for sure, and if as many may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.graphs.model import Slot
from dmlconf.permitted.graphs.nonzero import nonzero_choices
from dmlconf.permitted.graphs.samples import Band
from dmlconf.reference.graph_evaluation import NodeValues
from dmlconf.tensors.datatypes import Array

__all__ = ["index_choices", "ranges_at_most"]

_INDICES: Final[Mapping[str, str]] = {
    "ARGMAX": "OutputTensor",
    "ARGMIN": "OutputTensor",
    "ACTIVATION_HARDMAX1": "OutputTensor",
    "TOP_K": "OutputIndexTensor",
    "TOP_K1": "OutputIndexTensor",
}
"""The output that follows from the order, by operator."""

_MOST_PAIRS: Final = 1 << 22
"""Pairs of elements that are compared; of larger tensors the samples alone tell."""


def index_choices(
    bands: Mapping[Slot, Band], right: NodeValues, moved: Sequence[NodeValues]
) -> dict[Slot, Sequence[Array]]:
    """Return for each output that follows from an order others that are as right.

    These are indices, and for HARDMAX1 the 1 of a first element and the 0 of another one. The
    coordinates of elements that are not zero follow from which of these are zero.

    Args:
        bands: what is permitted of each output of a node.
        right: what the nodes compute.
        moved: what they compute from moved intermediates.
    """
    choices: dict[Slot, Sequence[Array]] = {}
    for name, case in right.cases.items():
        counts = case.operator_name == "NONZERO_COORDINATES"
        if not counts and case.operator_name not in _INDICES:
            continue
        values = [sample.cases[name].inputs()["InputTensor"] for sample in moved]
        source = right.sources[name, "InputTensor"]
        band = None if isinstance(source, str) else bands.get(source)  # A constant has none.
        if band is not None and band.right.shape == values[0].shape:
            values += [band.lowest, band.highest]
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        if counts:
            of_counts = nonzero_choices(case, low, high)
            choices |= {(name, tensor): arrays for tensor, arrays in of_counts.items()}
        elif values[0].dtype.itemsize < 8 and (low < high).any():
            tensor = _INDICES[case.operator_name]
            choices[name, tensor] = _choices(case, right.outputs[name, tensor], low, high)
    return choices


def ranges_at_most(case: Case, tensor: str) -> Sequence[tuple[int, int]]:
    """Return in which ranges an output lies that follows from an order; empty for any other.

    An index is one of the line's, whatever its elements are, and an element of HARDMAX1 is 0 or 1.
    Measured: so it is with NaN, in 300 lines of 2 to 2,000 elements on 1.8.0, 1.13.1 and 1.15.4.
    """
    if _INDICES.get(case.operator_name) != tensor:
        return ()
    if case.operator_name == "ACTIVATION_HARDMAX1":
        return (0, 0), (1, 1)
    desc = case.desc
    axes = set(desc["Axes"]) if "Axes" in desc else {desc["Axis"]}
    return ((0, prod(desc["InputTensor"].Sizes[axis] for axis in axes) - 1),)


def _choices(case: Case, expected: Array, low: Array, high: Array) -> list[Array]:
    """Return arrays like the expected one, each with one value wherever that is right."""
    desc = case.desc
    axes = sorted(set(desc["Axes"])) if "Axes" in desc else [desc["Axis"]]
    moved = np.moveaxis(low, axes, range(-len(axes), 0)).shape
    low, high = _lines(low, axes), _lines(high, axes)
    count = low.shape[-1]
    if low.size * count > _MOST_PAIRS:
        return []
    name, direction = case.operator_name, desc.get("AxisDirection")
    if name == "ARGMIN" or (name == "TOP_K1" and direction == "INCREASING"):
        low, high = -high, -low
    ranks = desc.get("K", 1)
    last_first = name.startswith("ARG") and direction == "DECREASING"
    at_least, at_most = _ranks(low, high, last_first=last_first)
    if name == "ACTIVATION_HARDMAX1":
        of_one = np.where(at_least == 0, 1, 0), np.where(at_most > 0, 0, 1)
        back = (np.moveaxis(each.reshape(moved), range(-len(axes), 0), axes) for each in of_one)
        return [each.astype(expected.dtype) for each in back]
    arrays = []
    for index in range(count):
        possible = np.stack(
            [
                (at_least[..., index] <= rank) & (rank <= at_most[..., index])
                for rank in range(ranks)
            ],
            axis=-1,
        )
        if "Axes" in desc:
            possible = possible.reshape(expected.shape)
        else:
            possible = np.moveaxis(possible, -1, axes[0])
        if (possible & (expected != index)).any():
            arrays.append(np.where(possible, expected.dtype.type(index), expected))
    return arrays


def _lines(values: Array, axes: Sequence[int]) -> Array:
    """Return FLOAT64 values with the axes joined to the last one, in row-major order."""
    last = np.moveaxis(values.astype(np.float64), axes, range(-len(axes), 0))
    return last.reshape(*last.shape[: values.ndim - len(axes)], -1)


def _ranks(low: Array, high: Array, *, last_first: bool) -> tuple[Array, Array]:
    """Return the least and the greatest rank that each element may have, from the greatest down.

    Nothing orders NaN, so elements of a line with one have no rank.

    Args:
        low: the least that elements may be, along the last axis.
        high: the greatest.
        last_first: whether of equal elements the last comes first.
    """
    count = low.shape[-1]
    indices = np.arange(count)
    earlier = indices[:, None] < indices[None, :]
    if last_first:
        earlier = earlier.T
    # The axes before the last two are those of lines; then the other element, then the element.
    certain = low[..., :, None] > high[..., None, :]
    certain |= (low[..., :, None] == high[..., None, :]) & earlier
    possible = high[..., :, None] > low[..., None, :]
    possible |= (high[..., :, None] == low[..., None, :]) & earlier
    other = indices[:, None] != indices[None, :]
    at_least, at_most = (certain & other).sum(-2), (possible & other).sum(-2)
    unordered = (np.isnan(low) | np.isnan(high)).any(-1, keepdims=True)
    return np.where(unordered, count, at_least), np.where(unordered, -1, at_most)
