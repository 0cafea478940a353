"""Run WebNN's own tests as cases on WebNN, and write the results to `wpt_results.yaml`.

Run it with `python -m tests.backends.webnn.wpt_results`. It needs the Chromium of the backend
`webnn`, and a checkout of web-platform-tests, which the variable DMLCONF_WPT names.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.backends.webnn.backend import WebNNBackend, create, started_browser
from dmlconf.cases.model import Case, ExpectedOutputs
from dmlconf.excuses.deviations import read_deviations
from dmlconf.excuses.findings import findings_of
from dmlconf.judging.conclusion import Conclusion
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.backends.stated_cases import NoCaseError
from tests.backends.webnn.wpt_cases.conversions import as_case
from tests.backends.webnn.wpt_cases.mistakes import mistake_of
from tests.backends.webnn.wpt_cases.wpt_tests import VARIABLE, WptTest, commit_of, wpt_tests

__all__ = ["FILE", "results"]

FILE: Final = Path(__file__).with_name("wpt_results.yaml")

_PAIRS: Final = "two operators"
"""The key that counts passed tests of two operators."""

_FINDING: Final = re.compile(r"known finding ([\w-]+) ")
_ROUNDED: Final = "the numbers that it expects are rounded, within the errors that it accepts"


def results(checkout: Path) -> Mapping[str, Any]:
    backend = create("")
    try:
        return _results(checkout, backend)
    finally:
        backend.close()


def _results(checkout: Path, backend: WebNNBackend) -> Mapping[str, Any]:
    environment = backend.environment()
    browser = started_browser(Path(environment.details["program"]))
    tests = list(wpt_tests(checkout, browser))
    browser.close()
    findings = findings_of(environment)
    conclusion = Conclusion(run_case, deviations=read_deviations("webnn"), findings=findings)
    passed: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    others: dict[str, dict[str, str]] = {"explained": {}, "not_expressible": {}, "failed": {}}
    for test in tests:
        try:
            case = as_case(test)
        except NoCaseError as error:
            (operators if error.operator else reasons)[error.operator or str(error)] += 1
            continue
        [outcome] = backend.run([case])
        kind, message = _result(test, case, outcome, conclusion)
        if kind == "passed":
            passed[test.operation if test.then is None else _PAIRS] += 1
        else:
            others[kind][f"{test.file}: {test.name}"] = message
    return {
        "wpt": commit_of(checkout),
        "chromium": environment.version,
        "passed_graphs": passed.pop(_PAIRS, 0),
        "passed": dict(sorted(passed.items())),
        **{kind: dict(sorted(each.items())) for kind, each in others.items()},
        "no_case": dict(sorted(reasons.items())),
        "operators_without_cases": dict(sorted(operators.items())),
    }


def _result(test: WptTest, case: Case, outcome: Outcome, conclusion: Conclusion) -> tuple[str, str]:
    """Return the result of one test, such as "passed", and why it did not pass."""
    mistake = mistake_of(test)
    case = case if mistake is None else mistake.correct(case)
    reference = run_case(case)
    assert isinstance(reference, Outputs)
    contradiction = conclusion.judge(case, reference).reason
    rounded = contradiction is not None and _accepts(test, case, reference)
    judged = case if contradiction is None else replace(case, expectation=None)
    verdict = conclusion.excused(judged, outcome, conclusion.judge(judged, outcome))
    deviates = verdict.status is Status.WAIVED and _accepts(test, case, outcome)
    if contradiction is not None and not rounded and not deviates:
        return "failed", contradiction.message
    if verdict.status is Status.PASSED:
        if mistake is not None:
            return "explained", f"a mistake of the test: {mistake.description}"
        return ("passed", "") if judged is case else ("explained", _ROUNDED)
    assert verdict.reason is not None
    if verdict.reason.kind is ReasonKind.NOT_EXPRESSIBLE:
        return "not_expressible", verdict.reason.message
    if verdict.status is Status.WAIVED:
        return "explained", verdict.reason.message.partition(":")[0]
    finding = _FINDING.match(verdict.reason.message)
    if finding is not None:
        return "explained", f"finding {finding[1]}"
    return "failed", verdict.reason.message


def _accepts(test: WptTest, case: Case, outcome: Outcome) -> bool:
    if not isinstance(outcome, Outputs):
        return False
    assert test.tolerance is not None
    assert isinstance(case.expectation, ExpectedOutputs)
    return all(
        test.tolerance.accepts(outcome.arrays[name], array)
        for name, array in case.expectation.outputs.items()
    )


if __name__ == "__main__":
    found = results(Path(os.environ[VARIABLE]))
    FILE.write_text(yaml.safe_dump(found, sort_keys=False, width=100), encoding="utf-8")
