"""Check that a runtime makes the mistake that a finding describes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Backend, Outcome, Outputs
from dmlconf.cases.model import Case
from dmlconf.excuses.deviations import read_deviations
from dmlconf.excuses.findings import Finding, Findings, all_findings
from dmlconf.judging.conclusion import Conclusion
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.excuses.test_deviations import case

__all__ = ["FindingChecks", "defect", "findings_in", "of_values"]

COMPANIONS: Final = (
    "element_wise_add/combinations/pairs-9[Values=2x3x7xFLOAT32x1:5xtransposedx0:100:3]",
    "element_wise_add/combinations/pairs-6[Values=5x1x1x32xFLOAT32x1:5xpaddedx0:100:4]",
)
"""Cases that run in one batch with each example.

OpenVINO's provider takes some operators only in a model of several nodes, such as a batch.
"""


def findings_in(runtime: str, **details: str) -> Findings:
    return next(
        each for each in all_findings() if each.runtime == runtime and each.details == details
    )


def of_values(findings: Findings) -> list[Finding]:
    """Return the findings of wrong values that say which elements are wrong."""
    return [
        each
        for each in findings.findings
        if each.fails is ReasonKind.WRONG_VALUES and each.wrong.elements != ("all",)
    ]


@dataclass(frozen=True, slots=True)
class FindingChecks:
    """Checks of the findings in a runtime; deviations of the target are waived."""

    backend: Backend
    findings: Findings
    target: str

    def check_example(self, finding: Finding) -> None:
        """Check that the example fails as the finding says.

        It may pass in another version, and on a processor without the finding's instructions.
        """
        example = case(finding.example)
        verdict = self._verdict(example, self._outcome(example))
        is_other = self.backend.environment().version != self.findings.version
        is_other |= not _has_instructions(finding.instructions)
        is_fixed = is_other and not verdict.status.fails_run
        assert _is_explained(verdict, finding) or is_fixed, verdict

    def check_defects(self, finding: Finding) -> None:
        """Check that the finding does not explain a failure that a further defect causes."""
        example = case(finding.example)
        outcome, right = self._outcome(example), run_case(example)
        assert isinstance(outcome, Outputs)
        assert isinstance(right, Outputs)
        defects = 0
        for output, array in outcome.arrays.items():
            for index in sorted({0, array.size // 3, array.size // 2, array.size - 1}):
                alone = {**right.arrays, output: defect(right.arrays[output], index)}
                verdict = self._verdict(example, Outputs(alone))
                if not verdict.status.fails_run:
                    continue  # The rule or a deviation permits the defect.
                if finding.wrong.formula is None and _is_explained(verdict, finding):
                    continue  # The finding explains any value of this element.
                defects += 1
                together = {**outcome.arrays, output: defect(array, index)}
                verdict = self._verdict(example, replace(outcome, arrays=together))
                assert verdict.status is Status.FAILED, (output, index)
                assert not _is_explained(verdict, finding), (output, index)
        assert defects

    def _outcome(self, example: Case) -> Outcome:
        return next(iter(self.backend.run([example, *map(case, COMPANIONS)])))

    def _verdict(self, example: Case, outcome: Outcome) -> Verdict:
        conclusion = Conclusion(
            run_case, deviations=read_deviations(self.target), findings=self.findings
        )
        return conclusion.excused(example, outcome, conclusion.judge(example, outcome))


def _has_instructions(name: str) -> bool:
    """Return whether this processor has instructions such as AVX-512; true for an empty name."""
    flag = name.lower().replace("-", "")
    return not flag or flag in Path("/proc/cpuinfo").read_text("utf-8")


def _is_explained(verdict: Verdict, finding: Finding) -> bool:
    message = verdict.reason.message if verdict.reason else ""
    named, _, _ = message.partition(": ")
    return (
        verdict.status.fails_run
        and named.startswith("known finding ")
        and f" {finding.name} (" in named
    )


def defect(array: Array, index: int) -> Array:
    """Return the array with 21 added to an element, or with 9 where adding changes nothing."""
    changed = array.copy()
    number = changed.reshape(-1)[index]
    with np.errstate(over="ignore"):
        more = number + changed.dtype.type(21)
    changed.reshape(-1)[index] = more if np.isfinite(number) and more != number else 9
    return changed
