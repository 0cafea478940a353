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

[KNOWN] = [each for each in all_findings() if each.runtime == "webnn"]


@pytest.fixture(scope="module")
def backend() -> Iterator[WebNNBackend]:
    opened = create("")
    yield opened
    opened.close()


@pytest.mark.parametrize("finding", KNOWN.findings, ids=lambda each: each.name)
def test_the_example_fails_as_the_finding_says(backend: WebNNBackend, finding: Finding) -> None:
    conclusion = Conclusion(run_case, deviations=read_deviations("webnn"), findings=KNOWN)
    of = case(finding.example)
    [outcome] = backend.run([of])
    reached = conclusion.excused(of, outcome, conclusion.judge(of, outcome))
    said = reached.reason.message if reached.reason else ""
    named = said.startswith(f"known finding {finding.name} ")
    mended = backend.environment().version != KNOWN.version and not reached.status.fails_run
    assert (reached.status is Status.FAILED and named) or mended, reached
