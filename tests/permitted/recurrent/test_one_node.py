"""With one hidden node, older kernels of GRU round the sum after each slice of its products.

The tested code is in `dmlconf/permitted/recurrent/kernels.py` and
`dmlconf/permitted/recurrent/gru.py`.
"""

from __future__ import annotations

from pathlib import Path

from dmlconf.cases.model import Case
from tests.permitted.graphs.accepted import accepts, single

INPUT = 33 * 2.0**-24

GRU = """
  InputTensor: {Sizes: [1, 1, 1, COUNT], DataType: FLOAT16, fill: {constant: {value: INPUT}}},
  WeightTensor: {Sizes: [1, 1, GATES, COUNT], DataType: FLOAT16, values: WEIGHTS},
  RecurrenceTensor: {Sizes: [1, 1, GATES, NODES], DataType: FLOAT16, fill: {constant: {value: 0}}},
  BiasTensor: {Sizes: [1, 1, 1, BIASES], DataType: FLOAT16, values: OFFSETS},
  HiddenInitTensor: {Sizes: [1, 1, 1, NODES], DataType: FLOAT16, fill: {constant: {value: 1}}},
  OutputSequenceTensor: {Sizes: [1, 1, 1, NODES], DataType: FLOAT16},
  ActivationDescs: [{operator: ACTIVATION_LINEAR, Alpha: 0.5, Beta: 0},
                    {operator: ACTIVATION_LINEAR, Alpha: 1, Beta: 0}],
  Direction: FORWARD, LinearBeforeReset: true"""
"""Each output is z - 1 + z, where z is (1.0625 + the sum of COUNT inputs) / 2."""

COUNT = 1031
"""Measured on DirectML 1.8.2: this many terms make two or three slices."""

RIGHT = 0.0625 + COUNT * INPUT
"""Each output without rounding."""


def gru(tmp_path: Path, nodes: int) -> Case:
    """Return a GRU with this many hidden nodes, which all compute the same."""
    words = {
        "COUNT": COUNT,
        "INPUT": INPUT,
        "GATES": 3 * nodes,
        "NODES": nodes,
        "BIASES": 6 * nodes,
        "WEIGHTS": [1] * (nodes * COUNT) + [0] * (2 * nodes * COUNT),
        "OFFSETS": [1.0625] * nodes + [0] * nodes + [-1] * nodes + [0] * (3 * nodes),
    }
    desc = GRU
    for word, value in words.items():
        desc = desc.replace(word, str(value))
    return single(tmp_path, "GRU", desc)


def test_sum_may_be_truncated_after_each_slice(tmp_path: Path) -> None:
    """DirectML 1.8.2 loses 2^-10 here, and 2^-9 in gru/combinations/pairs-64."""
    case = gru(tmp_path, 1)
    for lost in (0, 2.0**-10, 2.0**-9):
        assert accepts(case, "OutputSequenceTensor", [RIGHT - lost]), lost
    for wrong in (RIGHT - 3 * 2.0**-10, RIGHT + 3 * 2.0**-10):
        assert not accepts(case, "OutputSequenceTensor", [wrong])


def test_two_hidden_nodes_may_not_lose_two_slices(tmp_path: Path) -> None:
    case = gru(tmp_path, 2)
    assert accepts(case, "OutputSequenceTensor", [RIGHT, RIGHT])
    assert not accepts(case, "OutputSequenceTensor", [RIGHT - 2.0**-9, RIGHT])
