"""Known faults of SCATTER_ND are recognised: updates are left out, or go to other elements.

The waived outputs were measured on DirectML 1.15.4, or on the release that a test names.

The tested code is in `dmlconf/faults/scatters.py`, `dmlconf/faults/prediction.py` and
`schemas/known-faults.yaml`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.verdicts.verdict import Status
from tests.faults.user_cases import case_of, outputs_of, status_and_fault
from tests.graphs.suites import graph_case

SCATTERED = """
inputs:
  x: {Sizes: [5, 3, 2], DataType: INT32, values: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}
  i: {Sizes: [1, 1, 1, 2, 1], DataType: INT64, values: [3, 1]}
  u: {Sizes: [1, 1, 1, 2, 3, 2], DataType: INT32, fill: {sequence: {start: 1}}}
nodes:
  n: {operator: SCATTER_ND,
      desc: {InputTensor: x, IndicesTensor: i, UpdatesTensor: u, InputDimensionCount: 3,
             IndicesDimensionCount: 5, OutputTensor: {Sizes: [5, 3, 2], DataType: INT32}}}
outputs: {y: n}
"""


def test_graph_scatters_all_updates_by_the_first_indices(tmp_path: Path) -> None:
    case = graph_case(tmp_path, SCATTERED)
    wrong = np.zeros((5, 3, 2), np.int32)
    wrong[3] = np.arange(7, 13).reshape(3, 2)
    fault = "scattered-by-strides-of-0-in-a-graph"
    assert status_and_fault(case, {"y": wrong}, "1.13.1") == (Status.WAIVED, fault)
    wrong[1, 0, 0] = 1
    assert status_and_fault(case, {"y": wrong}, "1.13.1") == (Status.FAILED, "")


TUPLES = """
inputs:
  x: {Sizes: [1, 4, 2], DataType: INT32, values: [0, 0, 0, 0, 0, 0, 0, 0]}
  i: {Sizes: [1, 1, 1, 2, 2], DataType: INT64, values: [0, 3, 0, 1]}
  u: {Sizes: [1, 1, 1, 2, 2], DataType: INT32, values: [1, 2, 3, 4]}
nodes:
  n: {operator: SCATTER_ND,
      desc: {InputTensor: x, IndicesTensor: i, UpdatesTensor: u, InputDimensionCount: 3,
             IndicesDimensionCount: 5, OutputTensor: {Sizes: [1, 4, 2], DataType: INT32}}}
outputs: {y: n}
"""


def test_graph_takes_an_index_beyond_size_1_as_0(tmp_path: Path) -> None:
    """Column 0 of the updates goes to (0, 3), and column 1 to (3, 0), where 3 counts as 0."""
    case = graph_case(tmp_path, TUPLES)
    wrong = np.array([[[0, 4], [0, 0], [0, 0], [3, 0]]], np.int32)
    fault = "scattered-by-strides-of-0-in-a-graph"
    assert status_and_fault(case, {"y": wrong}, "1.13.1") == (Status.WAIVED, fault)
    at_row_3 = np.array([[[0, 0], [0, 0], [0, 0], [3, 4]]], np.int32)
    assert status_and_fault(case, {"y": at_row_3}, "1.13.1") == (Status.FAILED, "")


BETWEEN_INDICES = (
    "{InputTensor: {Sizes: [3, 2], DataType: FLOAT32, values: [1, 2, 3, 4, 5, 6]}, "
    "IndicesTensor: {Sizes: [1, 1, 1, 2, 1], DataType: UINT32, Strides: [6, 6, 6, 3, LAST], "
    "values: [2, 0]}, "
    "UpdatesTensor: {Sizes: [1, 1, 1, 2, 2], DataType: FLOAT32, values: [10, 20, 30, 40]}, "
    "OutputTensor: {Sizes: [3, 2], DataType: FLOAT32}, "
    "InputDimensionCount: 2, IndicesDimensionCount: 5}"
)


@pytest.mark.parametrize(
    ("last", "values", "status"),
    [
        (2, [1, 2, 3, 4, 10, 5], Status.FAILED),
        (2, [1, 2, 3, 4, 30, 6], Status.WAIVED),
        (2, [1, 20, 3, 4, 30, 6], Status.WAIVED),
        (2, [1, 2, 3, 4, 30, 40], Status.WAIVED),
        (2, [1, 2, 3, 4, 30, 77], Status.FAILED),
        (2, [1, 2, 3, 77, 30, 20], Status.FAILED),
        (3, [1, 2, 3, 4, 30, 40], Status.FAILED),
    ],
)
def test_update_may_be_anywhere_if_its_index_is_unknown(
    last: int, values: list[float], status: Status, tmp_path: Path
) -> None:
    """The second index is stored at offset 3, but DirectML reads it at offset LAST."""
    case = case_of(tmp_path, "SCATTER_ND", BETWEEN_INDICES.replace("LAST", str(last)))
    arrays = outputs_of(case, {"OutputTensor": values})
    assert status_and_fault(case, arrays, "1.15.4")[0] is status


BEHIND_UPDATES = (
    "{InputTensor: {Sizes: [1, 1, 1], DataType: FLOAT64, values: [1]}, "
    "IndicesTensor: {Sizes: [2, 1, 1, 1, 1], DataType: INT32, values: [0, 0]}, "
    "UpdatesTensor: {Sizes: [1, 2, 1, 1, 1], DataType: FLOAT64, Strides: [1, 5, 10, 10, 10], "
    "TotalTensorSizeInBytes: BYTES, values: [2, 3]}, "
    "OutputTensor: {Sizes: [1, 1, 1], DataType: FLOAT64}, "
    "InputDimensionCount: 1, IndicesDimensionCount: 5}"
)


@pytest.mark.parametrize(
    ("size", "value", "status"),
    [
        (336, 77, Status.WAIVED),
        (48, 0, Status.WAIVED),
        (48, 77, Status.FAILED),
    ],
)
def test_update_read_behind_the_buffer_is_0(
    size: int, value: float, status: Status, tmp_path: Path
) -> None:
    """DirectML reads the second update at byte 10 * 8, where a buffer of 48 bytes has ended."""
    case = case_of(tmp_path, "SCATTER_ND", BEHIND_UPDATES.replace("BYTES", str(size)))
    assert (
        status_and_fault(case, outputs_of(case, {"OutputTensor": [value]}), "1.15.4")[0] is status
    )


STRIDED = """
inputs:
  x: {Sizes: [2, 2], DataType: FLOAT32, values: [1, 2, 3, 4]}
  i: {Sizes: [1, 2, 1, 1, 1, 2], DataType: UINT32, values: [0, 1, 1, 0]}
  u: {Sizes: [1, 2, 1, 1, 1], DataType: FLOAT32, Strides: [2, 1, 1, 1, 1], values: [10, 20]}
nodes:
  n: {operator: SCATTER_ND,
      desc: {InputTensor: x, IndicesTensor: i, UpdatesTensor: u, InputDimensionCount: 2,
             IndicesDimensionCount: 6, OutputTensor: {Sizes: [2, 2], DataType: FLOAT32}}}
outputs: {y: n}
"""


def test_graph_reads_strided_updates_at_the_first_address(tmp_path: Path) -> None:
    case = graph_case(tmp_path, STRIDED)
    wrong = np.array([[1, 10], [3, 4]], np.float32)
    fault = "scattered-by-strides-of-0-in-a-graph"
    assert status_and_fault(case, {"y": wrong}, "1.15.4") == (Status.WAIVED, fault)
    wrong[0, 1] = 11
    assert status_and_fault(case, {"y": wrong}, "1.15.4") == (Status.FAILED, "")


def test_graph_reads_packed_updates_with_strides_of_0(tmp_path: Path) -> None:
    """Three updates go to one element, and the first one is read three times."""
    indices = "i: {Sizes: [3, 1, 1, 1, 2], DataType: UINT32, values: [0, 1, 0, 1, 0, 1]}"
    updates = "u: {Sizes: [3, 1, 1, 1], DataType: FLOAT32, values: [10, 20, 30]}"
    first, second = STRIDED.splitlines()[3:5]
    text = STRIDED.replace(first, "  " + indices).replace(second, "  " + updates)
    case = graph_case(tmp_path, text.replace("Count: 6", "Count: 5"))
    wrong = np.array([[1, 10], [3, 4]], np.float32)
    fault = "scattered-by-strides-of-0-in-a-graph"
    assert status_and_fault(case, {"y": wrong}, "1.15.4") == (Status.WAIVED, fault)
    wrong[0, 1] = 20
    assert status_and_fault(case, {"y": wrong}, "1.15.4") == (Status.FAILED, "")


PACKED_OR_NOT = """
inputs:
  x: {Sizes: [1, 1, 1, 2], DataType: FLOAT64, values: [5, 6]}
  i: {Sizes: [2, 2, 2, 2, 1], DataType: UINT32,
      values: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]}
  u: {Sizes: [2, 2, 2, 2], DataType: FLOAT64, Strides: [1, 2, 4, 8],
      values: [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]}
nodes:
  n: {operator: SCATTER_ND,
      desc: {InputTensor: x, IndicesTensor: i, UpdatesTensor: u, InputDimensionCount: 1,
             IndicesDimensionCount: 5, OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT64}}}
outputs: {y: n}
"""


@pytest.mark.parametrize("last", [0, 26])
def test_graph_may_have_the_outputs_of_either_kernel(last: int, tmp_path: Path) -> None:
    """One kernel reads the last update behind the buffer, as 0; another kernel reads 26."""
    case = graph_case(tmp_path, PACKED_OR_NOT)
    wrong = np.array([last, 6], np.float64).reshape(1, 1, 1, 2)
    assert status_and_fault(case, {"y": wrong}, "1.13.1")[0] is Status.WAIVED
    assert status_and_fault(case, {"y": wrong + 1}, "1.13.1") == (Status.FAILED, "")
