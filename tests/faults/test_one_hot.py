"""A known fault of ONE_HOT is waived: the second value is read at another address.

The waived outputs were measured on DirectML 1.15.4.

The tested code is in `dmlconf/faults/one_hot.py`, `dmlconf/faults/prediction.py` and
`schemas/known-faults.yaml`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.protocol import Fault, FaultKind
from dmlconf.verdicts.verdict import Status
from tests.faults.user_cases import case_of, outputs_of, status_and_fault

BETWEEN = (
    "{IndicesTensor: {Sizes: [1, 2], DataType: UINT32, values: [0, 2]}, ValuesTensor: "
    "{Sizes: [2, 1], Strides: [STEP, AT], DataType: INT8, values: [5, 6]}, "
    "OutputTensor: {Sizes: [3, 2], DataType: INT8}, Axis: 0}"
)
"""The second value, 6, is stored at byte STEP, but DirectML reads it at byte AT."""


@pytest.mark.parametrize(
    ("step", "at", "second", "unwritten", "named"),
    [
        (2, 1, -51, [0, 5], True),  # between the values; the output was filled with -51
        (2, 1, 17, [], True),
        (2, 3, -51, [0, 5], True),  # in the 4 bytes with the last value
        (2, 1, -51, [0, 4, 5], False),
        (2, 4, 0, [], True),  # behind the buffer, where there are zeros
        (2, 4, -51, [0, 5], False),
        (2, 4, 17, [], False),
    ],
)
def test_one_hot_may_read_any_byte_between_its_values(
    step: int, at: int, second: int, unwritten: list[int], named: bool, tmp_path: Path
) -> None:
    case = case_of(tmp_path, "ONE_HOT", BETWEEN.replace("STEP", str(step)).replace("AT", str(at)))
    arrays = outputs_of(case, {"OutputTensor": [second, 5, 5, 5, 5, second]})
    fault = Fault(FaultKind.NOT_WRITTEN, "old values", "OutputTensor", np.array(unwritten))
    status, name = status_and_fault(case, arrays, "1.15.4", (fault,) if unwritten else ())
    assert (name == "on-value-behind-the-last-dimension") is named
    assert status is (Status.WAIVED if named else Status.FAILED)
    assert status_and_fault(case, {"OutputTensor": arrays["OutputTensor"] + 1}, "1.15.4")[1] == ""
