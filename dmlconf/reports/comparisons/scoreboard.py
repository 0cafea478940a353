"""A scoreboard: the share of each operator's judged cases that passed in each of several runs."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from dmlconf.cases.handles import handles
from dmlconf.documents.problems import printable
from dmlconf.reports.markdown_text import escaped, table
from dmlconf.reports.pages import closing_style, render_page
from dmlconf.reports.runs import summary
from dmlconf.reports.runs.heading import run_facts, tested_facts
from dmlconf.reports.terminal_text import styled
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.grouping import verdicts_by_operator
from dmlconf.verdicts.verdict import Status, Verdict

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "Cell",
    "Scoreboard",
    "render_html",
    "render_json",
    "render_markdown",
    "render_terminal",
    "scoreboard",
]

MOST_FAILURES: Final = 100
"""The most failures that the HTML report lists of each operator in each run."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The verdicts on the cases of one operator, or of all, in one run.

    Attributes:
        counts: the number of verdicts by status, without zeros.
        failures: the verdicts that fail the run.
    """

    counts: Mapping[Status, int]
    failures: tuple[Verdict, ...]

    @property
    def judged(self) -> int:
        """The number of cases whose status says that the backend was right or wrong."""
        return sum(self.counts.get(status, 0) for status in Status if status.traits.judged)

    @property
    def text(self) -> str:
        """The share of judged cases that passed, such as `98.5%, 3 fail` or `100% of 200`.

        If no case was judged, the commonest status; without cases, `-`.
        """
        if not self.counts:
            return "-"
        if not self.judged:
            return str(max(self.counts, key=lambda status: self.counts[status]))
        passed = self.counts.get(Status.PASSED, 0)
        if passed == self.judged:
            return f"100% of {passed:,}"
        # A share that rounds to 100% would hide the failures.
        return f"{min(99.9, 100 * passed / self.judged):.1f}%, {len(self.failures):,} fail"


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """Runs side by side.

    Attributes:
        names: what distinguishes each run from the others.
        cells: for each operator, a cell for each run.
    """

    names: tuple[str, ...]
    runs: tuple[RunLog, ...]
    cells: Mapping[str, tuple[Cell, ...]]

    def totals(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return rows: how the runs ended, their shares of passed cases, and counts by status.

        A selected case without a verdict counts as `not run`.
        """
        sums = [Counter(verdict.status for verdict in run.verdicts) for run in self.runs]
        for run, counts in zip(self.runs, sums, strict=True):
            counts[Status.NOT_RUN] += run.header.selected - counts.total()
        shares = (_cell(run.verdicts).text for run in self.runs)
        endings = (summary.closing_sentence(run).partition(":")[0] for run in self.runs)
        rows = [("run", tuple(endings)), ("all operators", tuple(shares))]
        for status in Status:
            if any(counts[status] for counts in sums):
                rows.append((str(status), tuple(f"{counts[status]:,}" for counts in sums)))
        return rows


def scoreboard(runs: Sequence[RunLog], files: Sequence[str]) -> Scoreboard:
    """Return the scoreboard of runs.

    Args:
        files: the names of the logs, which distinguish runs of the same device and software.
    """
    by_run = [verdicts_by_operator(run.verdicts) for run in runs]
    operators = sorted({name for cells in by_run for name in cells})
    cells = {
        name: tuple(_cell(verdicts.get(name, [])) for verdicts in by_run) for name in operators
    }
    return Scoreboard(tuple(_names(runs, files)), tuple(runs), cells)


def _cell(verdicts: Sequence[Verdict]) -> Cell:
    failures = tuple(verdict for verdict in verdicts if verdict.status.fails_run)
    return Cell(Counter(verdict.status for verdict in verdicts), failures)


def _names(runs: Sequence[RunLog], files: Sequence[str]) -> list[str]:
    """Return a name for each run: what differs of backend, version, adapter and driver.

    The file is added to a name that is empty, or the same for several runs.
    """
    facts = [
        [
            run.header.backend.partition(":")[0],
            *(run.header.environment.get(key) for key in ("version", "adapter", "driver")),
        ]
        for run in runs
    ]
    differing = [i for i in range(4) if len({fact[i] for fact in facts}) > 1]
    names = [" ".join(str(fact[i]) for i in differing if fact[i]) for fact in facts]
    same = Counter(names)
    return [
        name if name and same[name] == 1 else " ".join(filter(None, (name, file)))
        for name, file in zip(names, _short(files), strict=True)
    ]


def _short(files: Sequence[str]) -> Sequence[str]:
    """Return the names of files without folders and `.jsonl`, if they stay different."""
    short = [PurePath(file).name.removesuffix(".jsonl") for file in files]
    return short if all(short) and len(set(short)) == len(files) else files


def render_terminal(board: Scoreboard) -> Table:
    """Return the report for the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Operator", overflow="fold")
    for name in board.names:
        table.add_column(styled(name), overflow="fold")
    for operator, cells in board.cells.items():
        styles = ("bold red" if cell.failures else "" for cell in cells)
        texts = (Text(cell.text, style) for cell, style in zip(cells, styles, strict=True))
        table.add_row(styled(operator), *texts)
    table.add_row("", *("" for _ in board.names))
    for label, totals in board.totals():
        table.add_row(Text(label, "bold"), *map(Text, totals))
    return table


def render_json(board: Scoreboard) -> str:
    """Return the scoreboard as JSON."""
    data = {
        "schema": "dmlconf-scoreboard",
        "version": 1,
        "runs": [
            {"name": name, "environment": dict(run.header.environment)}
            for name, run in zip(board.names, board.runs, strict=True)
        ],
        "operators": {
            operator: [
                {str(status): cell.counts.get(status, 0) for status in Status} for cell in cells
            ]
            for operator, cells in board.cells.items()
        },
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def render_markdown(board: Scoreboard) -> str:
    """Return the scoreboard as Markdown: the totals, then operators with failures, then others."""
    rows = [[f"**{label}**", *map(escaped, totals)] for label, totals in board.totals()]
    for operator, cells in _failing_first(board):
        rows.append([escaped(operator), *(escaped(cell.text) for cell in cells)])
    return "\n".join(table(["Operator", *map(escaped, board.names)], rows)) + "\n"


def render_html(board: Scoreboard) -> str:
    """Return the scoreboard as HTML, with lists of failures below the table."""
    values = {
        "runs": [
            {
                "name": printable(name),
                "closing": printable(summary.closing_sentence(run)),
                "style": closing_style(summary.closing_sentence(run)),
                "tested": [(n, printable(v)) for n, v in tested_facts(run.header)],
                "digests": [(n, printable(v)) for n, v in run_facts(run.header)],
            }
            for name, run in zip(board.names, board.runs, strict=True)
        ],
        "totals": [
            {"name": label, "cells": [{"text": t, "style": _total_style(label, t)} for t in texts]}
            for label, texts in board.totals()
        ],
        "rows": [
            {
                "name": printable(operator),
                "cells": [_html_cell(operator, i, cell) for i, cell in enumerate(cells)],
            }
            for operator, cells in _failing_first(board)
        ],
        "lists": list(_lists(board)),
    }
    return render_page(
        "scoreboard.html", "dmlconf: scoreboard", values, None, "copy.js", "lists.js"
    )


def _total_style(label: str, text: str) -> str:
    if label == "run":
        return closing_style(text)
    return next((s.css_class for s in Status if s == label and text != "0"), "")


def _failing_first(board: Scoreboard) -> list[tuple[str, tuple[Cell, ...]]]:
    return sorted(board.cells.items(), key=lambda item: not any(cell.failures for cell in item[1]))


def _html_cell(operator: str, run: int, cell: Cell) -> dict[str, str]:
    style = "part" if cell.failures else "full" if cell.judged else ""
    anchor = _anchor(operator, run) if cell.failures else ""
    return {"text": cell.text, "style": style, "anchor": anchor}


def _anchor(operator: str, run: int) -> str:
    return f"{operator.lower()}-{run}"


def _lists(board: Scoreboard) -> Iterator[dict[str, Any]]:
    handle = handles(verdict.case for run in board.runs for verdict in run.verdicts)
    for operator, cells in _failing_first(board):
        for number, cell in enumerate(cells):
            if not cell.failures:
                continue
            shown = cell.failures[:MOST_FAILURES]
            more = len(cell.failures) - len(shown)
            header = board.runs[number].header
            yield {
                "anchor": _anchor(operator, number),
                "operator": printable(operator),
                "run": printable(board.names[number]),
                "failures": [
                    {
                        "case": printable(verdict.case),
                        "handle": handle[verdict.case],
                        "reason": str(verdict.reason.kind) if verdict.reason else "",
                    }
                    for verdict in shown
                ],
                "more": f"{more:,}" if more else "",
                "command": printable(
                    shlex.join(["dmlconf", "run", "-b", header.backend, "-o", operator])
                ),
            }
