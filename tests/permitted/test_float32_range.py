"""A formula of several steps may give the infinities, NaN and zeros that FLOAT32 makes on the way.

The tested code is in `dmlconf/permitted/float32_range.py`, `dmlconf/permitted/allowance.py` and
`dmlconf/precision/compare.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.fuzzing.plan import Fuzz
from dmlconf.permitted.float32_range import outputs_in_float32_range
from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, single

NORMALIZED = """
  InputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1.0e+21, 0]},
  MeanTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]},
  VarianceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]},
  ScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.0e+7]},
  BiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]},
  OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}, Spatial: true, Epsilon: 1,
  FusedActivation: {operator: ACTIVATION_PARAMETRIC_SOFTPLUS, Alpha: 0, Beta: BETA}"""


@pytest.mark.parametrize(("beta", "overflows"), [("1.0e+11", True), ("2", False)])
def test_product_beyond_float32_may_be_infinite_in_later_steps(
    tmp_path: Path, beta: str, overflows: bool
) -> None:
    """1e28 * 1e11 is infinite in FLOAT32, and the softplus of infinity times 0 is NaN."""
    case = single(tmp_path, "BATCH_NORMALIZATION", NORMALIZED.replace("BETA", beta))
    assert accepts(case, "OutputTensor", [0, 0])
    assert accepts(case, "OutputTensor", [np.nan, 0]) == overflows
    assert not accepts(case, "OutputTensor", [1, 0])
    assert not accepts(case, "OutputTensor", [0, np.nan])


def test_unfused_activation_may_not_overflow_on_the_way(tmp_path: Path) -> None:
    """log(1 + exp(100)) is 100; exp(100) is infinite in FLOAT32."""
    desc = """InputTensor: {Sizes: [1], DataType: FLOAT32, values: [100]},
      OutputTensor: {Sizes: [1], DataType: FLOAT32}, Steepness: 1"""
    case = single(tmp_path, "ACTIVATION_SOFTPLUS", desc)
    assert outputs_in_float32_range(case, evaluate(case)) is None
    assert not accepts(case, "OutputTensor", [np.inf])


@pytest.mark.slow
@pytest.mark.parametrize(
    "operator",
    [
        "BATCH_NORMALIZATION",
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        "MEAN_VARIANCE_NORMALIZATION1",
    ],
)
def test_outputs_in_float32_range_are_right(operator: str) -> None:
    differing = 0
    for planned in Fuzz((operator,), seed=6).cases(range(200)):
        case = build(planned)
        right = evaluate(case)
        for name, values in (outputs_in_float32_range(case, right) or {}).items():
            assert accepts(case, name, values)
            differing += not np.array_equal(values, right[name], equal_nan=True)
        if differing == 2:
            break
    assert differing == 2
