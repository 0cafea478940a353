"""WebNN has the mistakes that its findings describe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.backends.webnn.backend import WebNNBackend, create
from dmlconf.cases.model import Case
from dmlconf.excuses.deviations import read_deviations
from dmlconf.excuses.findings import Finding, all_findings
from dmlconf.judging.conclusion import Conclusion
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.backends.onnxruntime.test_findings import defect
from tests.excuses.test_deviations import case

pytestmark = pytest.mark.webnn

[FINDINGS] = [each for each in all_findings() if each.runtime == "webnn"]


@pytest.fixture(scope="module")
def backend() -> Iterator[WebNNBackend]:
    opened = create("")
    yield opened
    opened.close()


OF_VALUES: Final = [each for each in FINDINGS.findings if each.fails is ReasonKind.WRONG_VALUES]


def verdict(of: Case, outcome: Outcome) -> Verdict:
    conclusion = Conclusion(run_case, deviations=read_deviations("webnn"), findings=FINDINGS)
    return conclusion.excused(of, outcome, conclusion.judge(of, outcome))


def names(reached: Verdict, finding: Finding) -> bool:
    message = reached.reason.message if reached.reason else ""
    return reached.status.fails_run and message.startswith(f"known finding {finding.name} ")


@pytest.mark.parametrize("finding", FINDINGS.findings, ids=lambda each: each.name)
def test_the_example_fails_as_the_finding_says(backend: WebNNBackend, finding: Finding) -> None:
    of = case(finding.example)
    [outcome] = backend.run([of])
    reached = verdict(of, outcome)
    is_fixed = backend.environment().version != FINDINGS.version and not reached.status.fails_run
    assert names(reached, finding) or is_fixed, reached


@pytest.mark.parametrize("finding", OF_VALUES, ids=lambda each: each.name)
def test_a_defect_between_the_runtime_and_dmlconf_is_no_part_of_the_finding(
    backend: WebNNBackend, finding: Finding
) -> None:
    of = case(finding.example)
    [outcome] = backend.run([of])
    right = run_case(of)
    assert isinstance(outcome, Outputs)
    assert isinstance(right, Outputs)
    defects = 0
    for output, array in outcome.arrays.items():
        for index in sorted({0, array.size // 3, array.size - 1}):
            alone = {**right.arrays, output: defect(right.arrays[output], index)}
            reached = verdict(of, Outputs(alone))
            if not reached.status.fails_run or names(reached, finding):
                continue  # The rule or the finding leaves this element open.
            defects += 1
            together = {**outcome.arrays, output: defect(array, index)}
            reached = verdict(of, replace(outcome, arrays=together))
            assert reached.status is Status.FAILED, (output, index)
            assert not names(reached, finding), (output, index)
    assert defects
