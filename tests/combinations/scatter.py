"""Make indices that write no element twice, and give SCATTER_ND other sizes that fit.

In an input of 4x3x5 elements, a tuple of two indices chooses a row of five elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import Operator
from tests.combinations.sizes import SIZES

__all__ = ["distinct_indices", "with_other_tuples"]

_MOST_LISTED: Final = 96

_LEADING: Final = (4, 3, 2, 1, 1, 1, 1)
"""Sizes of the input before its last one; a shape takes the first ones."""

_OWN: Final = (1, 2, 3)
"""Sizes of updates that may have another number of dimensions than the input."""

_TUPLES: Final = ((2, 3), (1, 3), (3,), (2, 1, 2), ())
"""Sizes of the tensor of indices before its last one, which is the length of a tuple."""


def distinct_indices(operator: Operator, desc: Desc, tensor: TensorDesc) -> dict[str, Any]:
    """Return the entry for indices that write no element twice; ValueError if there are none."""
    count = tensor.ElementCount
    if operator.name == "SCATTER_ND":
        return _tuples(desc, tensor)
    if operator.name == "SCATTER_ELEMENTS":
        return _along_the_axis(desc, tensor)
    elements = desc["OutputTensor"].ElementCount
    if count > elements:
        raise ValueError("there are more indices than elements")
    return {"fill": {"sequence": {"start": 0, "step": elements // count}}}


def _tuples(desc: Desc, tensor: TensorDesc) -> dict[str, Any]:
    """Return the entry for the indices of SCATTER_ND; all tuples differ."""
    size = tensor.Sizes[-1]
    sizes = desc["InputTensor"].Sizes[-desc["InputDimensionCount"] :]
    most = min(sizes[:size])
    count = tensor.ElementCount // size
    if most**size < count:
        raise ValueError("there are more tuples than elements")
    if tensor.ElementCount > _MOST_LISTED:
        if size > 1:
            raise ValueError("too many tuples to list")
        return {"fill": {"sequence": {"start": 0, "step": most // count}}}
    every = list(product(range(most), repeat=size))
    step = next(n for n in range(len(every) * 2 // 3 + 1, 0, -1) if math.gcd(n, len(every)) == 1)
    chosen = [every[(1 + at * step) % len(every)] for at in range(count)]
    return {"values": [index for each in chosen for index in each]}


def _along_the_axis(desc: Desc, tensor: TensorDesc) -> dict[str, Any]:
    """Return the entry for the indices of SCATTER_ELEMENTS; they differ along the axis."""
    axis = desc["Axis"]
    count, most = tensor.Sizes[axis], desc["InputTensor"].Sizes[axis]
    if count > most:
        raise ValueError("there are more indices than elements")
    inner = math.prod(tensor.Sizes[axis + 1 :])
    if tensor.ElementCount <= _MOST_LISTED:
        step = next(n for n in range(most * 2 // 3 + 1, 0, -1) if math.gcd(n, most) == 1)
        values = [
            (at // (inner * count) + at % inner + at // inner % count * step) % most
            for at in range(tensor.ElementCount)
        ]
        return {"values": values}
    for period in range(most, count - 1, -1):
        if math.gcd(inner, period) == 1:
            return {"fill": {"sequence": {"start": 0, "period": period}}}
    raise ValueError("no period gives other indices along the axis")


def with_other_tuples(desc: Desc, name: str, value: str) -> Iterator[Desc]:
    """Yield descs of SCATTER_ND in which the parameter `name` may have `value`."""
    sizes = desc["InputTensor"].Sizes
    rank = int(value) if name == "dimensions" else len(sizes)
    lasts = SIZES[value] if name == "last size" else dict.fromkeys((sizes[-1], 5, 7))
    for size in lasts:
        shape = (*_LEADING[: rank - 1], size)
        for lead, chosen in product(_TUPLES, (2, 1)):
            if chosen <= rank and min(shape[:chosen]) ** chosen >= math.prod(lead):
                yield _with_sizes(desc, shape, (*lead, chosen))
        # Indices and updates may have other numbers of dimensions than the input.
        count = min(rank, 2)
        flat = (*(1,) * (rank - count), *(4, size)[-count:])
        if min(flat[-count:]) ** count >= math.prod(_OWN):
            yield _with_sizes(desc, flat, (*_OWN, count), count)


def _with_sizes(
    desc: Desc, shape: tuple[int, ...], indices: tuple[int, ...], count: int | None = None
) -> Desc:
    """Return a desc with these sizes of the input and the indices.

    `count` is InputDimensionCount. Without it, all tensors get the same number of dimensions.
    """
    chosen = indices[-1]
    if count is None:
        updates = (*indices[:-1], *shape[chosen:])
        updates = (*(1,) * (len(shape) - len(updates)), *updates)
        leading = (1,) * (len(shape) - len(indices))
    else:
        updates, leading = indices[:-1], ()
    sizes = {
        "InputTensor": shape,
        "OutputTensor": shape,
        "IndicesTensor": (*leading, *indices),
        "UpdatesTensor": updates,
    }
    tensors: dict[str, TensorDesc] = {name: desc[name] for name in sizes}
    return {
        **desc,
        **{name: replace(tensor, Sizes=sizes[name]) for name, tensor in tensors.items()},
        "InputDimensionCount": count or len(shape),
        "IndicesDimensionCount": len(indices),
    }
