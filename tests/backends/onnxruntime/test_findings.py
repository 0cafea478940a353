"""ONNX Runtime makes on the CPU the mistakes that its findings describe.

A finding describes a mistake of a runtime, and has an example: a case that fails because of it, in
other versions of the runtime than the finding names perhaps not. The finding explains this failure.
If it describes wrong values, a further wrong value in the example stays unexplained, unless the
finding has no formula and leaves open what that element may be.

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
"""The findings whose examples do not crash; an example that crashes would end the tests."""


@cache
def checks() -> FindingChecks:
    """Return the checks of the findings in ONNX Runtime's CPU provider."""
    return FindingChecks(create(""), CPU_FINDINGS, "onnx")


@pytest.mark.parametrize("finding", NOT_CRASHING, ids=lambda each: each.name)
def test_the_example_of_a_finding_fails_as_the_finding_describes(finding: Finding) -> None:
    checks().check_example(finding)


@pytest.mark.parametrize("finding", of_values(CPU_FINDINGS), ids=lambda each: each.name)
def test_a_finding_does_not_explain_a_further_defect_in_its_example(finding: Finding) -> None:
    checks().check_defects(finding)
