"""Faults, such as a touched guard band, are found in memory after two dispatches of a case.

Each dispatch has its own fill value (poison) in all memory except the inputs.

The tested code is in `dmlconf/backends/directml/dispatch/inspection.py` and
`dmlconf/backends/directml/dispatch/placement.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlconf.backends.directml.dispatch.inspection import inspect
from dmlconf.backends.directml.dispatch.placement import (
    POISONS,
    PlacedTensor,
    Placement,
    placement_of,
)
from dmlconf.backends.protocol import Fault, FaultKind
from dmlconf.cases.plans import plan
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType
from tests.backends.directml.cases import tile

DATA = {"InputTensor": np.array([1, 2], np.float32)}
RIGHT = np.array([1, 2, 1, 2], np.float32)
"""What TILE returns for DATA."""


class Arena:
    """The memory before and after each of two correct dispatches; a test then changes it."""

    def __init__(self, **desc: Any) -> None:
        self.placement: Placement = placement_of(plan(tile(**desc)))
        self.before = [self.placement.image(DATA, poison) for poison in POISONS]
        self.after = [image.copy() for image in self.before]
        for index in range(2):
            written = self.output(index)
            written[:] = np.resize(RIGHT, len(written))

    def placed(self, name: str) -> PlacedTensor:
        return next(found for found in self.placement.ordered() if found.name == name)

    def output(self, dispatch: int) -> Array:
        """Return the output after a dispatch, as a view of the memory."""
        result = self.placed("OutputTensor")
        return self.after[dispatch][result.offset : result.end].view(np.float32)

    def faults(self) -> list[Fault]:
        return list(inspect(self.placement, self.before, self.after)[1])

    def only_fault(self) -> tuple[FaultKind, str]:
        (fault,) = self.faults()
        return fault.kind, fault.message


def test_correct_dispatches_have_no_fault() -> None:
    arena = Arena()
    arrays, faults = inspect(arena.placement, arena.before, arena.after)
    assert faults == ()
    assert arrays["OutputTensor"].tolist() == RIGHT.tolist()


@pytest.mark.parametrize("dispatch", [0, 1])
def test_changed_byte_after_the_output_is_a_guard_fault(dispatch: int) -> None:
    arena = Arena()
    arena.after[dispatch][arena.placed("OutputTensor").end + 3] = 0
    assert arena.only_fault() == (
        FaultKind.GUARD_BAND,
        "1 byte of a guard band changed, 3 bytes after the end of OutputTensor",
    )


def test_changed_guard_bytes_of_both_dispatches_are_added() -> None:
    arena = Arena()
    end = arena.placed("OutputTensor").end
    for image, after in zip(arena.after, (3, 5), strict=True):
        image[end + after] = 0
    assert arena.only_fault() == (
        FaultKind.GUARD_BAND,
        "2 bytes of a guard band changed, 3 bytes after the end of OutputTensor",
    )


def test_changed_bytes_before_the_input_are_a_guard_fault() -> None:
    arena = Arena()
    offset = arena.placed("InputTensor").offset
    arena.after[0][offset - 8 : offset] = 0
    kind, message = arena.only_fault()
    assert kind is FaultKind.GUARD_BAND
    assert message == "8 bytes of a guard band changed, 1 byte before the start of InputTensor"


@pytest.mark.parametrize("dispatch", [0, 1])
def test_changed_input_is_reported(dispatch: int) -> None:
    arena = Arena()
    arena.after[dispatch][arena.placed("InputTensor").offset + 5] = 77
    assert arena.only_fault() == (
        FaultKind.INPUT,
        "1 byte of InputTensor changed, the first at byte 5",
    )


def test_elements_with_both_fill_values_are_unwritten() -> None:
    arena = Arena()
    for index, poison in enumerate(POISONS):
        arena.output(index)[2:].view(np.uint8)[:] = poison
    assert arena.only_fault() == (
        FaultKind.NOT_WRITTEN,
        "2 of 4 elements of OutputTensor, the first at [2], were not written",
    )


def test_faults_of_elements_name_the_output_and_the_elements() -> None:
    arena = Arena()
    for index, poison in enumerate(POISONS):
        arena.output(index)[2:].view(np.uint8)[:] = poison
    arena.output(1)[0] = 5
    unwritten, different = arena.faults()
    assert (unwritten.kind, unwritten.output) == (FaultKind.NOT_WRITTEN, "OutputTensor")
    assert unwritten.elements is not None
    assert unwritten.elements.tolist() == [2, 3]
    assert (different.kind, different.output) == (FaultKind.NOT_DETERMINISTIC, "OutputTensor")
    assert different.elements is not None
    assert different.elements.tolist() == [0]


@pytest.mark.parametrize("poison", POISONS)
def test_element_with_only_one_fill_value_is_written(poison: int) -> None:
    arena = Arena()
    for index in range(2):
        arena.output(index)[1:2].view(np.uint8)[:] = poison
    assert arena.faults() == []


def test_elements_that_differ_between_dispatches_are_reported() -> None:
    arena = Arena()
    arena.output(1)[3] = 5
    assert arena.only_fault() == (
        FaultKind.NOT_DETERMINISTIC,
        "1 of 4 elements of OutputTensor, the first at [3], differ between two dispatches: "
        "2.0 and 5.0",
    )


def test_equal_nans_of_two_dispatches_do_not_differ() -> None:
    arena = Arena()
    for index in range(2):
        arena.output(index)[0] = np.nan
    assert arena.faults() == []


def test_bytes_between_strided_elements_may_be_written() -> None:
    strided = TensorDesc(DataType.FLOAT32, (4,), (2,))
    arena = Arena(OutputTensor=strided)
    for index in range(2):
        arena.output(index)[:] = 1
    assert arena.faults() == []


@pytest.mark.parametrize("written", [[1, 2], [5, 6]], ids=["the input", "other values"])
def test_output_in_place_is_no_fault(
    written: list[float],
) -> None:
    placement = placement_of(
        plan(
            tile(
                in_place={"OutputTensor": "InputTensor"},
                OutputTensor=TensorDesc(DataType.FLOAT32, (2,)),
            )
        )
    )
    before = [placement.image(DATA, poison) for poison in POISONS]
    after = [image.copy() for image in before]
    (output,) = placement.ordered()
    for image in after:
        image[output.offset : output.end].view(np.float32)[:] = written
    arrays, faults = inspect(placement, before, after)
    assert (arrays["OutputTensor"].tolist(), faults) == (written, ())
