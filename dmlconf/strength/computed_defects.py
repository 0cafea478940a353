"""Defects whose wrong outputs another run of the reference gives, such as with a wrong index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.model import AttributeKind, FieldKind
from dmlconf.catalogue.precision import RuleKind
from dmlconf.strength.injection import Defect, Site, recomputed
from dmlconf.strength.sums import added_up, summed_axis
from dmlconf.tensors.datatypes import Array

__all__ = ["COMPUTED_DEFECTS"]

_NUMBERS: Final = (AttributeKind.UINT, AttributeKind.INT, AttributeKind.FLOAT)

_SETS: Final = frozenset({"Axes"})
"""Attributes whose values mean the same in any order."""


def _attribute_transposed(site: Site) -> Iterator[tuple[str, Array]]:
    for field in site.case.entry.of_kind(FieldKind.ATTRIBUTE):
        value = site.case.desc.get(field.name)
        if not field.is_array or field.attribute_kind not in _NUMBERS or not value:
            continue
        if field.name in _SETS or field.without_effect:
            continue
        if tuple(reversed(value)) != value:
            wrong = recomputed(site, desc={field.name: tuple(reversed(value))})
            if wrong is not None:
                yield field.name, wrong


def _input_transposed(site: Site) -> Iterator[tuple[str, Array]]:
    if site.correct.size == 1:
        return  # An output of one element is mostly a sum, whose terms may have any order.
    for name, array in site.case.inputs().items():
        if array.ndim > 1 and min(array.shape[-2:]) > 1:
            swapped = np.ascontiguousarray(np.swapaxes(array, -1, -2)).reshape(array.shape)
            wrong = recomputed(site, {name: swapped})
            if wrong is not None and _matters(site, name, array):
                yield name, wrong


def _matters(site: Site, name: str, array: Array) -> bool:
    """Return whether the output depends on an input; True if the reference fails."""
    with np.errstate(all="ignore"):
        other = recomputed(site, {name: np.where(array == 0, 3, 0).astype(array.dtype)})
    return other is None or other.tobytes() != site.correct.tobytes()


def _one_index_wrong(site: Site) -> Iterator[tuple[str, Array]]:
    for name, array in site.case.inputs().items():
        if "Indices" not in name or array.dtype.kind == "f" or array.size < 2:
            continue
        wrong_index = array.copy()
        flat = wrong_index.ravel()
        different = np.flatnonzero(flat != flat[0])
        if len(different):
            flat[0] = flat[different[0]]
            wrong = recomputed(site, {name: flat.reshape(array.shape)})
            if wrong is not None:
                yield name, wrong


def _last_product_dropped(site: Site) -> Iterator[tuple[str, Array]]:
    if site.rule.kind != RuleKind.ACCUMULATE:
        return
    name, array = next(iter(site.case.inputs().items()))
    axis = summed_axis(site.case)
    if array.shape[axis] > 1:
        without = array.copy()
        where: list[Any] = [slice(None)] * array.ndim
        where[axis] = -1
        without[tuple(where)] = 0
        wrong = recomputed(site, {name: without})
        if wrong is not None and _matters(site, name, array):
            yield "", wrong


def _sum_in_float16(site: Site) -> Iterator[tuple[str, Array]]:
    wrong = added_up(site, "forward", np.float16)
    if wrong is not None:
        yield "", wrong


COMPUTED_DEFECTS: Final = (
    Defect("attribute transposed", _attribute_transposed),
    Defect("input transposed", _input_transposed),
    Defect("one index wrong", _one_index_wrong),
    Defect("last product dropped", _last_product_dropped),
    Defect("accumulated in float16", _sum_in_float16),
)
