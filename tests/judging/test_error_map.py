"""Error maps show where a failing output differs, and how much as a digit from 0 to 9.

The tested code is in `dmlconf/judging/error_map.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dmlconf.judging.error_map import MOST_COLUMNS, MOST_ROWS, error_map

SHAPES = arrays.array_shapes(min_dims=1, max_dims=4, max_side=20)


def test_digits_are_powers_of_ten_of_the_relative_error() -> None:
    """9 stands for errors of at least 0.1 of the largest expected number, 8 of 0.01, and so on."""
    expected = np.array([[1000, 1, 1, 1]], np.float64)
    actual = expected + np.array([[0, 1e-6, 0.5, 500]])
    for scale in (1, 1e-6):
        assert error_map(actual * scale, expected * scale).rows == ("0169",)


@pytest.mark.parametrize(
    ("actual", "expected", "digit"),
    [
        (np.nan, 1.0, "9"),
        (1.0, np.inf, "9"),
        (np.inf, -np.inf, "9"),
        (np.nan, np.nan, "0"),
        (-np.nan, np.nan, "0"),
        (-0.0, 0.0, "1"),
        (1.0, 0.0, "9"),
        (0.02, 0.0, "8"),
        (np.inf, np.inf, "0"),
    ],
)
def test_the_digits_of_nan_infinity_and_numbers_beside_0(
    actual: float, expected: float, digit: str
) -> None:
    """If the expected number is 0 or not finite, the error counts as a share of 1."""
    pair = (np.array([value], np.float32) for value in (actual, expected))
    assert error_map(*pair).rows == (digit,)


@given(SHAPES, st.data())
def test_one_wrong_element_marks_one_cell_of_its_row(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    expected = np.ones(shape, np.float32)
    actual = expected.copy()
    index = data.draw(st.integers(0, expected.size - 1))
    actual.flat[index] = 2
    grid = error_map(actual, expected)
    assert sum(row.count("9") for row in grid.rows) == 1
    assert sum(row.count("0") for row in grid.rows) == sum(map(len, grid.rows)) - 1
    assert len(grid.rows) <= MOST_ROWS
    assert len({len(row) for row in grid.rows}) == 1
    assert len(grid.rows[0]) <= MOST_COLUMNS
    assert grid.sizes == shape
    rows = int(np.prod(shape[: grid.axes]))
    row = next(i for i, text in enumerate(grid.rows) if "9" in text)
    starts = np.arange(len(grid.rows)) * rows // len(grid.rows)
    assert row == np.searchsorted(starts, index // (expected.size // rows), side="right") - 1


def test_maps_of_integers_mark_wrong_elements() -> None:
    expected = np.array([[1, 2], [3, 4]], np.uint8)
    actual = np.array([[1, 2], [3, 5]], np.uint8)
    assert error_map(actual, expected).rows == ("00", "09")
