"""A FLOAT16 mean or variance is right if the batches are averaged first, as by DirectML 1.8.0.

The tested code is in `dmlconf/permitted/normalization/batch.py`,
`dmlconf/permitted/normalization/mean_variance.py` and `dmlconf/permitted/numbers/passes.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array
from tests.permitted.graphs.accepted import accepts, single
from tests.truncation import toward_zero

PARAMETERS = "{DataType: FLOAT16, Sizes: [1, 3, 1, 1]"
TRAINING = f"""
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
def test_a_variance_averaged_along_the_batches_first_is_right(
    tmp_path: Path, high: str, measured: list[float], wrong: list[float]
) -> None:
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING", TRAINING.replace("HIGH", high))
    assert accepts(case, "OutputVarianceTensor", measured)
    assert not accepts(case, "OutputVarianceTensor", wrong)


NORMALIZED = """
  InputTensor: {DataType: FLOAT16, Sizes: [3, 4, 5, 2],
                fill: {uniform: {low: -3, high: 3, step: 0.125, seed: 1}}},
  OutputTensor: {DataType: FLOAT16, Sizes: [3, 4, 5, 2]}, Axes: [0, 2],
  NormalizeVariance: true, Epsilon: 0.0625"""


def test_a_mean_averaged_along_the_batches_first_is_right(tmp_path: Path) -> None:
    """DirectML 1.8.0 gives 0.05756 for the element [1, 0, 1, 1], and 1.15.4 0.05725."""
    case = single(tmp_path, "MEAN_VARIANCE_NORMALIZATION1", NORMALIZED)

    def averaged(values: Array) -> Array:
        of_batches = toward_zero(values.mean(0, keepdims=True))
        return toward_zero(of_batches.mean(2, keepdims=True))

    values = wide(case.inputs()["InputTensor"])
    centred = toward_zero(values - averaged(values))
    root = np.sqrt(averaged(np.square(centred)) + 0.0625)
    output = toward_zero(centred * toward_zero(1 / root)).astype(np.float16)
    output[1, 0, 1, 1] = 0.05756
    assert accepts(case, "OutputTensor", output.ravel().tolist())
    output[1, 0, 1, 1] = 0.0578
    assert not accepts(case, "OutputTensor", output.ravel().tolist())
