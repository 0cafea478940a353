"""ONNX Runtime has the mistakes that its findings describe, and they excuse nothing else."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.onnxruntime.backend import OnnxRuntimeBackend, create
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.model import Case
from dmlconf.excuses.deviations import read_deviations
from dmlconf.excuses.findings import Finding, Findings, all_findings
from dmlconf.judging.conclusion import Conclusion
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.excuses.test_deviations import case

pytestmark = pytest.mark.runtimes

CPU_FINDINGS: Final[Findings] = next(
    each
    for each in all_findings()
    if each.details == {"provider": "CPUExecutionProvider"} and each.runtime == "onnxruntime"
)
FINDINGS: Final = [each for each in CPU_FINDINGS.findings if each.fails is not ReasonKind.CRASH]
OF_VALUES: Final = [each for each in FINDINGS if each.fails is ReasonKind.WRONG_VALUES]


@cache
def backend() -> OnnxRuntimeBackend:
    return create("")


def verdict(of: Case, outcome: Outcome) -> Verdict:
    conclusion = Conclusion(run_case, deviations=read_deviations("onnx"), findings=CPU_FINDINGS)
    return conclusion.excused(of, outcome, conclusion.judge(of, outcome))


def names(verdict: Verdict, finding: Finding) -> bool:
    message = verdict.reason.message if verdict.reason else ""
    return verdict.status is Status.FAILED and message.startswith(f"known finding {finding.name} ")


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda each: each.name)
def test_the_example_fails_as_the_finding_says(finding: Finding) -> None:
    of = case(finding.example)
    [outcome] = backend().run([of])
    reached = verdict(of, outcome)
    is_other = backend().environment().version != CPU_FINDINGS.version
    is_fixed = is_other and not reached.status.fails_run
    assert names(reached, finding) or is_fixed, reached


@pytest.mark.parametrize("finding", OF_VALUES, ids=lambda each: each.name)
def test_a_defect_between_the_runtime_and_dmlconf_is_no_part_of_the_finding(
    finding: Finding,
) -> None:
    of = case(finding.example)
    [outcome] = backend().run([of])
    right = run_case(of)
    assert isinstance(outcome, Outputs)
    assert isinstance(right, Outputs)
    defects = 0
    for output, array in outcome.arrays.items():
        for index in sorted({0, array.size // 2, array.size - 1}):
            alone = {**right.arrays, output: defect(right.arrays[output], index)}
            if not verdict(of, Outputs(alone)).status.fails_run:
                continue  # The rule leaves this element open.
            defects += 1
            together = {**outcome.arrays, output: defect(array, index)}
            reached = verdict(of, replace(outcome, arrays=together))
            assert reached.status is Status.FAILED, (output, index)
            assert not names(reached, finding), (output, index)
    assert defects


def defect(array: Array, index: int) -> Array:
    """Return the array with another number as one element: 21 more than there is, or 9."""
    changed = array.copy()
    number = changed.reshape(-1)[index]
    with np.errstate(over="ignore"):
        more = number + changed.dtype.type(21)
    changed.reshape(-1)[index] = more if np.isfinite(number) and more != number else 9
    return changed
