"""Each `fill:` of case files gives the same numbers on every machine, or refuses its arguments.

The tested code is in `dmlconf/tensors/fills.py`.
"""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.fills import FILLS, fill, splitmix64

DATA_TYPES = st.sampled_from(list(DataType))
LARGEST_PERIOD_OF_8_BITS = 251
"""The largest prime number that 8 bits hold."""

EXACT = {DataType.FLOAT16: 2**11, DataType.FLOAT32: 2**24, DataType.FLOAT64: 2**53}
"""The number up to which a floating-point type holds every whole number."""


def limits(data_type: DataType) -> tuple[int, int]:
    """Return the least and the greatest whole number between which the type holds all exactly."""
    if data_type.is_float:
        return -EXACT[data_type], EXACT[data_type]
    return int(data_type.minimum), int(data_type.maximum)


def whole_numbers(data_type: DataType) -> st.SearchStrategy[int]:
    least, greatest = limits(data_type)
    return st.integers(least, greatest)


def test_the_names_of_the_fills_are_fixed() -> None:
    assert list(FILLS) == [
        "constant",
        "sequence",
        "integers",
        "uniform",
        "normal",
        "specials",
        "ends",
    ]


def test_random_numbers_are_those_of_the_published_generator() -> None:
    # The first outputs of the authors' splitmix64.c with the seed 1234567.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert splitmix64(1234567, 5).tolist() == published


@given(st.integers(-(2**70), 2**70), st.integers(0, 50))
def test_random_numbers_agree_with_a_loop_in_python(seed: int, count: int) -> None:
    mask = 2**64 - 1
    state, expected = seed & mask, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        expected.append(mixed ^ (mixed >> 31))
    assert splitmix64(seed, count).tolist() == expected


@given(DATA_TYPES, st.data())
def test_integers_are_whole_numbers_from_low_to_high(
    data_type: DataType, data: st.DataObject
) -> None:
    low = data.draw(whole_numbers(data_type))
    high = data.draw(st.integers(low, min(limits(data_type)[1], low + 2**64)))
    values = fill("integers", (40,), data_type, {"low": low, "high": high, "seed": 3})
    assert values.dtype == data_type.dtype
    assert low <= int(values.min()) <= int(values.max()) <= high
    assert all(value == int(value) for value in values.tolist())


def test_integers_take_every_value_of_a_small_range() -> None:
    values = fill("integers", (200,), DataType.INT8, {"low": -2, "high": 2})
    assert set(values.tolist()) == {-2, -1, 0, 1, 2}


def test_integers_of_64_bits_cover_their_range_and_low_bits() -> None:
    for data_type in (DataType.INT64, DataType.UINT64):
        low, high = limits(data_type)
        values = fill("integers", (2000,), data_type, {"low": low, "high": high})
        near = 2**64 // 64
        assert int(values.min()) < low + near
        assert int(values.max()) > high - near
        assert len({int(value) % 64 for value in values}) == 64


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 2**64 - 1), (-(2**63) - 2**60, 2**62), (-(2**64), -(2**63)), (2**70, 2**70 + 2**60)],
)
def test_integers_beyond_int64_lie_in_range_in_floats(low: int, high: int) -> None:
    values = fill("integers", (1000,), DataType.FLOAT64, {"low": low, "high": high})
    assert low <= values.min()
    assert values.max() <= high
    assert values.max() - values.min() > 0.9 * (high - low)


def test_another_seed_gives_other_integers() -> None:
    first, second = (
        fill("integers", (20,), DataType.INT32, {"low": 0, "high": 1000, "seed": seed})
        for seed in (1, 2)
    )
    assert not np.array_equal(first, second)


@given(
    st.sampled_from(list(EXACT)),
    st.floats(-60000, 60000),
    st.floats(0, 5000),
    st.integers(0, 2**64 - 1),
)
def test_uniform_numbers_lie_in_range(
    data_type: DataType, low: float, width: float, seed: int
) -> None:
    high = low + width
    arguments = {"low": low, "high": high, "seed": seed}
    values = fill("uniform", (40,), data_type, arguments)
    ends = np.array([low, high]).astype(data_type.dtype)
    assert values.dtype == data_type.dtype
    assert bool((ends[0] <= values).all())
    assert bool((values <= ends[1]).all())


def test_uniform_numbers_may_span_more_than_the_largest_number() -> None:
    values = fill("uniform", (1000,), DataType.FLOAT64, {"low": -1.7e308, "high": 1.7e308})
    assert np.isfinite(values).all()
    assert values.min() < -1.6e308
    assert values.max() > 1.6e308


def test_uniform_numbers_spread_over_their_range() -> None:
    values = fill("uniform", (1000,), DataType.FLOAT64, {"low": -1, "high": 1})
    counts, _ = np.histogram(values, 4, (-1, 1))
    assert counts.min() > 200, "each quarter of the range has about 250 of 1,000 numbers"


@given(DATA_TYPES, st.integers(1, 700), st.data())
def test_sequence_begins_again_at_the_limits_of_its_type(
    data_type: DataType, count: int, data: st.DataObject
) -> None:
    start = data.draw(whole_numbers(data_type))
    step = data.draw(st.integers(-9, 9))
    values = fill("sequence", (count,), data_type, {"start": start, "step": step})
    least, greatest = limits(data_type)
    period = 0
    while least <= start + period * step <= greatest and period < count:
        period += 1
    if data_type.bits == 8:
        period = min(period, LARGEST_PERIOD_OF_8_BITS)
    assert values.tolist() == [start + step * (i % period) for i in range(count)]


def test_a_sequence_begins_again_after_its_period() -> None:
    values = fill("sequence", (7,), DataType.FLOAT32, {"start": 5, "step": 2, "period": 3})
    assert values.tolist() == [5, 7, 9, 5, 7, 9, 5]


@pytest.mark.parametrize(("start", "step"), [(0, 10**18), (0, 2**70), (2**70, 0)])
def test_sequence_may_go_beyond_int64_in_floats(start: int, step: int) -> None:
    values = fill("sequence", (30,), DataType.FLOAT64, {"start": start, "step": step, "period": 20})
    assert values.tolist() == [float(start + index % 20 * step) for index in range(30)]


def test_a_sequence_of_8_bits_has_a_prime_period() -> None:
    values = fill("sequence", (256,), DataType.UINT8, {})
    assert values.tolist() == [*range(LARGEST_PERIOD_OF_8_BITS), *range(5)]


def test_sequence_of_float16_begins_again_after_2048() -> None:
    values = fill("sequence", (2051,), DataType.FLOAT16, {})
    assert values[-3:].tolist() == [2048, 0, 1]


def test_a_constant_is_every_element_of_its_tensor() -> None:
    values = fill("constant", (2, 3), DataType.FLOAT16, {"value": -0.5})
    assert values.tolist() == [[-0.5] * 3] * 2


ARGUMENTS: dict[str, dict[str, Any]] = {
    "constant": {"value": 3},
    "sequence": {},
    "integers": {"low": 0, "high": 7, "seed": 5},
    "uniform": {"low": 0, "high": 7, "seed": 5},
    "normal": {"mean": 3, "deviation": 2, "seed": 5, "outliers": 7, "fan_in": 2},
    "specials": {"seed": 5},
    "ends": {"seed": 5},
}


def test_the_table_of_arguments_has_every_fill() -> None:
    assert ARGUMENTS.keys() == FILLS.keys()


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("data_type", DataType)
def test_fill_has_the_sizes_and_is_repeatable(name: str, data_type: DataType) -> None:
    first = fill(name, (2, 3, 5), data_type, ARGUMENTS[name])
    second = fill(name, (2, 3, 5), data_type, ARGUMENTS[name])
    assert first.shape == (2, 3, 5)
    assert first.dtype == data_type.dtype
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("name", FILLS)
def test_longer_data_begins_with_the_shorter_data(name: str) -> None:
    short = fill(name, (10,), DataType.FLOAT32, ARGUMENTS[name])
    long = fill(name, (30,), DataType.FLOAT32, ARGUMENTS[name])
    assert np.array_equal(long[:10], short, equal_nan=True)


def test_numbers_of_all_fills_but_normal_and_ends_never_change() -> None:
    # Recordings hold outputs for these inputs.
    digest = hashlib.sha256()
    for name, arguments in ARGUMENTS.items():
        if name in ("normal", "ends"):
            continue  # These two fills have tests of their own.
        for data_type in (DataType.FLOAT32, DataType.INT64, DataType.UINT8):
            values = fill(name, (300,), data_type, arguments)
            digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())
    assert digest.hexdigest() == DIGEST_OF_OTHERS


def test_normal_numbers_of_a_seed_never_change() -> None:
    values = normal_numbers(3000, mean=0.1, deviation=0.3, seed=7, outliers=1001)
    digest = hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()
    assert digest == DIGEST_OF_NORMAL


DIGEST_OF_NORMAL = "52ad26dec96f1a93b3135b130a9145d812315e8856b617bb480a7c5351dcead3"
DIGEST_OF_OTHERS = "81dc4108a88fcb4b9d816be227b01af08ddc7a85be89620e8b9a31bcc7626656"


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("data_type", [DataType.FLOAT16, DataType.INT64, DataType.UINT4])
def test_data_computed_in_blocks_equals_data_computed_at_once(
    name: str, data_type: DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = 5000
    monkeypatch.setattr("dmlconf.tensors.fills._BLOCK", block)
    count = 2 * block + 5
    actual = fill(name, (count,), data_type, ARGUMENTS[name])
    whole = FILLS[name](0, count, data_type, **ARGUMENTS[name])
    assert actual.tobytes() == whole.tobytes()


def normal_numbers(count: int = 1 << 16, **arguments: float) -> Any:
    return fill("normal", (count,), DataType.FLOAT64, arguments)


def test_normal_numbers_have_a_normal_distribution() -> None:
    values = normal_numbers(mean=3, deviation=2)
    expected = NormalDist(3, 2)
    for at in (-3, -1, 0, 2, 3, 3.5, 5, 9):
        share = np.count_nonzero(values <= at) / values.size
        # At least three standard deviations of the share.
        assert abs(share - expected.cdf(at)) < 0.006
    assert 3.9 < (np.abs(values - 3) / 2).max() < 6


def test_normal_numbers_of_adjacent_seeds_and_indices_are_uncorrelated() -> None:
    first, second = normal_numbers(seed=1), normal_numbers(seed=2)
    # About five standard deviations of the coefficient.
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.02
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.02


def test_rounded_quantiles_are_equal_on_all_machines() -> None:
    """The fill `normal` interpolates between quantiles that are rounded to multiples of 2**-30.

    Machines with other logarithms round alike, since no quantile is halfway between two multiples.
    """
    greater = [2.0**power * (1 + cell / 64) for power in range(-54, 0) for cell in range(64)]
    scaled = [-NormalDist().inv_cdf(probability / 2) * 2.0**30 for probability in greater]
    nearest = min(abs(value % 1 - 0.5) for value in scaled)
    assert nearest > 1e-5  # A logarithm that is 16 ULPs off moves a value by 1e-6 at most.

    count = 1 << 16
    drawn = ((splitmix64(0, count) >> np.uint64(11)) + 0.5) * 2.0**-53
    interpolated = np.interp(drawn, [*greater, 1.0], [*np.rint(scaled) / 2.0**30, 0.0])
    np.testing.assert_allclose(np.abs(normal_numbers(count)), interpolated, rtol=0, atol=1e-14)


def test_outliers_are_60_deviations_from_the_mean() -> None:
    values = normal_numbers(1000, mean=1, deviation=0.5, outliers=97)
    outliers = np.flatnonzero(np.abs(values - 1) > 5)
    assert outliers.tolist() == list(range(0, 1000, 97))
    assert set(values[outliers]) == {31, -29}


def test_least_value_of_0_gives_outputs_of_relu() -> None:
    values, without = normal_numbers(least=0), normal_numbers()
    assert np.array_equal(values, np.maximum(without, 0))
    assert 0.48 < np.mean(values == 0) < 0.52


def test_weights_are_scaled_by_the_root_of_their_fan_in() -> None:
    assert np.array_equal(normal_numbers(100, fan_in=16), normal_numbers(100) / 4)


@pytest.mark.parametrize("data_type", DataType)
def test_normal_numbers_are_limited_to_the_data_type(data_type: DataType) -> None:
    deviation = float(data_type.maximum) / 10  # Outliers are 60 deviations from the mean.
    with np.errstate(over="ignore"):
        values = fill("normal", (300,), data_type, {"deviation": deviation, "outliers": 2})
    assert (values.min(), values.max()) == (data_type.minimum, data_type.maximum)


@pytest.mark.parametrize(("name", "value"), [("deviation", -1), ("outliers", -1), ("fan_in", 0)])
def test_impossible_arguments_of_normal_numbers_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}, but must be at least"):
        normal_numbers(3, **{name: value})


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("constant", {}),
        ("sequence", {"seed": 1}),
        ("integers", {"low": 0}),
        ("uniform", {"low": 0, "high": 1, "period": 2}),
    ],
)
def test_a_missing_or_an_unknown_argument_is_refused(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="argument"):
        fill(name, (2,), DataType.FLOAT32, arguments)


@pytest.mark.parametrize("name", ["integers", "uniform"])
def test_a_range_that_ends_before_it_begins_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="low is 3, above high, which is 1"):
        fill(name, (2,), DataType.FLOAT32, {"low": 3, "high": 1})


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("integers", {"low": 0, "high": 256}),
        ("integers", {"low": -1, "high": 9}),
        ("sequence", {"start": 256}),
    ],
)
def test_integers_beyond_the_data_type_are_refused(name: str, arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"UINT8 cannot hold (256|-1)"):
        fill(name, (2,), DataType.UINT8, arguments)


@pytest.mark.parametrize("period", [0, -1, 257])
def test_period_beyond_the_data_type_is_refused(period: int) -> None:
    with pytest.raises(ValueError, match=f"period {period} leads to"):
        fill("sequence", (2,), DataType.UINT8, {"period": period})


@given(DATA_TYPES, st.integers(-(2**66), 2**66))
def test_constant_beyond_an_integer_type_is_refused(data_type: DataType, value: int) -> None:
    assume(not data_type.is_float and data_type.bits >= 8)
    assume(not data_type.minimum <= value <= data_type.maximum)
    with pytest.raises(OverflowError):
        fill("constant", (1,), data_type, {"value": value})


def test_a_tensor_without_elements_has_no_data() -> None:
    for name, arguments in ARGUMENTS.items():
        assert fill(name, (3, 0), DataType.INT32, arguments).shape == (3, 0)


@pytest.mark.parametrize("data_type", [t for t in DataType if t.is_float])
def test_specials_have_nan_infinities_zeros_and_subnormals(
    data_type: DataType,
) -> None:
    values = fill("specials", (13,), data_type, {})
    tiny = np.finfo(data_type.dtype).tiny
    assert np.isnan(values).any()
    assert set(values[np.isinf(values)]) == {math.inf, -math.inf}
    assert {str(zero) for zero in values[values == 0]} == {"0.0", "-0.0"}
    assert ((np.abs(values) < tiny) & (values != 0)).any()
    # The first number of a wider type has more digits than FLOAT16 holds.
    assert data_type is DataType.FLOAT16 or values[0] != np.float16(values[0])


@pytest.mark.parametrize("data_type", [t for t in DataType if not t.is_float])
def test_specials_of_integers_have_limits_and_are_rotated(
    data_type: DataType,
) -> None:
    values = fill("specials", (7,), data_type, {}).tolist()
    assert {int(data_type.minimum), int(data_type.maximum)} <= set(values)
    assert fill("specials", (7,), data_type, {"seed": 1}).tolist() == [*values[1:], values[0]]


@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.INT8])
def test_the_argument_every_puts_ordinary_numbers_between_specials(data_type: DataType) -> None:
    alone = fill("specials", [6], data_type, {"seed": 2})
    between = fill("specials", [24], data_type, {"seed": 2, "every": 4})
    np.testing.assert_array_equal(between[::4], alone)
    ordinary = np.delete(between, np.s_[::4]).astype(np.float64)
    assert (np.abs(ordinary) <= 7).all()
    assert len(np.unique(ordinary)) > 4


def test_ends_have_numbers_around_the_limits_of_words() -> None:
    # Recordings hold outputs for these inputs.
    assert fill("ends", (10,), DataType.UINT8, {}).tolist() == [
        0,
        1,
        255,
        128,
        127,
        0,
        1,
        255,
        128,
        127,
    ]
    values = fill("ends", (80,), DataType.INT64, {}).tolist()
    for bits in (7, 8, 15, 16, 31, 32, 53):
        assert {2**bits, 2**bits - 1, -(2**bits), 1 - 2**bits} <= set(values)
    assert {2**63 - 1, -(2**63), (5 << 32) + 2**31, (5 << 32) + 7} <= set(values)
    halves = fill("ends", (10,), DataType.FLOAT16, {"seed": 2}).tolist()
    assert halves == [1, 2050, 65504, 2047, 0, -2048, -65504, 3, 2048, -2047]


def test_specials_with_an_argument_every_of_0_are_refused() -> None:
    with pytest.raises(ValueError, match="every is 0"):
        fill("specials", [4], DataType.FLOAT32, {"every": 0})
