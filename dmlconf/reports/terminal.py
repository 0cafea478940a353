"""The report in the terminal: what was tested, a table by operator, and every failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dmlconf.documents.problems import printable
from dmlconf.reports import summary
from dmlconf.runner.log import Header, RunLog
from dmlconf.runner.verdict import Status, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

__all__ = ["render"]

MOST_FAILURES: Final = 20
MOST_DIAGNOSTIC_LINES: Final = 20

_STYLES: Final = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.BROKEN: "bold magenta",
    Status.UNSUPPORTED: "yellow",
    Status.UNCHECKED: "cyan",
    Status.WAIVED: "yellow",
    Status.STALE: "bold red",
    Status.NOT_RUN: "yellow",
}

_ALWAYS: Final = (Status.PASSED, Status.FAILED, Status.BROKEN)


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
    parts: list[RenderableType] = [_environment(log.header), _table(log)]
    parts += _failures(log, verbose)
    if verbose:
        parts += _others(log)
    parts.append(_closing(log))
    note = summary.unchecked_note(log)
    if note:
        parts.append(_text(note, "dim"))
    return Group(*parts)


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text("\n".join(map(printable, text.split("\n"))), style)


def _environment(header: Header) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in summary.environment_facts(header):
        grid.add_row(_text(name, "bold"), _text(value))
    return grid


def _table(log: RunLog) -> Table:
    from rich import box
    from rich.table import Table

    rows, total = summary.operator_totals(log)
    shown = [s for s in Status if s in _ALWAYS or total.counts.get(s)]
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_footer=len(rows) > 1
    )
    bold = "bold"
    table.add_column("Operator", "total", footer_style=bold, overflow="fold", min_width=16)
    for heading, footer in (
        ("Cases", f"{total.cases:,}"),
        *((str(status).capitalize(), f"{total.counts.get(status, 0):,}") for status in shown),
        ("Worst ULP", summary.number(total.worst_ulp)),
        ("Time", _duration(total.seconds)),
    ):
        table.add_column(heading, footer, justify="right", footer_style=bold)
    for row in rows:
        table.add_row(
            _text(row.operator),
            f"{row.cases:,}",
            *(_count(status, row.counts.get(status, 0)) for status in shown),
            summary.number(row.worst_ulp),
            _duration(row.seconds),
        )
    return table


def _count(status: Status, count: int) -> Text:
    return _text(f"{count:,}", _STYLES[status] if count else "dim")


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min"


def _headline(verdict: Verdict) -> Text:
    from rich.text import Text

    reason = f": {verdict.reason.kind}" if verdict.reason else ""
    return Text.assemble(
        _text(str(verdict.status).upper(), _STYLES[verdict.status]), " ",
        _text(verdict.case, "bold"), _text(reason),
    )  # fmt: skip


def _failures(log: RunLog, verbose: bool) -> Iterator[RenderableType]:
    failing = summary.failures(log)
    shown = failing if verbose else failing[:MOST_FAILURES]
    for verdict in shown:
        yield _headline(verdict)
        yield from _particulars(log.header, verdict)
        yield ""
    if len(failing) > len(shown):
        more = f"and {len(failing) - len(shown):,} more: -v shows all, --report json has them"
        yield _text(more, "bold")
        yield ""


def _particulars(header: Header, verdict: Verdict) -> Iterator[RenderableType]:
    from rich.padding import Padding

    reason = verdict.reason
    if reason is not None:
        yield Padding(_text(reason.message), (0, 0, 0, 2))
        if reason.differences:
            yield Padding(_differences(verdict), (0, 0, 0, 2))
        if reason.diagnostics:
            lines = reason.diagnostics.split("\n")[-MOST_DIAGNOSTIC_LINES:]
            yield Padding(_text("\n".join(lines), "dim"), (0, 0, 0, 4))
    yield Padding(_text(f"at {verdict.location}", "dim"), (0, 0, 0, 2))
    yield Padding(_text(summary.repeat_command(header, verdict), "cyan"), (0, 0, 0, 2))


def _differences(verdict: Verdict) -> Table:
    from rich.table import Table

    assert verdict.reason is not None
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("tensor")
    for heading in ("at", "expected", "actual"):
        table.add_column(heading, justify="right")
    for difference in verdict.reason.differences:
        table.add_row(
            _text(str(difference["tensor"])),
            _text(str(difference["coordinates"])),
            _text(str(difference["expected"]), "green"),
            _text(str(difference["actual"]), "red"),
        )
    return table


def _others(log: RunLog) -> Iterator[RenderableType]:
    """Tell, by reason, how many cases neither passed nor failed."""
    from rich.padding import Padding

    reasons = Counter(
        (verdict.status, verdict.reason.kind, verdict.reason.message)
        for verdict in log.verdicts
        if verdict.reason is not None and not verdict.status.fails_run
    )
    for (status, kind, message), count in sorted(reasons.items()):
        yield _text(f"{count:,} {status}: {kind}", _STYLES[status])
        yield Padding(_text(message), (0, 0, 0, 2))
    if reasons:
        yield ""


def _closing(log: RunLog) -> Text:
    sentence = summary.closing_sentence(log)
    good = sentence.startswith("PASSED")
    return _text(sentence, "bold green" if good else "bold red")
