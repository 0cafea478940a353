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
    values = [number] * count
    tensor = f"{{Sizes: [1, 1, 1, {count}], DataType: FLOAT32}}"
    desc = f"""InputTensor: {tensor.replace("}", f", values: {values}}}")}, OutputTensor: {tensor},
      Axes: [3], NormalizeVariance: true, Epsilon: {epsilon}"""
    return single(folder, "MEAN_VARIANCE_NORMALIZATION1", desc)


def test_rounding_error_of_the_mean_may_become_1(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives -1 for 31 numbers 3.3, and 1 for 31 numbers 0.1."""
    assert accepts(normalization(tmp_path, 3.3, 31), "OutputTensor", [-1.0] * 31)
    assert accepts(normalization(tmp_path, 0.1, 31), "OutputTensor", [1.0] * 31)


@pytest.mark.parametrize(("number", "count", "epsilon"), [(0, 31, 0), (3.3, 2, 0), (3.3, 31, 1)])
def test_exact_mean_or_large_epsilon_permits_no_minus_1(
    tmp_path: Path, number: float, count: int, epsilon: float
) -> None:
    case = normalization(tmp_path, number, count, epsilon)
    assert not accepts(case, "OutputTensor", [-1.0] * count)


@pytest.mark.parametrize(("epsilon", "right"), [(0, True), (1, False)])
def test_training_without_epsilon_may_normalize_rounding_errors(
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


def test_difference_of_equal_products_may_be_one_rounding(tmp_path: Path) -> None:
    """A kernel may compute -5 * factor - -5 * factor + bias; factor is -0.3813 / sqrt(0.1).

    DirectML 1.13.1 gives 0.034302.
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
