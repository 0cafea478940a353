"""Draw the verdict on a case from all of its runs and from what excuses failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from dmlconf.backends.circumstances import Circumstance, Exercise, Exercises
from dmlconf.backends.protocol import Breakdown, Outcome, Outputs
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.documents.problems import ExpectedError
from dmlconf.excuses.deviations import NO_DEVIATIONS, Deviations
from dmlconf.excuses.findings import NO_FINDINGS, Findings
from dmlconf.excuses.known_faults import NO_KNOWN_FAULTS, KnownFaults
from dmlconf.excuses.substrate import NO_SUBSTRATE, Substrate
from dmlconf.excuses.waivers import NO_WAIVERS, Waivers
from dmlconf.judging.figure_cache import FigureCache
from dmlconf.judging.judge import Against, JudgeOne, judge, not_judged
from dmlconf.judging.needs_run import RunOne, Steps, answered
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict

__all__ = [
    "NO_OPTIONS",
    "Conclusion",
    "Execute",
    "JudgeOptions",
    "alone_on",
    "broken_down",
    "verdict_of",
]

Execute = Callable[[Iterator[Any]], Iterator[tuple[Any, Any]]]
"""Runs cases and exercises, and yields each with its result."""


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """What may excuse failures, and what runs besides the plain run of each case.

    Attributes:
        substrate: the limits of the layers below DirectML.
        waivers: failures that are accepted.
        compare_unfused: whether the nodes of a graph also run one by one, unless the graph must be
            refused or has a relation.
        circumstances: circumstances under which cases run besides their plain run; the backend must
            support all of them.
        known_faults: whether a known fault of DirectML waives a failure.
        cache: the figures of earlier comparisons; if None, all outputs are compared.
    """

    substrate: Substrate = NO_SUBSTRATE
    waivers: Waivers = NO_WAIVERS
    compare_unfused: bool = False
    circumstances: tuple[Circumstance, ...] = ()
    known_faults: bool = True
    cache: FigureCache | None = None


NO_OPTIONS: Final = JudgeOptions()
"""Known faults waive failures, cases do not run under circumstances, and graphs run unfused only
for a relation, or after wrong values."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Draws the verdict on a case.

    Attributes:
        against: gives the expected outcome of a case that does not state all of its outputs.
        faults: the known faults of the DirectML under test.
        half: whether the backend may compute FLOAT16 outputs in FLOAT16 throughout.
        deviations: the deviations of the backend's target from DirectML's documentation.
        findings: the known mistakes of the backend's runtime, which verdicts name.
        is_reference: whether the reference computes the outcomes.
        source_of: returns a digest, for the cache, of what `against` gives for an operator's cases;
            None if unknown.
    """

    against: Against
    faults: KnownFaults = NO_KNOWN_FAULTS
    half: bool = False
    options: JudgeOptions = NO_OPTIONS
    is_reference: bool = False
    deviations: Deviations = NO_DEVIATIONS
    findings: Findings = NO_FINDINGS
    source_of: Callable[[str], str | None] = lambda operator: None

    def judge(self, case: Case, outcome: Outcome) -> Verdict:
        """Return the verdict on an outcome of a case, without excuses."""
        allowances = None
        if self.is_reference and isinstance(outcome, Outputs):
            # The reference has just computed the case, and need not do it again.
            allowances = CaseAllowances(case, half_precision=self.half, right=outcome.arrays)
        return judge(
            case,
            outcome,
            self.against,
            half_precision=self.half,
            allowances=allowances,
            cache=self.options.cache,
            source_of=self.source_of,
        )

    def judging(self, case: Case) -> JudgeOne:
        """Return a function that judges as `judge` does.

        What the case expects, and what its rules permit, is computed once for all its outcomes,
        unless the reference is under test.
        """
        if self.is_reference:
            return self.judge
        allowances = CaseAllowances(case, half_precision=self.half)
        expected = cache(lambda: self.against(case))

        def judged(of: Case, outcome: Outcome) -> Verdict:
            if of is not case:
                return self.judge(of, outcome)
            return judge(
                case,
                outcome,
                lambda _: expected(),
                half_precision=self.half,
                allowances=allowances,
                cache=self.options.cache,
                source_of=self.source_of,
            )

        return judged

    def excused(
        self, case: Case, outcome: Outcome, verdict: Verdict, judge: JudgeOne | None = None
    ) -> Verdict:
        """Return the verdict, which known faults, deviations and a substrate's limits may excuse.

        A finding only changes the reason. A dispute excuses only the reference's own outputs.
        Contradictions are not excused. Waivers are applied later.

        Args:
            judge: judges other outcomes of the case, if not `self.judge`.
        """
        judge = judge or self.judge
        if verdict.reason is not None and verdict.reason.kind is ReasonKind.CONTRADICTION:
            return verdict
        if self.is_reference and case.disputes is not None:
            return _disputed(verdict)
        waived = verdict
        if self.options.known_faults:
            waived = self.faults.waive(case, outcome, verdict)
        waived = self.deviations.excuse(case, outcome, waived, judge)
        waived = self.options.substrate.excuse(case, outcome, waived)
        return self.findings.explain(case, outcome, waived, self.deviations, judge)

    def of(self, item: Case | Exercise, result: Any) -> Steps[Verdict]:
        """Return the verdict in steps: each further case or exercise to run for it is yielded.

        An unexpected exception becomes a verdict, so that the verdicts on other cases are not lost.

        Raises:
            ExpectedError: for example, a recording cannot be read.
        """
        try:
            return (yield from self._of(item, result))
        except ExpectedError:
            raise
        except Exception as error:
            case = item.case if isinstance(item, Exercise) else item
            outcome = result.plain if isinstance(result, Exercises) else result
            return not_judged(case, outcome, error)

    def _of(self, item: Case | Exercise, result: Any) -> Steps[Verdict]:
        case = item.case if isinstance(item, Exercise) else item
        if isinstance(item, Exercise) and isinstance(result, Breakdown):
            from dmlconf.judging.circumstances import run_under

            result = yield from run_under(case, item.circumstances)
        under = result.under if isinstance(result, Exercises) else {}
        outcome = result.plain if isinstance(result, Exercises) else result
        judged = self.judging(case)
        verdict = judged(case, outcome)
        if isinstance(outcome, Outputs) and case.forms:
            verdict = yield from self._by_nodes(case, outcome, verdict, judged)
            verdict = yield from self._in_other_forms(case, outcome, verdict, judged)
        verdict = self.excused(case, outcome, verdict, judged)
        if under and verdict.status is Status.PASSED:
            from dmlconf.judging.circumstances import judge_circumstances

            verdict = yield from judge_circumstances(
                case, verdict, under, self.judge, self.excused, self._by_nodes
            )
        return self.options.waivers.applied(case, outcome, verdict)

    def _by_nodes(
        self, case: Case, outcome: Outcome, verdict: Verdict, judged: JudgeOne | None = None
    ) -> Steps[Verdict]:
        """Return the verdict, or another one if a graph's nodes show that its values are right.

        Outputs of the reference, and of graphs with a relation, keep their verdict.
        """
        if not verdict.status.fails_run or not isinstance(outcome, Outputs) or not case.forms:
            return verdict
        if self.is_reference or case.relation is not None:
            return verdict
        from dmlconf.judging.by_nodes import judge_by_nodes

        judged = judged or self.judge
        return (yield from judge_by_nodes(case, outcome, verdict, judged, half=self.half))

    def _in_other_forms(
        self, case: Case, outcome: Outputs, verdict: Verdict, judged: JudgeOne
    ) -> Steps[Verdict]:
        rejected = isinstance(case.expectation, ExpectedRejection)
        if case.relation is None and (not self.options.compare_unfused or rejected):
            return verdict
        from dmlconf.judging.relations import judge_relation, with_unfused

        if case.relation is not None:
            return (yield from judge_relation(case, outcome, verdict, half=self.half))
        return (yield from with_unfused(case, outcome, verdict, judged))


def _disputed(verdict: Verdict) -> Verdict:
    """Return the verdict on the reference's own outputs for a case that disputes the reference."""
    if verdict.reason is None or verdict.reason.kind is not ReasonKind.WRONG_VALUES:
        return verdict
    message = f"the case says that the reference is wrong: {verdict.reason.message}"
    reason = replace(verdict.reason, kind=ReasonKind.DISPUTED_REFERENCE, message=message)
    return verdict.judged(status=Status.WAIVED, reason=reason)


def broken_down(case: Case, breakdown: Breakdown, waivers: Waivers = NO_WAIVERS) -> Verdict:
    """Return the verdict on a case during which the process that judges cases was lost.

    Only waivers may excuse the breakdown.
    """
    return waivers.applied(case, breakdown, judge(case, breakdown, lambda case: None))


def verdict_of(item: Case | Exercise, execute: Execute, conclusion: Conclusion) -> Verdict:
    """Run a case or an exercise, and return the verdict on it.

    Args:
        execute: runs the item, as `OpenBackend.execute` does; nothing else may be running.
    """
    run_one = alone_on(execute)
    return answered(conclusion.of(item, run_one(item)), run_one)


def alone_on(execute: Execute) -> RunOne:
    """Return a function that runs a case or an exercise alone, and returns the result."""
    return lambda item: next(result for _, result in execute(iter([item])))
