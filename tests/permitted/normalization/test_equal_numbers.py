"""Normalizing equal numbers without Epsilon leaves only the rounding error of the mean.

The tested code is in `parameters.py` (`of_rounding_alone`), `mean_variance.py` and `batch.py` of
`dmlconf/permitted/normalization/`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.model import Case
from tests.permitted.graphs.accepted import accepts, single


def normalization(folder: Path, number: float, count: int, epsilon: float = 0) -> Case:
    """Return a MEAN_VARIANCE_NORMALIZATION1 of `count` equal numbers."""
    values = [number] * count
    tensor = f"{{Sizes: [1, 1, 1, {count}], DataType: FLOAT32}}"
    desc = f"""InputTensor: {tensor.replace("}", f", values: {values}}}")}, OutputTensor: {tensor},
      Axes: [3], NormalizeVariance: true, Epsilon: {epsilon}"""
    return single(folder, "MEAN_VARIANCE_NORMALIZATION1", desc)


def test_the_rounding_error_of_the_mean_may_be_normalized_to_1_or_minus_1(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives -1 for 31 numbers 3.3, and 1 for 31 numbers 0.1."""
    assert accepts(normalization(tmp_path, 3.3, 31), "OutputTensor", [-1.0] * 31)
    assert accepts(normalization(tmp_path, 0.1, 31), "OutputTensor", [1.0] * 31)


@pytest.mark.parametrize(("number", "count", "epsilon"), [(0, 31, 0), (3.3, 2, 0), (3.3, 31, 1)])
def test_a_result_of_minus_1_is_wrong_if_the_mean_is_exact_or_epsilon_is_large(
    tmp_path: Path, number: float, count: int, epsilon: float
) -> None:
    case = normalization(tmp_path, number, count, epsilon)
    assert not accepts(case, "OutputTensor", [-1.0] * count)


@pytest.mark.parametrize(("epsilon", "right"), [(0, True), (1, False)])
def test_batch_normalization_training_may_normalize_the_rounding_error_of_the_mean_too(
    tmp_path: Path, epsilon: float, right: bool
) -> None:
    desc = f"""InputTensor: {{Sizes: [31, 1], DataType: FLOAT32, values: {[3.3] * 31}}},
      ScaleTensor: {{Sizes: [1, 1], DataType: FLOAT32, values: [1]}},
      BiasTensor: {{Sizes: [1, 1], DataType: FLOAT32, values: [0]}}, Epsilon: {epsilon},
      OutputTensor: {{Sizes: [31, 1], DataType: FLOAT32}},
      OutputMeanTensor: {{Sizes: [1, 1], DataType: FLOAT32}},
      OutputVarianceTensor: {{Sizes: [1, 1], DataType: FLOAT32}}"""
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING", desc)
    assert accepts(case, "OutputTensor", [-1.0] * 31) is right


def test_the_products_of_equal_numbers_with_the_factor_may_leave_a_rest_in_float16(
    tmp_path: Path,
) -> None:
    """A kernel may compute -5 * factor - -5 * factor + bias, for a factor of -0.3813 / sqrt(0.1).

    FLOAT16 may hold a bias of 0.067566 less a rest as 0.067505, its predecessor. 0.067505 times
    its sigmoid of one half is 0.03432, which is truncated to 0.034302. DirectML 1.13.1 gives that.
    """
    one = "{Sizes: [1, 1, 1], DataType: FLOAT16"
    desc = f"""InputTensor: {{Sizes: [1, 2, 1], DataType: FLOAT16, values: [-5, -5]}},
      ScaleTensor: {one}, values: [-0.3813]}}, BiasTensor: {one}, values: [0.067566]}},
      OutputTensor: {{Sizes: [1, 2, 1], DataType: FLOAT16}}, OutputMeanTensor: {one}}},
      OutputVarianceTensor: {one}}}, Epsilon: 0.1,
      FusedActivation: {{operator: ACTIVATION_SWISH, SigmoidInputScale: 0.5}}"""
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING", desc)
    right, truncated, wrong = 0.034363, 0.034302, 0.034271
    for value in (right, truncated):
        assert accepts(case, "OutputTensor", [value] * 2), value
    assert not accepts(case, "OutputTensor", [wrong] * 2)
