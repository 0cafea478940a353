"""Judge an outcome by what the case expects, and make the verdicts on cases without an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import lt
from typing import Any, Final

import numpy as np

from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Capabilities,
    Declined,
    FaultKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.backends.recording.samples import Pair, is_whole, paired
from dmlconf.cases.facts import facts_of
from dmlconf.cases.model import Case, ExpectedOutputs, ExpectedRejection, Provenance
from dmlconf.catalogue.levels import spoken_level
from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.documents.wording import counted
from dmlconf.judging.contradictions import Contradiction, contradictions_of, spread_text
from dmlconf.judging.disagreement import disagreements
from dmlconf.judging.error_map import error_map
from dmlconf.judging.figure_cache import FigureCache, KnownJudgement
from dmlconf.judging.figures import figures_of
from dmlconf.judging.mistrust import suspicions
from dmlconf.judging.undefined import without_excused_faults
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.allowance import Allowance
from dmlconf.precision.allowed import allowed_at, off_by
from dmlconf.precision.compare import Comparison, compare
from dmlconf.precision.room import Room, room
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample, elements_digest
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    Reason,
    ReasonKind,
    Status,
    Verdict,
)
from dmlconf.workers.memory import shortage

__all__ = [
    "Against",
    "JudgeOne",
    "Recorded",
    "declined_reason",
    "expectation_of",
    "judge",
    "not_asked",
    "not_judged",
    "not_run",
    "unsupported_reason",
]


@dataclass(frozen=True, slots=True)
class Recorded:
    """An expected outcome from a recording or a backend, which the reference may contradict.

    Attributes:
        provenance: where its values are from, for verdicts.
        right: the reference's outputs, if they were needed to complete the outcome.
    """

    outcome: Outcome
    provenance: Provenance = Provenance.RECORDED
    right: Mapping[str, Array] | None = None


Against = Callable[[Case], Outcome | Recorded | None]
"""Gives the expected outcome of a case that does not state all of its outputs, or None.

Outcomes are `Recorded`, unless the reference has just computed them.
"""

JudgeOne = Callable[[Case, Outcome], Verdict]
"""Judges an outcome of a case as `judge` does, before `dmlconf.excuses` is asked about failures."""

ANY_VALUE: Final = "the rule permits any value of every element, so nothing is judged"

_LONGEST_TRACE: Final = 8192
"""The most characters that are kept from the end of a traceback."""

_BREAKDOWNS: Final[Mapping[BreakdownKind, ReasonKind]] = {
    BreakdownKind.CRASH: ReasonKind.CRASH,
    BreakdownKind.HANG: ReasonKind.HANG,
    BreakdownKind.DEVICE_REMOVED: ReasonKind.DEVICE_REMOVED,
    BreakdownKind.OUT_OF_MEMORY: ReasonKind.OUT_OF_MEMORY,
    BreakdownKind.ERROR: ReasonKind.BACKEND_ERROR,
}

_FAULTS: Final[Mapping[FaultKind, ReasonKind]] = {
    FaultKind.GUARD_BAND: ReasonKind.GUARD_BAND_TOUCHED,
    FaultKind.INPUT: ReasonKind.INPUT_CHANGED,
    FaultKind.NOT_DETERMINISTIC: ReasonKind.NOT_DETERMINISTIC,
    FaultKind.NOT_WRITTEN: ReasonKind.OUTPUT_NOT_WRITTEN,
    FaultKind.LEAK: ReasonKind.MEMORY_LEAK,
    FaultKind.MESSAGE: ReasonKind.ERROR_MESSAGE,
}


def unsupported_reason(case: Case, capabilities: Capabilities) -> Reason | None:
    """Return why the backend need not run the case; None if it must.

    Memory and data types do not matter for a case that must be refused.
    """
    if case.lowest_level > capabilities.feature_level:
        needs = spoken_level(case.level_needs)
        message = f"needs {needs}; the backend has {capabilities.feature_level}"
        return Reason(ReasonKind.FEATURE_LEVEL, message)
    if isinstance(case.expectation, ExpectedRejection):
        return None
    lacking = case.data_types - capabilities.data_types
    if lacking:
        return Reason(ReasonKind.DATA_TYPE, f"the backend lacks {', '.join(sorted(lacking))}")
    missing = shortage(case, capabilities.memory)
    return None if missing is None else Reason(ReasonKind.MEMORY, missing)


def declined_reason(outcome: Declined) -> Reason:
    """Return the reason of a verdict on a case that the backend cannot express."""
    return Reason(ReasonKind.NOT_EXPRESSIBLE, outcome.reason)


def judge(
    case: Case,
    outcome: Outcome,
    against: Against,
    *,
    half_precision: bool = False,
    allowances: CaseAllowances | None = None,
    expected: ExpectedOutputs | None = None,
    cache: FigureCache | None = None,
    source_of: Callable[[str], str | None] = lambda operator: None,
    brief: bool = False,
) -> Verdict:
    """Return the verdict on the outcome of a case.

    Args:
        against: gives the expected outcome of cases that do not state all of their outputs.
        half_precision: whether the backend may compute FLOAT16 outputs in FLOAT16 throughout;
            ignored if there are `allowances`.
        allowances: the allowances of the case, which several judgements may share.
        expected: replaces the expectations of the case and of `against`.
        cache: the figures of earlier comparisons; if None, all outputs are compared.
        source_of: returns a digest of all that `against` gives for an operator's cases; None if
            unknown.
        brief: whether only the status matters; a verdict on wrong values then lacks figures and
            differences.
    """
    if isinstance(outcome, Breakdown):
        reason = Reason(_BREAKDOWNS[outcome.kind], outcome.message, diagnostics=outcome.diagnostics)
        return _verdict(case, outcome, Status.BROKEN, None, reason)
    if isinstance(outcome, Declined):
        return _verdict(case, outcome, Status.UNSUPPORTED, None, declined_reason(outcome))
    if isinstance(outcome, Outputs):
        outcome = without_excused_faults(case, outcome)
    key: str | None = None
    half = allowances.half_precision if allowances else half_precision
    source = source_of(case.operator_name) if cache else None
    if cache and source is not None and isinstance(outcome, Outputs) and not outcome.faults:
        digests = _digests(outcome)
        key = cache.judgement_key(case, outcome, digests, source, half=half)
        known = None if key is None else cache.judgement(case, key)
        if known is not None:
            return _right(case, outcome, known, digests)
    match expected or expectation_of(case, against):
        case None:
            return _judge_alone(case, outcome)
        case ExpectedRejection() as rejection:
            return _judge_rejection(case, outcome, rejection)
        case ExpectedOutputs() as outputs if isinstance(outcome, Rejection):
            return _judge_unexpected_rejection(case, outcome, outputs)
        case ExpectedOutputs() as outputs:
            permitted = allowances or CaseAllowances(case, half_precision=half_precision)
            permitted.take_right(outputs.right)
            # The digest changes if `against` finds a stale case; the key is then invalid.
            key = key if source_of(case.operator_name) == source else None
            return _judge_outputs(case, outcome, outputs, permitted, cache, key, brief=brief)


def not_judged(case: Case, outcome: Outcome | None, error: Exception) -> Verdict:
    """Return the verdict on a case that dmlconf failed to judge."""
    import traceback  # Only an error in dmlconf needs it.

    message = f"dmlconf failed to judge this case: {type(error).__name__}: {error}"
    trace = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
    reason = Reason(ReasonKind.JUDGING_ERROR, message, diagnostics=trace)
    return _verdict(case, outcome, Status.BROKEN, None, reason)


def not_run(case: str, operator: str, tags: tuple[str, ...], kind: ReasonKind) -> Verdict:
    """Return the verdict on a case that was never run."""
    judgement = Judgement(Status.NOT_RUN, reason=Reason(kind, str(kind)))
    return Verdict(Identity(case, operator, tags), judgement)


def not_asked(case: Case, reason: Reason) -> Verdict:
    """Return the verdict on a case that the backend need not run."""
    return _verdict(case, None, Status.UNSUPPORTED, None, reason)


def _verdict(
    case: Case,
    outcome: Outcome | None,
    status: Status,
    provenance: Provenance | None,
    reason: Reason | None = None,
    figures: Mapping[str, Figures] | None = None,
    unchecked_outputs: tuple[str, ...] = (),
    digests: Mapping[str, str] | None = None,
) -> Verdict:
    return Verdict(
        Identity(
            case=case.identifier,
            operator=case.operator_name,
            tags=case.tags,
            location=str(case.about.location),
            origin=case.about.origin,
            files=case.files,
            example=case.about.example,
            facts=facts_of(case),
            feature_level=str(case.lowest_level),
            disputes=case.disputes,
        ),
        Judgement(status, provenance, reason, figures or {}, unchecked_outputs),
        _execution(outcome, digests),
    )


def _execution(outcome: Outcome | None, digests: Mapping[str, str] | None) -> Execution:
    if outcome is None:
        return Execution()
    if not isinstance(outcome, Outputs):
        warnings = outcome.warnings if isinstance(outcome, Rejection) else ()
        return Execution(outcome.seconds, warnings=warnings)
    return Execution(
        seconds=outcome.seconds,
        dispatch_seconds=outcome.dispatch_seconds,
        output_digests=_digests(outcome) if digests is None else digests,
        warnings=outcome.warnings,
    )


def _digests(outcome: Outputs) -> dict[str, str]:
    digests = {name: elements_digest(array) for name, array in outcome.arrays.items()}
    digests |= {name: sample.digest for name, sample in outcome.samples.items()}
    return {name: digest[:16] for name, digest in digests.items()}


def expectation_of(case: Case, against: Against) -> ExpectedOutputs | ExpectedRejection | None:
    """Return what a case expects: what it states and, for other outputs, what `against` gives."""
    stated = case.expectation
    if isinstance(stated, ExpectedRejection):
        return stated
    if stated is not None and stated.outputs.keys() == case.outputs().keys():
        return stated
    outcome = against(case)
    computed = not isinstance(outcome, Recorded)
    provenance = outcome.provenance if isinstance(outcome, Recorded) else Provenance.REFERENCE
    reference = outcome.outcome if isinstance(outcome, Recorded) else outcome
    if isinstance(reference, Outputs):
        known = stated.outputs if stated else {}
        samples = {name: s for name, s in reference.samples.items() if name not in known}
        others = dict.fromkeys(reference.arrays.keys() - known.keys(), provenance)
        others |= dict.fromkeys(samples, provenance)
        return ExpectedOutputs(
            outputs={**reference.arrays, **known},
            provenance=stated.provenance if stated else provenance,
            others=others if stated else {},
            samples=samples,
            computed=frozenset(others) if computed else frozenset(),
            right=outcome.right if isinstance(outcome, Recorded) else None,
        )
    if stated is None and isinstance(reference, Rejection):
        return ExpectedRejection(reference.hresult, None, provenance)
    return stated


def _judge_alone(case: Case, outcome: Outputs | Rejection) -> Verdict:
    """Judge a case without expectation: only faults and refusals for a constraint fail."""
    match outcome:
        case Outputs() if outcome.faults:
            return _verdict(case, outcome, Status.FAILED, None, _reason(_fault_complaints(outcome)))
        case Rejection() if outcome.constraints:
            message = f"{_spoken(outcome)}, but the case does not say that it must be rejected"
            reason = Reason(ReasonKind.WRONG_REJECTION, message)
            return _verdict(case, outcome, Status.FAILED, None, reason)
    done = "was rejected" if isinstance(outcome, Rejection) else "ran"
    message = f"{done}, but there is no independent expected value"
    reason = Reason(ReasonKind.NO_INDEPENDENT_EXPECTATION, message)
    return _verdict(case, outcome, Status.UNCHECKED, None, reason)


def _judge_rejection(case: Case, outcome: Outcome, expected: ExpectedRejection) -> Verdict:
    demand = expected.hresult
    if expected.constraint:
        demand += f" for {expected.constraint}"
    if not isinstance(outcome, Rejection):
        reason = Reason(ReasonKind.ACCEPTED_INVALID, f"expected {demand}, but the case ran")
        return _verdict(case, outcome, Status.FAILED, expected.provenance, reason)
    unspecified = expected.constraint is None or not outcome.constraints
    if outcome.hresult != expected.hresult or not (
        unspecified or expected.constraint in outcome.constraints
    ):
        message = f"expected {demand}, not {_spoken(outcome)}"
        reason = Reason(ReasonKind.WRONG_REJECTION, message)
        return _verdict(case, outcome, Status.FAILED, expected.provenance, reason)
    return _verdict(case, outcome, Status.PASSED, expected.provenance)


def _spoken(rejection: Rejection) -> str:
    broken = f" for {', '.join(rejection.constraints)}" if rejection.constraints else ""
    node = f" of node {rejection.node}" if rejection.node else ""
    explained = f" ({rejection.message})" if rejection.message else ""
    return f"{rejection.hresult} by {rejection.stage}{node}{broken}{explained}"


def _judge_unexpected_rejection(
    case: Case, outcome: Rejection, expected: ExpectedOutputs
) -> Verdict:
    if case.required_level is None:
        message = f"{_spoken(outcome)}; no table of support lists these tensors"
        reason = Reason(ReasonKind.NOT_DOCUMENTED, message)
        return _verdict(case, outcome, Status.UNSUPPORTED, expected.provenance, reason)
    message = f"{_spoken(outcome)}, but feature level {case.required_level} supports it"
    reason = Reason(ReasonKind.REJECTED_SUPPORTED, message)
    return _verdict(case, outcome, Status.FAILED, expected.provenance, reason)


def _judge_outputs(
    case: Case,
    outcome: Outputs,
    expected: ExpectedOutputs,
    allowances: CaseAllowances,
    cache: FigureCache | None,
    judgement_key: str | None,
    *,
    brief: bool,
) -> Verdict:
    """Return the verdict on outputs; outputs that the cache knows are not compared."""
    if cache is None or outcome.faults:
        return _compare_outputs(case, outcome, expected, allowances, brief=brief)
    key = cache.key(case, outcome, expected, half=allowances.half_precision)
    if key is None:
        return _compare_outputs(case, outcome, expected, allowances)
    figures = cache.get(case, key, expected.samples.keys() | expected.outputs.keys())
    if figures is not None:
        verdict = _right(case, outcome, _known(case, expected, figures))
    else:
        verdict = _compare_outputs(case, outcome, expected, allowances)
        if not verdict.status.fails_run:
            cache.add(case, key, verdict.figures)
    if judgement_key is not None and not verdict.status.fails_run:
        known = _known(case, expected, verdict.figures)
        cache.add_judgement(case, judgement_key, key, known)
    return verdict


def _known(case: Case, expected: ExpectedOutputs, figures: Mapping[str, Figures]) -> KnownJudgement:
    return KnownJudgement(figures, expected.provenance, _unchecked(case, expected))


def _compare_outputs(
    case: Case,
    outcome: Outputs,
    expected: ExpectedOutputs,
    allowances: CaseAllowances,
    *,
    brief: bool = False,
) -> Verdict:
    complaints = _fault_complaints(outcome)
    differences: list[Mapping[str, Any]] = []
    figures: dict[str, Figures] = {}
    wanted_outputs: dict[str, Array | Sample] = {**expected.samples, **expected.outputs}
    independent: dict[str, Array | Sample] = {}
    compared: dict[str, Array | Sample] = {}
    for name, target in wanted_outputs.items():
        actual = outcome.arrays.get(name, outcome.samples.get(name))
        recorded = expected.samples.get(name)
        whole = recorded is not None and actual is not None and is_whole(actual, recorded)
        if name not in expected.computed:
            independent[name] = actual if whole and actual is not None else target
        complaint = _form_complaint(name, actual, target)
        if complaint is not None or actual is None:
            complaints += [complaint] if complaint else []
            continue
        compared[name] = actual
        rule = case.rule(name)
        allowance = allowances.of(name)
        if whole and isinstance(actual, np.ndarray):
            pair, recorded = Pair(actual, actual), None
        else:
            pair = paired(actual, target)
        permitted = pair.allowance(allowance)
        comparison = pair.located(compare(pair.actual, pair.expected, rule, permitted))
        narrower = case.narrower_rule(name)
        if narrower is not None and comparison.passed:
            own = pair.located(compare(pair.actual, pair.expected, narrower, permitted))
            if not own.passed or own.margin >= comparison.margin:
                rule, comparison = narrower, own
        if brief and not comparison.passed:
            complaints.append((ReasonKind.WRONG_VALUES, f"{name} has wrong values"))
            continue
        figures[name] = figures_of(
            comparison,
            rule,
            _room(name, pair.expected, rule, permitted, allowances),
            expected.provenance_of(name),
            pair.sample or recorded,
        )
        if not comparison.passed:
            complaints.append((ReasonKind.WRONG_VALUES, _difference_text(name, comparison, rule)))
            differences += _differences(name, comparison, pair, rule, permitted)
            if pair.sample is None and pair.actual.size:
                grid = error_map(pair.actual, pair.expected)
                figures[name] = replace(figures[name], error_map=grid)
        elif not isinstance(actual, Sample):
            complaints += suspicions(case, name, actual, allowance)
    contradictions: list[Contradiction] = []
    if case.disputes is None:
        contradictions += contradictions_of(case, independent, allowances)
        if not contradictions and not complaints:
            for each in disagreements(case, compared):
                complaints.append((ReasonKind.OUTPUTS_DISAGREE, each.message))
                differences += each.differences
    if not contradictions and not complaints:
        return _right(case, outcome, _known(case, expected, figures))
    if contradictions:
        complaints = [
            (ReasonKind.CONTRADICTION, each.message) for each in contradictions
        ] + complaints
        contradicted = [difference for each in contradictions for difference in each.differences]
        reason = _reason(complaints, _with_actual(case, contradicted, outcome))
    else:
        reason = _reason(complaints, differences)
    unchecked = _unchecked(case, expected)
    provenance = expected.provenance
    return _verdict(case, outcome, Status.FAILED, provenance, reason, figures, unchecked)


def _room(
    name: str,
    expected: Array,
    rule: PrecisionRule,
    permitted: Allowance,
    allowances: CaseAllowances,
) -> Room:
    """Return the room of an output; judgements that share the allowances compute it once."""
    known = allowances.rooms.get(name)
    if known is not None and known[0] is expected and known[1] == rule:
        return known[2]
    found = room(expected, rule, permitted)
    allowances.rooms[name] = expected, rule, found
    return found


def _right(
    case: Case, outcome: Outputs, known: KnownJudgement, digests: Mapping[str, str] | None = None
) -> Verdict:
    """Return the verdict on outputs that are right, `unchecked` if every value is permitted."""
    status, reason = Status.PASSED, None
    figures, provenance, unchecked = known
    if all(output.open == output.elements for output in figures.values()):
        status, reason = Status.UNCHECKED, Reason(ReasonKind.ANY_VALUE_PERMITTED, ANY_VALUE)
    return _verdict(case, outcome, status, provenance, reason, figures, unchecked, digests)


def _unchecked(case: Case, expected: ExpectedOutputs) -> tuple[str, ...]:
    wanted = expected.samples.keys() | expected.outputs.keys()
    return tuple(name for name in case.outputs() if name not in wanted)


def _with_actual(
    case: Case, differences: Iterable[Mapping[str, Any]], outcome: Outputs
) -> Iterator[Mapping[str, Any]]:
    for difference in differences:
        name, coordinates = difference["tensor"], tuple(difference["coordinates"])
        array = outcome.arrays.get(name)
        if (
            array is None
            or len(coordinates) != array.ndim
            or not all(map(lt, coordinates, array.shape))
        ):
            continue
        actual = array[coordinates].item()
        distance, unit = off_by(actual, difference["expected"], case.rule(name), array)
        yield {**difference, "actual": actual, "off_by": distance, "unit": unit}


_Complaints = list[tuple[ReasonKind, str]]


def _fault_complaints(outcome: Outputs) -> _Complaints:
    return [(_FAULTS[fault.kind], fault.message) for fault in outcome.faults]


def _reason(complaints: _Complaints, differences: Iterable[Mapping[str, Any]] = ()) -> Reason:
    message = "; ".join(message for _, message in complaints)
    return Reason(complaints[0][0], message, tuple(differences))


def _form_complaint(
    name: str, actual: Array | Sample | None, target: Array | Sample
) -> tuple[ReasonKind, str] | None:
    if actual is None:
        return ReasonKind.MISSING_OUTPUT, f"{name} was not returned"
    if actual.dtype != target.dtype:
        types = f"{str(actual.dtype).upper()}, not {str(target.dtype).upper()}"
        return ReasonKind.WRONG_DATA_TYPE, f"{name} is {types}"
    if actual.shape != target.shape:
        shapes = f"{list(actual.shape)}, not {list(target.shape)}"
        return ReasonKind.WRONG_SIZES, f"{name} has sizes {shapes}"
    return None


def _difference_text(name: str, comparison: Comparison, rule: PrecisionRule) -> str:
    if not comparison.differing:
        return spread_text(name, comparison)
    elements = counted(comparison.elements, "element")
    verb = "differs" if comparison.differing == 1 else "differ"
    count = f"{comparison.differing:,} of {elements} of {name} {verb}"
    if comparison.worst_ulp and rule.kind == RuleKind.ULP and math.isfinite(comparison.worst_ulp):
        return f"{count}, by up to {comparison.worst_ulp:,.0f} ULP"
    return count


def _differences(
    name: str, comparison: Comparison, pair: Pair, rule: PrecisionRule, allowance: Allowance
) -> list[Mapping[str, Any]]:
    indices = [pair.index(difference.coordinates) for difference in comparison.first]
    allowed = allowed_at(pair.expected, rule, allowance, indices) if indices else []
    differences: list[Mapping[str, Any]] = []
    for difference, ends in zip(comparison.first, allowed, strict=True):
        distance, unit = off_by(difference.actual, difference.expected, rule, pair.expected)
        differences.append(
            {
                "tensor": name,
                "coordinates": list(difference.coordinates),
                "expected": difference.expected,
                "allowed": [list(both) for both in ends],
                "actual": difference.actual,
                "off_by": distance,
                "unit": unit,
            }
        )
    return differences
