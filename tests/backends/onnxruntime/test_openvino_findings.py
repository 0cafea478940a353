"""ONNX Runtime's OpenVINO provider makes the mistakes that its findings describe.

A finding explains the failure of its example, and no failure that a further defect causes. In other
versions of ONNX Runtime than the finding names, the example may pass.

The tested code is in `schemas/findings/openvino.yaml`, `dmlconf/excuses/findings.py` and, for the
formulas of wrong results, in the modules of `dmlconf/faults/runtimes/` whose names begin with
`openvino` or `onnxruntime`; and in `dmlconf/backends/onnxruntime/backend.py`.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache
from importlib.util import find_spec
from typing import Final

import pytest

from dmlconf.backends.onnxruntime.backend import create
from dmlconf.backends.protocol import Declined
from dmlconf.cases.building.build import build
from dmlconf.excuses.findings import Finding
from dmlconf.verdicts.verdict import ReasonKind
from tests.backends.finding_checks import FindingChecks, findings_in, of_values
from tests.bundled import bundled

PROVIDER: Final = "OpenVINOExecutionProvider"
FINDINGS: Final = findings_in("onnxruntime", provider=PROVIDER)


def has_provider() -> bool:
    if find_spec("onnxruntime") is None:
        return False
    from onnxruntime import get_available_providers

    return PROVIDER in get_available_providers()


pytestmark = [
    pytest.mark.runtimes,
    pytest.mark.skipif(
        not has_provider(),
        reason="onnxruntime-openvino takes the place of onnxruntime, which the other tests need",
    ),
]


@cache
def checks() -> FindingChecks:
    return FindingChecks(create(f"provider={PROVIDER}"), FINDINGS, "onnx")


def test_constant_graph_that_openvino_does_not_take_is_declined() -> None:
    # OpenVINO's provider takes no ConstantOfShape of INT64.
    backend = create(f"provider={PROVIDER}")
    name = "fill_value_constant/boundary/smallest-int64"
    suite = bundled("fill_value_constant/boundary.yaml")
    (planned,) = (each for each in suite.plan() if each.identifier == name)
    with closing(backend):
        (outcome,) = backend.run([build(planned)])
    assert isinstance(outcome, Declined)
    assert "does not take all nodes" in outcome.reason


NOT_HANGING: Final = [each for each in FINDINGS.findings if each.fails is not ReasonKind.HANG]


@pytest.mark.parametrize("finding", NOT_HANGING, ids=lambda each: each.name)
def test_example_fails_as_its_finding_describes(finding: Finding) -> None:
    checks().check_example(finding)


@pytest.mark.parametrize("finding", of_values(FINDINGS), ids=lambda each: each.name)
def test_finding_does_not_explain_a_further_defect(finding: Finding) -> None:
    checks().check_defects(finding)
