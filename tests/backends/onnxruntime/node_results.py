"""Run ONNX's node tests as cases on ONNX Runtime, and write the results to `node_results.yaml`.

Run it with `python -m tests.backends.onnxruntime.node_results`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import yaml

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.onnxruntime.backend import OnnxRuntimeBackend, create
from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case, ExpectedOutputs
from dmlconf.excuses.deviations import read_deviations
from dmlconf.excuses.findings import findings_of
from dmlconf.judging.conclusion import Conclusion
from dmlconf.translation.tables import table
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.backends.onnxruntime.node_cases.conversions import as_case
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest, node_tests
from tests.backends.stated_cases import NoCaseError

__all__ = ["FILE", "results"]

FILE: Final = Path(__file__).with_name("node_results.yaml")


def results() -> Mapping[str, Any]:
    backend = create("")
    names = table("onnx").names()
    passed: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    others: dict[str, dict[str, str]] = {"explained": {}, "not_expressible": {}, "failed": {}}
    for test in node_tests():
        if test.operation not in names:
            continue
        try:
            kind, message = _result(test, as_case(test), backend)
        except NoCaseError as error:
            (operators if error.operator else reasons)[error.operator or str(error)] += 1
            continue
        if kind == "passed":
            passed[test.operation] += 1
        else:
            others[kind][test.name] = message
    return {
        "onnx": onnx.__version__,
        "onnxruntime": backend.environment().version,
        "passed": dict(sorted(passed.items())),
        **{kind: dict(sorted(each.items())) for kind, each in others.items()},
        "no_case": dict(sorted(reasons.items())),
        "operators_without_cases": dict(sorted(operators.items())),
    }


def _result(test: NodeTest, case: Case, backend: OnnxRuntimeBackend) -> tuple[str, str]:
    """Return the result of one test, and why it did not pass."""
    findings = findings_of(backend.environment())
    conclusion = Conclusion(run_case, deviations=read_deviations("onnx"), findings=findings)
    [outcome] = backend.run([case])
    verdict = conclusion.excused(case, outcome, conclusion.judge(case, outcome))
    if verdict.status is Status.PASSED:
        return "passed", ""
    assert verdict.reason is not None
    if verdict.reason.kind is ReasonKind.NOT_EXPRESSIBLE:
        return "not_expressible", verdict.reason.message
    if verdict.reason.kind is not ReasonKind.CONTRADICTION or not isinstance(outcome, Outputs):
        return "failed", verdict.reason.message
    # ONNX expects values that DirectML's rule does not permit. The outcome must be within ONNX's
    # tolerances, and the rule or a documented deviation of ONNX must permit it.
    without_values = replace(case, expectation=None)
    verdict_by_rule = conclusion.excused(
        without_values, outcome, conclusion.judge(without_values, outcome)
    )
    assert isinstance(case.expectation, ExpectedOutputs)
    close = all(
        np.allclose(outcome.arrays[name], array, rtol=1e-3, atol=1e-7, equal_nan=True)
        for name, array in case.expectation.outputs.items()
    )
    if not close or verdict_by_rule.status not in (Status.PASSED, Status.WAIVED):
        return "failed", verdict.reason.message
    if verdict_by_rule.reason is None:
        return "explained", "ONNX's numbers are rounded, within the errors that it accepts"
    return "explained", verdict_by_rule.reason.message.partition(":")[0]


if __name__ == "__main__":
    FILE.write_text(yaml.safe_dump(results(), sort_keys=False, width=100), encoding="utf-8")
