"""Named generators of tensor data, the same on every machine and NumPy version.

A generator creates any part of a tensor: `count` elements in row-major order, from index `first`
on. Large tensors are created in blocks that fit into the processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["FILLS", "challenged", "fill", "splitmix64"]


_BLOCK: Final = 1 << 17
"""Elements that are created at once."""


def splitmix64(seed: int, count: int, first: int = 0) -> Array:
    """Return `count` pseudo-random UINT64 numbers of a seed, from number `first` on; read-only.

    Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
    """
    return (_drawn if count <= _MOST_KEPT else _draw)(seed, count, first)


def _draw(seed: int, count: int, first: int) -> Array:
    states = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    states *= np.uint64(0x9E3779B97F4A7C15)
    mixed = states + np.uint64(seed & 0xFFFF_FFFF_FFFF_FFFF)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: Array = mixed ^ (mixed >> np.uint64(31))
    result.flags.writeable = False
    return result


# Consecutive cases of a matrix often have equal seeds.
_drawn: Final = lru_cache(maxsize=64)(_draw)
_MOST_KEPT: Final = 1 << 12
"""Draws of more numbers are not kept for reuse."""


def _constant(first: int, count: int, data_type: DataType, *, value: float) -> Array:
    """Repeat `value`; integer types truncate it."""
    with np.errstate(all="ignore"):  # Cases are refused if the type does not hold the value.
        return np.full(count, value, data_type.dtype)


def _require_held(data_type: DataType, *numbers: int) -> None:
    for number in numbers:
        if not data_type.is_float and not data_type.minimum <= number <= data_type.maximum:
            raise ValueError(f"{data_type} cannot hold {number}")


def _sequence(
    first: int,
    count: int,
    data_type: DataType,
    *,
    start: int = 0,
    step: int = 1,
    period: int | None = None,
    shift: int = 0,
) -> Array:
    """Count from `start` by `step`, and start again after `period` elements.

    The tensor begins with the element at index `shift` of the period. The default period ends where
    the data type no longer has every integer, such as after 2048 in FLOAT16. It has at most 2^32
    elements, in 8-bit types 251: a prime number, so that rows of 2^k elements differ. If `start` is
    beyond where it ends, all elements are `start`.
    """
    _require_held(data_type, start)
    if period is not None:
        last = start + (period - 1) * step
        if period < 1 or not data_type.minimum <= last <= data_type.maximum:
            raise ValueError(f"period {period} leads to {last}, which {data_type} cannot hold")
    else:
        exact = _EXACT.get(data_type, int(data_type.maximum))
        lowest = -exact if data_type.is_float else int(data_type.minimum)
        fitting = (exact - start) // step if step > 0 else (lowest - start) // step if step else 0
        longest = 251 if data_type.bits == 8 else _LONGEST_PERIOD
        period = max(1, min(fitting + 1, longest))
    end = first + shift + count
    steps = np.arange(first + shift, end, dtype=np.int64)
    if end > period:
        steps %= period
    change = (period - 1) * step
    if data_type.is_float and max(map(abs, (start, change, start + change))) > _INT64:
        return (steps.astype(np.float64) * float(step) + float(start)).astype(data_type.dtype)
    return _shifted(steps if step == 1 else steps * step, start, data_type)


_EXACT: Final = {DataType.FLOAT64: 1 << 53, DataType.FLOAT32: 1 << 24, DataType.FLOAT16: 1 << 11}
"""The number up to which a floating-point type has every integer."""

_LONGEST_PERIOD: Final = 1 << 32

_INT64: Final = (1 << 63) - 1


def _shifted(values: Array, start: int, data_type: DataType) -> Array:
    """Return INT64 `values` plus `start`, which may exceed INT64, in the data type."""
    if data_type is DataType.UINT64:
        return values.astype(np.uint64) + np.uint64(start)
    return (values + start if start else values).astype(data_type.dtype)


_FEW: Final = 2**53
"""Ranges of at most this many integers are drawn from the high 53 bits of random numbers."""

_ALL: Final = 2**64
"""How many values 64 bits have."""


def _integers(
    first: int, count: int, data_type: DataType, *, low: int, high: int, seed: int = 0
) -> Array:
    """Pseudo-random integers from `low` to `high`, inclusive, in the data type."""
    if low > high:
        raise ValueError(f"low is {low}, above high, which is {high}")
    _require_held(data_type, low, high)
    spread = high - low + 1
    if spread > _ALL:
        raise ValueError(f"{low} to {high} are more numbers than 64 bits can represent")
    drawn = splitmix64(seed, count, first)
    if spread <= _FEW:
        drawn = (drawn >> np.uint64(11)) % np.uint64(spread)
    elif spread < _ALL:
        drawn = drawn % np.uint64(spread)
    if data_type.is_float and (low < -_INT64 or high > _INT64):
        return (drawn.astype(np.float64) + float(low)).astype(data_type.dtype)
    wrapped = drawn + np.uint64(low % _ALL)
    return (wrapped if data_type is DataType.UINT64 else wrapped.view(np.int64)).astype(
        data_type.dtype
    )


def _uniform(
    first: int,
    count: int,
    data_type: DataType,
    *,
    low: float,
    high: float,
    seed: int = 0,
    step: float = 0,
) -> Array:
    """Pseudo-random real numbers from `low` to `high`, in the data type; integer types truncate.

    A `step` rounds the numbers to its multiples, up to half a step beyond `low` or `high`, so that
    sums may be exact. Numbers beyond an integer type are not refused.
    """
    if low > high:
        raise ValueError(f"low is {low}, above high, which is {high}")
    if step < 0:
        raise ValueError(f"step is {step}, but must be at least 0")
    fraction = (splitmix64(seed, count, first) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    span = high - low
    if math.isfinite(span):
        values = low + fraction * span
    else:
        values = low * (1 - fraction) + high * fraction
    if step:
        values = np.rint(values / step) * step
    return values.astype(data_type.dtype)


_OUTLIER: Final = 60
"""How many standard deviations an outlier is from the mean.

Source: Dettmers et al., "LLM.int8(): 8-bit Matrix Multiplication for Transformers at Scale", 2022.
"""

_CELL_BITS: Final = 6
_CELLS: Final = 1 << _CELL_BITS
"""How many linear pieces the quantile function has from probability 2^k to 2^(k + 1)."""

_LEAST_POWER: Final = -54
_GRID: Final = 2.0**30


@cache
def _quantiles() -> tuple[Array, Array]:
    """Return where each linear piece of the normal quantile function begins, and how far it rises.

    Piece `64 * i + j` begins at z, where `P(|Z| > z)` is `2^(i - 54) * (1 + j / 64)` for a standard
    normal Z. The beginnings are rounded to multiples of 2^-30, so that they are the same on all
    machines.
    """
    from statistics import NormalDist  # Slow to import, and few fills need it.

    normal = NormalDist()
    ends = [
        round(-normal.inv_cdf(2.0 ** (power - 1) * (1 + cell / _CELLS)) * _GRID) / _GRID
        for power in range(_LEAST_POWER, 0)
        for cell in range(_CELLS)
    ]
    begins = np.array([*ends, 0.0, 0.0])
    return begins, np.append(np.diff(begins), 0.0)


def _normal(
    first: int,
    count: int,
    data_type: DataType,
    *,
    mean: float = 0,
    deviation: float = 1,
    seed: int = 0,
    least: float = -math.inf,
    outliers: int = 0,
    fan_in: int = 1,
) -> Array:
    """Normally distributed numbers, rounded to the data type and clamped to its range.

    All but outliers are quantiles (`_quantiles`) of pseudo-random probabilities. All later
    operations are defined exactly by IEEE 754, so that all machines give the same numbers. `least`
    is a lower bound, such as 0 for outputs of RELU. With `outliers: N`, every Nth element is 60
    standard deviations from the mean. `deviation` is divided by the square root of `fan_in`, the
    number of inputs of a layer.
    """
    if deviation < 0:
        raise ValueError(f"deviation is {deviation}, but must be at least 0")
    if outliers < 0:
        raise ValueError(f"outliers is {outliers}, but must be at least 0")
    if fan_in < 1:
        raise ValueError(f"fan_in is {fan_in}, but must be at least 1")
    drawn = splitmix64(seed, count, first)
    greater = (drawn >> np.uint64(11)).astype(np.float64)
    greater += 0.5
    greater *= 2.0**-53
    bits = greater.view(np.int64)
    lower_bits = 52 - _CELL_BITS
    piece = (bits >> lower_bits) - ((1023 + _LEAST_POWER) << _CELL_BITS)
    share = (bits & ((1 << lower_bits) - 1)) * 2.0**-lower_bits
    begins, lengths = _quantiles()
    values = begins[piece] + lengths[piece] * share
    if outliers:
        values[(-first - seed) % outliers :: outliers] = _OUTLIER
    np.negative(values, out=values, where=(drawn & np.uint64(1)).astype(bool))
    values *= deviation / math.sqrt(fan_in)
    values += mean
    np.maximum(values, least, out=values)
    if not data_type.is_float:
        np.rint(values, out=values)
    return _limited(values, data_type)


def _limited(values: Array, data_type: DataType) -> Array:
    limited = np.clip(values, float(data_type.minimum), float(data_type.maximum))
    if data_type.bits < 64 or data_type.is_float:
        return limited.astype(data_type.dtype)
    beyond = limited >= float(data_type.maximum)  # 2^63 and 2^64 do not fit INT64 and UINT64.
    limited[beyond] = 0
    numbers = limited.astype(data_type.dtype)
    numbers[beyond] = int(data_type.maximum)
    return numbers


def _specials(
    first: int, count: int, data_type: DataType, *, seed: int = 0, every: int = 1
) -> Array:
    """Numbers that are easily mishandled, in turn, beginning with the one at index `seed`.

    With `every: N`, only every Nth element is special. The others are from -1 to 1 in
    floating-point types, else integers from 0 to 7.
    """
    if every < 1:
        raise ValueError(f"every is {every}, but must be at least 1")
    kinds = _special_floats(data_type) if data_type.is_float else _special_integers(data_type)
    index = np.arange(first, first + count)
    special = kinds[(index // every + seed) % len(kinds)]
    if every == 1:
        return special
    if data_type.is_float:
        ordinary = _uniform(first, count, data_type, low=-1, high=1, seed=seed)
    else:
        ordinary = _integers(first, count, data_type, low=0, high=7, seed=seed)
    return np.where(index % every == 0, special, ordinary)


def _special_floats(data_type: DataType) -> Array:
    info = np.finfo(data_type.dtype)
    least, tiny, most = info.smallest_subnormal, info.tiny, info.max
    values = [
        1 / 3,
        -0.0,
        least,
        -math.pi,
        math.inf,
        0.0,
        most,
        -tiny,
        1 + info.eps,
        -math.inf,
        tiny - least,
        math.nan,
        -most,
    ]
    return np.array(values, data_type.dtype)


def _special_integers(data_type: DataType) -> Array:
    low, high = int(data_type.minimum), int(data_type.maximum)
    pattern = int.from_bytes(bytes(range(0x11, 0x99, 0x11)), "big") & high
    values = [low, high, 1, pattern, 0, high - 1, low + 2]
    return np.array(values, data_type.dtype)


def _ends(first: int, count: int, data_type: DataType, *, seed: int = 0) -> Array:
    """Numbers where a narrower type ends, in turn, beginning with the one at index `seed`.

    Types of 64 bits also have numbers that differ only in their low 32 bits. Floating-point types
    have numbers around `_EXACT`.
    """
    kinds = _float_ends(data_type) if data_type.is_float else _integer_ends(data_type)
    index = np.arange(first, first + count)
    return kinds[(index + seed) % len(kinds)]


@cache
def _integer_ends(data_type: DataType) -> Array:
    low, high = int(data_type.minimum), int(data_type.maximum)
    values = [0, 1, high, low]
    for bits in (7, 8, 15, 16, 31, 32, 53, 63, 64):
        values += [2**bits, 2**bits - 1, -(2**bits), 1 - 2**bits]
    for word in (5, -3, 2**31 - 1, -(2**31)):
        values += [(word << 32) + low_word for low_word in (2**31, 7, 2**32 - 1, 2**31 - 1)]
    kept = list(dict.fromkeys(value for value in values if low <= value <= high))
    return np.array(kept, data_type.dtype)


@cache
def _float_ends(data_type: DataType) -> Array:
    exact = _EXACT[data_type]
    largest = float(data_type.maximum)
    values = [exact, -(exact - 1), 1, exact + 2, largest, exact - 1, 0, -exact, -largest, 3]
    return np.array(values, data_type.dtype)


FILLS: Final[Mapping[str, Callable[..., Array]]] = {
    "constant": _constant,
    "sequence": _sequence,
    "integers": _integers,
    "uniform": _uniform,
    "normal": _normal,
    "specials": _specials,
    "ends": _ends,
}
"""The generators by name; cases may give their keyword arguments."""


def challenged(name: str, arguments: Mapping[str, Any], challenge: int) -> Mapping[str, Any]:
    """Return a generator's arguments, changed by a challenge so that the data differ.

    Equal seeds stay equal, since some cases need equal tensors. All seeds of `specials` and `ends`
    are raised by the same number, since their differences decide which special numbers meet. A
    sequence without a period gets a `shift`. A sequence with a period, and `constant`, do not
    change, since cases may need their numbers as indices.

    Args:
        challenge: a number from 0 to 2^64 - 1, such as the verifier of a certificate chooses.
    """
    defaults = FILLS[name].__kwdefaults__ or {}
    mixed = int(splitmix64(challenge, 1)[0])
    if name == "sequence" and arguments.get("period") is None:
        return {**arguments, "shift": 1 + mixed % _SHIFTS}
    if "seed" not in defaults:
        return arguments
    seed = arguments.get("seed", defaults["seed"])
    if name in ("specials", "ends"):
        return {**arguments, "seed": (seed + (mixed >> _SPARE_SEED_BITS)) % _LARGE_SEED}
    mixed ^= seed & 0xFFFF_FFFF_FFFF_FFFF
    return {**arguments, "seed": int(splitmix64(mixed, 1)[0]) >> _SPARE_SEED_BITS}


_SHIFTS: Final = 97
"""How many shifts a sequence may have; they change its numbers little."""

_SPARE_SEED_BITS: Final = 16
"""Bits by which random numbers are shortened, so that a seed plus an index fits INT64."""

_LARGE_SEED: Final = 1 << 62
"""Raised seeds stay below this, so that a seed plus an index fits INT64."""


def fill(
    name: str, sizes: Sequence[int], data_type: DataType, arguments: Mapping[str, Any]
) -> Array:
    """Return a tensor of some sizes from the generator `name` of `FILLS`.

    Raises:
        KeyError: there is no such generator.
        ValueError: an argument is out of range, or the `value` of `constant` is text but no number.
        OverflowError: an integer does not fit a NumPy type, such as a `value` of 300 in UINT8.
        TypeError: an argument is unknown, missing, or otherwise of a wrong type.
    """
    count, generator = math.prod(sizes), FILLS[name]
    if count <= _BLOCK:
        return generator(0, count, data_type, **arguments).reshape(sizes)
    elements = np.empty(count, data_type.dtype)
    for first in range(0, count, _BLOCK):
        block = elements[first : first + _BLOCK]
        block[:] = generator(first, len(block), data_type, **arguments)
    return elements.reshape(sizes)
