"""ONNX Runtime makes on the CPU the mistakes that its findings describe.

A finding explains the failure of its example, and no failure that a further defect causes. In other
versions of ONNX Runtime than the finding names, the example may pass.

The tested code is in `schemas/findings/onnxruntime.yaml`, `dmlconf/excuses/findings.py` and, for
the formulas of wrong results, `dmlconf/faults/runtimes/onnxruntime.py` and
`dmlconf/faults/runtimes/onnxruntime_quantization.py`.
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
NOT_CRASHING: Final = [each for each in CPU_FINDINGS.findings if each.fails is not ReasonKind.CRASH]
"""The findings whose examples do not crash the process of the tests."""


@cache
def checks() -> FindingChecks:
    return FindingChecks(create(""), CPU_FINDINGS, "onnx")


@pytest.mark.parametrize("finding", NOT_CRASHING, ids=lambda each: each.name)
def test_example_fails_as_its_finding_describes(finding: Finding) -> None:
    checks().check_example(finding)


@pytest.mark.parametrize("finding", of_values(CPU_FINDINGS), ids=lambda each: each.name)
def test_finding_does_not_explain_a_further_defect(finding: Finding) -> None:
    checks().check_defects(finding)
