"""Named generators of tensor data, the same on every machine and NumPy version."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["FILLS", "fill", "splitmix64"]


def splitmix64(seed: int, count: int) -> Array:
    """Return `count` pseudo-random UINT64 numbers, in an array that cannot be written.

    Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
    """
    return _drawn(seed, count) if count <= _MOST_KEPT else _draw(seed, count)


def _draw(seed: int, count: int) -> Array:
    states = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = states + np.uint64(seed & 0xFFFF_FFFF_FFFF_FFFF)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: Array = mixed ^ (mixed >> np.uint64(31))
    result.flags.writeable = False
    return result


# Cases of a matrix follow each other and differ in other things than their seeds.
_drawn: Final = lru_cache(maxsize=64)(_draw)
_MOST_KEPT: Final = 1 << 12
"""Of longer rows, drawing them again takes little beside all else that is done with them."""


def _constant(count: int, data_type: DataType, *, value: float) -> Array:
    """Every element is `value`."""
    return np.full(count, value, data_type.dtype)


def _sequence(
    count: int, data_type: DataType, *, start: int = 0, step: int = 1, period: int | None = None
) -> Array:
    """Count from `start` by `step`, and begin again after `period` elements.

    Without a period it is as long as the values stay exact in the data type, and at most the
    prime 251 for 8-bit types, so that rows of a power of two do not repeat.
    """
    if period is not None:
        last = start + (period - 1) * step
        if period < 1 or not data_type.minimum <= last <= data_type.maximum:
            raise ValueError(f"period {period} leads to {last}, which {data_type} does not hold")
    else:
        exact = _EXACT.get(data_type, int(data_type.maximum))
        lowest = -exact if data_type.is_float else int(data_type.minimum)
        room = (exact - start) // step if step > 0 else (lowest - start) // step if step else 0
        longest = 251 if data_type.bits == 8 else _LONGEST_PERIOD
        period = max(1, min(room + 1, longest))
    steps = np.arange(count, dtype=np.int64) % period
    return _shifted(steps * step, start, data_type)


_EXACT: Final = {DataType.FLOAT64: 1 << 53, DataType.FLOAT32: 1 << 24, DataType.FLOAT16: 1 << 11}
_LONGEST_PERIOD: Final = 1 << 32


def _shifted(values: Array, start: int, data_type: DataType) -> Array:
    """Return INT64 values plus `start`, which may lie beyond INT64, in the data type."""
    if data_type is DataType.UINT64:
        return values.astype(np.uint64) + np.uint64(start)
    return (values + start).astype(data_type.dtype)


_FEW: Final = 2**53
_ALL: Final = 2**64
"""As many numbers as 64 bits can tell apart."""


def _integers(count: int, data_type: DataType, *, low: int, high: int, seed: int = 0) -> Array:
    """Whole numbers from `low` to `high`, both included, in pseudo-random order."""
    if low > high:
        raise ValueError(f"low is {low}, above high, which is {high}")
    spread = high - low + 1
    if spread > _ALL:
        raise ValueError(f"{low} to {high} are more numbers than 64 bits can tell apart")
    drawn = splitmix64(seed, count)
    if spread <= _FEW:
        drawn = (drawn >> np.uint64(11)) % np.uint64(spread)
    elif spread < _ALL:
        drawn = drawn % np.uint64(spread)
    wrapped = drawn + np.uint64(low % _ALL)
    return (wrapped if data_type is DataType.UINT64 else wrapped.view(np.int64)).astype(
        data_type.dtype
    )


def _uniform(count: int, data_type: DataType, *, low: float, high: float, seed: int = 0) -> Array:
    """Real numbers from `low` to `high` in pseudo-random order, rounded to the data type."""
    if low > high:
        raise ValueError(f"low is {low}, above high, which is {high}")
    fraction = (splitmix64(seed, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (low + fraction * (high - low)).astype(data_type.dtype)


def _specials(count: int, data_type: DataType, *, seed: int = 0, every: int = 1) -> Array:
    """Numbers that are easily lost, in turn from the one at `seed` on; a prime number of them.

    Floating-point types: signed zeros, infinities, NaN, subnormal, smallest, largest and
    unround numbers. Integers: the limits, the values next to them, and unequal bytes. With
    `every` only each so many-th element is one, and those between are ordinary numbers: such
    as `uniform` gives from -1 to 1, or integers from 0 to 7.
    """
    if every < 1:
        raise ValueError(f"every is {every}, and must be at least 1")
    kinds = _special_floats(data_type) if data_type.is_float else _special_integers(data_type)
    place = np.arange(count)
    special = kinds[(place // every + seed) % len(kinds)]
    if every == 1:
        return special
    if data_type.is_float:
        ordinary = _uniform(count, data_type, low=-1, high=1, seed=seed)
    else:
        ordinary = _integers(count, data_type, low=0, high=7, seed=seed)
    return np.where(place % every == 0, special, ordinary)


def _special_floats(data_type: DataType) -> Array:
    info = np.finfo(data_type.dtype)
    least, tiny, most = info.smallest_subnormal, info.tiny, info.max
    values = [
        1 / 3, -0.0, least, -math.pi, math.inf, 0.0, most, -tiny, 1 + info.eps,
        -math.inf, tiny - least, math.nan, -most,
    ]  # fmt: skip
    return np.array(values, data_type.dtype)


def _special_integers(data_type: DataType) -> Array:
    low, high = int(data_type.minimum), int(data_type.maximum)
    pattern = int.from_bytes(bytes(range(0x11, 0x99, 0x11)), "big") & high
    values = [low, high, 1, pattern, 0, high - 1, low + 2]
    return np.array(values, data_type.dtype)


FILLS: Final[Mapping[str, Callable[..., Array]]] = {
    "constant": _constant,
    "sequence": _sequence,
    "integers": _integers,
    "uniform": _uniform,
    "specials": _specials,
}
"""The generators by name; their keyword arguments are what a case may say."""


def fill(
    name: str, sizes: Sequence[int], data_type: DataType, arguments: Mapping[str, Any]
) -> Array:
    """Return a tensor made by the generator `name`, in row-major order.

    Raises:
        ValueError: an argument does not fit the data type.
        OverflowError: likewise, for integers.
        TypeError: the generator has no such argument, or lacks one.
    """
    return FILLS[name](math.prod(sizes), data_type, **arguments).reshape(sizes)
