"""Report how much of the documentation a suite covers: for the terminal, in Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import dmlconf
from dmlconf.coverage.captured import CapturedCoverage
from dmlconf.coverage.graphs import GraphCoverage
from dmlconf.coverage.measure import KINDS, OperatorCoverage
from dmlconf.coverage.networks import NetworkCoverage
from dmlconf.documents.wording import counted
from dmlconf.reports.markdown_text import table
from dmlconf.reports.suites.shares import percentage, total_share
from dmlconf.reports.terminal_text import plain_table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "Coverage",
    "closing_sentence",
    "graph_sentence",
    "render_json",
    "render_markdown",
    "render_table",
]

_PARTS: Final = {
    "support": "Support",
    "attribute": "Attributes",
    "nested": "Nested",
    "optional": "Optional",
    "level": "Levels",
    "example": "Examples",
    "constraint": "Constraints",
}
"""The headings of the kinds of documented parts."""

_HEADINGS: Final = ("Operator", *map(str.capitalize, KINDS), "Recorded", *_PARTS.values())
_SHORT: Final = ("Operator", "Cases", "Recorded", "Covered", "Missing")
_MIDDLE: Final = ("Operator", *map(str.capitalize, KINDS), *_SHORT[2:])
_WIDE: Final = 130
"""The least width of a terminal for `_HEADINGS`, in columns."""
_NARROW: Final = 100
"""The least width for `_MIDDLE`, in columns."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of a suite.

    Attributes:
        graphs: the operators that graphs connect; None if graphs were not measured.
        captured: what captured cases use; None if captured cases were not measured.
    """

    rows: Sequence[OperatorCoverage]
    networks: Sequence[NetworkCoverage] = ()
    graphs: GraphCoverage | None = None
    captured: CapturedCoverage | None = None


def closing_sentence(rows: Sequence[OperatorCoverage]) -> str:
    """Return one sentence on how much is covered."""
    covered, of = total_share(rows)
    share = percentage(covered, of)
    without = sum(not row.total for row in rows)
    remark = f"; {without} without any case" if without else ""
    gaps = sum(len(row.gaps) for row in rows)
    remark += f"; {gaps} that no case can cover" if gaps else ""
    whole = f"{of:,} documented parts of {len(rows)} operator{'s' if len(rows) != 1 else ''}"
    return f"{covered:,} of {whole} covered ({share:.2f}%){remark}"


def _kinds(row: OperatorCoverage) -> list[str]:
    return [f"{row.cases[kind]:,}" if row.cases[kind] else "-" for kind in KINDS]


def _cells(row: OperatorCoverage) -> list[str]:
    parts = [_phrase(row, kind) for kind in _PARTS]
    return [row.operator, *_kinds(row), f"{row.recorded:,}", *parts]


def _middle_cells(row: OperatorCoverage) -> list[str]:
    return [row.operator, *_kinds(row), *_short_cells(row)[2:]]


def _phrase(row: OperatorCoverage, kind: str) -> str:
    covered, of = row.share(kind)
    return f"{covered:,}/{of:,}" if of else "-"


def _short_cells(row: OperatorCoverage) -> list[str]:
    covered, of = row.share()
    return [
        row.operator,
        f"{row.total:,}",
        f"{row.recorded:,}",
        f"{covered:,}/{of:,}",
        f"{of - covered:,}",
    ]


def _missing(rows: Sequence[OperatorCoverage]) -> Iterator[str]:
    for row in rows:
        if not row.total:
            yield f"{row.operator}: no case"
            continue
        for part in row.missing:
            yield f"{row.operator}: {part.kind} {part.name}"
        for part, reason in row.gaps.items():
            yield f"{row.operator}: {part.kind} {part.name}, which no case can cover: {reason}"


def render_table(coverage: Coverage, *, width: int, missing: bool = False) -> RenderableType:
    """Return the report for the terminal.

    Args:
        width: how many characters a line of the terminal has.
        missing: whether to list what no case covers, what no case can cover, and what only captured
            cases have, instead of a table.
    """
    from rich.console import Group
    from rich.text import Text

    rows, networks, graphs = coverage.rows, coverage.networks, coverage.graphs
    if missing:
        only = [
            f"only captured cases have: {kind} {name}" for kind, name in _only_captured(coverage)
        ]
        listed = map(Text, (*_missing(rows), *only))
        return Group(*listed, Text(closing_sentence(rows), "bold"))
    headings, cells = _columns(width)
    table = plain_table(*headings, right={*headings} - {"Operator"})
    for row in rows:
        style = "" if not row.missing and row.total else "yellow"
        table.add_row(*map(Text, cells(row)), style=style)
    layers = [Text(line) for line in _network_lines(networks)]
    joined = [Text(line) for line in _graph_lines(graphs, len(rows))]
    captured = [Text(line) for line in _captured_lines(coverage.captured)]
    return Group(
        table,
        *([""] if layers else []),
        *layers,
        *([""] if joined else []),
        *joined,
        *([""] if captured else []),
        *captured,
        "",
        Text(closing_sentence(rows), "bold"),
    )


def _network_lines(networks: Sequence[NetworkCoverage]) -> list[str]:
    if not networks:
        return []
    lines = [
        f"  {each.network}: {counted(each.layers, 'layer')} of "
        f"{counted(each.operators, 'operator')}, {counted(each.cases, 'case')}"
        for each in networks
    ]
    return ["Layers of published networks", *lines]


_CAPTURED_KINDS: Final = {
    "operator": "operators",
    "data type": "data types of tensors",
    "attribute": "values of attributes",
    "neighbours": "pairs of neighbours",
}

_MOST_LISTED: Final = 5
"""If a report has more operators, the terminal only counts the pairs of neighbours."""


def graph_sentence(graphs: GraphCoverage) -> str:
    """Return one sentence on the operators that graphs connect."""
    nodes, pairs = len(graphs.operators), len(graphs.neighbours)
    return (
        f"{counted(graphs.cases, 'graph')} of up to {counted(graphs.most_nodes, 'node')}: "
        f"{counted(nodes, 'operator')} {'is a node' if nodes == 1 else 'are nodes'}, and "
        f"{counted(pairs, 'pair')} of operators {'is' if pairs == 1 else 'are'} neighbours"
    )


def _graph_lines(graphs: GraphCoverage | None, operators: int) -> list[str]:
    if graphs is None or not graphs.cases:
        return []
    lines = []
    if operators <= _MOST_LISTED:
        lines = [
            f"  {first} feeds {second}: {counted(count, 'graph')}"
            for (first, second), count in sorted(graphs.neighbours.items())
        ]
    return [graph_sentence(graphs), *lines]


def _only_captured(coverage: Coverage) -> list[tuple[str, str]]:
    return coverage.captured.only_captured() if coverage.captured is not None else []


def _captured_lines(captured: CapturedCoverage | None) -> list[str]:
    if captured is None or not captured.cases:
        return []
    models = f" from {counted(len(captured.models), 'model')}" if captured.models else ""
    lines = [f"Captured{models}: {counted(captured.cases, 'case')}"]
    only = captured.only_captured()
    for kind, heading in _CAPTURED_KINDS.items():
        used = sum(feature[0] == kind for feature in captured.uses)
        alone = sum(feature[0] == kind for feature in only)
        remark = f", {alone:,} of them only in captured cases" if alone else ""
        lines.append(f"  {heading}: {used:,}{remark}")
    return lines


def _columns(width: int) -> tuple[tuple[str, ...], Callable[[OperatorCoverage], list[str]]]:
    if width >= _WIDE:
        return _HEADINGS, _cells
    return (_MIDDLE, _middle_cells) if width >= _NARROW else (_SHORT, _short_cells)


def render_markdown(coverage: Coverage) -> str:
    """Return the report as Markdown."""
    rows, networks, graphs = coverage.rows, coverage.networks, coverage.graphs
    lines = [
        "# Coverage of the documentation",
        "",
        f"{closing_sentence(rows)}.",
        "",
        *table(_HEADINGS, map(_cells, rows), "lr"),
    ]
    missing = [f"- {line}" for line in _missing(rows)]
    if networks:
        counts = ((n.network, *map(str, (n.layers, n.operators, n.cases))) for n in networks)
        lines += ["", *table(["Network", "Layers", "Operators", "Cases"], counts, "lr")]
    if graphs is not None and graphs.cases:
        lines += ["", f"{graph_sentence(graphs)}.", ""]
        pairs = ((a, b, str(n)) for (a, b), n in sorted(graphs.neighbours.items()))
        lines += table(["Operator", "Feeds", "Graphs"], pairs, "llr")
    captured = _captured_lines(coverage.captured)
    if captured and coverage.captured is not None:
        uses = sorted(coverage.captured.uses.items())
        used = ((*feature, str(len(use.models)), f"{use.others:,}") for feature, use in uses)
        lines += ["", f"{captured[0]}.", ""]
        lines += table(["Kind", "What", "Models", "Other cases"], used, "llrr")
    return "\n".join([*lines, *(["", "Missing:", "", *missing] if missing else [])]) + "\n"


def render_json(coverage: Coverage) -> str:
    """Return the report as JSON."""
    rows, networks, graphs = coverage.rows, coverage.networks, coverage.graphs
    covered, of = total_share(rows)
    data: dict[str, Any] = {
        "format": 1,
        "dmlconf": dmlconf.__version__,
        "summary": {
            "operators": len(rows),
            "operators_with_cases": sum(bool(row.total) for row in rows),
            "cases": sum(row.total for row in rows),
            "recorded": sum(row.recorded for row in rows),
            "documented": of,
            "covered": covered,
        },
        "operators": [
            {
                "operator": row.operator,
                "cases": row.total,
                "kinds": {kind: row.cases[kind] for kind in KINDS},
                "recorded": row.recorded,
                "parts": [
                    {"kind": part.kind, "name": part.name, "cases": count}
                    for part, count in row.parts.items()
                ],
                "gaps": [
                    {"kind": part.kind, "name": part.name, "reason": reason}
                    for part, reason in row.gaps.items()
                ],
            }
            for row in rows
        ],
        "networks": [asdict(network) for network in networks],
        "graphs": _graph_data(graphs),
        "captured": _captured_data(coverage.captured),
    }
    return json.dumps(data, indent=1)


def _graph_data(graphs: GraphCoverage | None) -> dict[str, Any] | None:
    if graphs is None:
        return None
    return {
        "cases": graphs.cases,
        "most_nodes": graphs.most_nodes,
        "operators": sorted(graphs.operators),
        "neighbours": [
            {"operator": first, "feeds": second, "cases": count}
            for (first, second), count in sorted(graphs.neighbours.items())
        ],
    }


def _captured_data(captured: CapturedCoverage | None) -> dict[str, Any] | None:
    if captured is None:
        return None
    return {
        "models": sorted(captured.models),
        "cases": captured.cases,
        "uses": [
            {"kind": kind, "name": name, "models": sorted(use.models), "other_cases": use.others}
            for (kind, name), use in sorted(captured.uses.items())
        ],
    }
