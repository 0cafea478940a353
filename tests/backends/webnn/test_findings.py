"""WebNN makes the mistakes that its findings describe, and these explain no other failure.

The tested code is in `dmlconf/excuses/findings.py` and `schemas/findings`.
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
def test_the_example_fails_as_the_finding_says(checks: FindingChecks, finding: Finding) -> None:
    checks.check_example(finding)


@pytest.mark.parametrize("finding", of_values(FINDINGS), ids=lambda each: each.name)
def test_a_defect_between_the_runtime_and_dmlconf_is_no_part_of_the_finding(
    checks: FindingChecks, finding: Finding
) -> None:
    checks.check_defects(finding)
