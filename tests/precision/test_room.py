"""`room` counts elements that are open (any value passes) or loose (a wide range passes).

The tested code is in `dmlconf/precision/room.py` and `dmlconf/precision/accumulation.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Allowance, SumErrors
from dmlconf.precision.compare import compare
from dmlconf.precision.room import NO_ROOM, Room, permitted_ends, room
from dmlconf.tensors.datatypes import Array

INTERVAL = PrecisionRule(RuleKind.INTERVAL, 0, "test")
FLOATS = st.floats(-30000, 30000, width=16)


@dataclass(frozen=True)
class Ends:
    """The lowest and the highest permitted value."""

    low: float
    high: float


def float16(*values: float) -> Array:
    return np.array(values, np.float16)


def counted(expected: Array, *ends: Ends) -> Room:
    low = np.array([end.low for end in ends], expected.dtype)
    high = np.array([end.high for end in ends], expected.dtype)
    return room(expected, INTERVAL, Allowance(interval=(low, high)))


def test_an_exact_rule_leaves_no_room() -> None:
    assert (
        room(float16(1, 0, math.nan), PrecisionRule(RuleKind.EXACT, 0, "test"), Allowance())
        == NO_ROOM
    )


def test_unbounded_interval_is_open_and_wide_one_is_loose() -> None:
    everything = Ends(-math.inf, math.inf)
    actual = counted(float16(1, 1, 10), everything, Ends(0.4, 1.5), Ends(9.6, 10.5))
    assert actual == Room(open=1, loose=2)


@pytest.mark.parametrize("ends", [Ends(0, math.inf), Ends(-math.inf, 2)])
def test_one_sided_interval_is_loose_but_not_open(ends: Ends) -> None:
    assert counted(float16(1), ends) == Room(open=0, loose=1)


def test_integer_with_an_interval_of_its_whole_type_is_open() -> None:
    actual = counted(np.array([0, 200], np.uint8), Ends(0, 255), Ends(190, 200))
    assert actual == Room(open=1, loose=1)
    assert counted(np.array([3], np.uint8), Ends(3, 3)) == NO_ROOM


def test_looseness_is_relative_to_the_largest_finite_element() -> None:
    narrow = Ends(1, 1.5)
    assert counted(float16(1, 100), narrow, Ends(100, 100)) == NO_ROOM
    assert counted(float16(1, -100), narrow, Ends(-100, -100)) == NO_ROOM
    infinite = Ends(math.inf, math.inf)
    assert counted(float16(1, math.inf), narrow, infinite) == Room(open=0, loose=1)


def test_an_expected_value_outside_its_interval_leaves_no_room() -> None:
    """Only values equal to it pass."""
    assert counted(float16(5), Ends(1, 3)) == NO_ROOM
    assert counted(float16(0.5), Ends(1, 3)) == NO_ROOM
    assert counted(float16(math.nan), Ends(1, 3)) == NO_ROOM


def test_an_expected_nan_with_an_unbounded_interval_is_open() -> None:
    assert counted(float16(math.nan), Ends(-math.inf, math.inf)) == Room(open=1, loose=1)


def test_interval_from_largest_number_to_infinity_is_not_loose() -> None:
    assert counted(float16(65504), Ends(65504, math.inf)) == NO_ROOM
    assert counted(float16(-65504), Ends(-math.inf, -65504)) == NO_ROOM


def test_large_error_scales_make_sums_loose_or_open() -> None:
    """A sum may be off by 12.5 * 2^-24 of its error scale, which is 0.19 for 2^18."""
    rule = PrecisionRule(RuleKind.ACCUMULATE, 1, "test", products=8)
    error_scales = np.array([1.0, 2.0**18, 2.0**301])
    actual = room(float16(1, 1, 1), rule, Allowance(errors=SumErrors(error_scales)))
    assert actual == Room(open=1, loose=2)


def test_sum_that_may_overflow_float32_is_not_open() -> None:
    rule = PrecisionRule(RuleKind.ACCUMULATE, 1, "test", products=8)
    assert room(float16(1), rule, Allowance(errors=SumErrors(np.array([1e39])))).open == 0


def test_candidates_at_both_ends_of_a_type_are_loose() -> None:
    low, high = np.array([0], np.uint8), np.array([255], np.uint8)
    allowance = Allowance(candidates=[(low, low), (high, high)])
    actual = room(high, PrecisionRule(RuleKind.ONE_OF, 0, "test"), allowance)
    assert actual == Room(open=0, loose=1)


def test_a_sum_of_zeros_leaves_no_room() -> None:
    rule = PrecisionRule(RuleKind.ACCUMULATE, 1, "test", products=8)
    assert room(float16(0), rule, Allowance(errors=SumErrors(np.zeros(1)))) == NO_ROOM


@pytest.mark.parametrize("kind", ["interval", "accumulate"])
def test_rule_without_its_allowance_is_an_error(kind: str) -> None:
    with pytest.raises(ValueError, match=kind):
        room(float16(1), PrecisionRule(RuleKind(kind), 1, "test"), Allowance())


@pytest.mark.parametrize(
    ("kind", "limit"), [("ulp", 3), ("absolute", 0.5), ("relative", 0.25), ("accumulate", 1)]
)
@example(values=[2045.0], size=0.0)  # 2048 passes, but 2047 does not.
@given(values=st.lists(FLOATS, min_size=1, max_size=4), size=st.floats(0, 1e6))
def test_only_values_between_the_permitted_ends_pass(
    kind: str, limit: float, values: list[float], size: float
) -> None:
    rule = PrecisionRule(RuleKind(kind), limit, "test", products=4)
    expected = float16(*values)
    allowed = Allowance(errors=SumErrors(np.abs(expected.astype(np.float64)) + size))
    low, high = permitted_ends(expected, rule, allowed)
    for ends in (low, high):
        # Just below a power of two, wrong numbers may lie between the expected one and the end.
        inside = _between(expected, ends, 1 - 1e-12)
        assert compare(inside, expected, rule, allowed).differing == 0
    for ends, side in ((low, -np.inf), (high, np.inf)):
        # No finite FLOAT16 number may lie beyond a larger end.
        for at in np.flatnonzero(np.abs(ends) < 60000):
            outside = expected.copy()
            while not _farther(outside[at], ends[at], expected[at]):
                outside[at] = np.nextafter(np.float16(_clipped(outside[at], ends[at], side)), side)
            assert compare(outside, expected, rule, allowed).differing == 1


def _farther(value: float, end: float, expected: float) -> bool:
    return abs(float(value) - float(expected)) > 1.0001 * abs(float(end) - float(expected))


def _clipped(value: float, end: float, side: float) -> float:
    return max(float(value), float(end)) if side > 0 else min(float(value), float(end))


def _between(expected: Array, ends: Array, toward: float) -> Array:
    """Return values the fraction `toward` of the way from expected ones to ends."""
    most = float(np.finfo(np.float16).max)
    wide = expected.astype(np.float64)
    inside = wide + toward * (np.clip(ends.astype(np.float64), -most, most) - wide)
    rounded = inside.astype(np.float16)
    too_far = np.abs(rounded.astype(np.float64) - wide) > np.abs(inside - wide)
    nearer: Array = np.where(too_far, np.nextafter(rounded, expected), rounded)
    return nearer
