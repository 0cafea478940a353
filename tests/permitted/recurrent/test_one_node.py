"""With one hidden node, older kernels of GRU add slices of the products to the biases.

The tested code is in `dmlconf/permitted/recurrent/kernels.py`.
"""

from __future__ import annotations

from pathlib import Path

from tests.permitted.graphs.accepted import accepts, single

INPUT = 33 * 2.0**-24

GRU = """
  InputTensor: {Sizes: [1, 1, 1, COUNT], DataType: FLOAT16, fill: {constant: {value: INPUT}}},
  WeightTensor: {Sizes: [1, 1, 3, COUNT], DataType: FLOAT16, values: WEIGHTS},
  RecurrenceTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT16, values: [0, 0, 0]},
  BiasTensor: {Sizes: [1, 1, 1, 6], DataType: FLOAT16, values: [1.0625, 0, -1, 0, 0, 0]},
  HiddenInitTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [1]},
  OutputSequenceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16},
  ActivationDescs: [{operator: ACTIVATION_LINEAR, Alpha: 0.5, Beta: 0},
                    {operator: ACTIVATION_LINEAR, Alpha: 1, Beta: 0}],
  Direction: FORWARD, LinearBeforeReset: true"""
"""The output is z - 1 + z, where z is (1.0625 + the sum of COUNT inputs) / 2."""


def test_a_sum_with_a_bias_may_be_truncated_after_each_slice(tmp_path: Path) -> None:
    """1,031 inputs add up to 0.00203. Of the 2 multiples of 2^-10 in it, DirectML 1.8.2 loses one;
    in gru/combinations/pairs-64 with other inputs it loses 2.
    """
    weights = str([1] * 1031 + [0] * 2062)
    desc = GRU.replace("COUNT", "1031").replace("WEIGHTS", weights)
    case = single(tmp_path, "GRU", desc.replace("INPUT}", f"{INPUT!r}}}"))
    right = 0.0625 + 1031 * INPUT
    for lost in (0, 2.0**-10, 2.0**-9):
        assert accepts(case, "OutputSequenceTensor", [right - lost]), lost
    assert not accepts(case, "OutputSequenceTensor", [right - 2.0**-8])
    assert not accepts(case, "OutputSequenceTensor", [right + 2.0**-8])
