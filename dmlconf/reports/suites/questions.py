"""Report which questions of `schemas/questions.yaml` a suite's cases ask of each operator.

A question has parts, such as `INT64: from 2^31` of `ends-of-words`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dmlconf.coverage.questions import Question, QuestionCoverage, read_questions
from dmlconf.documents.wording import counted
from dmlconf.reports.markdown_text import table
from dmlconf.reports.suites.shares import operator_count, percentage, total_share
from dmlconf.reports.terminal_text import plain_table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["render_json", "render_markdown", "render_table"]


def _sentence(rows: Sequence[QuestionCoverage]) -> str:
    asked, of = total_share(rows)
    share = percentage(asked, of)
    names = [row.operator for row in rows if row.asked]
    operators = operator_count(names)
    whom = counted(operators, "operator") + (" and graphs" if operators < len(names) else "")
    return f"{asked:,} of {of:,} parts of questions to {whom} asked ({share:.2f}%)"


def _of_question(question: Question, rows: Sequence[QuestionCoverage]) -> tuple[int, int, int]:
    """Return the numbers of a question's operators, its asked parts, and all its parts.

    All graphs count as one operator.
    """
    shares = [row.share(question.name) for row in rows]
    concerned = sum(bool(of) for _, of in shares)
    return concerned, sum(asked for asked, _ in shares), sum(of for _, of in shares)


def _missing(rows: Sequence[QuestionCoverage]) -> Iterator[str]:
    for row in rows:
        for question, part in row.missing:
            yield f"{row.operator}: {question}: {part}"


def render_table(rows: Sequence[QuestionCoverage], *, missing: bool = False) -> RenderableType:
    """Return the report for the terminal.

    Args:
        missing: whether to list the parts that no case asks, instead of a table.
    """
    from rich.console import Group
    from rich.text import Text

    closing = Text(_sentence(rows), "bold")
    if missing:
        return Group(*map(Text, _missing(rows)), closing)
    table = plain_table("Question", "Operators", "Asked", right=("Operators", "Asked"))
    for question in read_questions():
        concerned, asked, of = _of_question(question, rows)
        style = "" if asked == of else "yellow"
        table.add_row(question.name, f"{concerned:,}", f"{asked:,}/{of:,}", style=style)
    return Group(table, "", closing)


def render_markdown(rows: Sequence[QuestionCoverage]) -> str:
    """Return the report as Markdown."""
    lines = ["# Questions", "", f"{_sentence(rows)}.", ""]
    cells = []
    for question in read_questions():
        concerned, asked, of = _of_question(question, rows)
        cells.append((question.name, question.asks, f"{concerned:,}", f"{asked:,}/{of:,}"))
    lines += table(["Question", "Asks", "Operators", "Asked"], cells, "llr")
    missing = [f"- {line}" for line in _missing(rows)]
    return "\n".join([*lines, *(["", "Missing:", "", *missing] if missing else [])]) + "\n"


def render_json(rows: Sequence[QuestionCoverage]) -> str:
    """Return the report as JSON."""
    asked, of = total_share(rows)
    data: dict[str, Any] = {
        "format": 1,
        "summary": {"parts": of, "asked": asked},
        "questions": [
            {"name": each.name, "asks": each.asks, "because": each.because}
            for each in read_questions()
        ],
        "operators": [
            {
                "operator": row.operator,
                "parts": [
                    {"question": question, "part": part, "cases": count}
                    for (question, part), count in row.asked.items()
                ],
            }
            for row in rows
        ],
    }
    return json.dumps(data, indent=1)
