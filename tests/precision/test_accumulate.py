"""The rule `accumulate` accepts sums added up in FLOAT32 in any usual order, and no wrong sums.

The tested code is in `dmlconf/precision/accumulation.py` and `dmlconf/precision/compare.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pytest

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Allowance, SumErrors
from dmlconf.precision.compare import Comparison, compare
from dmlconf.precision.room import permitted_ends
from dmlconf.tensors.datatypes import Array

ROWS, COLUMNS = 24, 32

LENGTHS: Final = (16, 256, 2048)
"""Numbers of products; `pairwise` needs powers of two."""

DRAWS: Final[dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]]] = {
    "signed": lambda random, shape: random.uniform(-1, 1, shape),
    "positive": lambda random, shape: random.uniform(0, 1, shape),
    "normal": lambda random, shape: random.standard_normal(shape),
}
"""Distributions of the elements of both matrices."""


@dataclass(frozen=True)
class Product:
    """Two matrices: `a` has the sizes {rows, length}, `b` {length, columns}."""

    a: Array
    b: Array

    def judged(
        self, actual: Array, data_type: Any = np.float32, *, half: bool = False
    ) -> Comparison:
        """Compare an output, rounded to `data_type`, with the exact product.

        `half` says whether the backend may compute FLOAT16 outputs in FLOAT16.
        """
        a, b = self.a.astype(np.float64), self.b.astype(np.float64)
        rule = PrecisionRule(
            RuleKind.ACCUMULATE, 1, "test", self.a.shape[1], data_type is np.float32
        )
        exact = (a @ b).astype(data_type)
        errors = SumErrors(np.abs(a) @ np.abs(b))
        allowed = Allowance(right=exact, errors=errors, half_precision=half)
        return compare(actual.astype(data_type), exact, rule, allowed)


def product(draw: str, length: int, data_type: Any = np.float32) -> Product:
    random = np.random.default_rng(length)
    a = DRAWS[draw](random, (ROWS, length)).astype(data_type)
    return Product(a, DRAWS[draw](random, (length, COLUMNS)).astype(data_type))


def accumulated(pair: Product, order: Iterable[int], precision: Any = np.float32) -> Array:
    """Add up in this order; round each product and each sum."""
    total = np.zeros((len(pair.a), pair.b.shape[1]), precision)
    for k in order:
        total += (pair.a[:, k, np.newaxis] * pair.b[k]).astype(precision, copy=False)
    return total


def forward(pair: Product) -> Array:
    return accumulated(pair, range(pair.a.shape[1]))


def backward(pair: Product) -> Array:
    return accumulated(pair, reversed(range(pair.a.shape[1])))


def blocked(pair: Product) -> Array:
    """Add up blocks of 32 products, then the sums of the blocks."""
    length = pair.a.shape[1]
    blocks = [accumulated(pair, range(k, min(k + 32, length))) for k in range(0, length, 32)]
    total: Array = np.add.reduce(blocks, dtype=np.float32)
    return total


def pairwise(pair: Product) -> Array:
    """Add up neighbours, then neighbouring sums."""
    terms = np.einsum("ik,kj->kij", pair.a, pair.b)
    while len(terms) > 1:
        terms = terms[0::2] + terms[1::2]
    result: Array = terms[0]
    return result


def fused(pair: Product) -> Array:
    """Round once for each term, as a fused multiply-add does."""
    a, b = pair.a.astype(np.float64), pair.b.astype(np.float64)
    total = np.zeros((ROWS, COLUMNS), np.float32)
    for k in range(a.shape[1]):
        total = (total + a[:, k, np.newaxis] * b[k]).astype(np.float32)
    return total


def library(pair: Product) -> Array:
    result: Array = pair.a @ pair.b
    return result


def last_dropped(pair: Product) -> Array:
    result: Array = pair.a[:, :-1].astype(np.float64) @ pair.b[:-1].astype(np.float64)
    return result


def with_inputs_rounded_to(bits: int) -> Callable[[Product], Array]:
    def rounded(values: Array) -> Array:
        scale = 2.0 ** (bits - np.frexp(values.astype(np.float64))[1] + 1)
        return np.rint(values * scale) / scale

    def computed(pair: Product) -> Array:
        result: Array = rounded(pair.a) @ rounded(pair.b)
        return result

    return computed


def in_float16(pair: Product) -> Array:
    return accumulated(pair, range(pair.a.shape[1]), np.float16)


def one_element_off(pair: Product) -> Array:
    result = pair.a.astype(np.float64) @ pair.b.astype(np.float64)
    index = np.unravel_index(np.abs(result).argmax(), result.shape)
    result[index] *= 1.01
    return result


LEGITIMATE: Final = (forward, backward, blocked, pairwise, fused, library)
DEFECTS: Final = {
    "last product dropped": last_dropped,
    "float16 inputs": with_inputs_rounded_to(10),
    "bfloat16 inputs": with_inputs_rounded_to(7),
    "accumulated in float16": in_float16,
    "one element 1% off": one_element_off,
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("way", LEGITIMATE, ids=lambda way: way.__name__)
def test_each_of_six_ways_to_add_up_in_float32_passes(
    way: Callable[[Product], Array], draw: str, length: int
) -> None:
    pair = product(draw, length)
    actual = pair.judged(way(pair))
    assert actual.passed
    assert max(actual.margin, actual.spread) < 1


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("defect", DEFECTS)
def test_sums_with_each_of_five_defects_fail(defect: str, draw: str, length: int) -> None:
    pair = product(draw, length)
    assert not pair.judged(DEFECTS[defect](pair)).passed


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("draw", DRAWS)
def test_sums_held_in_float16_pass_only_with_half_precision(draw: str, length: int) -> None:
    pair = product(draw, length, np.float16)
    throughout = in_float16(pair)
    assert not pair.judged(throughout, np.float16).passed
    assert pair.judged(throughout, np.float16, half=True).passed


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("draw", DRAWS)
def test_float32_sums_of_float16_tensors_pass(draw: str, length: int) -> None:
    pair = product(draw, length, np.float16)
    inside = Product(pair.a.astype(np.float32), pair.b.astype(np.float32))
    assert pair.judged(forward(inside), np.float16).passed
    assert pair.judged(forward(inside), np.float16, half=True).passed


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("draw", DRAWS)
def test_float32_sums_of_products_in_float16_pass_with_half_precision(
    draw: str, length: int
) -> None:
    pair = product(draw, length, np.float16)
    float16_products = np.einsum("ik,kj->kij", pair.a, pair.b)
    sums = np.add.reduce(float16_products.astype(np.float32))
    assert pair.judged(sums, np.float16, half=True).passed


def test_4096_ones_are_2048_only_with_half_precision() -> None:
    """In FLOAT16, 2048 + 1 is 2048."""
    ones = Product(np.ones((1, 4096), np.float16), np.ones((4096, 1), np.float16))
    float16_sum = in_float16(ones)
    assert float16_sum == 2048
    assert not ones.judged(float16_sum, np.float16).passed
    assert ones.judged(float16_sum, np.float16, half=True).passed


def test_equal_elements_may_all_have_the_same_error() -> None:
    """The mean of squared errors is limited only where elements are different."""
    pair = Product(np.full((8, 1000), 0.1, np.float32), np.ones((1000, 16), np.float32))
    total = np.float32(0)
    for value in pair.a[0]:
        total += value
    actual = pair.judged(np.full((8, 16), total))
    assert actual.passed
    assert actual.spread == 0


def test_sums_with_equal_error_scales_have_a_larger_limit() -> None:
    """2^17 equal terms may be off by 2^17 * 2^-24 * 0.25 = 0.002."""
    expected = np.full(128, 0.25, np.float16)
    actual = expected - np.float16(0.001)
    rule = PrecisionRule(RuleKind.ACCUMULATE, 1, "test", 1 << 17)
    equal, different = np.full(128, 0.5), np.linspace(0.25, 0.5, 128)
    for error_scales, passes in ((equal, True), (different, False)):
        allowed = Allowance(right=expected, errors=SumErrors(error_scales))
        assert compare(actual, expected, rule, allowed).passed is passes


def test_overflow_of_a_partial_sum_permits_infinities_and_nan() -> None:
    large = np.float32(3e38)
    pair = Product(np.array([[large, large, -large]]), np.ones((3, 1), np.float32))
    for value in (np.inf, -np.inf, np.nan, 3e38):
        assert pair.judged(np.array([[value]])).passed


def test_overflow_of_a_partial_sum_permits_no_wrong_number() -> None:
    large = np.float32(3e38)
    pair = Product(np.array([[large, large, -large]]), np.ones((3, 1), np.float32))
    for value in (0, 1e38, -3e38):
        assert not pair.judged(np.array([[value]])).passed


def test_exact_sum_is_right_if_the_recorded_sum_overflowed() -> None:
    rule = PrecisionRule(RuleKind.ACCUMULATE, 1, "test", 3, True)
    exact = np.array([3e38], np.float32)
    allowed = Allowance(right=exact, errors=SumErrors(np.array([9e38])))
    for recorded in (np.inf, np.nan):
        expected = np.array([recorded], np.float32)
        assert compare(exact, expected, rule, allowed).passed
        assert not compare(exact / 2, expected, rule, allowed).passed


def test_an_infinity_or_nan_for_a_small_sum_fails() -> None:
    pair = Product(np.array([[1, 2]], np.float32), np.ones((2, 1), np.float32))
    for value in (np.inf, -np.inf, np.nan):
        actual = pair.judged(np.array([[value]]))
        assert actual.differing == 1


def test_a_sum_of_zeros_must_be_exactly_zero() -> None:
    pair = Product(np.zeros((1, 4), np.float32), np.ones((4, 1), np.float32))
    assert pair.judged(np.zeros((1, 1))).passed
    assert not pair.judged(np.full((1, 1), 1e-30)).passed


def test_sum_with_an_infinite_or_nan_term_is_that_term() -> None:
    for value, right in ((np.nan, np.nan), (np.inf, np.inf), (-np.inf, -np.inf)):
        pair = Product(np.array([[1, value]], np.float32), np.ones((2, 1), np.float32))
        assert pair.judged(np.array([[right]])).passed
        for wrong in {0.0, 1e30, np.inf, -np.inf, np.nan} - {right}:
            assert not pair.judged(np.array([[wrong]])).passed


def test_subnormal_float16_results_may_be_one_step_off() -> None:
    smallest = float(np.finfo(np.float16).smallest_subnormal)
    pair = Product(np.array([[20 * smallest]], np.float16), np.ones((1, 1), np.float16))
    for steps, passes in ((18, False), (19, True), (21, True), (22, False)):
        assert pair.judged(np.array([[steps * smallest]]), np.float16).passed is passes, steps


def test_exact_sum_beyond_float16_may_be_65504_or_infinity() -> None:
    sums = np.array([240000.0])  # A multiple of 128, so a quantum of 128 makes the sum exact.
    infinite, largest = np.array([np.inf], np.float16), np.array([65504], np.float16)
    rule = PrecisionRule(RuleKind.ACCUMULATE, 1, "a test", products=1)
    allowed = Allowance(right=infinite, errors=SumErrors(sums, quantum=128.0))
    assert compare(largest, infinite, rule, allowed).passed
    assert compare(infinite, largest, rule, allowed).passed
    assert not compare(np.array([60000], np.float16), infinite, rule, allowed).passed


@pytest.mark.parametrize("count", [10, 20_000])
def test_only_the_expected_number_and_the_spans_are_right(count: int) -> None:
    """Each span is a single number. With 20,000 elements one span at a time is computed."""
    numbers = [np.full(count, float(number)) for number in range(-3, 5) if number]
    errors = SumErrors(np.ones(count), spans=tuple((number, number) for number in numbers))
    rule = PrecisionRule(RuleKind.ACCUMULATE, 1, "test", 1, True)
    expected = np.zeros(count, np.float32)
    allowed = Allowance(right=expected, errors=errors)
    for number in range(-3, 5):
        assert compare(np.full(count, number, np.float32), expected, rule, allowed).passed, number
        half_more = np.full(count, number + 0.5, np.float32)
        assert compare(half_more, expected, rule, allowed).differing == count, number
    lowest, highest = permitted_ends(expected, rule, allowed)
    np.testing.assert_allclose(lowest, -3, atol=1e-6)
    np.testing.assert_allclose(highest, 4, atol=1e-6)


def test_expected_value_may_be_another_right_output() -> None:
    right, other = np.array([1], np.float32), np.array([2], np.float32)
    rule = PrecisionRule(RuleKind.ACCUMULATE, 1, "test", 1, True)
    allowed = Allowance(right=right, errors=SumErrors(np.array([1.0]), others=(other,)))
    assert compare(right, other, rule, allowed).passed
    assert compare(other, right, rule, allowed).passed
    assert not compare(right, np.array([5], np.float32), rule, allowed).passed
