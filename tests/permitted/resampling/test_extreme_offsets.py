"""With extreme offsets RESAMPLE and its gradient are judged, but any value may be right.

The tested code is in `dmlconf/permitted/resampling/` and in
`dmlconf/reference/resampling/interpolation.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import accepts, single

FORWARD = (
    "InputTensor: {Sizes: [3], DataType: FLOAT32, values: [0, 4, 8]}, "
    "OutputTensor: {Sizes: [3], DataType: FLOAT32}, InterpolationMode: MODE, Scales: [1], "
    "InputPixelOffsets: [OFFSET], OutputPixelOffsets: [0.5]"
)
BACKWARD = (
    "InputGradientTensor: {Sizes: [3], DataType: FLOAT32, values: [1, 2, 3]}, "
    "OutputGradientTensor: {Sizes: [2], DataType: FLOAT32}, InterpolationMode: MODE, "
    "Scales: [1.5], InputPixelOffsets: [0.5], OutputPixelOffsets: [OFFSET]"
)


def test_a_value_far_beyond_the_elements_may_be_anywhere_on_their_lines(tmp_path: Path) -> None:
    """Measured: DirectML 1.15.4 gives -4e20 with an offset of 1e20."""
    linear = FORWARD.replace("MODE", "LINEAR")
    far = single(tmp_path, "RESAMPLE1", linear.replace("OFFSET", "1.0e+20"))
    assert accepts(far, "OutputTensor", [-4e20, 0, 8])
    near = single(tmp_path, "RESAMPLE1", linear.replace("OFFSET", "0.5"))
    assert not accepts(near, "OutputTensor", [-4e20, 4, 8])
    nearest = FORWARD.replace("MODE", "NEAREST_NEIGHBOR").replace("OFFSET", "1.0e+20")
    case = single(tmp_path, "RESAMPLE1", nearest)
    assert accepts(case, "OutputTensor", [0, 0, 0])
    assert not accepts(case, "OutputTensor", [0, 0, 8])


def test_a_value_on_a_line_through_enormous_elements_may_overflow(tmp_path: Path) -> None:
    """On the line through 1e38 and -1e38, the value 2 elements further is -5e38."""
    large = FORWARD.replace("MODE", "LINEAR").replace("[0, 4, 8]", "[1.0e+38, -1.0e+38, 1.0e+38]")
    case = single(tmp_path, "RESAMPLE1", large.replace("OFFSET", "-2.0"))
    assert accepts(case, "OutputTensor", [float("-inf"), float("inf"), 1e38])
    small = large.replace("e+38", "e+36").replace("OFFSET", "-2.0")
    case = single(tmp_path, "RESAMPLE1", small)
    assert not accepts(case, "OutputTensor", [float("-inf"), float("inf"), 1e36])


ANTIALIASED = (
    "InputTensor: {Sizes: [8], DataType: FLOAT32, values: [0, 2, 4, 6, 8, 12, 16, 100]}, "
    "OutputTensor: {Sizes: [2], DataType: FLOAT32}, InterpolationMode: LINEAR, "
    "RoundingDirection: DECREASING, Scales: [0.25], InputPixelOffsets: [1.0e+20], "
    "OutputPixelOffsets: [-0.5], Antialiased: true"
)


def test_a_value_far_beyond_the_elements_of_several_steps_may_be_anywhere(tmp_path: Path) -> None:
    case = single(tmp_path, "RESAMPLE3", ANTIALIASED)
    assert accepts(case, "OutputTensor", [-2e20, -2e20])


@pytest.mark.parametrize("offset", [".inf", "-.inf", ".nan"])
@pytest.mark.parametrize("mode", ["LINEAR", "NEAREST_NEIGHBOR"])
def test_offsets_that_are_not_finite_can_be_judged(tmp_path: Path, mode: str, offset: str) -> None:
    desc = FORWARD.replace("MODE", mode).replace("OFFSET", offset)
    forward = single(tmp_path, "RESAMPLE1", desc)
    assert accepts(forward, "OutputTensor", [0, 8, 4])
    if mode == "NEAREST_NEIGHBOR":
        assert not accepts(forward, "OutputTensor", [0, 8, 5])  # No element is 5.
    unshifted = FORWARD.replace("0.5]", f"{offset}]").replace("OFFSET", "0.5")
    forward = single(tmp_path, "RESAMPLE1", unshifted.replace("MODE", mode))
    assert accepts(forward, "OutputTensor", [0, 8, 4])
    desc = BACKWARD.replace("MODE", mode).replace("OFFSET", offset)
    backward = single(tmp_path, "RESAMPLE_GRAD", desc)
    assert accepts(backward, "OutputGradientTensor", [7, float("nan")])
