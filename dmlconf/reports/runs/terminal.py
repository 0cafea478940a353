"""The report on a run in the terminal: what was tested, a table, remarks and some failures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted
from dmlconf.reports.runs import remarks, shared_properties, summary
from dmlconf.reports.runs.failure_details import (
    Sources,
    difference_cells,
    difference_columns,
    rule_lines,
)
from dmlconf.reports.runs.heading import heading_lines
from dmlconf.reports.runs.histogram import Histograms
from dmlconf.reports.runs.remarks import Section
from dmlconf.reports.runs.shared_properties import ShownFailure
from dmlconf.reports.runs.table import shown_table
from dmlconf.reports.terminal_text import styled, unwrapped
from dmlconf.run_log.log import Header, RunLog
from dmlconf.verdicts.choosing import with_reason
from dmlconf.verdicts.simplest import simplest
from dmlconf.verdicts.verdict import Reason, Verdict

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

__all__ = ["render"]

MOST_FAILURES: Final = 3
MOST_FAILURES_VERBOSE: Final = 50
"""The most failures that are shown in full, unless a number is asked for."""
MOST_HEADLINES: Final = 20
"""The most failures that have a line in a quiet report, unless more are asked for."""
MOST_GROUPS: Final = 5
MOST_GROUPS_VERBOSE: Final = 50
"""The most groups of failures that are shown, each of three failures or more."""
MOST_REASONS: Final = 50
"""The most reasons that are listed of cases that neither passed nor fail the run."""

_CLOSING_STYLES: Final = {
    "PASSED": "bold green",
    "NOTHING FAILED": "bold yellow",
    "NOTHING PASSED": "bold yellow",
}


def render(
    log: RunLog, *, verbose: bool = False, quiet: bool = False, failures: int | None = None
) -> RenderableType:
    """Return the report, which ends with the closing sentence.

    Unless quiet, the report says what failures share at its beginning and again near its end.

    Args:
        verbose: whether to show every operator, more failures, and verbose sections of remarks.
        quiet: whether to show only what failures share, breakdowns, a line for each of some
            failures, and the closing sentence.
        failures: how many failures to show in full; None for 3, or 50 if verbose. A quiet report
            has a line for each of this many failures, but for at least 20.
    """
    from rich.console import Group

    if failures is None:
        failures = MOST_FAILURES_VERBOSE if verbose else MOST_FAILURES
    if quiet:
        shown = max(failures, MOST_HEADLINES)
        broke_down = _listed(remarks.BREAKDOWNS, log)
        headlines = _headlines(log, shown)
        return Group(*_shared(log, MOST_GROUPS), *broke_down, *headlines, _closing(log))
    most_groups = MOST_GROUPS_VERBOSE if verbose else MOST_GROUPS
    parts: list[RenderableType] = [*_heading(log.header, verbose=verbose), ""]
    parts += _shared(log, most_groups, with_commands=verbose)
    parts += _operators(log, verbose=verbose)
    for section in remarks.SECTIONS:
        if verbose or not section.verbose:
            parts += _listed(section, log)
    parts += _failures(log, failures, with_sources=verbose)
    if verbose:
        parts += _others(log)
        parts.append(Histograms(log))
        parts += [styled(note, "dim") for note in remarks.hardly_judged_lines(log)]
    notes = [styled(note, "dim") for note in remarks.plain_notes(log) if note]
    end = list(_what_next(log, most_groups))
    parts += [*notes, *([""] if notes and end else []), *end]
    return Group(*parts, _closing(log))


def _operators(log: RunLog, *, verbose: bool) -> Iterator[RenderableType]:
    for part in shown_table(log, every_operator=verbose):
        yield styled(part, "dim") if isinstance(part, str) else part
    yield ""


def _what_next(log: RunLog, most: int) -> Iterator[RenderableType]:
    failing = summary.failures(log)
    if not failing:
        return
    yield from _shared(log, most)
    handle = summary.failing_handles(log)[simplest(failing).case]
    show = summary.show_command(log.header, handle)
    yield styled("What to do next", "bold")
    for purpose, command in (
        ("see one case", show),
        ("run them again", "dmlconf run --failed"),
        ("find the cause", "dmlconf diagnose"),
        ("share a report", "dmlconf report --report html:report.html"),
    ):
        yield unwrapped(f"  {purpose:<16}{command}", "cyan")
    yield ""


def _shared(log: RunLog, most: int, *, with_commands: bool = True) -> Iterator[RenderableType]:
    lines = [line for line in shared_properties.shared_lines(log) if not line.says_little]
    if not lines:
        return
    yield styled(shared_properties.HEADING, "bold")
    for line in lines[:most]:
        yield styled(line.sentence, "bold red")
        if with_commands:
            yield unwrapped(f"  {line.command}", "cyan")
    if len(lines) > most:
        more = counted(len(lines) - most, "more group")
        hint = "-v shows more, " if most < MOST_GROUPS_VERBOSE else ""
        yield styled(f"and {more}: {hint}--report json has all")
    yield ""


def _headlines(log: RunLog, most: int) -> Iterator[RenderableType]:
    entries = shared_properties.shown_failures(log, most)
    handles = summary.failing_handles(log)
    for shown in entries:
        yield _Headline(shown, handles[shown.verdict.case])
    yield from _more(log, entries)


def _indented(content: RenderableType, by: int = 2) -> Padding:
    from rich.padding import Padding

    return Padding(content, (0, 0, 0, by), expand=False)


def _heading(header: Header, *, verbose: bool) -> Iterator[RenderableType]:
    if verbose:
        yield _environment(header)
        return
    for name, value in heading_lines(header):
        yield _HeadingLine(name, value)


@dataclass(frozen=True, slots=True)
class _HeadingLine:
    """A name and its value on one line; a narrow terminal cuts it off."""

    name: str
    value: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        line = Text.assemble(styled(f"{self.name:<10}", "bold"), styled(self.value))
        line.no_wrap, line.overflow = True, "ellipsis" if options.is_terminal else "ignore"
        yield line


def _environment(header: Header) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in summary.environment_facts(header):
        grid.add_row(styled(name, "bold"), styled(value))
    return grid


@dataclass(frozen=True, slots=True)
class _Headline:
    """A failure's status, identifier, reason and handle; a long identifier breaks after commas."""

    shown: ShownFailure
    handle: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        verdict = self.shown.verdict
        status = str(verdict.status).upper()
        reason = f": {verdict.reason.kind}" if verdict.reason else ""
        name = printable(verdict.case)
        yield Text.assemble(
            styled(status, verdict.status.traits.style),
            " ",
            Text(_broken_after_commas(name, options.max_width, len(status) + 1), "bold"),
            styled(f"{reason}{shared_properties.alike(self.shown)}"),
            " (",
            styled(self.handle, "cyan"),
            ")",
        )


def _broken_after_commas(name: str, width: int, begin: int) -> str:
    """Return an identifier with breaks after commas, unless it is shorter than a line.

    Args:
        width: how many characters a line has.
        begin: how many characters stand before the identifier on the first line.
    """
    if len(name) < width:
        return name
    lines, room = [""], width - begin
    for part in re.findall("[^,]+,?|,", name):
        if lines[-1] and len(lines[-1]) + len(part) > room:
            lines.append("")
            room = width
        lines[-1] += part
    return "\n".join(lines)


def _listed(section: Section, log: RunLog) -> Iterator[RenderableType]:
    lines = section.lines(log)
    if lines:
        yield styled(section.heading, "bold")
        yield from (unwrapped(f"  {line}", "") for line in lines)
        yield ""


def _failures(log: RunLog, most: int, *, with_sources: bool) -> Iterator[RenderableType]:
    entries = shared_properties.shown_failures(log, most)
    sources = Sources() if with_sources else None
    handles = summary.failing_handles(log)
    for shown in entries:
        verdict = shown.verdict
        yield _Headline(shown, handles[verdict.case])
        if verdict.reason is not None:
            yield from _particulars(verdict, verdict.reason)
        for line in rule_lines(log.header, verdict, sources):
            yield _indented(styled(line))
        if verdict.location:
            yield unwrapped(f"  at {verdict.location}", "dim")
        command = summary.repeat_command(log.header, verdict, handles[verdict.case])
        yield unwrapped(f"  {command}", "cyan")
        yield ""
    more = list(_more(log, entries))
    if more:
        yield from (*more, "")


def _more(log: RunLog, entries: Sequence[ShownFailure]) -> Iterator[RenderableType]:
    left = shared_properties.not_shown(log, entries)
    if left:
        yield styled(f"and {left:,} more: --show-failures all, --report json has them", "bold")


def _particulars(verdict: Verdict, reason: Reason) -> Iterator[RenderableType]:
    yield _indented(styled(reason.message))
    if reason.differences:
        yield _indented(_differences(verdict, reason.differences))
    for line in summary.diagnostic_lines(reason):
        yield _indented(styled(line, "dim"), 4)


_CELL_STYLES: Final = {"expected": "green", "actual": "red"}


def _differences(verdict: Verdict, differences: Sequence[Mapping[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    names = difference_columns(differences)
    for name in names:
        table.add_column(name, overflow="fold", justify="left" if name == "tensor" else "right")
    for difference in differences:
        cells = difference_cells(verdict, difference)
        table.add_row(*(styled(cells[name], _CELL_STYLES.get(name, "")) for name in names))
    return table


def _others(log: RunLog) -> Iterator[RenderableType]:
    """Yield lines that count, by reason, the cases that neither passed nor fail the run."""
    reasons = Counter(
        (verdict.status, verdict.reason.kind, verdict.reason.message)
        for verdict in with_reason(log.verdicts)
        if verdict.reason is not None and not verdict.status.fails_run
    )
    for (status, kind, message), count in sorted(reasons.items())[:MOST_REASONS]:
        yield styled(f"{count:,} {status}: {kind}", status.traits.style)
        if message != kind:
            yield _indented(styled(message))
    if len(reasons) > MOST_REASONS:
        more = counted(len(reasons) - MOST_REASONS, "more reason")
        yield styled(f"and {more}: --report json has all")
    if reasons:
        yield ""


def _closing(log: RunLog) -> Text:
    sentence = summary.closing_sentence(log)
    return styled(sentence, _CLOSING_STYLES.get(sentence.partition(":")[0], "bold red"))
