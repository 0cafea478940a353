"""Report how many cases of each operator a target, such as ONNX, can express."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dmlconf.coverage.expressible import Expressible
from dmlconf.reports.suites.shares import operator_count, percentage, total_share
from dmlconf.reports.terminal_text import plain_table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["render_table"]


def render_table(rows: Sequence[Expressible], *, missing: bool = False) -> RenderableType:
    """Return the report for the terminal.

    Args:
        missing: whether to list why cases cannot be expressed, instead of a table.
    """
    from rich.console import Group
    from rich.text import Text

    expressible, of = total_share(rows)
    some = operator_count(row.operator for row in rows if row.expressible)
    operators = operator_count(row.operator for row in rows)
    closing = Text(
        f"{expressible:,} of {of:,} cases expressible ({percentage(expressible, of):.2f}%), "
        f"of {some} of {operators} operators",
        "bold",
    )
    if missing:
        lines = [
            Text(f"{row.operator}: {count:,} {reason.removeprefix(f'{row.operator}: ')}")
            for row in rows
            for reason, count in row.reasons.most_common()
        ]
        return Group(*lines, closing)
    headings = ("Operator", "Cases", "Expressible", "Most frequent reason why not")
    table = plain_table(*headings, right=("Cases", "Expressible"))
    for row in rows:
        reason = next((text for text, _ in row.reasons.most_common(1)), "")
        table.add_row(row.operator, f"{row.cases:,}", f"{row.expressible:,}", Text(reason))
    return Group(table, closing)
