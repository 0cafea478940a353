"""Defects that change the values of a right output, such as a swap of axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from dmlconf.strength.injection import Defect, Site, recomputed
from dmlconf.tensors.datatypes import Array

__all__ = ["VALUE_DEFECTS"]

_GOLDEN_RATIO: Final = (5**0.5 + 1) / 2


def _float_defect(
    name: str, change: Callable[[Array], Array], *, everywhere: bool = True, least_bytes: int = 2
) -> Defect:
    """Return a defect that applies one change to all elements of a floating-point output.

    Args:
        everywhere: whether ordinary numbers change, and not only special ones.
        least_bytes: the size of the smallest type that the defect applies to.
    """

    def inject(site: Site) -> Iterator[tuple[str, Array]]:
        if site.correct.dtype.kind == "f" and site.correct.itemsize >= least_bytes:
            with np.errstate(all="ignore"):
                yield "", change(site.correct)

    def shows(site: Site) -> bool:
        """Return whether the change shows in the output for inputs with many digits."""
        output = recomputed(site, _with_many_digits(site.case.inputs())) if everywhere else None
        if output is None:
            return False
        with np.errstate(all="ignore"):
            return change(output).tobytes() != output.tobytes()

    return Defect(name, inject, shows)


def _with_many_digits(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return numbers from 0.5 to 1.5 with many digits for each floating-point input."""
    return {
        name: (0.5 + np.arange(1, array.size + 1) * _GOLDEN_RATIO % 1)
        .reshape(array.shape)
        .astype(array.dtype)
        for name, array in inputs.items()
        if array.dtype.kind == "f"
    }


def _ulp_away(steps: int) -> Callable[[Array], Array]:
    """Return a function that moves numbers away from zero by `steps` ULP.

    Zeros, infinities, NaN and numbers that would overflow stay.
    """

    def moved(values: Array) -> Array:
        bits = values.view(f"i{values.itemsize}")
        away = (bits + bits.dtype.type(steps)).view(values.dtype)
        movable = np.isfinite(values) & (values != 0) & np.isfinite(away)
        return np.where(movable, away, values)

    return moved


def _through_float16(values: Array) -> Array:
    return values.astype(np.float16).astype(values.dtype)


def _through_bfloat16(values: Array) -> Array:
    single = values.astype(np.float32)
    bits = single.view(np.uint32)
    even = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = (even & np.uint32(0xFFFF_0000)).view(np.float32)
    return np.where(np.isfinite(single), rounded, single).astype(values.dtype)


def _subnormals_flushed(values: Array) -> Array:
    tiny = np.finfo(values.dtype).tiny
    return np.where(np.abs(values) < tiny, np.copysign(values.dtype.type(0), values), values)


def _zero_sign_dropped(values: Array) -> Array:
    return np.where(values == 0, np.abs(values), values)


def _nan_for_infinity(values: Array) -> Array:
    return np.where(np.isinf(values), values.dtype.type(math.nan), values)


def _last_element_wrong(site: Site) -> Iterator[tuple[str, Array]]:
    wrong = site.correct.copy()
    wrong.flat[-1] = 0 if wrong.flat[-1] != 0 else 1
    yield "", wrong


def _one_element_of_a_neighbour(site: Site) -> Iterator[tuple[str, Array]]:
    wrong = site.correct.copy()
    flat = wrong.ravel()
    bits = flat.view(f"u{flat.itemsize}")
    different = np.flatnonzero(bits[1:] != bits[:-1])
    if len(different):
        at = int(different[len(different) // 2])
        flat[at] = flat[at + 1]
        yield "", flat.reshape(wrong.shape)


def _off_by_one(site: Site) -> Iterator[tuple[str, Array]]:
    rank = site.correct.ndim
    for axis, size in enumerate(site.correct.shape):
        if size > 1:
            yield f"axis {axis - rank}", np.roll(site.correct, 1, axis)


def _axes_swapped(site: Site) -> Iterator[tuple[str, Array]]:
    shape = site.correct.shape
    if len(shape) > 1 and min(shape[-2:]) > 1:
        yield "", np.ascontiguousarray(np.swapaxes(site.correct, -1, -2)).reshape(shape)


def _edge_zeroed(site: Site) -> Iterator[tuple[str, Array]]:
    if site.correct.shape[-1] > 1:
        for note, at in (("begin", 0), ("end", -1)):
            wrong = site.correct.copy()
            wrong[..., at] = 0
            yield note, wrong


VALUE_DEFECTS: Final = (
    *(_float_defect(f"{steps} ULP", _ulp_away(steps)) for steps in (1, 2, 16, 1000)),
    _float_defect("rounded through float16", _through_float16, least_bytes=4),
    _float_defect("rounded through bfloat16", _through_bfloat16),
    _float_defect("subnormals flushed", _subnormals_flushed, everywhere=False),
    _float_defect("sign of zero dropped", _zero_sign_dropped, everywhere=False),
    _float_defect("NaN for infinity", _nan_for_infinity, everywhere=False),
    Defect("last element wrong", _last_element_wrong),
    Defect("one element of a neighbour", _one_element_of_a_neighbour),
    Defect("off by one", _off_by_one),
    Defect("axes swapped", _axes_swapped),
    Defect("zero at the edge", _edge_zeroed),
)
