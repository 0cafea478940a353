"""REDUCE, ARGMAX, ARGMIN and cumulative operators have several right results in rare cases.

The tested code is in `dmlconf/permitted/reduction/reduce.py`,
`dmlconf/permitted/reduction/cumulative.py` and `dmlconf/permitted/numbers/comparison_in_parts.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.reduction.cumulative import cumulative_product_error_scale
from dmlconf.permitted.reduction.reduce import (
    argmax_interval,
    argmin_interval,
    reduce_candidates,
    reduce_error_scale,
)
from dmlconf.reference.reduction.reduce import argmax
from dmlconf.tensors.datatypes import DataType
from tests.permitted.graphs.accepted import accepts, single


def may_overflow(values: list[float]) -> bool:
    """Return whether REDUCE with LOG_SUM may give an infinity or NaN for these FLOAT32 values."""
    output = TensorDesc(DataType.FLOAT32, (1,))
    tensor = np.array(values, np.float32)
    result = reduce_error_scale("LOG_SUM", tensor, output, (0,))
    return result.overflows is not None and bool(result.overflows.any())


@pytest.mark.parametrize("values", [[0, 0, 0], [1, -1], [3, -8, 5], [2, 6]])
def test_the_logarithm_of_an_exact_sum_has_one_result(values: list[float]) -> None:
    assert not may_overflow(values)


@pytest.mark.parametrize("values", [[0.1, 0.7, -0.8], [1e-39, 0]])
def test_log_of_a_cancelling_or_flushed_sum_may_be_infinite(values: list[float]) -> None:
    assert may_overflow(values)


def products(values: list[float]) -> ErrorScale:
    """Return the error scale of CUMULATIVE_PRODUCT of these FLOAT32 values, first to last."""
    tensor = np.array(values, np.float32)
    output = TensorDesc(DataType.FLOAT32, tensor.shape)
    return cumulative_product_error_scale(tensor, output, 0, "INCREASING", False)


@pytest.mark.parametrize(
    ("values", "right", "may_be_nan"),
    [
        ("1.0e+30, 1.0e+30, 0, 2", [1e30, np.inf, 0, 0], [False, False, True, True]),
        ("1.0e+30, 1.0e+5, 0, 2", [1e30, 1e35, 0, 0], [False, False, False, False]),
        ("0, -1.0e+30, 1.0e+30", [0, 0, 0], [False, False, True]),
        ("1.0e-30, 1.0e-30, .inf", [1e-30, 0, np.inf], [False, False, True]),
        ("2, 3, .inf", [2, 6, np.inf], [False, False, False]),
        ("1.0e-30, 1.0e-30, .inf, 0", [1e-30, 0, np.inf, np.nan], [False, False, True, True]),
    ],
)
def test_product_may_be_nan_but_not_infinite_after_overflow_or_before_infinity(
    values: str, right: list[float], may_be_nan: list[bool], tmp_path: Path
) -> None:
    """DirectML 1.8.0 to 1.15.4 give NaN for 3e38 * 3e38 * 0, and 0 for 3e38 * 0 * 3e38."""
    sizes = f"{{Sizes: [{len(right)}], DataType: FLOAT32"
    desc = f"""InputTensor: {sizes}, values: [{values}]}}, OutputTensor: {sizes}}},
      Axis: 0, AxisDirection: INCREASING, HasExclusiveProduct: false"""
    case = single(tmp_path, "CUMULATIVE_PRODUCT", desc)
    assert accepts(case, "OutputTensor", right)
    for at, nan in enumerate(may_be_nan):
        for value in (np.nan, np.inf, -np.inf):
            output = [*right[:at], value, *right[at + 1 :]]
            same = np.array_equal(output, right, equal_nan=True)
            permitted = same or (nan and np.isnan(value))
            assert accepts(case, "OutputTensor", output) == permitted, output


def test_limit_of_a_product_that_underflows_reaches_zero() -> None:
    """1e-30 * 1e-30 may count as 0. The rule permits four roundings or more."""
    underflowing, in_range = products([1e-30, 1e-30, 1e30]), products([1e-10, 1e-10, 1e30])
    assert 4 * 2.0**-24 * underflowing.sums[2] > 1e-30
    assert in_range.sums[2] < 1e10 * 1.01


@pytest.mark.parametrize("position", ["first", "last"])
@pytest.mark.parametrize(
    ("sizes", "axes", "whole"),
    [((512,), (0,), True), ((513,), (0,), False), ((3, 5), (0, 1), False), ((3, 5), (1,), True)],
)
def test_nan_opens_an_index_only_of_comparisons_in_parts(
    sizes: tuple[int, ...], axes: tuple[int, ...], whole: bool, position: str
) -> None:
    """Up to 512 elements along one axis are compared as a whole."""
    values = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    values.flat[3 if position == "first" else -3] = np.nan
    output = TensorDesc(DataType.UINT32, tuple(1 if n in axes else s for n, s in enumerate(sizes)))
    right = argmax(values, output, axes, "INCREASING")
    low, high = argmax_interval(values, output, axes, "INCREASING")
    open_line = (low == 0) & (high == np.prod([sizes[axis] for axis in axes]) - 1)
    assert bool(open_line.any()) is not whole
    assert ((low == right) & (high == right) | open_line).all()


def test_without_nan_an_index_has_no_alternative() -> None:
    values = np.arange(4096, dtype=np.float32)
    output = TensorDesc(DataType.UINT32, (1,))
    assert [int(end) for end in argmin_interval(values, output, (0,), "DECREASING")] == [0, 0]


@pytest.mark.parametrize("function", ["MIN", "MAX"])
def test_the_extremum_of_only_nans_is_infinite_or_nan(function: str) -> None:
    values = np.full((2, 4096), np.nan, np.float32)
    values[1, 7] = 5
    output = TensorDesc(DataType.FLOAT32, (2, 1))
    candidates = reduce_candidates(function, values, output, (1,))
    infinity = np.inf if function == "MIN" else -np.inf
    assert sorted(str(low.ravel()[0]) for low, _ in candidates) == sorted([str(infinity), "nan"])
    assert all(low.ravel()[1] == high.ravel()[1] == 5 for low, high in candidates)


def test_negative_infinity_adds_no_error_to_log_sum_exp() -> None:
    output = TensorDesc(DataType.FLOAT32, (1,))
    alone, beside = (
        ErrorScale.of(
            reduce_error_scale("LOG_SUM_EXP", np.array(values, np.float32), output, (0,))
        ).sums.item()
        for values in ([0.078], [0.078, -np.inf])
    )
    assert beside == pytest.approx(alone)


def test_cumulative_sums_of_equal_terms_may_all_be_too_small(tmp_path: Path) -> None:
    """Each of 127 additions of 0.7 is truncated."""
    desc = """InputTensor: {Sizes: [127], DataType: FLOAT32, fill: {constant: {value: 0.7}}},
      OutputTensor: {Sizes: [127], DataType: FLOAT32}, Axis: 0, AxisDirection: INCREASING,
      HasExclusiveSum: false"""
    case = single(tmp_path, "CUMULATIVE_SUMMATION", desc)
    sums, total = [], np.float32(0)
    for _ in range(127):
        exact = float(total) + float(np.float32(0.7))
        total = np.float32(exact)
        total = np.nextafter(total, np.float32(0)) if float(total) > exact else total
        sums.append(total)
    assert accepts(case, "OutputTensor", sums)
    off_by_500_roundings = sums[-1] * (1 - 500 * 2.0**-24)
    assert not accepts(case, "OutputTensor", [*sums[:-1], off_by_500_roundings])


def test_log_sum_may_take_a_subnormal_sum_for_normal(tmp_path: Path) -> None:
    """DirectML 1.8.0 to 1.12.1 take 0.21 * 2^-126 for 1.21 * 2^-127, whose logarithm is -87.8."""
    desc = """Function: LOG_SUM, Axes: [0],
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1.0e-39, 1.5e-39]},
      OutputTensor: {Sizes: [1], DataType: FLOAT32}"""
    case = single(tmp_path, "REDUCE", desc)
    for right in (-88.8755, -87.8356, -np.inf):
        assert accepts(case, "OutputTensor", [right]), right
    for wrong in (-87.0, -91.0, 0.0):
        assert not accepts(case, "OutputTensor", [wrong]), wrong


def test_log_sum_exp_of_minus_103_may_be_minus_infinity(tmp_path: Path) -> None:
    """FLOAT32 rounds exp(-103) to 2^-149, whose logarithm is -103.279, or to 0."""
    desc = """Function: LOG_SUM_EXP, Axes: [0],
      InputTensor: {Sizes: [1], DataType: FLOAT32, values: [-103]},
      OutputTensor: {Sizes: [1], DataType: FLOAT32}"""
    case = single(tmp_path, "REDUCE", desc)
    for right in (-103, -103.279, -np.inf):
        assert accepts(case, "OutputTensor", [right]), right
    for wrong in (np.nan, np.inf, -80):
        assert not accepts(case, "OutputTensor", [wrong]), wrong


@pytest.mark.parametrize(
    ("operator", "fields", "sizes"),
    [
        ("REDUCE", "Function: MULTIPLY, Axes: [0]", "[1]"),
        (
            "CUMULATIVE_PRODUCT",
            "Axis: 0, AxisDirection: INCREASING, HasExclusiveProduct: false",
            "[8]",
        ),
    ],
)
def test_a_product_far_beyond_float16_overflows(
    operator: str, fields: str, sizes: str, tmp_path: Path
) -> None:
    """100 ** 8 exceeds FLOAT16 whatever the errors are."""
    desc = f"""
  InputTensor: {{Sizes: [8], DataType: FLOAT16, fill: {{constant: {{value: 100}}}}}},
  OutputTensor: {{Sizes: {sizes}, DataType: FLOAT16}}, {fields}"""
    case = single(tmp_path, operator, desc)
    before = [100.0, 10_000.0] if operator == "CUMULATIVE_PRODUCT" else []
    rest = 8 - len(before) if before else 1
    for beyond in (np.inf, 65504.0):
        assert accepts(case, "OutputTensor", [*before, *[beyond] * rest])
    for wrong in (7.0, -7.0, 60_000.0, -np.inf):
        assert not accepts(case, "OutputTensor", [*before, *[wrong] * rest])


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_products_of_integers_have_an_error_scale(dtype: type[np.generic]) -> None:
    tensor = np.array([2, 3, 4], dtype)
    output = TensorDesc(DataType.INT32, (3,))
    cumulative = cumulative_product_error_scale(tensor, output, 0, "INCREASING", False)
    assert cumulative.sums.tolist() == [2, 6, 24]
    total = reduce_error_scale("MULTIPLY", tensor, TensorDesc(DataType.INT32, (1,)), (0,))
    assert float(total.sums) == 24
