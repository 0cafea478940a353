"""The report in the terminal: what was tested, a table by operator, and every failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dmlconf.documents.problems import printable
from dmlconf.reports import remarks, summary
from dmlconf.reports.histogram import Histograms
from dmlconf.reports.table import STYLES, OperatorsTable
from dmlconf.runner.log import Header, RunLog
from dmlconf.runner.verdict import Reason, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

__all__ = ["render"]

MOST_FAILURES: Final = 20

_CLOSING_STYLES: Final = {"PASSED": "bold green", "NOTHING PASSED": "bold yellow"}


def render(log: RunLog, *, verbose: bool = False, quiet: bool = False) -> RenderableType:
    """Return the report.

    Args:
        log: the run's log.
        verbose: show every failure, and why cases are not simply passed.
        quiet: show only what fails, a line each, and the closing sentence.
    """
    from rich.console import Group

    if quiet:
        headlines = [_headline(verdict) for verdict in summary.failures(log)]
        return Group(*headlines, _closing(log))
    parts: list[RenderableType] = [_environment(log.header), "", OperatorsTable(log), ""]
    parts += _listed("Nearest to their limit", summary.nearest_lines(log))
    parts += _listed(remarks.FAR_HEADING, remarks.far_lines(log))
    parts += _listed(remarks.KNOWN_FAULTS_HEADING, remarks.known_fault_lines(log))
    parts += _listed(remarks.WAIVERS_HEADING, remarks.waiver_lines(log))
    parts += _failures(log, verbose)
    if verbose:
        parts += _others(log)
        parts.append(Histograms(log))
    unchecked = (remarks.unchecked_note(log), remarks.unchecked_outputs_note(log))
    parts += [_text(note, "dim") for note in (*remarks.room_lines(log), *unchecked) if note]
    return Group(*parts, _closing(log))


def _text(text: str, style: str = "") -> Text:
    """Return text on one line: one that came from elsewhere must not forge another."""
    from rich.text import Text

    return Text(printable(text), style)


def _line(text: str, style: str) -> Text:
    """Return text that stays in one line, however long, so that it can be copied."""
    from rich.text import Text

    return Text(printable(text), style, no_wrap=True, overflow="ignore")


def _indented(content: RenderableType, by: int = 2) -> Padding:
    from rich.padding import Padding

    return Padding(content, (0, 0, 0, by), expand=False)


def _environment(header: Header) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in summary.environment_facts(header):
        grid.add_row(_text(name, "bold"), _text(value))
    return grid


def _headline(verdict: Verdict) -> Text:
    from rich.text import Text

    reason = f": {verdict.reason.kind}" if verdict.reason else ""
    return Text.assemble(
        _text(str(verdict.status).upper(), STYLES[verdict.status]), " ",
        _text(verdict.case, "bold"), _text(reason), no_wrap=True, overflow="ignore",
    )  # fmt: skip


def _listed(heading: str, lines: Sequence[str]) -> Iterator[RenderableType]:
    if lines:
        yield _text(heading, "bold")
        yield from (_line(f"  {line}", "") for line in lines)
        yield ""


def _failures(log: RunLog, verbose: bool) -> Iterator[RenderableType]:
    failing = summary.failures(log)
    shown = failing if verbose else failing[:MOST_FAILURES]
    for verdict in shown:
        yield _headline(verdict)
        if verdict.reason is not None:
            yield from _particulars(verdict.reason)
        for told in summary.rule_lines(verdict):
            yield _indented(_text(told))
        if verdict.location:
            yield _line(f"  at {verdict.location}", "dim")
        yield _line(f"  {summary.repeat_command(log.header, verdict)}", "cyan")
        yield ""
    if len(failing) > len(shown):
        more = f"and {len(failing) - len(shown):,} more: -v shows all, --report json has them"
        yield _text(more, "bold")
        yield ""


def _particulars(reason: Reason) -> Iterator[RenderableType]:
    yield _indented(_text(reason.message))
    if reason.differences:
        yield _indented(_differences(reason))
    for line in summary.diagnostic_lines(reason):
        yield _indented(_text(line, "dim"), 4)


def _differences(reason: Reason) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("tensor", overflow="fold")
    for heading in ("at", "expected", "actual"):
        table.add_column(heading, justify="right", overflow="fold")
    for difference in reason.differences:
        table.add_row(
            _text(str(difference["tensor"])),
            _text(str(difference["coordinates"])),
            _text(str(difference["expected"]), "green"),
            _text(str(difference["actual"]), "red"),
        )
    return table


def _others(log: RunLog) -> Iterator[RenderableType]:
    """Tell, by reason, how many cases neither passed nor failed."""
    reasons = Counter(
        (verdict.status, verdict.reason.kind, verdict.reason.message)
        for verdict in log.verdicts
        if verdict.reason is not None and not verdict.status.fails_run
    )
    for (status, kind, message), count in sorted(reasons.items()):
        yield _text(f"{count:,} {status}: {kind}", STYLES[status])
        if message != kind:
            yield _indented(_text(message))
    if reasons:
        yield ""


def _closing(log: RunLog) -> Text:
    sentence = summary.closing_sentence(log)
    return _text(sentence, _CLOSING_STYLES.get(sentence.partition(":")[0], "bold red"))
