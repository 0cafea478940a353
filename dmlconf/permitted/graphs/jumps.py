"""Elements of a graph at a jump, where small errors of an intermediate change the result a lot.

The remainder of 1000.1 by 1 is 0.1. If the dividend may be off by 0.2, the remainder is between 0
and 0.3 or between 0.9 and 1. The gradient of a maximum goes to either of two elements that are
equal within their errors.

Also at a jump are quotients by roots that may be NaN, undefined coordinates of NONZERO_COORDINATES,
and results of ELEMENT_WISE_LOGICAL_EQUALS (see `decisions`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.graphs.model import Slot
from dmlconf.permitted.graphs.bands import Band
from dmlconf.permitted.graphs.nonzero import uncertain_rows
from dmlconf.precision.allowance import Interval
from dmlconf.reference.graph_evaluation import NodeValues
from dmlconf.reference.windows.sliding import greatest, windows
from dmlconf.tensors.datatypes import Array

__all__ = ["elements_at_jumps", "limits_of_remainders"]

_WHOLE: Final[Mapping[str, Callable[[Array], Array]]] = {
    "ELEMENT_WISE_MODULUS_FLOOR": np.floor,
    "ELEMENT_WISE_MODULUS_TRUNCATE": np.trunc,
}
"""How each operator rounds the quotient to a whole number."""

_MOST_ELEMENTS: Final = 1 << 10
"""The most elements of a window of MAX_POOLING_GRAD that is examined here; larger windows are left
to the samples."""

_WHOLE_IN_FLOAT32: Final = 2.0**22
"""Quotients below this number are rounded to the right whole number, or to one next to it."""

_BEYOND: Final = 0.25
"""How far the range of a quotient is extended on both sides, as a share of that range."""


def elements_at_jumps(
    bands: Mapping[Slot, Band], right: NodeValues, moved: Sequence[NodeValues]
) -> dict[Slot, Array]:
    """Return, by output, the elements at jumps, for which any value is right.

    `moved` has the right evaluation and the samples. Outputs without such elements are left out.
    """
    jumps = _at_roots(right, moved)
    for name, case in right.cases.items():
        if case.operator_name not in _AT_JUMPS:
            continue
        output, at_jumps = _AT_JUMPS[case.operator_name]
        ranges = {
            tensor: _range(case, name, tensor, bands, right, moved) for tensor in case.inputs()
        }
        mask = at_jumps(case, ranges)
        if mask is not None and mask.any():
            jumps[name, output] = mask
    return jumps


def _at_roots(right: NodeValues, moved: Sequence[NodeValues]) -> dict[Slot, Array]:
    """Return the quotients by a root that are NaN in some samples and numbers in others.

    The root may be near 0, so that the quotient may have any size.
    """
    quotients: dict[Slot, Array] = {}
    for name, case in right.cases.items():
        if case.operator_name not in _DIVIDE_BY_ROOTS:
            continue
        for tensor in case.outputs():
            values = [np.isnan(each.outputs[name, tensor]) for each in (right, *moved)]
            mask = np.logical_or.reduce(values) & ~np.logical_and.reduce(values)
            if mask.any():
                quotients[name, tensor] = mask
    return quotients


_DIVIDE_BY_ROOTS: Final = frozenset(
    {
        "ADAM_OPTIMIZER",
        "BATCH_NORMALIZATION",
        "BATCH_NORMALIZATION_GRAD",
        "BATCH_NORMALIZATION_TRAINING",
        "BATCH_NORMALIZATION_TRAINING_GRAD",
        "LP_NORMALIZATION",
        "MEAN_VARIANCE_NORMALIZATION",
        "MEAN_VARIANCE_NORMALIZATION1",
        "MEAN_VARIANCE_NORMALIZATION2",
    }
)


def _remainders(case: Case, ranges: Mapping[str, Interval]) -> Array | None:
    """Return where a quotient may lie on either side of an integer, or have any size.

    None for integer inputs.
    """
    dividend, divisor = ranges["ATensor"], ranges["BTensor"]
    if dividend[0].dtype.kind != "f":
        return None
    whole = _WHOLE[case.operator_name]
    quotients = [a.astype(np.float64) / b for a in dividend for b in divisor]
    low, high = np.fmin.reduce(quotients), np.fmax.reduce(quotients)
    reach = _BEYOND * (high - low)
    mask: Array = (low < high) & (whole(low - reach) != whole(high + reach))
    # A divisor that may lie on both sides of zero has quotients of any size.
    mask |= (divisor[0] < divisor[1]) & (divisor[0] <= 0) & (divisor[1] >= 0)
    return mask


def limits_of_remainders(
    bands: Mapping[Slot, Band],
    right: NodeValues,
    moved: Sequence[NodeValues],
    jumps: Mapping[Slot, Array],
    read: Mapping[Slot, Array],
) -> dict[Slot, Array]:
    """Return, by output, the greatest size of remainders at jumps; NaN where it is not known.

    A remainder is at most as large as the divisor, whatever the dividend is, so it is not NaN
    unless the divisor may be 0. Roundings of the quotient, and of its product with the divisor, may
    take it beyond that by shares of both inputs.

    Args:
        read: the elements of outputs that later nodes may read as any value.
    """
    limits: dict[Slot, Array] = {}
    for (name, output), mask in jumps.items():
        case = right.cases[name]
        if case.operator_name not in _WHOLE:
            continue
        sizes = []
        for tensor in ("ATensor", "BTensor"):
            low, high = _range(case, name, tensor, bands, right, moved)
            ends = np.abs(np.stack([low, high]).astype(np.float64))
            known = np.isfinite(ends).all(axis=0) & mask
            if tensor == "BTensor":
                known &= (low > 0) | (high < 0)
            source = right.sources[name, tensor]
            if not isinstance(source, str) and source in read:
                known &= ~read[source] if read[source].shape == known.shape else False
            sizes.append(np.where(known, ends, np.nan))
        (dividend, divisor), least = (size.max(axis=0) for size in sizes), sizes[1].min(axis=0)
        limit = divisor * (1 + 2.0**-9) + dividend * 2.0**-20
        limits[name, output] = np.where(dividend < _WHOLE_IN_FLOAT32 * least, limit, np.nan)
    return limits


def _gradients_of_maxima(case: Case, ranges: Mapping[str, Interval]) -> Array | None:
    """Return the elements that compete to be the greatest of a window, if any of them is uncertain.

    None if all inputs are certain, a stride is 0, or windows have more than `_MOST_ELEMENTS`
    elements.
    """
    low, high = (end.astype(np.float64) for end in ranges["InputTensor"])
    desc, rank = case.desc, low.ndim - 2
    names = "Strides", "WindowSize", "StartPadding", "Dilations"
    spatial = [desc.get(name, (1,) * rank)[-rank:] for name in names]
    if not (low < high).any() or 0 in spatial[0] or prod(spatial[1]) > _MOST_ELEMENTS:
        return None
    over = windows(low.shape, desc["InputGradientTensor"].Sizes, *spatial)
    least = greatest(low, over, -np.inf)
    for window in over:
        low, high = window.padded(low, -np.inf), window.padded(high, -np.inf)
    parts = [
        (slice(None), slice(None), *(part[-1] for part in each))
        for each in product(*(window.parts() for window in over))
    ]
    count = np.zeros(least.shape, int)
    uncertain = np.zeros(least.shape, bool)
    for part in parts:
        may_be = high[part] >= least
        count += may_be
        uncertain |= may_be & (low[part] < high[part])
    contested = np.zeros(high.shape, bool)
    for part in parts:
        contested[part] |= (high[part] >= least) & uncertain & (count > 1)
    for window in over:
        contested = window.cropped(contested)
    return contested


def _coordinates(case: Case, ranges: Mapping[str, Interval]) -> Array | None:
    return uncertain_rows(case, *ranges["InputTensor"])


def _equalities(case: Case, ranges: Mapping[str, Interval]) -> Array | None:
    """Return where different numbers may be equal within their errors: x and tanh(x) near 0.

    Equal numbers are left out, since both may come from the same intermediate. None for integer
    inputs.
    """
    (low, high), (least, most) = ranges["ATensor"], ranges["BTensor"]
    if low.dtype.kind != "f":
        return None
    inputs = case.inputs()
    uncertain = (low < high) | (least < most)
    mask: Array = uncertain & (low <= most) & (least <= high)
    mask &= inputs["ATensor"] != inputs["BTensor"]
    return mask


_AT_JUMPS: Final[
    Mapping[str, tuple[str, Callable[[Case, Mapping[str, Interval]], Array | None]]]
] = {
    **dict.fromkeys(_WHOLE, ("OutputTensor", _remainders)),
    "ELEMENT_WISE_LOGICAL_EQUALS": ("OutputTensor", _equalities),
    "MAX_POOLING_GRAD": ("OutputGradientTensor", _gradients_of_maxima),
    "NONZERO_COORDINATES": ("OutputCoordinatesTensor", _coordinates),
}
"""By operator: an output, and the function that finds its elements at a jump."""


def _range(
    case: Case,
    name: str,
    tensor: str,
    bands: Mapping[Slot, Band],
    right: NodeValues,
    moved: Sequence[NodeValues],
) -> Interval:
    own = case.inputs()[tensor]
    values = [own, *(each.cases[name].inputs()[tensor] for each in moved)]
    source = right.sources[name, tensor]
    band = None if isinstance(source, str) else bands.get(source)
    if band is not None and band.right.shape == own.shape:
        values += [band.lowest, band.highest]
    return np.fmin.reduce(values), np.fmax.reduce(values)
