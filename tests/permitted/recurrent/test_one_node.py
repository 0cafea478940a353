"""With one hidden node, older kernels of GRU add slices of the products to the biases.

The tested code is in `dmlconf/permitted/recurrent/kernels.py`, and in
`dmlconf/permitted/recurrent/gru.py`, which says what kernels store for one hidden node.
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
"""Measured on DirectML 1.8.2: so many terms make two or three slices."""

RIGHT = 0.0625 + COUNT * INPUT
"""What each output is without rounding."""


def gru(tmp_path: Path, nodes: int) -> Case:
    """Return the case with this many hidden nodes, each of which computes the same."""
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


def test_a_sum_with_a_bias_may_be_truncated_after_each_slice_but_the_last(tmp_path: Path) -> None:
    """In FLOAT16, 1.0625 plus a slice is truncated to a multiple of 2^-10.

    All 1,031 inputs add up to 0.00203, and DirectML 1.8.2 loses 2^-10 of that. In
    gru/combinations/pairs-64, with other inputs, it loses twice as much.
    """
    case = gru(tmp_path, 1)
    for lost in (0, 2.0**-10, 2.0**-9):
        assert accepts(case, "OutputSequenceTensor", [RIGHT - lost]), lost
    for wrong in (RIGHT - 3 * 2.0**-10, RIGHT + 3 * 2.0**-10):
        assert not accepts(case, "OutputSequenceTensor", [wrong])


def test_with_two_hidden_nodes_the_loss_of_two_slices_is_refused(tmp_path: Path) -> None:
    case = gru(tmp_path, 2)
    assert accepts(case, "OutputSequenceTensor", [RIGHT, RIGHT])
    assert not accepts(case, "OutputSequenceTensor", [RIGHT - 2.0**-9, RIGHT])
