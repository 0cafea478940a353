"""Other data for a failing case: fewer elements, and simpler values."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import numpy as np

from dmlconf.cases.data_facts import is_index, words_of
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.graphs.model import Graph
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.layout import as_stored

__all__ = [
    "Part",
    "data_cost",
    "fitted",
    "fitted_array",
    "index_limits",
    "plain_values",
    "simpler_values",
]


class Part(Enum):
    """Which elements of a tensor are kept when it becomes smaller."""

    FIRST = "first"
    LAST = "last"
    SPECIAL = "special"
    """The most special elements, such as NaN and infinities."""


def fitted(operator: Operator, desc: Desc, case: Case, part: Part) -> dict[str, Array] | None:
    """Return the data of a case for another desc of its operator.

    Args:
        case: the case, whose data are arrays.

    Returns:
        arrays by input. For an input without an array in the case, all elements are 1, or a valid
        index. The result is None if `part` is SPECIAL and no element is special.
    """
    fitting: dict[str, Array] = {}
    special = False
    for name, field, tensor in tensors_of(operator, desc, FieldKind.INPUT):
        old = case.data.get(name)
        values = old if isinstance(old, np.ndarray) else np.ones(1, tensor.DataType.dtype)
        count = _indexed_count(desc) if is_index(field.name) else None
        special |= part is Part.SPECIAL and bool(_speciality(values).any())
        fitting[name] = fitted_array(values, tensor, part, count)
    return fitting if part is not Part.SPECIAL or special else None


def fitted_array(values: Array, tensor: TensorDesc, part: Part, count: int | None) -> Array:
    """Return an array with another tensor's Sizes and data type.

    Elements repeat if there are too few.

    Args:
        count: for indices, how many elements they may choose from; else None.
    """
    if part is Part.SPECIAL:
        values = values.ravel()[np.argsort(-_speciality(values), kind="stable")]
    array = _cast(_resized(values, tensor.Sizes, part), tensor.DataType)
    return as_stored(array if count is None else _in_range(array, count), tensor.Strides)


def _speciality(values: Array) -> Array:
    """Return how special each element is, from 0 if ordinary to 5 for NaN and -infinity."""
    flat = values.ravel()
    if flat.dtype.kind != "f":
        return (flat < 0).astype(int)
    with np.errstate(invalid="ignore"):
        size = np.abs(flat)
        info = np.finfo(flat.dtype)
        subnormal = (size > 0) & (size < info.tiny)
        ranks = np.isnan(flat) * 5 + np.isinf(flat) * 4 + subnormal * 3
        ranks = ranks + ((size == 0) & np.signbit(flat)) * 2
        return np.asarray(ranks + (np.isfinite(flat) & (size > info.max / 2)) * 2 + (flat < 0))


def _resized(values: Array, sizes: tuple[int, ...], part: Part) -> Array:
    if values.ndim == len(sizes) and all(n <= m for n, m in zip(sizes, values.shape, strict=True)):
        ends = zip(sizes, values.shape, strict=True)
        if part is Part.LAST:
            return values[tuple(slice(m - n, m) for n, m in ends)]
        if part is Part.FIRST:
            return values[tuple(slice(0, n) for n in sizes)]
    flat = values.ravel()[::-1] if part is Part.LAST else values.ravel()
    return np.resize(flat, sizes)


def _cast(values: Array, data_type: DataType) -> Array:
    if values.dtype == data_type.dtype:
        return np.array(values)
    with np.errstate(all="ignore"):
        if data_type.is_float:
            return values.astype(data_type.dtype)
        numbers = np.nan_to_num(values.astype(np.float64))
        highest = float(data_type.maximum) if data_type.bits < 64 else 2.0**52
        limited = np.clip(numbers, max(float(data_type.minimum), -(2.0**52)), highest)
        return limited.astype(data_type.dtype)


def _indexed_count(desc: Desc) -> int:
    """Return how many elements an index may choose from in the desc's first tensor.

    The elements lie along Axis or, without a valid Axis, along the shortest dimension.
    """
    tensor = next(value for value in desc.values() if isinstance(value, TensorDesc))
    axis = desc.get("Axis")
    if isinstance(axis, int) and 0 <= axis < len(tensor.Sizes):
        return tensor.Sizes[axis]
    return min(tensor.Sizes)


def index_limits(graph: Graph) -> dict[str, int]:
    """Return how many elements indices may choose from, by the source of the indices."""
    nodes = {node.name: node for node in graph.operator_nodes}
    limits: dict[str, int] = {}
    for (name, tensor), source in graph.sources().items():
        if is_index(tensor):
            origin = source if isinstance(source, str) else source[0]
            limits[origin] = min(_indexed_count(nodes[name].desc), limits.get(origin, 1 << 31))
    return limits


def _in_range(array: Array, count: int) -> Array:
    if array.dtype.kind == "u":
        below: Array = np.minimum(array, np.asarray(count - 1, array.dtype))
        return below
    limited: Array = np.clip(array, -count, count - 1).astype(array.dtype)
    return limited


def data_cost(case: Case) -> tuple[int, int, int]:
    """Return how many elements are not +0, how many are neither +0 nor 1, and the length of these.

    The length counts the characters of the first 64 such elements of each array.
    """
    not_zero = others = digits = 0
    for array in (*case.data.values(), *(each.data for each in case.graph.constants)):
        if isinstance(array, np.ndarray) and array.size:
            with np.errstate(invalid="ignore"):
                zero = (array == 0) & ~np.signbit(array) if array.dtype.kind == "f" else array == 0
                odd = ~zero & (array != 1)
            not_zero += int(array.size - np.count_nonzero(zero))
            others += int(np.count_nonzero(odd))
            digits += sum(len(f"{value:.9g}") for value in array[odd].ravel()[:64].tolist())
    return not_zero, others, digits


_MOST_SINGLE: Final = 64
"""Arrays of at most this many elements are also changed one element at a time. In larger arrays,
the smallest change is of about a sixteenth."""


def simpler_values(array: Array, *, index: bool) -> Iterator[Array]:
    """Yield the array with elements set to 0 or 1, the largest changes first.

    Finally, a floating-point array is rounded, and its finite elements are limited to -1 to 1.

    Args:
        index: whether the elements are indices, which are set to 0 only.
    """
    values = (0,) if index else (0, 1)
    count = array.size
    block = count
    while block:
        for value in values:
            for start in range(0, count, block):
                flat = np.array(array).ravel()
                flat[start : start + block] = value
                yield flat.reshape(array.shape)
        block = block // 2 if count <= _MOST_SINGLE or block > count // 16 else 0
    yield from _rounded(array)


def _rounded(array: Array) -> Iterator[Array]:
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            yield np.rint(array)
            yield np.where(np.isfinite(array), np.clip(array, -1, 1), array)


def plain_values(case: Case, word: str | None = None) -> dict[str, Array]:
    """Return other data of the same sizes for a case.

    Args:
        case: the case; data that are not arrays stay as they are.
        word: a word of `DATA_WORDS`; the elements for which it holds become 1, and indices 0. If
            None, all elements become ordinary values, and indices 0.
    """
    data: dict[str, Any] = dict(case.data)
    for name, field, tensor in tensors_of(case.entry, case.desc, FieldKind.INPUT):
        array = data.get(name)
        if isinstance(array, np.ndarray):
            index = is_index(field.name)
            changed = (
                _ordinary(array, index=index)
                if word is None
                else _without(array, tensor.DataType, word, index=index)
            )
            data[name] = as_stored(changed, tensor.Strides)
    return data


def _ordinary(array: Array, *, index: bool) -> Array:
    if index:
        return np.zeros_like(array)
    if array.dtype.kind == "f":
        steps = (np.arange(array.size) * 7 + 3) % 13
        return (1 + steps / 8).astype(array.dtype).reshape(array.shape)
    return (1 + np.arange(array.size) % 2).astype(array.dtype).reshape(array.shape)


def _without(array: Array, data_type: DataType, word: str, *, index: bool) -> Array:
    flat = np.array(array).ravel()
    for at in range(flat.size):
        if word in words_of(flat[at : at + 1], data_type, index=index):
            flat[at] = 0 if index else 1
    return flat.reshape(array.shape)
