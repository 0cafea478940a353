"""Give slices and padded tensors other shapes, with windows and padding that fit.

A slice of 2x5 elements from the second column on needs an input of 2x6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Final

from dmlconf.catalogue.desc import Desc
from dmlconf.catalogue.model import Operator
from tests.combinations.sizes import SIZES

__all__ = ["moves_windows", "with_other_moves"]

_Sizes = tuple[int, ...]

_LEADING: Final = ((2, 3, 2, 1, 1, 1, 1), (1, 3, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1))
"""Sizes to try before the last one; a shape takes the first ones."""

_FIELDS: Final = {
    "SLICE": ("Offsets", "Sizes", "Strides"),
    "SLICE1": ("InputWindowOffsets", "InputWindowSizes", "InputWindowStrides"),
    "SLICE_GRAD": ("InputWindowOffsets", "InputWindowSizes", "InputWindowStrides"),
    "PADDING": ("StartPadding", "EndPadding"),
    "PADDING1": ("StartPadding", "EndPadding"),
}
"""By operator: its offsets, sizes and strides, or its padding."""


def moves_windows(operator: Operator) -> bool:
    return operator.name in _FIELDS


def with_other_moves(operator: Operator, desc: Desc, name: str, value: str) -> Iterator[Desc]:
    """Yield descs in which the parameter `name` may have `value`; the caller checks them."""
    first, second = _tensors(operator, desc)
    old_sizes = desc[second].Sizes
    rank = int(value) if name == "dimensions" else len(old_sizes)
    lasts = SIZES[value] if name == "last size" else dict.fromkeys((old_sizes[-1], 5))
    for last, leading in product(lasts, _LEADING):
        shape = (*leading[: rank - 1], last)
        if operator.name.startswith("PADDING"):
            yield from _padded(operator, desc, shape, (first, second))
        else:
            for begin in (1, 0):
                yield _sliced(operator, desc, shape, (first, second), begin)


def _tensors(operator: Operator, desc: Desc) -> tuple[str, str]:
    if operator.name == "SLICE_GRAD":
        return "OutputGradientTensor", "InputGradientTensor"
    return "InputTensor", "OutputTensor"


def _sliced(
    operator: Operator, desc: Desc, shape: _Sizes, names: tuple[str, str], begin: int
) -> Desc:
    """Return the desc of a slice of a shape, which begins at `begin` along the last axis."""
    offsets, sizes, strides = _FIELDS[operator.name]
    rank = len(shape)
    begins = (*(0,) * (rank - 1), begin)
    steps = desc[strides] if len(desc[strides]) == rank else (1,) * rank
    windows = tuple((n - 1) * abs(step) + 1 for n, step in zip(shape, steps, strict=True))
    whole = tuple(at + window for at, window in zip(begins, windows, strict=True))
    return {
        **desc,
        names[0]: replace(desc[names[0]], Sizes=whole),
        names[1]: replace(desc[names[1]], Sizes=shape),
        offsets: begins,
        sizes: shape if operator.name == "SLICE" else windows,
        strides: steps,
        "DimensionCount": rank,
    }


def _padded(
    operator: Operator, desc: Desc, shape: _Sizes, names: tuple[str, str]
) -> Iterator[Desc]:
    """Yield descs whose padded tensor has a shape, with padding along the last axis only."""
    rank = len(shape)
    start, end = _FIELDS[operator.name]
    for before, after in ((1, 0), (0, 1), (0, 0)):
        source = (*shape[:-1], shape[-1] - before - after)
        if source[-1] < 1:
            continue
        changed: dict[str, Any] = {
            **desc,
            names[0]: replace(desc[names[0]], Sizes=source),
            names[1]: replace(desc[names[1]], Sizes=shape),
            start: (*(0,) * (rank - 1), before),
            end: (*(0,) * (rank - 1), after),
            "DimensionCount": rank,
        }
        yield changed
