"""RESAMPLE and its gradient are judged with offsets that are enormous, infinite or NaN.

With LINEAR, an output of RESAMPLE lies on a straight line through two elements; with
NEAREST_NEIGHBOR, it is an element.

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


def test_interpolated_value_far_from_the_elements_may_be_anything(tmp_path: Path) -> None:
    """Measured: DirectML 1.15.4 gives -4e20 with an offset of 1e20."""
    linear = FORWARD.replace("MODE", "LINEAR")
    far = single(tmp_path, "RESAMPLE1", linear.replace("OFFSET", "1.0e+20"))
    assert accepts(far, "OutputTensor", [-4e20, 7, float("nan")])
    near = single(tmp_path, "RESAMPLE1", linear.replace("OFFSET", "0.5"))
    assert accepts(near, "OutputTensor", [0, 0, 4])
    assert not accepts(near, "OutputTensor", [-4e20, 0, 4])


def test_first_element_is_the_nearest_far_before_it(tmp_path: Path) -> None:
    nearest = FORWARD.replace("MODE", "NEAREST_NEIGHBOR").replace("OFFSET", "1.0e+20")
    case = single(tmp_path, "RESAMPLE1", nearest)
    assert accepts(case, "OutputTensor", [0, 0, 0])
    assert not accepts(case, "OutputTensor", [0, 0, 8])


def test_value_on_a_line_through_enormous_elements_may_overflow(tmp_path: Path) -> None:
    """The line from -1e38 to 1e38 reaches 4e38 at 2.5 times its length."""
    large = FORWARD.replace("MODE", "LINEAR").replace("[0, 4, 8]", "[1.0e+38, -1.0e+38, 1.0e+38]")
    case = single(tmp_path, "RESAMPLE1", large.replace("OFFSET", "-2.0"))
    assert accepts(case, "OutputTensor", [0, 1e38, float("inf")])
    assert accepts(case, "OutputTensor", [float("-inf"), float("inf"), 1e38])
    small = large.replace("e+38", "e+36").replace("OFFSET", "-2.0")
    case = single(tmp_path, "RESAMPLE1", small)
    assert accepts(case, "OutputTensor", [0, 1e36, 4e36])
    assert not accepts(case, "OutputTensor", [0, 1e36, float("inf")])
    assert not accepts(case, "OutputTensor", [float("-inf"), 1e36, 1e36])


ANTIALIASED = (
    "InputTensor: {Sizes: [8], DataType: FLOAT32, values: [0, 2, 4, 6, 8, 12, 16, 100]}, "
    "OutputTensor: {Sizes: [2], DataType: FLOAT32}, InterpolationMode: LINEAR, "
    "RoundingDirection: DECREASING, Scales: [0.25], InputPixelOffsets: [OFFSET], "
    "OutputPixelOffsets: [-0.5], Antialiased: true"
)
"""With the offset 0.5, each of two steps averages pairs of elements."""


def test_antialiased_value_far_from_the_elements_may_be_anything(tmp_path: Path) -> None:
    far = single(tmp_path, "RESAMPLE3", ANTIALIASED.replace("OFFSET", "1.0e+20"))
    assert accepts(far, "OutputTensor", [-2e20, 7])
    near = single(tmp_path, "RESAMPLE3", ANTIALIASED.replace("OFFSET", "0.5"))
    assert accepts(near, "OutputTensor", [3, 34])
    assert not accepts(near, "OutputTensor", [-2e20, 34])


@pytest.mark.parametrize("mode", ["LINEAR", "NEAREST_NEIGHBOR"])
@pytest.mark.parametrize(("offset", "gradients"), [("1.0e+20", [6, 0]), ("-1.0e+20", [0, 6])])
def test_gradients_far_from_the_elements_go_to_the_outermost(
    tmp_path: Path, mode: str, offset: str, gradients: list[float]
) -> None:
    desc = BACKWARD.replace("MODE", mode).replace("OFFSET", offset)
    case = single(tmp_path, "RESAMPLE_GRAD", desc)
    assert accepts(case, "OutputGradientTensor", gradients)
    assert not accepts(case, "OutputGradientTensor", gradients[::-1])


@pytest.mark.parametrize("offset", [".inf", "-.inf", ".nan"])
@pytest.mark.parametrize("mode", ["LINEAR", "NEAREST_NEIGHBOR"])
def test_offsets_that_are_not_finite_permit_any_element(
    tmp_path: Path, mode: str, offset: str
) -> None:
    desc = FORWARD.replace("MODE", mode).replace("OFFSET", offset)
    forward = single(tmp_path, "RESAMPLE1", desc)
    assert accepts(forward, "OutputTensor", [0, 8, 4])
    if mode == "NEAREST_NEIGHBOR":
        assert not accepts(forward, "OutputTensor", [0, 8, 5])  # No element is 5.
    desc = FORWARD.replace("OutputPixelOffsets: [0.5]", f"OutputPixelOffsets: [{offset}]")
    desc = desc.replace("OFFSET", "0.5").replace("MODE", mode)
    forward = single(tmp_path, "RESAMPLE1", desc)
    assert accepts(forward, "OutputTensor", [0, 8, 4])
    desc = BACKWARD.replace("MODE", mode).replace("OFFSET", offset)
    backward = single(tmp_path, "RESAMPLE_GRAD", desc)
    assert accepts(backward, "OutputGradientTensor", [7, float("nan")])
