"""ADAM_OPTIMIZER whose step is infinite: infinity less infinity is NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.permitted.graphs.accepted import accepts, single

DESC = """
  InputParametersTensor: {Sizes: [4], DataType: FLOAT32, values: [.inf, -.inf, .inf, 2]},
  InputFirstMomentTensor: {Sizes: [4], DataType: FLOAT32, values: [3.0e+38, 3.0e+38, -3.0e+38, 4]},
  InputSecondMomentTensor: {Sizes: [4], DataType: FLOAT32, values: [4, 4, 4, 9]},
  GradientTensor: {Sizes: [4], DataType: FLOAT32, values: [0, 0, 0, -2]},
  TrainingStepTensor: {Sizes: [1], DataType: UINT32, values: [0]},
  OutputParametersTensor: {Sizes: [4], DataType: FLOAT32},
  OutputFirstMomentTensor: {Sizes: [4], DataType: FLOAT32},
  OutputSecondMomentTensor: {Sizes: [4], DataType: FLOAT32},
  LearningRate: 65504, Beta1: 0.5, Beta2: 0.5, Epsilon: 0"""


def test_infinity_less_an_infinite_step_is_nan(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives the outputs `measured`."""
    case = single(tmp_path, "ADAM_OPTIMIZER", DESC)
    measured = [np.nan, -np.inf, np.inf, -25690.783]
    assert accepts(case, "OutputParametersTensor", measured)
    assert not accepts(case, "OutputParametersTensor", [np.nan, -np.inf, np.inf, -25691.5])
