"""Known faults of FLOAT16 gradients of batch normalization: sums are computed in passes.

The tested code is in `dmlconf/faults/gradient_sums.py` and `schemas/known-faults.yaml`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.faults.gradient_sums import gradients_in_passes
from dmlconf.reference.evaluation import evaluate
from dmlconf.resources import cases_directory
from dmlconf.verdicts.verdict import Status
from tests.faults.user_cases import case_of, status_and_fault
from tests.truncation import toward_zero

GRADIENTS = "float16-gradients-held-in-parts"
GRADIENT_OF_THE_BIAS = "float16-gradient-of-the-bias-held-in-parts"


@pytest.mark.parametrize(
    ("of", "output", "fault", "later"),
    [
        ("bias", "OutputBiasGradientTensor", GRADIENT_OF_THE_BIAS, Status.WAIVED),
        ("scale", "OutputScaleGradientTensor", GRADIENTS, Status.FAILED),
    ],
)
def test_gradient_that_loses_a_1_is_waived(of: str, output: str, fault: str, later: Status) -> None:
    """DirectML 1.15.4 loses the 1 of 2048 - 2048 + 1 only in the gradient of the bias."""
    path = cases_directory() / "batch_normalization_grad" / "boundary.yaml"
    name = f"batch_normalization_grad/boundary/sums-for-the-{of}-in-two-passes"
    (planned,) = [each for each in load_suite([path]).plan() if each.identifier == name]
    case = build(planned)
    zeros = {**evaluate(case), output: np.zeros((2, 1, 3), np.float16)}
    assert status_and_fault(case, zeros, "1.9.1") == (Status.WAIVED, GRADIENTS)
    assert status_and_fault(case, zeros, "1.15.4")[0] is later
    assert later is Status.FAILED or status_and_fault(case, zeros, "1.15.4")[1] == fault
    other = {**zeros, output: np.full((2, 1, 3), 2, np.float16)}
    assert status_and_fault(case, other, "1.9.1") == (Status.FAILED, "")


TRAINED = """{InputTensor: {Sizes: [1, 1, 12, 4], DataType: FLOAT16, fill: {normal: {seed: 1}}},
  InputGradientTensor: {Sizes: [1, 1, 12, 4], DataType: FLOAT16, fill: {normal: {seed: 2}}},
  MeanTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16, values: [0, 0.5, 0.25, 1]},
  VarianceTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16, values: [1, 1, 2, 3]},
  ScaleTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16, values: [1, 0.5, 2, 1]},
  OutputGradientTensor: {Sizes: [1, 1, 12, 4], DataType: FLOAT16},
  OutputScaleGradientTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16},
  OutputBiasGradientTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16}, Epsilon: 0.5}"""


def test_sums_for_scale_and_bias_may_have_other_passes(
    tmp_path: Path,
) -> None:
    """DirectML 1.15.4 adds up the bias in two passes: each third row first, then the three sums."""
    case = case_of(tmp_path, "BATCH_NORMALIZATION_TRAINING_GRAD", TRAINED)
    names = ("InputGradient", "Input", "Mean", "Variance", "Scale")
    gradient, values, mean, variance, scale = (
        case.inputs()[f"{name}Tensor"].astype(np.float64) for name in names
    )
    root = np.sqrt(variance + 0.5)
    sums = toward_zero((gradient * (values - mean)).sum(2, keepdims=True))
    parts = toward_zero(gradient.reshape(1, 1, 4, 3, 4).sum(2))
    total = toward_zero(parts.sum(2, keepdims=True))
    of_input = gradient - total / 12 - sums * (values - mean) / (12 * np.square(root))
    given = {
        "OutputGradientTensor": of_input * scale / root,
        "OutputScaleGradientTensor": sums / root,
        "OutputBiasGradientTensor": total,
    }
    half = {name: toward_zero(array).astype(np.float16) for name, array in given.items()}
    assert status_and_fault(case, half, "1.15.4") == (Status.WAIVED, GRADIENT_OF_THE_BIAS)


@pytest.mark.parametrize(
    ("operator", "desc"),
    [
        (
            "MEAN_VARIANCE_NORMALIZATION1",
            "{InputTensor: {Sizes: [1, 1, 4, 2], DataType: FLOAT16, "
            "values: [1, 0, 1, 1, 1, 2, 1, 3]}, "
            "OutputTensor: {Sizes: [1, 1, 4, 2], DataType: FLOAT16}, Axes: [0, 2], "
            "NormalizeVariance: true, Epsilon: 0}",
        ),
        (
            "BATCH_NORMALIZATION_GRAD",
            "{InputTensor: {Sizes: [1, 1, 12, 2], DataType: FLOAT16, fill: {normal: {seed: 1}}}, "
            "InputGradientTensor: {Sizes: [1, 1, 12, 2], DataType: FLOAT16, "
            "fill: {normal: {seed: 2}}}, "
            "MeanTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [0, 0]}, "
            "VarianceTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [0, 1]}, "
            "ScaleTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [1, 1]}, "
            "OutputGradientTensor: {Sizes: [1, 1, 12, 2], DataType: FLOAT16}, "
            "OutputScaleGradientTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16}, "
            "OutputBiasGradientTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16}, Epsilon: 0}",
        ),
    ],
)
def test_division_by_0_gives_no_warning(operator: str, desc: str, tmp_path: Path) -> None:
    case = case_of(tmp_path, operator, desc)
    wrong = {name: np.full_like(array, 7) for name, array in evaluate(case).items()}
    assert status_and_fault(case, wrong, "1.9.1") == (Status.FAILED, "")


def test_layout_of_the_output_decides_on_the_passes_of_gradients(tmp_path: Path) -> None:
    """DirectML 1.9.0 gives the `measured` gradients."""
    desc = """{Epsilon: 0.1,
      InputTensor: {Sizes: [2, 4, 12], Strides: [1, 24, 2], DataType: FLOAT16,
                    fill: {uniform: {low: -1, high: 1, seed: 1318594855}}},
      InputGradientTensor: {Sizes: [2, 4, 12], DataType: FLOAT16,
                            fill: {uniform: {low: -1, high: 6, seed: 1545641855}}},
      MeanTensor: {Sizes: [2, 4, 1], DataType: FLOAT16,
                   fill: {uniform: {low: 0, high: 6, seed: 1318390073}}},
      VarianceTensor: {Sizes: [2, 4, 1], DataType: FLOAT16,
                       fill: {uniform: {low: 0.5, high: 2, seed: 138}}},
      ScaleTensor: {Sizes: [2, 4, 1], DataType: FLOAT16,
                    fill: {uniform: {low: -1, high: 1, seed: 690913598}}},
      OutputGradientTensor: {Sizes: [2, 4, 12], Strides: [1, 24, 2], DataType: FLOAT16},
      OutputScaleGradientTensor: {Sizes: [2, 4, 1], DataType: FLOAT16},
      OutputBiasGradientTensor: {Sizes: [2, 4, 1], DataType: FLOAT16}}"""
    measured = [
        [-23.3125, -32.59375, -169.625, -30.59375, -13.4921875, -108.6875, -115.0625, -122.0],
        [36.625, 36.3125, 31.375, 18.25, 34.375, 23.28125, 34.0625, 33.78125],
    ]
    computed = gradients_in_passes(case_of(tmp_path, "BATCH_NORMALIZATION_TRAINING_GRAD", desc))
    assert computed is not None
    assert computed.others is not None
    candidates = [
        [each.outputs[f"Output{of}GradientTensor"].ravel().tolist() for of in ("Scale", "Bias")]
        for each in (computed, *computed.others())
    ]
    assert measured in candidates
