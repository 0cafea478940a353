"""Group verdicts by operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dmlconf.verdicts.choosing import LazyVerdicts
from dmlconf.verdicts.verdict import Verdict

__all__ = ["verdicts_by_operator"]


def verdicts_by_operator(verdicts: Iterable[Verdict]) -> Mapping[str, Sequence[Verdict]]:
    """Return the verdicts on the cases of each operator, in the given order."""
    if isinstance(verdicts, LazyVerdicts):
        return verdicts.by_operator()
    grouped: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault(verdict.operator, []).append(verdict)
    return grouped
