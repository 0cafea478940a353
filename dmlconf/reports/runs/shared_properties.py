"""Say in reports what failures share, by `dmlconf.diagnosis`, and choose the failures to show."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dmlconf.documents.wording import counted, first_names
from dmlconf.reports.runs.summary import run_command
from dmlconf.reports.spreading import alternating, spread
from dmlconf.run_log.log import Header, RunLog
from dmlconf.verdicts.choosing import failing
from dmlconf.verdicts.simplest import simplest_first
from dmlconf.verdicts.verdict import Status, Verdict, failing_variants

# Runs without failures need no diagnosis, so its modules are imported late.
if TYPE_CHECKING:
    from dmlconf.diagnosis.shared_properties import Condition, SharedProperty

__all__ = [
    "HEADING",
    "SharedLine",
    "ShownFailure",
    "alike",
    "not_shown",
    "shared_lines",
    "shown_failures",
]

HEADING: Final = "What failures share"

LEAST_FAILURES: Final = 3
"""Smaller groups are reported without a condition, which they may share by chance."""

MOST_NAMED: Final = 3
"""The most operators that a sentence names."""
MOST_OPTIONS: Final = 8
"""The command that runs a group's cases names no operators (`-o`) if there are more than this."""
MOST_ALTERNATIVES: Final = 2
"""The most other conditions with the same cases that a sentence names."""

_MEANINGS: Final = {
    "not Packed": "strides are not packed",
    "Packed": "strides are packed",
    "InPlace": "an output has the buffer of an input",
    "Broadcast": "a stride of 0 broadcasts",
}


@dataclass(frozen=True, slots=True)
class SharedLine:
    """What one group of failures shares, as a report says it.

    Attributes:
        sentence: the number of failures, their operators and reasons. For `LEAST_FAILURES` or more,
            it also names the condition that best separates them from passes, or says that none
            does.
        command: runs the cases of these operators, or of all operators if these are more than
            `MOST_OPTIONS`. If the sentence has a condition, only cases that meet it run.
    """

    sentence: str
    command: str
    shared: SharedProperty

    @property
    def says_little(self) -> bool:
        """Whether the group has too few failures to tell a common cause from chance."""
        return len(self.shared.failures) < LEAST_FAILURES


def shared_lines(log: RunLog) -> list[SharedLine]:
    """Return a line for each group of failures, the largest group first."""
    if not failing(log.verdicts):
        return []
    from dmlconf.diagnosis.shared_properties import shared_properties

    return [
        SharedLine(_sentence(shared), _command(log.header, shared), shared)
        for shared in shared_properties(log)
    ]


def _sentence(shared: SharedProperty) -> str:
    count = len(shared.failures)
    failures = f"{counted(count, 'failure')} ({_reasons(shared)})"
    begin = f"{_operators(shared.operators)}: {failures}{_variants(shared)}"
    condition = shared.condition
    if count < LEAST_FAILURES:
        return begin
    if condition is None:
        passes = f"{shared.compared:,} pass{'es' if shared.compared != 1 else ''}"
        return f"{begin}, which no fact distinguishes from the {passes}"
    if not condition.text and not condition.passes:
        return f"{begin}: every case that ran fails"
    if not condition.text:
        return f"{begin}: every case that ran fails but {condition.passes:,}"
    where = f"where {condition.text}{_remark(condition)}"
    sentence = f"{begin}, all and only {where}"
    if not condition.exact:
        sentence = f"{begin}, {_share(condition)} {where}, and {_passes(condition)} there"
    if shared.simpler is not None:
        simpler = shared.simpler
        sentence += f"; where {simpler.text} alone, {simpler.failures:,} fail and "
        sentence += f"{simpler.passes:,} pass"
    return sentence


def _reasons(shared: SharedProperty) -> str:
    if len(shared.reasons) == 1:
        return shared.reasons[0][0]
    return ", ".join(f"{count:,} {kind}" for kind, count in shared.reasons)


def _variants(shared: SharedProperty) -> str:
    """Return words on the variants that fail, if they are the same in all failures."""
    named = {failing_variants(verdict.judgement.variants) for verdict in shared.failures}
    return f" only with {named.pop()}" if len(named) == 1 and "" not in named else ""


def _operators(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMED:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{len(names):,} operators ({first_names(names, MOST_NAMED)})"


def _remark(condition: Condition) -> str:
    meaning = _MEANINGS.get(condition.text)
    same = condition.alternatives[:MOST_ALTERNATIVES]
    parts = [meaning, f"the same cases: {', '.join(same)}" if same else None]
    remark = "; ".join(filter(None, parts))
    return f" ({remark})" if remark else ""


def _share(condition: Condition) -> str:
    return "all" if condition.failures == condition.of else f"{condition.failures:,} of them"


def _passes(condition: Condition) -> str:
    if not condition.passes:
        return "no case passes"
    return f"{condition.passes:,} case{'s pass' if condition.passes != 1 else ' passes'}"


def _command(header: Header, shared: SharedProperty) -> str:
    command = run_command(header)
    if len(shared.operators) <= MOST_OPTIONS:
        command += [part for name in shared.operators for part in ("-o", name)]
    enough = len(shared.failures) >= LEAST_FAILURES
    if enough and shared.condition is not None and shared.condition.text:
        command += ["--where", shared.condition.text]
    return shlex.join(command)


@dataclass(frozen=True, slots=True)
class ShownFailure:
    """A failure that a report shows.

    Attributes:
        others: how many other cases broke with the same message, apart from its numbers.
        operators: how many operators these other cases have.
    """

    verdict: Verdict
    others: int = 0
    operators: int = 0


def shown_failures(log: RunLog, most: int) -> list[ShownFailure]:
    """Return at most `most` failures, of as many groups and operators as possible.

    Of cases that broke with the same message, apart from its numbers, one is returned.
    """
    failed = failing(log.verdicts)
    if not failed or most < 1:
        return []
    if len(failed) <= most:
        ordered: Sequence[Verdict] = failed
    else:
        from dmlconf.diagnosis.shared_properties import shared_properties

        groups = (group.failures for group in shared_properties(log))
        each = (spread(simplest_first(group), _operator, simplest_first) for group in groups)
        ordered = list(alternating([list(group) for group in each]))
    counts = Counter(_trace(verdict) for verdict in failed)
    by_operator = Counter((_trace(verdict), verdict.operator) for verdict in failed)
    by_trace = Counter(trace for trace, _ in by_operator)
    taken: set[str] = set()
    shown = []
    for verdict in ordered:
        trace = _trace(verdict)
        if trace and trace in taken:
            continue
        taken.add(trace)
        if trace:
            alone = by_operator[trace, verdict.operator] == 1
            shown.append(ShownFailure(verdict, counts[trace] - 1, by_trace[trace] - alone))
        else:
            shown.append(ShownFailure(verdict))
        if len(shown) == most:
            break
    return shown


def not_shown(log: RunLog, entries: Sequence[ShownFailure]) -> int:
    """Return how many failures are neither shown nor among the `others` of shown ones."""
    return max(0, len(failing(log.verdicts)) - sum(1 + shown.others for shown in entries))


def alike(shown: ShownFailure) -> str:
    """Return a note on other cases that broke with the same message; empty if none did."""
    if not shown.others:
        return ""
    cases = counted(shown.others, "more case")
    of = f" of {shown.operators:,} operators" if shown.operators > 1 else ""
    return f", and {cases}{of} with the same message"


def _operator(verdict: Verdict) -> str:
    return verdict.operator


def _trace(verdict: Verdict) -> str:
    """Return the message that a case broke with, without its numbers; else ""."""
    if verdict.status is not Status.BROKEN or verdict.reason is None:
        return ""
    message = verdict.reason.message.replace(verdict.case, "")
    return f"{verdict.reason.kind}: {re.sub('0x[0-9a-fA-F]+|[0-9]+', '#', message)}"
