"""Effects of driver defects that write or read some elements of a tensor wrongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

import numpy as np

from dmlconf.strength.drivers.computation import Arrays, Computation, Settings
from dmlconf.tensors.datatypes import Array

__all__ = ["merge", "overflow", "read", "write"]


def write(right: Computation, settings: Settings) -> Arrays | None:
    """Return the outputs with some elements replaced.

    Settings: `output` (by default all), `value` (a key of `VALUES`), and those of `_laid_out` and
    `_chosen`.
    """
    names = [settings["output"]] if "output" in settings else list(right.outputs)
    changed = {
        name: _changed(right, right.outputs[name], settings)
        for name in names
        if name in right.outputs
    }
    return {name: array for name, array in changed.items() if array is not None} or None


def read(right: Computation, settings: Settings) -> Arrays | None:
    """Return the outputs for an input with some elements replaced.

    Settings: `input`, `value` (a key of `VALUES`), and those of `_laid_out` and `_chosen`.
    """
    name = settings["input"]
    if name not in right.inputs:
        return None
    array = _changed(right, right.inputs[name], settings)
    return None if array is None else right.again({name: array})


def merge(right: Computation, other: Arrays, settings: Settings) -> Arrays | None:
    """Return the outputs with some elements of `other`: the effect `partly`.

    Settings: those of `_laid_out` and `_chosen`. None if `other` has no output of the right sizes.
    """
    changed = {}
    for name, array in other.items():
        if name in right.outputs and right.outputs[name].shape == array.shape:
            rows, restored = _laid_out(right, right.outputs[name], settings)
            wrong, _ = _laid_out(right, array, settings)
            chosen = _chosen(settings, rows.shape[-1], _start(settings, rows.shape[-1], right.desc))
            rows = rows.copy()
            rows[:, chosen] = wrong[:, chosen]
            changed[name] = restored(rows)
    return changed or None


def overflow(right: Computation, settings: Settings) -> Arrays | None:
    """Return the outputs of a kernel whose index of elements overflows.

    Settings: `bits` of the index, and `of`, inputs or outputs. After an overflow, a tensor is read
    or written from its beginning again; output elements from 2^`bits` on are zero. None if no
    tensor has more than 2^`bits` elements.
    """
    most = 1 << settings["bits"]
    reads = settings["of"] == "inputs"
    arrays = right.inputs if reads else right.outputs
    changed = {
        name: (_read_again if reads else _written_again)(array.ravel(), most).reshape(array.shape)
        for name, array in arrays.items()
        if array.size > most
    }
    if not changed:
        return None
    return right.again(changed) if reads else changed


def _read_again(flat: Array, most: int) -> Array:
    return np.resize(flat[:most], flat.size)


def _written_again(flat: Array, most: int) -> Array:
    left = np.zeros_like(flat)
    for start in range(0, flat.size, most):
        part = flat[start : start + most]
        left[: part.size] = part
    return left


def _changed(right: Computation, array: Array, settings: Settings) -> Array | None:
    rows, restored = _laid_out(right, array, settings)
    length = rows.shape[-1]
    start = _start(settings, length, right.desc)
    chosen = _chosen(settings, length, start)
    if not len(chosen) or (settings["value"] == "wrapped" and start < 1):
        return None
    value = VALUES[settings["value"]]
    with np.errstate(all="ignore"):
        result = value(rows, chosen, start, right.desc)
    if result is None:
        return None
    changed = rows.copy()
    changed[:, chosen] = result
    return restored(changed)


def _start(settings: Settings, length: int, desc: Mapping[str, Any]) -> int:
    """Return the index from which on elements are chosen; for `last_tile` the size of a tile."""
    if "last_tile" in settings:
        return int(settings["last_tile"])
    start = settings.get("from", settings.get("rows_from", 0))
    if start == "group":
        return length // int(desc["GroupCount"])
    return length // 2 if start == "half" else int(start)


def _chosen(settings: Settings, length: int, start: int) -> Array:
    """Return the indices of the chosen elements along the axis.

    Of these settings, the first that is given counts:

    - `last_tile`: the last of several tiles, whole or not
    - `edge`: the last element of the last whole group of so many
    - `last`: so many elements at the end, unless there are no others
    - `first`: so many elements at the beginning
    - `tile`: the elements after the last whole tile
    - `every`: one element in so many, from `offset` on
    - `second_half`
    - `from`: an index, `half`, or `group` for the second of GroupCount groups; by default 0
    """
    indices = np.arange(length)
    if "last_tile" in settings:
        tile = settings["last_tile"]
        return indices[(length - 1) // tile * tile :] if length > tile else indices[:0]
    if "edge" in settings:
        last = length // settings["edge"] * settings["edge"]
        return indices[max(last - 1, 0) : last]
    if "last" in settings:
        count = settings["last"]
        return indices[length - count :] if length > count else indices[:0]
    if "first" in settings:
        return indices[: settings["first"]]
    if "tile" in settings:
        rest = length % settings["tile"]
        return indices[length - rest :] if rest and length > settings["tile"] else indices[:0]
    if "every" in settings:
        return indices[settings.get("offset", 0) :: settings["every"]]
    if settings.get("second_half"):
        return indices[length // 2 :]
    return indices[start:]


def _laid_out(
    right: Computation, array: Array, settings: Settings
) -> tuple[Array, Callable[[Array], Array]]:
    """Return an array as rows along an axis, and a function that undoes that.

    Settings: `axis` (as for `_axes`, by default the last), or `flat` for one row, or `rows_from`,
    with which the rows along the last dimension become columns.
    """
    shape = array.shape
    if settings.get("flat"):
        return array.reshape(1, -1), lambda rows: rows.reshape(shape)
    if "rows_from" in settings:
        columns = array.reshape(prod(shape[:-1]), -1)
        return columns.T, lambda rows: np.ascontiguousarray(rows.T).reshape(shape)
    axes = _axes(right, array, settings.get("axis", -1))
    moved = np.moveaxis(array, axes, range(-len(axes), 0))

    def restored(rows: Array) -> Array:
        back = np.moveaxis(rows.reshape(moved.shape), range(-len(axes), 0), axes)
        return np.ascontiguousarray(back)

    return moved.reshape(-1, prod(shape[axis] for axis in axes)), restored


def _axes(right: Computation, array: Array, axis: int | str) -> list[int]:
    """Return the axes that a number or name stands for; too large a number is the nearest axis."""
    desc, rank = right.desc, array.ndim
    if axis == "reduced":
        return [a for a in dict.fromkeys(desc["Axes"]) if a < rank]
    if axis == "first reduced":
        return [min(desc["Axes"])]
    if axis == "axis":
        return [min(int(desc["Axis"]), rank - 1)]
    if axis == "window":
        return list(range(1, rank))
    if axis == "product":
        return [rank - 2 if desc.get("TransA") == "TRANSPOSE" else rank - 1]
    if axis == "batch":
        return [next((i for i, size in enumerate(array.shape[:-2]) if size > 1), 0)]
    index = int(axis)
    return [max(index + rank, 0) if index < 0 else min(index, rank - 1)]


_Value = Callable[[Array, Array, int, Mapping[str, Any]], Array | None]
"""Returns what replaces the chosen elements of rows; None if nothing can.

The arguments are the rows, the indices of the chosen elements, `_start` and the desc.
"""


def _float(value: float) -> _Value:
    def constant(rows: Array, chosen: Array, start: int, desc: Mapping[str, Any]) -> Array | None:
        return np.array(value, rows.dtype) if rows.dtype.kind == "f" else None

    return constant


def _times(factor: float) -> _Value:
    def scaled(rows: Array, chosen: Array, start: int, desc: Mapping[str, Any]) -> Array:
        return (rows[:, chosen] * factor).astype(rows.dtype)

    return scaled


def _of_rows(function: Callable[[Array], Array]) -> _Value:
    def value(rows: Array, chosen: Array, start: int, desc: Mapping[str, Any]) -> Array:
        result: Array = function(rows[:, chosen]).astype(rows.dtype)
        return result

    return value


def _wrapped(rows: Array, chosen: Array, start: int, desc: Mapping[str, Any]) -> Array:
    result: Array = rows[:, chosen % start]
    return result


def _smallest(rows: Array, chosen: Array, start: int, desc: Mapping[str, Any]) -> Array:
    info = np.finfo(rows.dtype) if rows.dtype.kind == "f" else np.iinfo(rows.dtype)
    return np.array(info.min, rows.dtype)


def _worst(rows: Array, chosen: Array, start: int, desc: Mapping[str, Any]) -> Array:
    """Return the lowest number where a maximum is sought, and the highest for a minimum."""
    info = np.finfo(rows.dtype) if rows.dtype.kind == "f" else np.iinfo(rows.dtype)
    lowest = desc.get("AxisDirection", "DECREASING") == "DECREASING"
    return np.array(info.min if lowest else info.max, rows.dtype)


def _less_carry(rows: Array, chosen: Array, start: int, desc: Mapping[str, Any]) -> Array:
    carry = rows[:, [start - 1]]
    if "HasExclusiveProduct" in desc:
        return (rows[:, chosen] / np.where(carry == 0, 1, carry)).astype(rows.dtype)
    result: Array = rows[:, chosen] - carry
    return result


def _modulo_last_axis(rows: Array, chosen: Array, start: int, desc: Mapping[str, Any]) -> Array:
    size = desc["InputTensor"].Sizes[desc["Axes"][-1]]
    result: Array = rows[:, chosen] % rows.dtype.type(size)
    return result


VALUES: Final[Mapping[str, _Value]] = {
    "zero": _of_rows(np.zeros_like),
    "one": _of_rows(np.ones_like),
    "nan": _float(np.nan),
    "infinity": _float(np.inf),
    "doubled": _times(2),
    "halved": _times(0.5),
    "eighth": _times(0.125),
    "six_fifths": _times(1.2),
    "scaled_255_256": _times(255 / 256),
    "plus_one": _of_rows(lambda values: values + values.dtype.type(1)),
    "minus_one": _of_rows(lambda values: values - values.dtype.type(1)),
    "plus_if_one": _of_rows(lambda values: np.where(values == 1, values * 1.25, values)),
    "absolute": _of_rows(np.abs),
    "not_negative": _of_rows(lambda values: np.maximum(values, 0)),
    "low_15_bits": _of_rows(lambda values: values & values.dtype.type(0x7FFF)),
    "beyond_if_negative": _of_rows(
        lambda values: np.where(values < 0, np.iinfo(values.dtype).max, values)
    ),
    "neighbour": lambda rows, chosen, start, desc: rows[:, chosen - 1],
    "next": lambda rows, chosen, start, desc: rows[:, (chosen + 1) % rows.shape[-1]],
    "first": lambda rows, chosen, start, desc: rows[:, [0]],
    "constant": lambda rows, chosen, start, desc: rows[:1, :1],
    "tile_before": lambda rows, chosen, start, desc: rows[:, chosen - start],
    "wrapped": _wrapped,
    "smallest": _smallest,
    "worst": _worst,
    "less_carry": _less_carry,
    "modulo_last_axis": _modulo_last_axis,
}
"""What replaces the chosen elements, by its name in entries."""
