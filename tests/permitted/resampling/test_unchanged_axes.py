"""RESAMPLE may give NaN before an infinity along axes that do not change.

DirectML 1.8.0, 1.9.1, 1.10.1, 1.12.1, 1.13.1 and 1.15.4 were measured with 89 pairs of
sizes and scales.

The tested code is in `dmlconf/permitted/resampling/candidates.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, single

INFINITY_AT_THE_END = """InputTensor: {Sizes: [2, 2, 2, 2], DataType: FLOAT32,
    values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, .inf]},
  OutputTensor: {Sizes: SIZES, DataType: FLOAT32}, InterpolationMode: LINEAR, Scales: SCALES"""

LAST = 15
BEFORE = [LAST - 8, LAST - 4, LAST - 2, LAST - 1]
"""Indices before the last element, along each axis."""


def test_unchanged_axes_give_nan_along_the_first_or_last_two(tmp_path: Path) -> None:
    desc = INFINITY_AT_THE_END.replace("SIZES", "[2, 2, 2, 2]").replace("SCALES", "[1, 1, 1, 1]")
    case = single(tmp_path, "RESAMPLE", desc)
    right = [float(number) for number in range(1, 16)] + [np.inf]
    permitted = []
    for index in range(16):
        values = [np.nan if at == index else value for at, value in enumerate(right)]
        if accepts(case, "OutputTensor", values):
            permitted.append(index)
    # `LAST - 3` is before the infinity along both last axes.
    assert permitted == [BEFORE[0], LAST - 3, BEFORE[2], BEFORE[3], LAST]


@pytest.mark.parametrize(
    ("scales", "along"), [([2, 1, 1, 1], [3]), ([1, 1, 2, 1], [3]), ([1, 1, 2, 2], [])]
)
def test_changed_axis_permits_nan_along_at_most_one_other(
    tmp_path: Path, scales: list[int], along: list[int]
) -> None:
    sizes = [2 * scale for scale in scales]
    desc = INFINITY_AT_THE_END.replace("SIZES", str(sizes)).replace("SCALES", str(scales))
    case = single(tmp_path, "RESAMPLE", desc)
    right = evaluate(case)["OutputTensor"]
    for axis in range(4):
        if scales[axis] > 1:
            continue
        values = right.copy()
        index = [size - 1 for size in sizes]
        index[axis] -= 1
        values[tuple(index)] = np.nan
        assert accepts(case, "OutputTensor", values.ravel().tolist()) == (axis in along), axis


@pytest.mark.parametrize(("offset", "may_be_nan"), [(1, True), (0.5, False)])
def test_offsets_of_1_permit_nan_along_an_unchanged_axis(
    tmp_path: Path, offset: float, may_be_nan: bool
) -> None:
    desc = INFINITY_AT_THE_END.replace("SIZES", "[4, 4, 4, 2]").replace("SCALES", "[2, 2, 2, 1]")
    offsets = "InputPixelOffsets: [0, 0, 0, {0}], OutputPixelOffsets: [0, 0, 0, -{0}]"
    case = single(tmp_path, "RESAMPLE1", f"{desc}, {offsets.format(offset)}")
    values = evaluate(case)["OutputTensor"].copy()
    values[3, 3, 3, 0] = np.nan
    assert accepts(case, "OutputTensor", values.ravel().tolist()) == may_be_nan
