"""Other right indices, and marks of HARDMAX, in a graph where the bands of elements overlap.

If 1.0, 1.1 and 0.9 may each be off by 0.2, each may be the greatest, so ARGMAX may be 0, 1 or 2.
Samples show only some of these results; the ranges of the elements show all. Elements that are
compared with each other, such as these three, are a line. An element may have rank r if at most r
others of its line certainly come before it, and at least r may. `nonzero` has the choices of
NONZERO_COORDINATES.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.graphs.model import Slot
from dmlconf.permitted.graphs.bands import Band
from dmlconf.permitted.graphs.nonzero import nonzero_choices, uncertain_rows
from dmlconf.permitted.numbers.comparison_in_parts import compared_in_parts
from dmlconf.precision.allowance import Interval
from dmlconf.reference.graph_evaluation import NodeValues
from dmlconf.tensors.datatypes import Array

__all__ = ["IndexChoices", "Order", "index_choices", "order_of", "ranges_at_most"]

_OUTPUTS: Final[Mapping[str, str]] = {
    "ARGMAX": "OutputTensor",
    "ARGMIN": "OutputTensor",
    "ACTIVATION_HARDMAX": "OutputTensor",
    "ACTIVATION_HARDMAX1": "OutputTensor",
    "REDUCE": "OutputTensor",
    "TOP_K": "OutputIndexTensor",
    "TOP_K1": "OutputIndexTensor",
}
"""By operator, the output that follows from the order of elements; for REDUCE only with the
functions ARGMAX and ARGMIN."""

TRUTH_VALUES: Final = frozenset(
    {
        "ELEMENT_WISE_IS_INFINITY",
        "ELEMENT_WISE_IS_NAN",
        "ELEMENT_WISE_LOGICAL_AND",
        "ELEMENT_WISE_LOGICAL_EQUALS",
        "ELEMENT_WISE_LOGICAL_GREATER_THAN",
        "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL",
        "ELEMENT_WISE_LOGICAL_LESS_THAN",
        "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL",
        "ELEMENT_WISE_LOGICAL_NOT",
        "ELEMENT_WISE_LOGICAL_OR",
        "ELEMENT_WISE_LOGICAL_XOR",
    }
)

_MOST_PAIRS: Final = 1 << 22
"""The most pairs of elements that are compared: their truth values take 4 MiB. With more pairs,
only lines with elements that may be any number have choices."""


@dataclass(frozen=True, slots=True)
class Order:
    """How an operator orders the elements of a line.

    Attributes:
        output: the output that holds indices, or the ones and zeros of HARDMAX.
        axes: the axes that a line extends over, in ascending order.
        least_first: whether the least element comes first.
        last_first: whether of equal elements the last comes first.
        ranks: how many of the first elements the operator returns.
        marks: whether the output marks the first element with 1 instead of giving its index.
    """

    output: str
    axes: Sequence[int]
    least_first: bool
    last_first: bool
    ranks: int
    marks: bool


def order_of(case: Case) -> Order | None:
    """Return how an operator orders the elements of a line, or None if it does not."""
    name, desc = case.operator_name, case.desc
    function = desc["Function"] if name == "REDUCE" else name
    if name not in _OUTPUTS or (name == "REDUCE" and function not in ("ARGMIN", "ARGMAX")):
        return None
    if "Axes" in desc:
        axes = sorted(set(desc["Axes"]))
    else:
        axes = [desc.get("Axis", len(desc["InputTensor"].Sizes) - 1)]
    direction = desc.get("AxisDirection")
    return Order(
        _OUTPUTS[name],
        axes,
        least_first=function == "ARGMIN" or (name == "TOP_K1" and direction == "INCREASING"),
        last_first=name.startswith("ARG") and direction == "DECREASING",
        ranks=desc.get("K", 1),
        marks=name.startswith("ACTIVATION"),
    )


@dataclass(frozen=True, slots=True)
class IndexChoices:
    """Other right values of the outputs that follow from the order of elements.

    Attributes:
        arrays: further outputs; each of their elements is as right as the expected one.
        open: elements for which any index of their line, either mark, or any coordinate is right.
    """

    arrays: Mapping[Slot, Sequence[Array]]
    open: Mapping[Slot, Array]


def index_choices(
    bands: Mapping[Slot, Band],
    right: NodeValues,
    moved: Sequence[NodeValues],
    read: Mapping[Slot, Array],
) -> IndexChoices:
    """Return, for each output that follows from an order, other outputs that are as right.

    Comparisons with NaN are false. So if an element of a line may be NaN, it may come first, or any
    that may be first among the others. Any element of that line may come first in three cases: for
    TOP_K, if another element is NaN, or if elements are compared in parts.

    Args:
        moved: the evaluations of the graph, the right one and the samples.
        read: the elements that may be any number, as `reach.Open.read` has them.
    """
    choices: dict[Slot, Sequence[Array]] = {}
    open_: dict[Slot, Array] = {}
    for name, case in right.cases.items():
        counts = case.operator_name == "NONZERO_COORDINATES"
        order = order_of(case)
        if not counts and order is None:
            continue
        values = [sample.cases[name].inputs()["InputTensor"] for sample in moved]
        source = right.sources[name, "InputTensor"]
        unbounded = None
        if not isinstance(source, str):
            unbounded, band = read.get(source), bands.get(source)  # A constant has no band.
            if band is not None and band.right.shape == values[0].shape:
                values += [band.lowest, band.highest, *choices.get(source, ())]
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        if unbounded is None:
            unbounded = np.zeros(low.shape, bool)
        if unbounded.shape != low.shape:
            continue  # The node reads the source by other Sizes.
        if order is None:
            least, greatest = _limits(low.dtype)
            low, high = np.where(unbounded, least, low), np.where(unbounded, greatest, high)
            of_counts = nonzero_choices(case, low, high)
            choices |= {(name, tensor): arrays for tensor, arrays in of_counts.items()}
            rows = uncertain_rows(case, low, high)
            if rows is not None:
                open_[name, "OutputCoordinatesTensor"] = rows
            continue
        slot = name, order.output
        if unbounded.any() or (low < high).any():
            ends = low, high
            choices[slot], lines = _choices(case, order, right.outputs[slot], ends, unbounded)
            if lines.any():
                open_[slot] = lines
    return IndexChoices(choices, open_)


def ranges_at_most(case: Case, tensor: str) -> Sequence[tuple[int, int]]:
    """Return the ranges in which elements of an output lie, with their ends; none if unknown.

    Indices in a line of 3 elements are 0 to 2. Truth values and elements of HARDMAX are 0 or 1.
    Measured: this holds for lines with NaN on DirectML 1.8.0, 1.13.1 and 1.15.4.
    """
    if case.operator_name in TRUTH_VALUES:
        return (0, 0), (1, 1)
    order = order_of(case)
    if order is None or order.output != tensor:
        return ()
    if order.marks:
        return (0, 0), (1, 1)
    return ((0, prod(case.desc["InputTensor"].Sizes[axis] for axis in order.axes) - 1),)


def _choices(
    case: Case, order: Order, expected: Array, ends: Interval, unbounded: Array
) -> tuple[list[Array], Array]:
    """Return arrays like the expected one, each with another value wherever that value is right.

    The second result says for which elements any index of the line, or either mark, is right. Each
    element of the input lies between the `ends`, unless it is `unbounded`. With more than
    `_MOST_PAIRS` pairs, there are no arrays, and any index of a line with `unbounded` elements is
    right.
    """
    axes = order.axes
    moved = np.moveaxis(unbounded, axes, range(-len(axes), 0)).shape
    low, high = (_lines(end, axes) for end in ends)
    open_ = _lines(unbounded, axes)
    may_be_nan = low.dtype.kind == "f"
    with_open: Array = np.asarray(open_.any(-1, keepdims=True))
    if low.size * low.shape[-1] > _MOST_PAIRS:
        return [], _like(with_open, order, moved, expected)
    anywhere: Array = np.zeros_like(with_open)
    least, greatest = _limits(low.dtype)
    if may_be_nan:
        hides = case.operator_name.startswith("TOP_K") or compared_in_parts(unbounded.shape, axes)
        anywhere = with_open & (hides | (np.isnan(low) & ~open_).any(-1, keepdims=True))
    low, high = np.where(open_, least, low), np.where(open_, greatest, high)
    if order.least_first:
        low, high = (-high, -low) if may_be_nan else (~high, ~low)
    unordered = open_ if may_be_nan else np.zeros_like(open_)
    ranks = _ranks(low, high, unordered, last_first=order.last_first)
    lines = _like(anywhere, order, moved, expected)
    if order.marks:
        return _marks(expected, order, moved, ranks), lines
    return _indices(expected, order, "Axes" in case.desc, ranks), lines


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    if dtype.kind == "f":
        infinity = dtype.type(np.inf)
        return -infinity, infinity
    limits = np.iinfo(dtype)
    return dtype.type(limits.min), dtype.type(limits.max)


def _marks(
    expected: Array, order: Order, moved: tuple[int, ...], ranks: tuple[Array, Array]
) -> list[Array]:
    """Return two outputs: one with 1 wherever 1 is right, the other with 0 wherever 0 is right.

    Lines with NaN stay as expected. `moved` is the input's shape with the axes of lines last.
    """
    axes, (at_least, at_most) = order.axes, ranks
    of_one = np.where(at_least == 0, 1, 0), np.where(at_most > 0, 0, 1)
    own = _lines(expected, axes)
    marks = (np.where(at_most < 0, own, each).reshape(moved) for each in of_one)
    back = (np.moveaxis(each, range(-len(axes), 0), axes) for each in marks)
    return [each.astype(expected.dtype) for each in back]


def _indices(
    expected: Array, order: Order, one_each: bool, ranks: tuple[Array, Array]
) -> list[Array]:
    """Return, for each index of a line, the expected array with that index wherever it is right.

    Arrays equal to the expected one are left out. If `one_each`, the output has one index for each
    line, else one for each rank along an axis.
    """
    at_least, at_most = ranks
    arrays = []
    for index in range(at_least.shape[-1]):
        possible = np.stack(
            [
                (at_least[..., index] <= rank) & (rank <= at_most[..., index])
                for rank in range(order.ranks)
            ],
            axis=-1,
        )
        if one_each:
            possible = possible.reshape(expected.shape)
        else:
            possible = np.moveaxis(possible, -1, order.axes[0])
        if (possible & (expected != index)).any():
            arrays.append(np.where(possible, expected.dtype.type(index), expected))
    return arrays


def _like(lines: Array, order: Order, moved: tuple[int, ...], expected: Array) -> Array:
    """Return which elements of an output belong to marked lines, shaped like the output."""
    one_each = moved[: len(moved) - len(order.axes)] + (1,) * len(order.axes)
    back = np.moveaxis(lines.reshape(one_each), range(-len(order.axes), 0), order.axes)
    return np.broadcast_to(back, expected.shape)


def _lines(values: Array, axes: Sequence[int]) -> Array:
    """Return values with these axes merged into a last one, row-major; floats in FLOAT64."""
    wide = values.astype(np.float64) if values.dtype.kind == "f" else values
    last = np.moveaxis(wide, axes, range(-len(axes), 0))
    return last.reshape(*last.shape[: values.ndim - len(axes)], -1)


def _ranks(low: Array, high: Array, unordered: Array, *, last_first: bool) -> tuple[Array, Array]:
    """Return the least and the greatest rank of each element; the greatest element has rank 0.

    The elements along the last axis lie between `low` and `high`; `unordered` elements may come
    first or last. Elements of a line with NaN have no rank: the results are the number of elements
    and -1.
    """
    count = low.shape[-1]
    indices = np.arange(count)
    earlier = indices[:, None] < indices[None, :]
    if last_first:
        earlier = earlier.T
    # The last two axes: the other element, then the element.
    certain = low[..., :, None] > high[..., None, :]
    certain |= (low[..., :, None] == high[..., None, :]) & earlier
    possible = high[..., :, None] > low[..., None, :]
    possible |= (high[..., :, None] == low[..., None, :]) & earlier
    either = unordered[..., :, None] | unordered[..., None, :]
    certain &= ~either
    possible |= either
    other = indices[:, None] != indices[None, :]
    at_least, at_most = (certain & other).sum(-2), (possible & other).sum(-2)
    if low.dtype.kind != "f":
        return at_least, at_most
    nan = (np.isnan(low) | np.isnan(high)).any(-1, keepdims=True)
    return np.where(nan, count, at_least), np.where(nan, -1, at_most)
