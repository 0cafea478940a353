"""Select cases by keywords, operator, tag, identifier and so on; leave out cases of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dmlconf.cases.identifiers import identifier_matcher
from dmlconf.cases.loading.loader import built_case
from dmlconf.cases.loading.planned import PlannedCases, of_each_template
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.keywords import keyword_matcher
from dmlconf.cases.selecting.where import Condition
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel

__all__ = [
    "CAPTURED_NOTE",
    "CAPTURED_TAG",
    "LARGE_TAG",
    "MODEL_TAG",
    "Selection",
    "graphs_in",
    "named_models",
    "names_models",
    "needs_at_most",
    "select",
    "without_models",
]

LARGE_TAG: Final = "large"
"""The tag of cases that may take more memory than containers have."""

MODEL_TAG: Final = "model"
"""The tag of cases with the sizes of layers of published networks, or captured from models."""

CAPTURED_TAG: Final = "captured"
"""The tag of cases made from what applications gave to DirectML."""

CAPTURED_NOTE: Final = "Captured from {}."
"""The note of the suite's own captured cases, with the models' names instead of `{}`."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cases to take; a criterion at its default takes all.

    Attributes:
        keywords: an expression over parts of identifiers: `gather and not (strided or FLOAT16)`.
        operators: names in the catalogue; graphs that contain one of them are taken, too.
        tags: a case must have one of them.
        identifiers: identifiers of cases, names of matrices, or patterns with `*` and `?`.
        lists: like `identifiers`; a case must be in each list.
        where: a condition over facts of cases, as `Condition` reads it.
        feature_level: the highest feature level that a case may need.
        quick: whether to take only the cases that `quick_cases` chooses.
        without_tags: a case must have none of them.
    """

    keywords: str | None = None
    operators: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    identifiers: frozenset[str] = frozenset()
    lists: tuple[frozenset[str], ...] = ()
    where: str | None = None
    feature_level: FeatureLevel | None = None
    quick: bool = False
    without_tags: frozenset[str] = frozenset()


def select(cases: Iterable[PlannedCase], selection: Selection) -> Iterator[PlannedCase]:
    """Yield the cases that fit the selection, in their order.

    Raises:
        KeywordError: the keyword expression cannot be read.
        ConditionError: the condition cannot be read, needs too many steps, or applies to no case.
        InvalidFilesError: a case cannot be built.
    """
    fitting = _fitting(cases, selection)
    if not selection.quick:
        yield from fitting
        return
    from dmlconf.cases.selecting.quick import quick_cases  # Few commands need it.

    yield from quick_cases(list(fitting))


def _fitting(cases: Iterable[PlannedCase], selection: Selection) -> Iterator[PlannedCase]:
    matches = keyword_matcher(selection.keywords) if selection.keywords else None
    condition = Condition(selection.where) if selection.where is not None else None
    lists = [identifier_matcher(names) for names in selection.lists]
    if selection.identifiers:
        lists.append(identifier_matcher(selection.identifiers))
    for case in cases:
        template = case.template
        if selection.operators and not _is_of(case, selection.operators):
            continue
        if selection.tags and selection.tags.isdisjoint(template.tags):
            continue
        if not selection.without_tags.isdisjoint(template.tags):
            continue
        if not all(is_listed(case.identifier) for is_listed in lists):
            continue
        if matches is not None and not matches(case.identifier.casefold()):
            continue
        if condition is not None and not condition.holds(case):
            continue
        if selection.feature_level is not None and not needs_at_most(case, selection.feature_level):
            continue
        yield case
    if condition is not None:
        condition.check()


def _is_of(planned: PlannedCase, operators: frozenset[str]) -> bool:
    """Return whether a case, or a node of a graph, is of one of these operators."""
    if planned.template.operator_name in operators:
        return True
    from dmlconf.cases.building.graph_build import operators_in  # Few files have graphs.

    return not operators.isdisjoint(operators_in(planned))


def graphs_in(plan: Iterable[PlannedCase]) -> list[PlannedCase]:
    """Return the graphs of a plan."""
    return [planned for planned in plan if planned.template.is_graph]


def names_models(paths: Iterable[Path], tags: Iterable[str], keywords: str | None) -> bool:
    """Return whether a tag, a file or a word of the keywords is named `model` or `captured`.

    A file's extension does not count. A word may have capitals, and counts even after "not".
    """
    names = {MODEL_TAG, CAPTURED_TAG}
    return (
        not names.isdisjoint(tags)
        or any(path.stem in names for path in paths)
        or not names.isdisjoint(re.split(r"\W+", (keywords or "").lower()))
    )


def named_models(note: str | None) -> list[str]:
    """Return the models that a captured case's note names."""
    start, end = CAPTURED_NOTE.split("{}")
    text = note or ""
    if not text.startswith(start) or not text.endswith(end):
        return []
    return text.removeprefix(start).removesuffix(end).split(", ")


def without_models(plan: Sequence[PlannedCase]) -> tuple[Sequence[PlannedCase], int]:
    """Return the plan without the cases of models, and how many were removed."""
    if not any(MODEL_TAG in planned.template.tags for planned in of_each_template(plan)):
        return plan, 0
    rest = PlannedCases(each for each in plan if MODEL_TAG not in each.template.tags)
    return rest, len(plan) - len(rest)


def needs_at_most(planned: PlannedCase, level: FeatureLevel) -> bool:
    """Return whether the feature level has all parts of a case.

    Raises:
        InvalidFilesError: the case cannot be built.
    """
    if level == FEATURE_LEVELS[-1]:
        return True  # The highest level has everything.
    return built_case(planned).lowest_level <= level
