"""Group verdicts by operator."""

from __future__ import annotations

from collections.abc import Iterable

from dmlconf.verdicts.verdict import Verdict

__all__ = ["verdicts_by_operator"]


def verdicts_by_operator(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Return the verdicts on the cases of each operator, by its name, in the order given."""
    grouped: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault(verdict.operator, []).append(verdict)
    return grouped
