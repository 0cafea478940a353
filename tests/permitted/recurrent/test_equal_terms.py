"""Products of recurrent layers whose terms are equal may err in one direction.

The tested code is in `dmlconf/permitted/recurrent/layers.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.permitted.graphs.accepted import accepts, single

RNN = """
  InputTensor: {Sizes: [1, 1, 80, 256], DataType: FLOAT32, Strides: [80, 80, 1, 0],
                fill: {uniform: {low: 0.5, high: 1, seed: 1}}},
  WeightTensor: {Sizes: [1, 1, 1, 256], DataType: FLOAT32, fill: {WEIGHTS}},
  RecurrenceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]},
  OutputSingleTensor: {Sizes: [1, 1, 80, 1], DataType: FLOAT32},
  ActivationDescs: [{operator: ACTIVATION_IDENTITY}], Direction: FORWARD"""


@pytest.mark.parametrize(
    ("weights", "equal"),
    [("constant: {value: 0.7}", True), ("uniform: {low: 0.5, high: 1, seed: 2}", False)],
)
def test_only_sums_of_equal_terms_may_all_be_too_large(
    tmp_path: Path, weights: str, equal: bool
) -> None:
    """DirectML 1.8.2 and 1.15.4 are off by up to 4 times what different terms explain."""
    case = single(tmp_path, "RNN", RNN.replace("WEIGHTS", weights))
    inputs = {name: array.astype(np.float64) for name, array in case.inputs().items()}
    exact = inputs["InputTensor"].reshape(80, 256) @ inputs["WeightTensor"].reshape(256)
    # Different terms may be off by `roundings(256)`, which is 52, and equal ones by 256.
    steps = 150 * 2.0**-24
    assert accepts(case, "OutputSingleTensor", exact * (1 + steps)) is equal
    assert not accepts(case, "OutputSingleTensor", exact * (1 + 10 * steps))
