"""A case is unchecked if all of its elements are open, so that any value is right.

The tested code is in `dmlconf/judging/unjudged.py`, `dmlconf/judging/judge.py` and
`dmlconf/precision/room.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Breakdown, BreakdownKind, Fault, FaultKind, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.judging.judge import judge
from dmlconf.judging.unjudged import judges_nothing
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.engine.cases import plan, write

DIVISIONS = """
operator: ELEMENT_WISE_DIVIDE
cases:
  - name: by-zero
    desc: &divide
      ATensor: {Sizes: [2], DataType: INT8, values: [1, 2]}
      BTensor: {Sizes: [2], DataType: INT8, values: [0, 0]}
      OutputTensor: {Sizes: [2], DataType: INT8}
  - name: stated
    desc: *divide
    expect: {OutputTensor: [0, 0]}
  - name: rejected
    desc: *divide
    expect: {rejected: E_INVALIDARG}
  - name: half-of-it-by-zero
    desc:
      ATensor: {Sizes: [2], DataType: INT8, values: [1, 2]}
      BTensor: {Sizes: [2], DataType: INT8, values: [0, 1]}
      OutputTensor: {Sizes: [2], DataType: INT8}
"""

CONVOLUTION = """
operator: CONVOLUTION
cases:
  - name: overflow
    desc:
      InputTensor: {Sizes: [1, 1, 2], DataType: FLOAT32, values: [3.0e+38, -3.0e+38]}
      FilterTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [4]}
      OutputTensor: {Sizes: [1, 1, 2], DataType: FLOAT32}
      Mode: CROSS_CORRELATION
      Direction: FORWARD
      Strides: [1]
      Dilations: [1]
      StartPadding: [0]
      EndPadding: [0]
      OutputPadding: [0]
      GroupCount: 1
"""

NONZERO = """
operator: NONZERO_COORDINATES
cases:
  - name: nothing
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [0, 0]}
      OutputCountTensor: {Sizes: [1], DataType: UINT32}
      OutputCoordinatesTensor: {Sizes: [2, 1], DataType: UINT32}
"""


def cases(directory: Path, text: str) -> dict[str, Case]:
    planned = load_suite([write(directory, text, "open.yaml")]).plan()
    return {case.identifier.split("/")[-1]: build(case) for case in planned}


@pytest.mark.parametrize("name", ["by-zero", "stated"])
def test_a_case_whose_elements_are_all_open_is_unchecked(tmp_path: Path, name: str) -> None:
    case = cases(tmp_path, DIVISIONS)[name]
    verdict = judge(case, run_case(case), run_case)
    assert verdict.status is Status.UNCHECKED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.ANY_VALUE_PERMITTED
    assert verdict.figures["OutputTensor"].open == 2
    assert judges_nothing(case)


def test_an_element_of_a_convolution_that_overflows_is_judged(tmp_path: Path) -> None:
    case = cases(tmp_path, CONVOLUTION)["overflow"]
    assert judge(case, run_case(case), run_case).status is Status.PASSED
    zeros = Outputs({"OutputTensor": np.zeros((1, 1, 2), np.float32)})
    assert judge(case, zeros, run_case).status is Status.FAILED


def test_a_case_with_one_judged_element_passes(tmp_path: Path) -> None:
    case = cases(tmp_path, DIVISIONS)["half-of-it-by-zero"]
    verdict = judge(case, run_case(case), run_case)
    assert verdict.status is Status.PASSED
    assert verdict.figures["OutputTensor"].open == 1
    assert not judges_nothing(case)


def test_a_case_with_one_judged_output_passes(tmp_path: Path) -> None:
    case = cases(tmp_path, NONZERO)["nothing"]
    verdict = judge(case, run_case(case), run_case)
    assert verdict.status is Status.PASSED
    assert verdict.figures["OutputCoordinatesTensor"].open == 2
    assert not judges_nothing(case)


def test_judgements_that_share_allowances_count_open_elements_of_each_output(
    tmp_path: Path,
) -> None:
    case = cases(tmp_path, NONZERO)["nothing"]
    allowances = CaseAllowances(case)
    for _ in range(2):
        figures = judge(case, run_case(case), run_case, allowances=allowances).figures
        assert {name: each.open for name, each in figures.items()} == {
            "OutputCountTensor": 0,
            "OutputCoordinatesTensor": 2,
        }


def test_open_elements_are_counted_whatever_their_values(
    tmp_path: Path,
) -> None:
    case = cases(tmp_path, DIVISIONS)["half-of-it-by-zero"]
    right = run_case(case)
    assert isinstance(right, Outputs)
    other = Outputs({"OutputTensor": right.arrays["OutputTensor"] + np.array([1, 0], np.int8)})
    figures = [judge(case, each, run_case).figures["OutputTensor"] for each in (right, other)]
    assert [(f.open, f.loose) for f in figures] == [(1, 1), (1, 1)]


def test_a_fault_fails_a_case_of_open_elements(tmp_path: Path) -> None:
    case = cases(tmp_path, DIVISIONS)["by-zero"]
    outcome = Outputs(
        {"OutputTensor": np.zeros(2, np.int8)},
        faults=(Fault(FaultKind.GUARD_BAND, "wrote beyond the output"),),
    )
    assert judge(case, outcome, run_case).status is Status.FAILED


def test_a_case_with_an_exact_rule_is_judged(tmp_path: Path) -> None:
    assert not judges_nothing(build(plan(tmp_path, "stated")[0]))


def test_a_case_that_expects_a_rejection_is_judged(tmp_path: Path) -> None:
    assert not judges_nothing(cases(tmp_path, DIVISIONS)["rejected"])


INFINITE_REGION = """
operator: ROI_ALIGN1
cases:
  - name: infinite
    desc:
      InputTensor: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, 2, 3, 4]}
      ROITensor: {Sizes: [1, 4], DataType: FLOAT32, values: [0, 0, .inf, .inf]}
      BatchIndicesTensor: {Sizes: [1], DataType: UINT32, values: [0]}
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}
      ReductionFunction: AVERAGE
      InterpolationMode: LINEAR
      SpatialScaleX: 1
      SpatialScaleY: 1
      InputPixelOffset: 0
      OutputPixelOffset: 0
      OutOfBoundsInputValue: 0
      MinimumSamplesPerOutput: 1
      MaximumSamplesPerOutput: 4294967295
      AlignRegionsToCorners: false
"""
"""A region of 2^32 - 1 samples along each axis."""


def test_a_region_of_too_many_samples_is_not_called_unjudged(tmp_path: Path) -> None:
    assert not judges_nothing(cases(tmp_path, INFINITE_REGION)["infinite"])


def test_a_region_of_too_many_samples_runs_out_of_memory_at_once(tmp_path: Path) -> None:
    outcome = run_case(cases(tmp_path, INFINITE_REGION)["infinite"])
    assert isinstance(outcome, Breakdown)
    assert outcome.kind is BreakdownKind.OUT_OF_MEMORY
    assert "an output has 4,294,967,295 samples along an axis" in outcome.message
