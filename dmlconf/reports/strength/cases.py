"""Report the strength figure "by case": how often cases notice the defects whose code they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dmlconf.documents.wording import first_names
from dmlconf.strength.tallies import CaseTally, share

__all__ = ["case_data", "case_lines", "case_sentence", "case_share", "unnoticing_cases"]

_MOST_SHOWN = 20
"""The most cases that a line names."""


def unnoticing_cases(noticed: Mapping[str, CaseTally]) -> list[str]:
    """Return the cases that no injected defect makes fail, sorted."""
    return sorted(name for name, tally in noticed.items() if not tally.caught)


def case_share(noticed: Mapping[str, CaseTally]) -> float:
    """Return the percentage of the pairs of case and defect in which the case fails.

    Only pairs in `CaseTally.ran` count. Without pairs, the percentage is 100.
    """
    tallies = noticed.values()
    return share(sum(t.caught for t in tallies), sum(t.ran for t in tallies))


def case_sentence(noticed: Mapping[str, CaseTally]) -> str:
    """Return the figure as one sentence."""
    unnoticing = len(unnoticing_cases(noticed))
    return (
        f"by case: {case_share(noticed):.2f}% of the pairs of a defect and a case that runs its "
        f"code fail; {unnoticing:,} of {len(noticed):,} cases notice no defect"
    )


def case_lines(noticed: Mapping[str, CaseTally]) -> Iterator[str]:
    """Yield a line for each operator with cases that notice no defect."""
    by_operator: dict[str, list[str]] = {}
    for name in unnoticing_cases(noticed):
        by_operator.setdefault(noticed[name].operator, []).append(name)
    for operator, names in sorted(by_operator.items()):
        yield f"notices no defect: {operator}: {first_names(names, _MOST_SHOWN)}"


def case_data(noticed: Mapping[str, CaseTally]) -> dict[str, Any]:
    """Return the figure for JSON."""
    operators: dict[str, CaseTally] = {}
    for tally in noticed.values():
        operators.setdefault(tally.operator, CaseTally(tally.operator)).add(tally)
    return {
        "share": case_share(noticed),
        "cases": len(noticed),
        "operators": [
            {"operator": name, "ran": tally.ran, "caught": tally.caught}
            for name, tally in sorted(operators.items())
        ],
        "noticing_nothing": unnoticing_cases(noticed),
    }
