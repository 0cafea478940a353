"""RESAMPLE3 with Antialiased may store the result of a step in FLOAT16.

The tested code is in `dmlconf/permitted/resampling/candidates.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import accepts, single

ANTIALIASED = """
  InputTensor: {Sizes: [8], DataType: TYPE, values: [0, 0, 1, 0, 0, 0, 0, 0]},
  OutputTensor: {Sizes: [3], DataType: TYPE},
  InterpolationMode: LINEAR, RoundingDirection: INCREASING,
  Scales: [0.375], InputPixelOffsets: [0.1], OutputPixelOffsets: [0], Antialiased: true"""


@pytest.mark.parametrize(("data_type", "stored"), [("FLOAT16", True), ("FLOAT32", False)])
def test_result_of_a_step_may_be_truncated_to_float16(
    tmp_path: Path, data_type: str, stored: bool
) -> None:
    """In a graph, DirectML 1.15.4 gives 0.689453125 for 0.69, and as an operator 0.68994140625."""
    case = single(tmp_path, "RESAMPLE3", ANTIALIASED.replace("TYPE", data_type))
    exact = 0.69 if data_type == "FLOAT32" else 0.68994140625
    assert accepts(case, "OutputTensor", [0, exact, 0])
    assert accepts(case, "OutputTensor", [0, 0.689453125, 0]) == stored
    assert not accepts(case, "OutputTensor", [0, 0.6875, 0])
