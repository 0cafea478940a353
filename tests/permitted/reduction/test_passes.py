"""REDUCE of FLOAT16 along two axes apart may take one axis after the other.

DirectML 1.8.0 stores the sums along the first axis in FLOAT16.

The tested code is in `dmlconf/permitted/reduction/reduce.py` and
`dmlconf/permitted/numbers/passes.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array
from tests.permitted.graphs.accepted import accepts, single
from tests.truncation import toward_zero

SUM_OR_AVERAGE = """
  InputTensor: {DataType: FLOAT16, Sizes: [5, 3, 7, 13],
                fill: {uniform: {low: -8, high: 8, seed: 1}}},
  OutputTensor: {DataType: FLOAT16, Sizes: [1, 3, 1, 13]}, Function: FUNCTION, Axes: [0, 2]"""


def in_two_passes(values: Array, function: str) -> Array:
    """Return results along axis 0, then along axis 2, each truncated to FLOAT16."""
    along = np.sum if function == "SUM" else np.mean
    stored = toward_zero(along(values, axis=0, keepdims=True))
    return toward_zero(along(stored, axis=2, keepdims=True)).astype(np.float16)


@pytest.mark.parametrize("function", ["SUM", "AVERAGE"])
def test_sums_and_averages_along_one_axis_may_be_stored(tmp_path: Path, function: str) -> None:
    case = single(tmp_path, "REDUCE", SUM_OR_AVERAGE.replace("FUNCTION", function))
    output = in_two_passes(wide(case.inputs()["InputTensor"]), function)
    assert accepts(case, "OutputTensor", output.ravel().tolist())
    output[0, 1, 0, 5] *= 1.03
    assert not accepts(case, "OutputTensor", output.ravel().tolist())


SQUARES = """
  InputTensor: {DataType: FLOAT16, Sizes: [4, 3, 1, 17],
                fill: {uniform: {low: -0.000244140625, high: 0.000244140625, seed: 1799608572}}},
  OutputTensor: {DataType: FLOAT16, Sizes: [1, 3, 1, 1]}, Function: SUM_SQUARE, Axes: [0, 3]"""


def test_sums_of_squares_along_one_axis_may_be_stored(tmp_path: Path) -> None:
    """A sum of 17 squares is about 5 times 2^-24, the least FLOAT16 number."""
    case = single(tmp_path, "REDUCE", SQUARES)
    squares = np.square(wide(case.inputs()["InputTensor"]))
    for axes in ((3, 0), (0, 3)):
        stored = toward_zero(squares.sum(axes[0], keepdims=True))
        output = toward_zero(stored.sum(axes[1], keepdims=True)).astype(np.float16)
        assert accepts(case, "OutputTensor", output.ravel().tolist()), axes
    output[0, 0] *= 0.5
    assert not accepts(case, "OutputTensor", output.ravel().tolist())
