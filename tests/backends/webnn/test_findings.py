"""WebNN makes the mistakes that its findings describe.

A finding explains the failure of its example, and no failure that a further defect causes. In other
versions of Chromium than the finding names, the example may pass.

The tested code is in `schemas/findings/webnn.yaml`, `dmlconf/excuses/findings.py` and, for the
formulas of wrong results, `dmlconf/faults/runtimes/webnn.py`,
`dmlconf/faults/runtimes/webnn_steps.py` and `dmlconf/faults/runtimes/onnxruntime.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from dmlconf.backends.webnn.backend import create
from dmlconf.excuses.findings import Finding
from tests.backends.finding_checks import FindingChecks, findings_in, of_values

pytestmark = pytest.mark.webnn

FINDINGS: Final = findings_in("webnn")


@pytest.fixture(scope="module")
def checks() -> Iterator[FindingChecks]:
    backend = create("")
    yield FindingChecks(backend, FINDINGS, "webnn")
    backend.close()


@pytest.mark.parametrize("finding", FINDINGS.findings, ids=lambda each: each.name)
def test_example_fails_as_its_finding_describes(checks: FindingChecks, finding: Finding) -> None:
    checks.check_example(finding)


@pytest.mark.parametrize("finding", of_values(FINDINGS), ids=lambda each: each.name)
def test_finding_does_not_explain_a_further_defect(checks: FindingChecks, finding: Finding) -> None:
    checks.check_defects(finding)
