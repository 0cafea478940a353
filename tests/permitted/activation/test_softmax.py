"""HARDMAX may choose any element of a row with NaN, and sums of softmax may be stored in parts.

The tested code is in `dmlconf/permitted/activation/softmax.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.permitted.numbers.half import toward_zero
from tests.permitted.graphs.accepted import accepts, single

HARDMAX = """InputTensor: {Sizes: [2, 2], DataType: FLOAT32, values: [VALUES]},
  OutputTensor: {Sizes: [2, 2], DataType: FLOAT32}, Axes: AXES"""


CHOICES = ([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1])


def test_hardmax_with_nan_along_two_axes_may_choose_any_element(
    tmp_path: Path,
) -> None:
    """DirectML 1.13.1 compares such a row in parts, in which NaN may hide the 3."""
    desc = HARDMAX.replace("VALUES", "1, .nan, 3, 2").replace("AXES", "[0, 1]")
    case = single(tmp_path, "ACTIVATION_HARDMAX1", desc)
    for chosen in CHOICES:
        assert accepts(case, "OutputTensor", chosen), chosen
    assert not accepts(case, "OutputTensor", [2, 0, 0, 0])
    assert not accepts(case, "OutputTensor", [0.5, 0, 0, 0])


def test_hardmax_without_nan_along_two_axes_chooses_the_greatest(
    tmp_path: Path,
) -> None:
    desc = HARDMAX.replace("VALUES", "1, 4, 3, 2").replace("AXES", "[0, 1]")
    case = single(tmp_path, "ACTIVATION_HARDMAX1", desc)
    for chosen in CHOICES:
        assert accepts(case, "OutputTensor", chosen) is (chosen == [0, 1, 0, 0]), chosen


def test_hardmax_with_nan_along_one_axis_has_one_result(tmp_path: Path) -> None:
    """A short row is compared as a whole, and NaN is not greater than 1."""
    desc = HARDMAX.replace("VALUES", "1, .nan, 3, 2").replace("AXES", "[1]")
    case = single(tmp_path, "ACTIVATION_HARDMAX1", desc)
    assert accepts(case, "OutputTensor", [1, 0, 1, 0])
    assert not accepts(case, "OutputTensor", [0, 1, 1, 0])
    assert not accepts(case, "OutputTensor", [1, 0, 0, 1])
    assert not accepts(case, "OutputTensor", [0, 1, 0, 1])


@pytest.mark.parametrize("length", [2, 16])
def test_the_logarithm_of_a_share_is_not_positive(tmp_path: Path, length: int) -> None:
    """FLOAT16 holds the sum 1.0003 as 1, of which the logarithm is 0, and not as less."""
    sizes = f"Sizes: [1, {length}], DataType: FLOAT16"
    values = [0.0, -8.0, *[-100.0] * (length - 2)]
    desc = f"InputTensor: {{{sizes}, values: {values}}}, OutputTensor: {{{sizes}}}, Axes: [1]"
    case = single(tmp_path, "ACTIVATION_LOG_SOFTMAX1", desc)
    for right in (-3.4e-4, 0):
        assert accepts(case, "OutputTensor", [right, *values[1:]]), right
    assert not accepts(case, "OutputTensor", [3.4e-4, *values[1:]])


@pytest.mark.parametrize("operator", ["ACTIVATION_SOFTMAX", "ACTIVATION_LOG_SOFTMAX"])
@pytest.mark.parametrize("seed", range(5))
def test_a_float16_sum_may_be_stored_in_eight_parts(
    tmp_path: Path, operator: str, seed: int
) -> None:
    """DirectML 1.8.0 and 1.9.1 do this with rows of an even length of more than 8 elements."""
    sizes = "Sizes: [1, 1, 20, 64], DataType: FLOAT16"
    fill = f"fill: {{normal: {{seed: {seed}}}}}"
    case = single(
        tmp_path, operator, f"InputTensor: {{{sizes}, {fill}}}, OutputTensor: {{{sizes}}}"
    )
    tensor = case.inputs()["InputTensor"].reshape(20, 64).astype(np.float64)
    below = tensor - tensor.max(-1, keepdims=True)
    parts = toward_zero(np.exp(below).reshape(20, 8, 8).sum(1))
    total = toward_zero(parts.sum(-1, keepdims=True))
    log = operator == "ACTIVATION_LOG_SOFTMAX"
    result = below - np.log(total) if log else np.exp(below) / total
    assert accepts(case, "OutputTensor", toward_zero(result))
    wrong = below - np.log(total * 0.99) if log else np.exp(below) / (total * 0.99)
    assert not accepts(case, "OutputTensor", toward_zero(wrong))
