"""A FLOAT16 variance whose batches are averaged first, as DirectML 1.8.0 does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import accepts, single

PARAMETERS = "{DataType: FLOAT16, Sizes: [1, 3, 1, 1]"
DESC = f"""
  InputTensor: {{DataType: FLOAT16, Sizes: [2, 3, 5, 3],
                fill: {{uniform: {{low: -HIGH, high: HIGH, seed: 1}}}}}},
  ScaleTensor: {PARAMETERS}, values: [1, 1, 1]}}, BiasTensor: {PARAMETERS}, values: [0, 0, 0]}},
  OutputTensor: {{DataType: FLOAT16, Sizes: [2, 3, 5, 3]}}, OutputMeanTensor: {PARAMETERS}}},
  OutputVarianceTensor: {PARAMETERS}}}, Epsilon: 0.001, FusedActivation: null"""


@pytest.mark.parametrize(
    ("high", "measured", "wrong"),
    [
        ("60", [1061, 1443, 835], [1061, 1443, 834]),
        ("320", [30032, 40672, 23632], [30032, 40544, 23632]),
    ],
)
def test_a_variance_of_averaged_batches_is_right(
    tmp_path: Path, high: str, measured: list[float], wrong: list[float]
) -> None:
    """The variances of the second channel are 1444 and 41088 if nothing is held."""
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING", DESC.replace("HIGH", high))
    assert accepts(case, "OutputVarianceTensor", measured)
    assert not accepts(case, "OutputVarianceTensor", wrong)
