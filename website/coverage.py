"""What the suite covers of each operator's documentation, as the pages of operators show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.cli.common.cache import figure_cache
from dmlconf.coverage.measure import OperatorCoverage, measure
from dmlconf.engine.against import recorded_in, suite_recordings

__all__ = ["coverage_section", "suite_coverage", "suite_plan"]

_CASES: Final = Path(__file__).resolve().parent.parent / "cases"

_TITLES: Final = {
    "support": "cells of the tables of support",
    "attribute": "values of attributes",
    "optional": "optional fields, present and absent",
    "level": "feature levels of attributes and combinations",
    "example": "worked examples",
    "constraint": "constraints",
}


@cache
def suite_plan() -> Sequence[PlannedCase]:
    """Return every case of the suite, unbuilt."""
    return list(load_suite([_CASES]).plan())


@cache
def suite_coverage() -> Mapping[str, OperatorCoverage]:
    """Return what the suite covers of each operator; it builds every case, which takes seconds."""
    operators = [operator(name) for name in operator_names()]
    recorded = recorded_in(suite_recordings([_CASES]))
    cache = figure_cache(len(suite_plan()))
    recall = (lambda case: None) if cache is None else cache.recall
    return measure(operators, (valid_case(each, recall) for each in suite_plan()), recorded)


def coverage_section(row: OperatorCoverage) -> str:
    """Return the section of an operator's page on what the suite covers of its documentation."""
    lines = ["## Coverage", "", "| Documented parts | Covered | Of | Share |"]
    lines.append("|---|---:|---:|---:|")
    for kind, title in (*_TITLES.items(), (None, "all")):
        covered, of = row.share(kind)
        if of:
            lines.append(f"| {title} | {covered:,} | {of:,} | {100 * covered / of:.1f}% |")
    if row.missing:
        lines += ["", "No case has:", "", *(f"- {part.kind} {part.name}" for part in row.missing)]
    lines += [
        "",
        f"A part is covered if a case has it. A recording of a real DirectML has {row.recorded:,} "
        f"of the {row.total:,} cases.",
    ]
    return "\n".join(lines) + "\n"
