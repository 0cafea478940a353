"""ADAM_OPTIMIZER permits what infinite, subnormal, rounded or FLOAT16 intermediates lead to.

The tested code is in `dmlconf/permitted/training.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.model import Case
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, single

INFINITE_PARAMETERS = """
  InputParametersTensor: {Sizes: [4], DataType: FLOAT32, values: [.inf, -.inf, .inf, 2]},
  InputFirstMomentTensor: {Sizes: [4], DataType: FLOAT32, values: [3.0e+38, 3.0e+38, -3.0e+38, 4]},
  InputSecondMomentTensor: {Sizes: [4], DataType: FLOAT32, values: [4, 4, 4, 9]},
  GradientTensor: {Sizes: [4], DataType: FLOAT32, values: [0, 0, 0, -2]},
  TrainingStepTensor: {Sizes: [1], DataType: UINT32, values: [0]},
  OutputParametersTensor: {Sizes: [4], DataType: FLOAT32},
  OutputFirstMomentTensor: {Sizes: [4], DataType: FLOAT32},
  OutputSecondMomentTensor: {Sizes: [4], DataType: FLOAT32},
  LearningRate: 65504, Beta1: 0.5, Beta2: 0.5, Epsilon: 0"""


def test_infinity_minus_an_infinite_step_may_be_nan(tmp_path: Path) -> None:
    case = single(tmp_path, "ADAM_OPTIMIZER", INFINITE_PARAMETERS)
    of_directml_1_15_4 = [np.nan, -np.inf, np.inf, -25690.783]
    assert accepts(case, "OutputParametersTensor", of_directml_1_15_4)
    assert not accepts(case, "OutputParametersTensor", [np.nan, -np.inf, np.inf, -25691.5])


def test_a_product_beyond_float32_may_be_divided_as_infinity(tmp_path: Path) -> None:
    """DirectML 1.8.2 gives infinity for 65504 * 3e34 / 1e4."""
    desc = (
        INFINITE_PARAMETERS.replace("[.inf, -.inf, .inf, 2]", "[1, 1, 1, 2]")
        .replace("[3.0e+38, 3.0e+38, -3.0e+38, 4]", "[6.0e+34, -6.0e+34, 0, 4]")
        .replace("[4, 4, 4, 9]", "[2.0e+8, 2.0e+8, 4, 9]")
    )
    case = single(tmp_path, "ADAM_OPTIMIZER", desc)
    # `in_range` permits these infinities, too.
    _, (low, high) = CaseAllowances(case).of("OutputParametersTensor").candidates
    assert low[:2].tolist() == high[:2].tolist() == [-np.inf, np.inf]
    step = 65504 * 3e34 / 1e4
    for steps in ([step, -step], [np.inf, -np.inf]):
        right = [-steps[0], -steps[1], 1, -25690.783]
        assert accepts(case, "OutputParametersTensor", right), steps
    for steps in ([-np.inf, -step], [3e38, -step], [np.nan, -step]):
        wrong = [-steps[0], -steps[1], 1, -25690.783]
        assert not accepts(case, "OutputParametersTensor", wrong), steps
    assert not accepts(case, "OutputParametersTensor", [-step, step, np.inf, -25690.783])


@pytest.mark.parametrize(("rate", "overflows"), [("3.4e+38", True), ("1.0e+38", False)])
def test_a_corrected_learning_rate_beyond_float32_may_be_infinite(
    tmp_path: Path, rate: str, overflows: bool
) -> None:
    """Alpha is 1.73. DirectML 1.8.0 and 1.15.4 give infinity and NaN for such rates."""
    desc = (
        INFINITE_PARAMETERS.replace("[.inf, -.inf, .inf, 2]", "[0, 0, 0, 0]")
        .replace("[3.0e+38, 3.0e+38, -3.0e+38, 4]", "[0.2, -0.2, 0, 0]")
        .replace("[4, 4, 4, 9]", "[4, 4, 4, 4]")
        .replace("[0, 0, 0, -2]", "[0, 0, 0, 0]")
        .replace("UINT32, values: [0]", "UINT32, values: [1]")
        .replace("65504, Beta1: 0.5, Beta2: 0.5", f"{rate}, Beta1: 0.5, Beta2: 0.25")
    )
    case = single(tmp_path, "ADAM_OPTIMIZER", desc)
    step = float(rate) * 3**0.5 * 0.1
    assert accepts(case, "OutputParametersTensor", [-step, step, 0, 0])
    infinite = [-np.inf, np.inf, np.nan, np.nan]
    assert accepts(case, "OutputParametersTensor", infinite) is overflows
    for wrong in ([np.inf, step, 0, 0], [-step, step, 1, 0], [np.nan, step, 0, 0]):
        assert not accepts(case, "OutputParametersTensor", wrong), wrong


MOMENTS = """
  InputParametersTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 1]},
  InputFirstMomentTensor: {Sizes: [2], DataType: FLOAT32, values: FIRST},
  InputSecondMomentTensor: {Sizes: [2], DataType: FLOAT32, values: SECOND},
  GradientTensor: {Sizes: [2], DataType: FLOAT32, values: GRADIENT},
  TrainingStepTensor: {Sizes: [1], DataType: UINT32, values: [0]},
  OutputParametersTensor: {Sizes: [2], DataType: FLOAT32},
  OutputFirstMomentTensor: {Sizes: [2], DataType: FLOAT32},
  OutputSecondMomentTensor: {Sizes: [2], DataType: FLOAT32},
  LearningRate: 1, Beta1: BETA1, Beta2: BETA2, Epsilon: 0.5"""


def moments(tmp_path: Path, **values: str) -> Case:
    given = {
        "FIRST": "[1, 1]",
        "SECOND": "[1, 0.7]",
        "GRADIENT": "[0, 0]",
        "BETA1": "0.5",
        **values,
    }
    desc = MOMENTS
    for name, value in given.items():
        desc = desc.replace(name, value)
    return single(tmp_path, "ADAM_OPTIMIZER", desc)


@pytest.mark.parametrize("beta", ["1.0e-9", "1.0e-30", "1.1754943508222875e-38"])
def test_a_small_beta_may_be_rounded_away_beside_1(tmp_path: Path, beta: str) -> None:
    """DirectML 1.15.4 gives V + (1 - Beta2) (G G - V), which is 0 here."""
    case = moments(tmp_path, BETA2=beta)
    assert accepts(case, "OutputSecondMomentTensor", [0, 0])
    assert not accepts(case, "OutputSecondMomentTensor", [1e-6, 0])


def test_1_may_be_rounded_away_beside_a_large_beta(tmp_path: Path) -> None:
    """DirectML 1.8.0 gives M for Beta M + (1 - Beta) M, which is 0 if 1 - Beta is -Beta."""
    case = moments(
        tmp_path,
        FIRST="[0.25, 4]",
        GRADIENT="[0.25, 4]",
        BETA1="3.4028234663852886e+38",
        BETA2="0.5",
    )
    assert accepts(case, "OutputFirstMomentTensor", [0.25, 4])
    assert accepts(case, "OutputFirstMomentTensor", [0, 4])
    assert not accepts(case, "OutputFirstMomentTensor", [1e38, 4])


def test_infinite_moment_minus_an_overflowing_square_may_be_nan(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives NaN if the square is infinite in FLOAT32 but finite in FLOAT64."""
    case = moments(tmp_path, SECOND="[.inf, .inf]", GRADIENT="[3.0e+38, 2]", BETA2="3")
    assert accepts(case, "OutputSecondMomentTensor", [np.nan, np.inf])
    assert not accepts(case, "OutputSecondMomentTensor", [np.nan, np.nan])


def test_a_subnormal_square_may_be_rounded(tmp_path: Path) -> None:
    """DirectML 1.8.0 rounds the square to a multiple of 2^-149, then multiplies by 1 - Beta2."""
    case = moments(
        tmp_path,
        SECOND="[0, 0]",
        GRADIENT="[6.341575319376385e-22, -3.738091489205983e-22]",
        BETA2="3.4028234663852886e+38",
    )
    assert accepts(case, "OutputSecondMomentTensor", [-0.00013685224985, -0.000047683712182])
    assert not accepts(case, "OutputSecondMomentTensor", [-0.0014, -0.00048])


FLOAT16_MOMENTS = """
  InputParametersTensor: {Sizes: [1], DataType: FLOAT16, values: [PARAMETER]},
  InputFirstMomentTensor: {Sizes: [1], DataType: FLOAT16, values: [FIRST]},
  InputSecondMomentTensor: {Sizes: [1], DataType: FLOAT16, values: [SECOND]},
  GradientTensor: {Sizes: [1], DataType: FLOAT16, values: [GRADIENT]},
  TrainingStepTensor: {Sizes: [1], DataType: UINT32, values: [2]},
  OutputParametersTensor: {Sizes: [1], DataType: FLOAT16},
  OutputFirstMomentTensor: {Sizes: [1], DataType: FLOAT16},
  OutputSecondMomentTensor: {Sizes: [1], DataType: FLOAT16},
  LearningRate: 0.5, Beta1: BETA1, Beta2: 0.5, Epsilon: EPSILON"""


def float16_moments(tmp_path: Path, **values: float) -> Case:
    desc = FLOAT16_MOMENTS
    for name, value in values.items():
        desc = desc.replace(name, str(value))
    return single(tmp_path, "ADAM_OPTIMIZER", desc)


def test_both_moments_or_neither_may_be_stored_in_float16(tmp_path: Path) -> None:
    """With more than 4 dimensions DirectML 1.15.4 stores both, and gives 0.2974."""
    given = {"PARAMETER": -0.2761, "FIRST": -0.9946, "SECOND": 3.75, "GRADIENT": -2.533}
    case = float16_moments(tmp_path, **given, BETA1=0.75, EPSILON=0.125)
    for right in (0.2974, 0.2976):
        assert accepts(case, "OutputParametersTensor", [right]), right
    for wrong in (0.2966, 0.2983):
        assert not accepts(case, "OutputParametersTensor", [wrong]), wrong


def test_moment_beyond_float16_may_be_stored_as_65504_or_infinity(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives 2.406. A second moment of 65504 gives 5.367, an infinite one 2."""
    case = float16_moments(
        tmp_path, PARAMETER=2, FIRST=2, SECOND=2, GRADIENT=-3000, BETA1=0.5, EPSILON=1
    )
    for right in (2.406, 2.408, 5.367, 2):
        assert accepts(case, "OutputParametersTensor", [right]), right
    for wrong in (2.38, 3.5, 2.01, 1.99, -0.5):
        assert not accepts(case, "OutputParametersTensor", [wrong]), wrong


def test_negative_moment_flushed_to_0_has_a_root(tmp_path: Path) -> None:
    """The root of -0.5 * 1.4e-45 is NaN, or 0 on DirectML 1.12.1."""
    given = {"FIRST": "[0.15, 1]", "SECOND": "[-0.5, 0.25]", "GRADIENT": "[0, 0]"}
    case = moments(tmp_path, **given, BETA2="1.4e-45")
    flushed = float(np.float32(1) - np.float32(0.15))
    for first in (np.nan, flushed, flushed - 2.0**-24):
        assert accepts(case, "OutputParametersTensor", [first, 0]), first
    for wrong in ([0.86, 0], [flushed, np.nan]):
        assert not accepts(case, "OutputParametersTensor", wrong), wrong


def test_small_moment_that_may_be_negative_may_have_no_root(tmp_path: Path) -> None:
    """For a gradient G the moment is 0.5 * G * G - 0.05. A rounding may be off by 4e-9."""
    for gradient, in_doubt in (("0.3162278", True), ("0.316228", False)):
        case = moments(tmp_path, SECOND="[-0.1, 0.3]", GRADIENT=f"[{gradient}, 1]", BETA2="0.5")
        first, second = evaluate(case)["OutputParametersTensor"].tolist()
        assert accepts(case, "OutputParametersTensor", [first, second])
        assert accepts(case, "OutputParametersTensor", [np.nan, second]) is in_doubt
        assert not accepts(case, "OutputParametersTensor", [first, np.nan])
