"""HARDMAX may choose any element of a row that holds NaN and is compared in parts.

The tested code is in `dmlconf/permitted/activation/softmax.py`.
"""

from __future__ import annotations

from pathlib import Path

from tests.permitted.graphs.accepted import accepts, single

HARDMAX = """InputTensor: {Sizes: [2, 2], DataType: FLOAT32, values: [VALUES]},
  OutputTensor: {Sizes: [2, 2], DataType: FLOAT32}, Axes: AXES"""


CHOICES = ([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1])


def test_hardmax_of_a_row_with_nan_may_choose_any_element_along_several_axes(
    tmp_path: Path,
) -> None:
    """Measured on DirectML 1.13.1, which compares such a row in parts, so NaN may hide the 3."""
    desc = HARDMAX.replace("VALUES", "1, .nan, 3, 2").replace("AXES", "[0, 1]")
    case = single(tmp_path, "ACTIVATION_HARDMAX1", desc)
    for chosen in CHOICES:
        assert accepts(case, "OutputTensor", chosen), chosen
    assert not accepts(case, "OutputTensor", [2, 0, 0, 0])
    assert not accepts(case, "OutputTensor", [0.5, 0, 0, 0])


def test_hardmax_without_nan_chooses_the_greatest_element_along_several_axes(
    tmp_path: Path,
) -> None:
    desc = HARDMAX.replace("VALUES", "1, 4, 3, 2").replace("AXES", "[0, 1]")
    case = single(tmp_path, "ACTIVATION_HARDMAX1", desc)
    for chosen in CHOICES:
        assert accepts(case, "OutputTensor", chosen) is (chosen == [0, 1, 0, 0]), chosen


def test_hardmax_of_short_rows_with_nan_has_one_result_along_one_axis(tmp_path: Path) -> None:
    desc = HARDMAX.replace("VALUES", "1, .nan, 3, 2").replace("AXES", "[1]")
    case = single(tmp_path, "ACTIVATION_HARDMAX1", desc)
    assert accepts(case, "OutputTensor", [1, 0, 1, 0])
    assert not accepts(case, "OutputTensor", [0, 1, 1, 0])
    assert not accepts(case, "OutputTensor", [1, 0, 0, 1])
    assert not accepts(case, "OutputTensor", [0, 1, 0, 1])
