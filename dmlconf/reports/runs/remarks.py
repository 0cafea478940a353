"""Remarks in reports on a run, such as on open elements, known faults and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dmlconf.cases.facts import element_count
from dmlconf.documents.wording import counted, first_names
from dmlconf.reports.runs.left_out import left_out_lines
from dmlconf.reports.runs.summary import nearest_lines, status_counts
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.breakdowns import unexplained_breakdowns
from dmlconf.verdicts.choosing import where, with_reason
from dmlconf.verdicts.grouping import verdicts_by_operator
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    ReasonKind,
    Status,
    VariantResult,
    Verdict,
)

__all__ = [
    "BREAKDOWNS",
    "SECTIONS",
    "FarOperator",
    "RoomTotals",
    "Section",
    "block_lines",
    "breakdown_lines",
    "by_nodes_note",
    "circumstance_lines",
    "debug_layer_note",
    "declined_cases",
    "declined_lines",
    "deviation_lines",
    "disputes_note",
    "far_lines",
    "far_operators",
    "hardly_judged_lines",
    "known_fault_lines",
    "plain_notes",
    "room_totals",
    "unchecked_note",
    "unchecked_outputs_note",
    "variant_lines",
    "waiver_lines",
    "warning_lines",
]

FAR_FROM_TYPICAL: Final = 10.0
"""Results are far from those of known devices if their error is above this many times the greatest
error of known devices."""

MOST_WARNINGS: Final = 10
"""The most warnings, or reasons why cases were declined, that are listed."""
MOST_BLOCKS: Final = 3
"""The most blocks with loose elements that are listed."""
MOST_BREAKDOWNS: Final = 5
MOST_OPERATORS: Final = 5
"""The most operators that a line names."""

_BLOCK: Final = "block"
"""The tag of a part of a captured graph."""

_UNCHECKED: Final = "unchecked: ran, but there is no independent expected value"

_NOT_JUDGED: Final = ", or its rule permits any value"


@dataclass(frozen=True, slots=True)
class RoomTotals:
    """How many elements were compared, and how many of them the rules hardly judged.

    Attributes:
        loose: how many elements are loose, the open ones included.
    """

    elements: int
    open: int
    loose: int


def room_totals(verdicts: Iterable[Verdict]) -> RoomTotals:
    """Return the sums over all compared outputs; in old logs, `open` and `loose` are 0."""
    elements = open_elements = loose = 0
    for verdict in verdicts:
        for output in verdict.figures.values():
            elements += output.elements
            open_elements += output.open or 0
            loose += output.loose or 0
    return RoomTotals(elements, open_elements, loose)


def hardly_judged_lines(log: RunLog) -> list[str]:
    """Return remarks on cases of models that were left out, and on open and loose elements."""
    total = room_totals(log.verdicts)
    lines = left_out_lines(log.header)
    of = f"of {total.elements:,} elements"
    if total.open:
        lines.append(f"{total.open:,} {of} are open: the rule permits any value")
    if total.loose > total.open:
        lines.append(
            f"{total.loose:,} {of} are loose: the rule permits more than a tenth of the output's "
            "largest number" + (" (open ones included)" if total.open else "")
        )
    return lines


def block_lines(log: RunLog) -> list[str]:
    """Return lines on the loose elements of the blocks of captured graphs.

    The first line counts the blocks without loose elements. A line for each of at most
    `MOST_BLOCKS` other blocks follows, the largest share of loose elements first. The list is empty
    if no verdict on a block counts loose elements.
    """
    totals = {
        verdict.case: room_totals([verdict])
        for verdict in where(log.verdicts, Identity, lambda identity: _BLOCK in identity.tags)
        if _has_room(verdict)
    }
    if not totals:
        return []
    loose = {case: room for case, room in totals.items() if room.loose}
    tight = len(totals) - len(loose)
    lines = [
        f"{tight:,} of {counted(len(totals), 'block')} would fail if any element were off by more "
        "than a tenth of its output's largest number"
    ]
    by_share = sorted(loose, key=lambda case: -loose[case].loose / loose[case].elements)
    for case in by_share[:MOST_BLOCKS]:
        room = loose[case]
        lines.append(f"{case}: {room.loose:,} of {room.elements:,} elements may be off by more")
    if len(by_share) > MOST_BLOCKS:
        lines.append(f"and {counted(len(by_share) - MOST_BLOCKS, 'more block')}")
    return lines


def _has_room(verdict: Verdict) -> bool:
    """Return whether the verdict counts loose elements; old logs do not."""
    figures = verdict.figures.values()
    return bool(figures) and all(output.loose is not None for output in figures)


def unchecked_note(log: RunLog) -> str | None:
    """Return an explanation of `unchecked`; None if no case is unchecked."""
    if not status_counts(log)[Status.UNCHECKED]:
        return None
    reasons = (verdict.reason for verdict in with_reason(log.verdicts))
    kinds = {reason.kind for reason in reasons if reason is not None}
    return _UNCHECKED + (_NOT_JUDGED if ReasonKind.ANY_VALUE_PERMITTED in kinds else "")


def known_fault_lines(log: RunLog) -> list[str]:
    """Return a line for each known fault of DirectML, or set of faults, that explains failures."""
    by_name: dict[str, list[Verdict]] = {}
    for verdict in with_reason(log.verdicts):
        if verdict.reason is not None and verdict.reason.kind is ReasonKind.KNOWN_FAULT:
            by_name.setdefault(verdict.reason.message.partition(":")[0], []).append(verdict)
    return [_known_fault_line(name, by_name[name]) for name in sorted(by_name)]


def _known_fault_line(name: str, verdicts: Sequence[Verdict]) -> str:
    from dmlconf.excuses.known_fault_file import read_known_faults  # Few runs have such failures.

    line = f"{len(verdicts):,} {name}"
    known = {fault.name: fault for fault in read_known_faults()}
    fault = known.get(name.partition(",")[0])
    if fault is None or not fault.title:
        return line
    smallest = min(verdicts, key=lambda verdict: element_count(verdict.facts))
    line += f": {fault.title} ({fault.releases}). Smallest case: {smallest.case}."
    return f"{line} {fault.instead}" if fault.instead else line


def declined_cases(log: RunLog) -> dict[str, tuple[int, int]]:
    """Return the numbers of declined and of all cases of each operator with declined cases."""
    by_operator = verdicts_by_operator(log.verdicts)
    declined = Counter(
        verdict.operator
        for verdict in with_reason(log.verdicts)
        if verdict.reason is not None and verdict.reason.kind is ReasonKind.NOT_EXPRESSIBLE
    )
    return {
        operator: (declined[operator], len(by_operator[operator])) for operator in sorted(declined)
    }


def declined_lines(log: RunLog) -> list[str]:
    """Return how many cases were declined, then at most `MOST_WARNINGS` reasons.

    The most frequent reason comes first. The list is empty if no case was declined.
    """
    operators: dict[str, Counter[str]] = {}
    for verdict in with_reason(log.verdicts):
        if verdict.reason is not None and verdict.reason.kind is ReasonKind.NOT_EXPRESSIBLE:
            operators.setdefault(verdict.reason.message, Counter())[verdict.operator] += 1
    if not operators:
        return []
    declined = sum(counts.total() for counts in operators.values())
    ordered = sorted(operators.items(), key=lambda entry: (-entry[1].total(), entry[0]))
    lines = [f"{declined:,} of {len(log.verdicts):,} cases in all"]
    for message, counts in ordered[:MOST_WARNINGS]:
        named = first_names([name for name, _ in counts.most_common()], MOST_OPERATORS)
        lines.append(f"{counts.total():,} {message}: {named}")
    left = len(ordered) - MOST_WARNINGS
    return [*lines, f"and {counted(left, 'more reason')}: the log has all"] if left > 0 else lines


def waiver_lines(log: RunLog) -> list[str]:
    """Return the waivers that excuse failures, with the number of cases."""
    return _counts_by_name(log, ReasonKind.WAIVER)


def deviation_lines(log: RunLog) -> list[str]:
    """Return the deviations of the target that excuse failures, with the number of cases."""
    return _counts_by_name(log, ReasonKind.DEVIATION)


def _counts_by_name(log: RunLog, kind: ReasonKind) -> list[str]:
    names = Counter(
        verdict.reason.message.partition(":")[0]
        for verdict in with_reason(log.verdicts)
        if verdict.reason is not None and verdict.reason.kind is kind
    )
    return [f"{count:,} {name}" for name, count in sorted(names.items())]


@dataclass(frozen=True, slots=True)
class FarOperator:
    """An operator of which passing cases are far from the results of known devices.

    Attributes:
        cases: how many passing cases are far.
        typical_margin: the error of the farthest case, in multiples of the greatest error of known
            devices.
        case: the identifier of the farthest case.
    """

    operator: str
    cases: int
    typical_margin: float
    case: str


def circumstance_lines(log: RunLog) -> list[str]:
    """Return a line for each circumstance: how many cases had which result under it."""
    counts: dict[str, Counter[str]] = {}
    for verdict in where(log.verdicts, Judgement, lambda judgement: bool(judgement.circumstances)):
        for circumstance, result in verdict.judgement.circumstances.items():
            counts.setdefault(circumstance, Counter())[result] += 1
    names = [name for name in log.header.options.get("circumstances", ()) if name in counts]
    return [
        f"{name}: " + ", ".join(f"{n:,} {result}" for result, n in sorted(counts[name].items()))
        for name in names
    ]


def far_operators(log: RunLog) -> list[FarOperator]:
    """Return the operators with passing cases far from known devices, the farthest first."""
    operators: dict[str, FarOperator] = {}
    for verdict in log.verdicts:
        margins = (figures.typical_margin or 0.0 for figures in verdict.figures.values())
        margin = max(margins, default=0.0)
        if verdict.status is not Status.PASSED or margin <= FAR_FROM_TYPICAL:
            continue
        name = verdict.operator
        known = operators.get(name, FarOperator(name, 0, 0.0, ""))
        if margin > known.typical_margin:
            known = replace(known, typical_margin=margin, case=verdict.case)
        operators[name] = replace(known, cases=known.cases + 1)
    return sorted(operators.values(), key=lambda far: (-far.typical_margin, far.operator))


def far_lines(log: RunLog) -> list[str]:
    """Return a line for each of `far_operators`."""
    return [
        f"{far.typical_margin:,.0f} times the usual error {far.operator}, "
        f"{counted(far.cases, 'case')}: {far.case}"
        for far in far_operators(log)
    ]


def unchecked_outputs_note(log: RunLog) -> str | None:
    """Return how many compared cases have unchecked outputs; None if none has."""
    cases = where(log.verdicts, Judgement, lambda judgement: bool(judgement.unchecked_outputs))
    if not cases:
        return None
    outputs = ", ".join(cases[0].judgement.unchecked_outputs)
    count = counted(len(cases), "case")
    return (
        f"compared in part: in {count} some outputs have no independent expected value, such as "
        f"{outputs} of {cases[0].case}"
    )


def variant_lines(log: RunLog) -> list[str]:
    """Return each variant's statuses, and how many of its passing cases have other bits.

    Bits are compared with the first variant that has outputs.
    """
    by_variant: dict[str, list[tuple[str, VariantResult]]] = {}
    for verdict in where(log.verdicts, Judgement, lambda judgement: bool(judgement.variants)):
        for label, result in verdict.judgement.variants.items():
            by_variant.setdefault(label, []).append((verdict.operator, result))
    return [f"{label}: {_variant_text(results)}" for label, results in by_variant.items()]


def _variant_text(results: Sequence[tuple[str, VariantResult]]) -> str:
    counts = Counter(result.status for _, result in results)
    parts = [f"{counts[status]:,} {status}" for status in Status if counts[status]]
    differing = Counter(
        operator
        for operator, result in results
        if result.differing_bits and result.status is Status.PASSED
    )
    if differing:
        named = [f"{name} {count:,}" for name, count in differing.most_common(MOST_OPERATORS)]
        if len(differing) > MOST_OPERATORS:
            named.append(f"{len(differing) - MOST_OPERATORS:,} more")
        cases = differing.total()
        parts.append(f"other bits within the rule in {counted(cases, 'case')} ({', '.join(named)})")
    return ", ".join(parts)


def warning_lines(log: RunLog) -> list[str]:
    """Return at most `MOST_WARNINGS` warnings, the one of the most cases first."""
    cases: dict[str, list[str]] = {}
    for verdict in where(log.verdicts, Execution, lambda execution: bool(execution.warnings)):
        for warning in dict.fromkeys(verdict.execution.warnings):
            cases.setdefault(warning, []).append(verdict.case)
    ordered = sorted(cases.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    lines = [
        f"{counted(len(names), 'case')}, such as {names[0]}: {warning}"
        for warning, names in ordered[:MOST_WARNINGS]
    ]
    left = len(ordered) - len(lines)
    return [*lines, f"and {left:,} more: the log has all"] if left else lines


def breakdown_lines(log: RunLog) -> list[str]:
    """Return at most `MOST_BREAKDOWNS` of `unexplained_breakdowns`, and how to diagnose them.

    The list is empty if there are none.
    """
    found = unexplained_breakdowns(log.verdicts)
    if not found:
        return []
    lines = []
    for each in found[:MOST_BREAKDOWNS]:
        others = len(each.cases) - 1
        more = f" or one of {others:,} that ran with it" if others else ""
        lines.append(f"{each.kind} at {each.cases[0]}{more}: {each.message}")
    if len(found) > MOST_BREAKDOWNS:
        lines.append(f"and {len(found) - MOST_BREAKDOWNS:,} more: the log has all")
    return [*lines, "cases before it may matter: dmlconf diagnose --order"]


def disputes_note(log: RunLog) -> str | None:
    """Return how many cases say that the reference is wrong; None if none does."""
    cases = where(log.verdicts, Identity, lambda identity: identity.disputes is not None)
    if not cases:
        return None
    count = counted(len(cases), "case")
    verb = "dispute" if len(cases) != 1 else "disputes"
    return f"disputed: {count} {verb} the reference, such as {cases[0].case}"


def by_nodes_note(log: RunLog) -> str | None:
    """Return how many graphs are right only since each of their nodes is; None if none is."""
    cases = [
        verdict.case
        for verdict in log.verdicts
        if any(output.by_nodes for output in verdict.figures.values())
    ]
    if not cases:
        return None
    graphs = f"{counted(len(cases), 'graph')} {'has' if len(cases) == 1 else 'have'}"
    return (
        f"right by their nodes: {graphs} elements that no sample gave, but each node "
        f"is right for the inputs that it got, such as {cases[0]}"
    )


def debug_layer_note(log: RunLog) -> str | None:
    """Return which requested debug layers are not installed; None if none is missing."""
    details = log.header.environment.get("details") or {}
    missing = details.get("missing_debug_layers")
    if not details.get("debug") or not missing:
        return None
    named = "; ".join(map(str, missing))
    effect = "" if details.get("messages") else ", so no message was read"
    return f"debug layers that are not there{effect}: {named}"


def plain_notes(log: RunLog) -> tuple[str | None, ...]:
    """Return the remarks of one sentence each; None for those that do not apply."""
    return (
        unchecked_note(log),
        unchecked_outputs_note(log),
        disputes_note(log),
        by_nodes_note(log),
        debug_layer_note(log),
    )


@dataclass(frozen=True, slots=True)
class Section:
    """A list of remarks under a heading.

    Attributes:
        prefix: what stands before each remark in a report without headings of sections; None if
            such a report leaves the section out.
        verbose: whether short reports leave the section out.
    """

    heading: str
    lines: Callable[[RunLog], list[str]]
    prefix: str | None = ""
    verbose: bool = False


BREAKDOWNS: Final = Section(
    "Broke down, though every case ran through when it ran again", breakdown_lines
)

SECTIONS: Final = (
    BREAKDOWNS,
    Section("In each variant", variant_lines),
    Section("Warnings of the debug layers", warning_lines, "warning of a debug layer: "),
    Section("Nearest to their limit", nearest_lines, None, verbose=True),
    Section("Under circumstances", circumstance_lines, "under circumstances, ", verbose=True),
    Section(
        "Right by the documentation, and far from what devices give",
        far_lines,
        "far from what devices give: ",
        verbose=True,
    ),
    Section("What blocks of graphs would notice", block_lines, "blocks of graphs: "),
    Section("Not expressible by the backend", declined_lines, "not expressible by the backend: "),
    Section("Waived for known faults of DirectML", known_fault_lines, "waived for a known fault: "),
    Section(
        "Waived since the target promises something else",
        deviation_lines,
        "promised otherwise by the target: ",
    ),
    Section("Waived by the waivers of the run", waiver_lines, "waived by a waiver: "),
)
"""The sections in the order in which reports show them."""
