"""Fused activations give several results for NaN, and magnify the error of their argument.

The tested code is in `dmlconf/permitted/activation/fused.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, single

ONE = "Sizes: [1], DataType: FLOAT32"


def test_a_fused_relu_of_nan_is_nan_or_zero(tmp_path: Path) -> None:
    desc = """ATensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [.nan, 1]},
      BTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [1, 1]}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, FusedActivation: {operator: ACTIVATION_RELU},
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}"""
    case = single(tmp_path, "GEMM", desc)
    assert accepts(case, "OutputTensor", [np.nan])
    assert accepts(case, "OutputTensor", [0])
    assert not accepts(case, "OutputTensor", [1])


def test_a_fused_relu_of_a_sum_that_overflows_is_what_relu_makes_of_infinities(
    tmp_path: Path,
) -> None:
    """2 * 3e38 - 1.5 * 3e38 may be infinite or NaN, of which DirectML 1.8.2 makes 0."""
    desc = """ATensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [3.0e+38, -3.0e+38]},
      BTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [2, 1.5]}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, FusedActivation: {operator: ACTIVATION_RELU},
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}"""
    case = single(tmp_path, "GEMM", desc)
    for value in (1.5e38, np.inf, np.nan, 0):
        assert accepts(case, "OutputTensor", [value]), value
    assert not accepts(case, "OutputTensor", [1.0e37])


def test_a_steep_activation_magnifies_the_error_of_its_argument(tmp_path: Path) -> None:
    """CELU with Alpha -1 turns -87.5 into -exp(87.5); DirectML 1.15.4 is 0.0012% off."""
    tensors = {"Input": -1.125, "Mean": 0, "Variance": 0, "Scale": 110, "Bias": 0}
    desc = ", ".join(f"{name}Tensor: {{{ONE}, values: [{v}]}}" for name, v in tensors.items())
    desc += f", OutputTensor: {{{ONE}}}, Spatial: false, Epsilon: 2.0, "
    desc += "FusedActivation: {operator: ACTIVATION_CELU, Alpha: -1.0}"
    case = single(tmp_path, "BATCH_NORMALIZATION", desc)
    (right,) = evaluate(case)["OutputTensor"].tolist()
    assert accepts(case, "OutputTensor", [right * 1.000012])
    assert not accepts(case, "OutputTensor", [right * 1.01])


def test_an_infinite_slope_below_zero_leaves_the_error_above_it(tmp_path: Path) -> None:
    """0.1 * (1.5e38 - 1.5e38 + 1e36) may be off by 2^-24 of 3e38, on DirectML 1.13.1 as well."""
    desc = """
      ATensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1.5e+38, 1.0e+36, -1.5e+38]},
      BTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1, 1, 1]}, TransA: NONE,
      TransB: NONE, Alpha: 0.5, Beta: 0, OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32},
      FusedActivation: {operator: ACTIVATION_SCALED_ELU, Alpha: -.inf, Gamma: 0.1}"""
    case = single(tmp_path, "GEMM", desc)
    (right,) = evaluate(case)["OutputTensor"].ravel().tolist()
    assert accepts(case, "OutputTensor", [right + 0.05 * 2.0**-24 * 3e38])
    assert not accepts(case, "OutputTensor", [right + 0.05 * 2.0**-16 * 3e38])
