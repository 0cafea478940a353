"""On the CPU, ONNX Runtime makes the mistakes that its findings describe, which explain no others.

A finding describes a mistake of a runtime, and has an example: a case that fails because of it.

The tested code is in `schemas/findings/`, `dmlconf/excuses/findings.py` and
`dmlconf/faults/runtimes/`.
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
def test_the_example_of_a_finding_fails_as_the_finding_describes(finding: Finding) -> None:
    checks().check_example(finding)


@pytest.mark.parametrize("finding", of_values(CPU_FINDINGS), ids=lambda each: each.name)
def test_a_finding_does_not_explain_a_defect_that_its_example_has_besides(
    finding: Finding,
) -> None:
    checks().check_defects(finding)
