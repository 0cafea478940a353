"""How reports show a case's outputs: the rules, and the elements that break a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dmlconf.documents.wording import counted
from dmlconf.reports.runs.heading import recording_of
from dmlconf.reports.runs.summary import margin_text
from dmlconf.run_log.log import Header
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.verdict import Verdict

__all__ = ["COLUMNS", "Sources", "difference_cells", "difference_columns", "rule_lines"]

COLUMNS: Final = ("tensor", "at", "expected", "allowed", "actual", "off by")
"""The columns of a table of elements that break their rule."""

_LATER: Final = ("allowed", "off by")
"""The columns for which logs of older versions have no values."""

_DIGITS: Final = {"FLOAT16": 5, "FLOAT64": 17}
_FLOAT32_DIGITS: Final = 9
"""Significant digits that tell any two numbers of a data type apart."""


class Sources:
    """Remembers which sources of rules a report has shown, for each output of an operator."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str, str]] = set()

    def take(self, operator: str, tensor: str, source: str | None) -> str:
        """Return the source, in parentheses; empty if it was shown already or there is none."""
        if not source or (operator, tensor, source) in self._known:
            return ""
        self._known.add((operator, tensor, source))
        return f" ({source})"


def rule_lines(header: Header, verdict: Verdict, shown: Sources | None) -> list[str]:
    """Return a line for each compared output: its rule, and where its expected values come from.

    An output whose figures have no margin, as in logs of older versions, has no line.

    Args:
        shown: remembers which sources of rules were shown, so that each is shown once; None to
            show neither sources nor numbers of open and loose elements.
    """
    return [
        f"{tensor}: rule: {_rule(figures)}{_used(figures)}{_room(figures) if shown else ''}"
        f"{_expected_by(header, verdict, figures)}"
        f"{shown.take(verdict.operator, tensor, figures.source) if shown else ''}"
        for tensor, figures in verdict.figures.items()
        if figures.margin is not None
    ]


def _rule(figures: Figures) -> str:
    kind, limit = figures.rule, figures.limit
    if figures.products is not None:
        count = figures.products
        return f"{kind}, sum of {counted(count, 'product')}, limit {limit:g}"
    if kind == "ulp":
        return f"at most {limit:g} ULP"
    if kind == "absolute":
        return f"at most {limit:g} off"
    if kind == "relative":
        return f"at most {limit:g} of the expected value off"
    if kind == "interval":
        return "between two values"
    return "one of several candidates" if kind == "one of" else str(kind)


def _used(figures: Figures) -> str:
    """Return the share of its limit that an output uses; empty if 0, above 100% or unknown."""
    margin = figures.margin or 0.0
    return f", {margin_text(margin)} of the limit used" if 0 < margin <= 1 else ""


def _expected_by(header: Header, verdict: Verdict, figures: Figures) -> str:
    provenance = figures.expectation
    if not provenance:
        return ""
    text = str(provenance)
    if provenance == "documented" and verdict.identity.example:
        text = f"documented, example {verdict.identity.example} of the page"
    elif provenance == "stated" and verdict.identity.origin:
        text = f"stated by the case ({verdict.identity.origin})"
    elif provenance == "recorded":
        version = recording_of(header)
        text = f"recorded on DirectML {version}" if version else "recorded"
    return f"; expected values: {text}"


def _room(figures: Figures) -> str:
    counts = {"open": figures.open, "loose": figures.loose}
    parts = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    return f"; {', '.join(parts)} of {figures.elements:,} elements" if parts else ""


def difference_columns(differences: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns to show: `allowed` and `off by` only if a difference has `allowed`."""
    known = any("allowed" in difference for difference in differences)
    return [name for name in COLUMNS if known or name not in _LATER]


def difference_cells(verdict: Verdict, difference: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each column for an element."""
    tensor = str(difference["tensor"])
    kind = str(verdict.facts.get(tensor, "")).partition(" ")[0]
    # Without facts, the data type may be FLOAT64.
    digits = _DIGITS.get(kind, _FLOAT32_DIGITS) if kind else _DIGITS["FLOAT64"]

    def number(value: Any) -> str:
        return f"{value:.{digits}g}" if isinstance(value, float) else str(value)

    allowed = [
        number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"
        for low, high in difference.get("allowed", ())
    ]
    return {
        "tensor": tensor,
        "at": str(difference["coordinates"]),
        "expected": number(difference["expected"]),
        "allowed": " or ".join(dict.fromkeys(allowed)),
        "actual": number(difference["actual"]),
        "off by": _distance(difference),
    }


def _distance(difference: Mapping[str, Any]) -> str:
    distance, unit = difference.get("off_by"), difference.get("unit", "")
    if distance is None:
        return "-"
    if not distance:
        return "its sign"  # Only the signs of the zeros differ.
    if unit == "relative":
        return f"{distance:.2%}" if distance < 10 else f"{distance:,.0f} times"
    text = f"{distance:,}" if isinstance(distance, int) else f"{distance:.3g}"
    return f"{text} {unit}".strip()
