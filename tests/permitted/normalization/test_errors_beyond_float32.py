"""Errors of sums that later steps multiply may exceed the largest FLOAT32 number.

The tested code is in `dmlconf/precision/accumulation.py`, and in `ErrorScale.growing` of
`dmlconf/permitted/numbers/error_scale.py`, with the factors of
`dmlconf/permitted/normalization/local_response.py`,
`dmlconf/permitted/normalization/mean_variance.py`, `dmlconf/permitted/normalization/batch.py`,
`dmlconf/permitted/normalization/batch_gradients.py` and `dmlconf/permitted/products/gemm.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, single

LARGEST = float(np.finfo(np.float32).max)

DIFFERENCES = """
  InputTensor: {Sizes: [1, 4], DataType: FLOAT32, values: [INPUTS]},
  ScaleTensor: {Sizes: [1, 4], DataType: FLOAT32, values: [SCALE, 1, SCALE, 1]},
  OutputTensor: {Sizes: [1, 4], DataType: FLOAT32},
  Axes: [1], UseMean: true, UseVariance: false, Epsilon: 0"""

NORMALIZED = """
  InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.0000001]},
  MeanTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [MEAN]},
  VarianceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.0e-30]},
  ScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.0e+30]},
  BiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]},
  OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32},
  Spatial: true, Epsilon: 0"""

PRODUCT = """
  ATensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [1.1, 100.3, -101.4, 0.5]},
  BTensor: {Sizes: [1, 1, 4, 1], DataType: FLOAT32, values: [1, 1, 1, 1]},
  OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32},
  TransA: NONE, TransB: NONE, Alpha: 3.0e+38, Beta: 0"""


def test_error_of_a_large_power_grows_with_its_exponent(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives 7.301373e37 for 1.2950137 / (0.25 * 1.2950137^2)^100."""
    desc = """
  InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.2950137]},
  OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32},
  CrossChannel: false, LocalSize: 1, Alpha: 0.25, Beta: BETA, Bias: 0"""
    large = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION", desc.replace("BETA", "100"))
    assert accepts(large, "OutputTensor", [7.301373e37])
    assert not accepts(large, "OutputTensor", [7.31e37])
    small = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION", desc.replace("BETA", "1"))
    (right,) = evaluate(small)["OutputTensor"].ravel().tolist()
    assert not accepts(small, "OutputTensor", [right * (1 + 3e-6)])


def test_rounded_mean_times_a_large_scale_may_be_any_number(tmp_path: Path) -> None:
    """The mean of 3.4e38, -3.4e38, 0 and 1 may be 0 in FLOAT32, or 0.25."""
    desc = DIFFERENCES.replace("INPUTS", f"{LARGEST}, {-LARGEST}, 0, 1")
    case = single(tmp_path, "MEAN_VARIANCE_NORMALIZATION2", desc.replace("SCALE", str(LARGEST)))
    right = evaluate(case)["OutputTensor"].ravel().tolist()
    assert right[2] == pytest.approx(-LARGEST / 4)
    for value in (0, 5, -1e38, 3e38, np.inf, np.nan):
        assert accepts(case, "OutputTensor", [*right[:2], value, right[3]]), value
    small = single(tmp_path, "MEAN_VARIANCE_NORMALIZATION2", desc.replace("SCALE", "1"))
    assert not accepts(small, "OutputTensor", [*right[:2], 3e38, right[3]])


def test_product_that_certainly_overflows_is_not_finite(tmp_path: Path) -> None:
    desc = DIFFERENCES.replace("INPUTS", "1.0e+30, -1.0e+30, 0, 0").replace("SCALE", "1.0e+30")
    case = single(tmp_path, "MEAN_VARIANCE_NORMALIZATION2", desc)
    right = evaluate(case)["OutputTensor"].ravel().tolist()
    assert right[0] == np.inf
    assert accepts(case, "OutputTensor", right)
    assert not accepts(case, "OutputTensor", [5, *right[1:]])


@pytest.mark.parametrize(("mean", "cancels"), [("1", True), ("0.5", False)])
def test_one_step_difference_times_a_large_factor_may_vanish(
    tmp_path: Path, mean: str, cancels: bool
) -> None:
    """A kernel may multiply 1.0000001 and the mean by 1e30 / sqrt(1e-30) before it subtracts."""
    case = single(tmp_path, "BATCH_NORMALIZATION", NORMALIZED.replace("MEAN", mean))
    assert accepts(case, "OutputTensor", [np.inf])
    assert accepts(case, "OutputTensor", [5]) == cancels


def test_alpha_multiplies_the_errors_of_a_matrix_product(tmp_path: Path) -> None:
    """If the FLOAT32 sum 1.1 + 100.3 is truncated, it may be off by 2^-17."""
    case = single(tmp_path, "GEMM", PRODUCT)
    right = evaluate(case)["OutputTensor"].ravel()
    assert right == pytest.approx(1.5e38, rel=1e-4)
    assert accepts(case, "OutputTensor", right * (1 + 6e-5))
    assert not accepts(case, "OutputTensor", right * (1 + 1e-3))


def test_a_far_mean_multiplies_the_errors_of_a_gradient(tmp_path: Path) -> None:
    """DirectML 1.12.1 gives the first gradients; the sum for the scale nearly cancels."""
    desc = """
  InputTensor: {Sizes: [1, 2], DataType: FLOAT32, values: [0.9381371, 0.8798387]},
  InputGradientTensor: {Sizes: [1, 2], DataType: FLOAT32, values: [0.7348042, -0.73447025]},
  MeanTensor: {Sizes: [1, 1], DataType: FLOAT32, values: [-9.108287e+20]},
  VarianceTensor: {Sizes: [1, 1], DataType: FLOAT32, values: [0.44668686]},
  ScaleTensor: {Sizes: [1, 1], DataType: FLOAT32, values: [4.5]},
  OutputGradientTensor: {Sizes: [1, 2], DataType: FLOAT32},
  OutputScaleGradientTensor: {Sizes: [1, 1], DataType: FLOAT32},
  OutputBiasGradientTensor: {Sizes: [1, 1], DataType: FLOAT32}, Epsilon: 1.5"""
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING_GRAD", desc)
    assert accepts(case, "OutputGradientTensor", [-2.2947723077908497e38] * 2)
    assert not accepts(case, "OutputGradientTensor", [-2.28e38] * 2)
