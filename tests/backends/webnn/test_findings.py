"""What findings say of WebNN is what it does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.webnn.backend import WebNNBackend, create
from dmlconf.excuses.deviations import read_deviations
from dmlconf.excuses.findings import Finding, all_findings
from dmlconf.judging.conclusion import Conclusion
from dmlconf.verdicts.verdict import Status
from tests.excuses.test_deviations import case

pytestmark = pytest.mark.webnn

[FINDINGS] = [each for each in all_findings() if each.runtime == "webnn"]


@pytest.fixture(scope="module")
def backend() -> Iterator[WebNNBackend]:
    opened = create("")
    yield opened
    opened.close()


@pytest.mark.parametrize("finding", FINDINGS.findings, ids=lambda each: each.name)
def test_the_example_fails_as_the_finding_says(backend: WebNNBackend, finding: Finding) -> None:
    conclusion = Conclusion(run_case, deviations=read_deviations("webnn"), findings=FINDINGS)
    of = case(finding.example)
    [outcome] = backend.run([of])
    reached = conclusion.excused(of, outcome, conclusion.judge(of, outcome))
    message = reached.reason.message if reached.reason else ""
    is_named = message.startswith(f"known finding {finding.name} ")
    is_fixed = backend.environment().version != FINDINGS.version and not reached.status.fails_run
    assert (reached.status is Status.FAILED and is_named) or is_fixed, reached
