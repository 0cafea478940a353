"""Elements that the documentation leaves undefined may have any value; faults in them are excused.

The tested code is in `dmlconf/judging/undefined.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Fault, FaultKind, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.judging.judge import judge
from dmlconf.judging.undefined import without_excused_faults
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.engine.cases import plan, write

NONZERO = """
operator: NONZERO_COORDINATES
cases:
  - desc:
      InputTensor: {Sizes: [2, 2], DataType: FLOAT32, values: [0, 5, 0, 7]}
      OutputCountTensor: {Sizes: [1], DataType: UINT32}
      OutputCoordinatesTensor: {Sizes: [4, 2], DataType: UINT32}
    expect: {OutputCountTensor: [2], OutputCoordinatesTensor: [0, 1, 1, 1, 0, 0, 0, 0]}
"""
COORDINATES = "OutputCoordinatesTensor"


@pytest.fixture
def case(tmp_path: Path) -> Case:
    (planned,) = load_suite([write(tmp_path, NONZERO, "nonzero.yaml")]).plan()
    return build(planned)


def outcome(*faults: Fault, coordinates: tuple[int, ...] = (0, 1, 1, 1, 9, 9, 9, 9)) -> Outputs:
    """Return outputs of NONZERO, whose last four coordinates are undefined, with these faults."""
    arrays = {
        "OutputCountTensor": np.array([2], np.uint32),
        COORDINATES: np.array(coordinates, np.uint32).reshape(4, 2),
    }
    return Outputs(arrays, 0.0, faults)


def fault(kind: FaultKind, *elements: int, output: str = COORDINATES) -> Fault:
    return Fault(kind, f"told of {kind}", output, np.array(elements))


@pytest.mark.parametrize("kind", [FaultKind.NOT_WRITTEN, FaultKind.NOT_DETERMINISTIC])
def test_a_fault_in_undefined_elements_is_ignored(case: Case, kind: FaultKind) -> None:
    verdict = judge(case, outcome(fault(kind, 4, 5, 6, 7)), run_case)
    assert verdict.status is Status.PASSED


@pytest.mark.parametrize("kind", [FaultKind.NOT_WRITTEN, FaultKind.NOT_DETERMINISTIC])
def test_a_fault_in_a_defined_element_fails_the_case(case: Case, kind: FaultKind) -> None:
    verdict = judge(case, outcome(fault(kind, 3, 4, 5, 6, 7)), run_case)
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.message == f"told of {kind}"


def test_defined_elements_must_be_right(case: Case) -> None:
    verdict = judge(case, outcome(coordinates=(0, 1, 1, 0, 9, 9, 9, 9)), run_case)
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.WRONG_VALUES


def test_a_fault_in_an_exact_output_is_not_excused(tmp_path: Path) -> None:
    tile = build(plan(tmp_path, "stated")[0])
    unwritten = outcome(fault(FaultKind.NOT_WRITTEN, 0, output="OutputTensor"))
    assert without_excused_faults(tile, unwritten) is unwritten


def test_a_fault_outside_of_all_elements_is_not_excused(case: Case) -> None:
    guard = Fault(FaultKind.GUARD_BAND, "told of guard bands")
    excused = fault(FaultKind.NOT_WRITTEN, 7)
    both = outcome(guard, excused)
    assert without_excused_faults(case, both) == replace(both, faults=(guard,))


def test_a_fault_in_a_quotient_by_zero_is_excused(
    tmp_path: Path,
) -> None:
    """A quotient by 0 may be any number."""
    text = """
operator: ELEMENT_WISE_QUANTIZE_LINEAR
cases:
  - desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      ScaleTensor: {Sizes: [2], DataType: FLOAT32, values: [0, 1]}
      OutputTensor: {Sizes: [2], DataType: INT8}
"""
    (planned,) = load_suite([write(tmp_path, text, "scales.yaml")]).plan()
    quantized = build(planned)
    arrays = {"OutputTensor": np.array([5, 2], np.int8)}
    for element, excused in ((0, True), (1, False)):
        faults = (fault(FaultKind.NOT_WRITTEN, element, output="OutputTensor"),)
        actual = without_excused_faults(quantized, Outputs(arrays, 0.0, faults))
        assert (actual.faults == ()) == excused


def test_a_fault_in_a_sum_over_unwritten_elements_is_excused(tmp_path: Path) -> None:
    """With two positions, each batch writes one and reads both."""
    text = """
operator: MULTIHEAD_ATTENTION1
cases:
  - desc:
      StackedQueryKeyValueTensor:
        {Sizes: [2, 1, 1, 3, 1], DataType: FLOAT32, values: [1, 2, 3, 4, 5, 6]}
      PastSequenceLengthsTensor: {Sizes: [2], DataType: INT32, values: [0, 1]}
      OutputTensor: {Sizes: [2, 1, 1], DataType: FLOAT32}
      OutputPresentKeyTensor: {Sizes: [2, 1, POSITIONS, 1], DataType: FLOAT32}
      OutputPresentValueTensor: {Sizes: [2, 1, POSITIONS, 1], DataType: FLOAT32}
      Scale: 1
      MaskFilterValue: 0
      QueryHeadCount: 1
      KeyValueHeadCount: 1
      MaskType: NONE
"""
    for positions, lengths, excused in ((2, "[0, 1]", True), (1, "[0, 0]", False)):
        written = text.replace("POSITIONS", str(positions)).replace("[0, 1]}", lengths + "}")
        (planned,) = load_suite([write(tmp_path, written, "attention.yaml")]).plan()
        attention = build(planned)
        arrays = {
            name: np.zeros(tensor.Sizes, np.float32) for name, tensor in attention.outputs().items()
        }
        faults = (fault(FaultKind.NOT_DETERMINISTIC, 0, output="OutputTensor"),)
        actual = without_excused_faults(attention, Outputs(arrays, 0.0, faults))
        assert (actual.faults == ()) == excused


COMPARED = """
graph: undefined coordinates that a comparison reads
cases:
  - name: one
    inputs: {x: {Sizes: [1, 1, 1, 4], DataType: UINT8, values: [0, 5, 0, 7]}}
    nodes:
      found:
        operator: NONZERO_COORDINATES
        desc:
          InputTensor: {from: x}
          OutputCountTensor: {Sizes: [1, 1, 1, 1], DataType: UINT32}
          OutputCoordinatesTensor: {Sizes: [1, 1, 4, 1], DataType: UINT32}
      halved:
        operator: ELEMENT_WISE_IDENTITY
        desc:
          InputTensor: found.OutputCoordinatesTensor
          OutputTensor: {Sizes: [1, 1, 4, 1], DataType: UINT32}
          ScaleBias: {Scale: 0.5, Bias: 0}
      same:
        operator: ELEMENT_WISE_LOGICAL_EQUALS
        desc:
          ATensor: found.OutputCoordinatesTensor
          BTensor: halved
          OutputTensor: {Sizes: [1, 1, 4, 1], DataType: UINT8}
    outputs: {count: found.OutputCountTensor, y: same}
"""


def test_results_of_undefined_elements_may_vary_but_must_be_written(
    tmp_path: Path,
) -> None:
    """Two of four coordinates are undefined, and so is whether they equal their halves."""
    (planned,) = load_suite([write(tmp_path, COMPARED, "compared.yaml")]).plan()
    case = build(planned)
    right = run_case(case)
    assert isinstance(right, Outputs)
    for kind, elements, excused in (
        (FaultKind.NOT_DETERMINISTIC, (2, 3), True),
        (FaultKind.NOT_DETERMINISTIC, (1, 2), False),
        (FaultKind.NOT_WRITTEN, (2, 3), False),
    ):
        faulty = replace(right, faults=(fault(kind, *elements, output="y"),))
        assert (without_excused_faults(case, faulty).faults == ()) is excused, (kind, elements)
