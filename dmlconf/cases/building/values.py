"""Convert the numbers that a case lists into an array, or report which one does not fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["ValuesError", "require_fit", "tensor_values"]


class ValuesError(ValueError):
    """Numbers that do not match the sizes or the data type of a tensor.

    Attributes:
        where: the indices of the wrong number in the nested lists; empty for other errors.
    """

    def __init__(self, message: str, where: Sequence[int] = (), hint: str | None = None) -> None:
        self.where, self.message, self.hint = tuple(where), message, hint
        super().__init__(message)


def tensor_values(values: Any, sizes: Sequence[int], data_type: DataType) -> Array:
    """Return the array that a list of numbers describes.

    Args:
        values: numbers in row-major order: one flat list or tuple, or lists nested like the sizes.
            A tensor of one element may be a single number. Floating-point types round numbers; an
            integer may be written 2.0.

    Raises:
        ValuesError: the numbers do not match the sizes or the data type.
    """
    if not isinstance(values, list | tuple):
        values = [values]
    shape = _shape(values)
    count = math.prod(sizes)
    if shape not in (tuple(sizes), (count,)):
        _raise_for_shape(values, shape, tuple(sizes), count)
    flat = list(values)
    if not _surely_fit(flat, data_type):
        flat = []
        for where, value in _leaves(values):
            problem = _misfit(value, data_type)
            if problem:
                message, hint = problem
                raise ValuesError(message, where, hint)
            flat.append(value)
    if not data_type.is_float:
        flat = [int(value) for value in flat]
    with np.errstate(over="ignore"):
        return np.array(flat, data_type.dtype).reshape(sizes)


def require_fit(value: float, data_type: DataType) -> None:
    """Raise `ValuesError` for a number that does not fit a data type."""
    problem = _misfit(value, data_type)
    if problem:
        raise ValuesError(problem[0], (), problem[1])


def _shape(values: Any) -> tuple[int, ...] | None:
    """Return the sizes of nested lists; None if rows differ in length or depth."""
    if not isinstance(values, list | tuple):
        return ()
    if not any(isinstance(value, list | tuple) for value in values):
        return (len(values),)
    shapes = {_shape(value) for value in values}
    shape = shapes.pop()
    return None if shapes or shape is None else (len(values), *shape)


def _leaves(values: Any, where: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if not isinstance(values, list | tuple):
        yield where, values
        return
    for index, value in enumerate(values):
        yield from _leaves(value, (*where, index))


def _raise_for_shape(
    values: Sequence[Any], actual_shape: tuple[int, ...] | None, sizes: tuple[int, ...], count: int
) -> NoReturn:
    number = sum(1 for _ in _leaves(values))
    asked = f"Sizes {_braces(sizes)} ask for {count:,}"
    if number != count:
        amount = "1 value is given" if number == 1 else f"{number:,} values are given"
        raise ValuesError(f"{amount} where {asked}")
    shape = _braces(actual_shape) if actual_shape is not None else "rows of unequal length"
    raise ValuesError(
        f"values are nested as {shape} where Sizes are {_braces(sizes)}",
        hint="nest the lists like Sizes, or give one flat list",
    )


def _braces(sizes: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, sizes)) + "}"


def _surely_fit(values: Sequence[Any], data_type: DataType) -> bool:
    """Return True if all values surely fit; False if each must be checked."""
    types = set(map(type, values))
    if not types or not types <= ({int, float} if data_type.is_float else {int}):
        return False
    return bool(data_type.minimum <= min(values) and max(values) <= data_type.maximum)


def _misfit(value: Any, data_type: DataType) -> tuple[str, str | None] | None:
    """Return why a number does not fit the data type, with a hint; None if it fits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{value!r} is not a number", _number_hint(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if data_type.is_float else (f"{value} does not fit {data_type}", None)
    if data_type.is_float:
        return _float_misfit(value, data_type)
    if value != int(value):
        return f"{value} is not a whole number, as {data_type} asks", None
    if not data_type.minimum <= value <= data_type.maximum:
        span = f"{data_type.minimum} to {data_type.maximum}"
        return f"{int(value)} does not fit {data_type}", f"it holds {span}"
    return None


def _float_misfit(value: float, data_type: DataType) -> tuple[str, str | None] | None:
    if abs(value) <= data_type.maximum:
        return None
    try:
        with np.errstate(over="ignore"):
            fits = bool(np.isfinite(np.array(value, np.float64).astype(data_type.dtype)))
    except OverflowError:
        fits = False
    if fits:
        return None
    hint = f"its largest is {data_type.maximum:g}; infinity is written .inf"
    return f"{value} does not fit {data_type}", hint


def _number_hint(value: Any) -> str | None:
    if isinstance(value, str) and value.lower().lstrip("+-") in ("inf", "infinity", "nan"):
        return "infinities and NaN are written .inf, -.inf and .nan"
    return None
