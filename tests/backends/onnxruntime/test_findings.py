"""ONNX Runtime makes the mistakes that its findings describe; findings explain no other failure.

What is tested is in `schemas/findings/` and `dmlconf/excuses/findings.py`.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from dmlconf.backends.onnxruntime.backend import CPU, create
from dmlconf.excuses.findings import Finding
from dmlconf.verdicts.verdict import ReasonKind
from tests.backends.finding_checks import FindingChecks, findings_in, of_values

pytestmark = pytest.mark.runtimes

CPU_FINDINGS: Final = findings_in("onnxruntime", provider=CPU)
FINDINGS: Final = [each for each in CPU_FINDINGS.findings if each.fails is not ReasonKind.CRASH]


@cache
def checks() -> FindingChecks:
    return FindingChecks(create(""), CPU_FINDINGS, "onnx")


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda each: each.name)
def test_the_example_of_a_finding_fails_as_described(finding: Finding) -> None:
    checks().check_example(finding)


@pytest.mark.parametrize("finding", of_values(CPU_FINDINGS), ids=lambda each: each.name)
def test_a_finding_does_not_explain_a_further_defect(
    finding: Finding,
) -> None:
    checks().check_defects(finding)
