"""WebNN makes the mistakes that its findings describe.

Each finding explains the failure of its example, and none that a further mistake causes. In another
version of the runtime than the findings name, the examples may also pass.

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
    """Yield the checks of the findings in WebNN; then close the browser."""
    backend = create("")
    yield FindingChecks(backend, FINDINGS, "webnn")
    backend.close()


@pytest.mark.parametrize("finding", FINDINGS.findings, ids=lambda each: each.name)
def test_the_example_of_a_finding_fails_as_the_finding_describes(
    checks: FindingChecks, finding: Finding
) -> None:
    checks.check_example(finding)


@pytest.mark.parametrize("finding", of_values(FINDINGS), ids=lambda each: each.name)
def test_a_finding_does_not_explain_a_further_defect_in_its_example(
    checks: FindingChecks, finding: Finding
) -> None:
    checks.check_defects(finding)
