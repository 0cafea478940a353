"""Select cases by keywords, operator, tag, identifier and so on; leave out cases of models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    "emptied",
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
    condition = Condition(selection.where) if selection.where is not None else None
    criteria = [fits for _, fits in _criteria(selection, condition)]
    for case in cases:
        for fits in criteria:
            if not fits(case):
                break
        else:
            yield case
    if condition is not None:
        condition.check()


def emptied(
    cases: Iterable[PlannedCase], selection: Selection
) -> tuple[str, Sequence[PlannedCase]] | None:
    """Return the first criterion that leaves no case, and the cases that those before it left.

    Returns:
        the criterion as a field of `Selection`; None if some case meets all criteria.

    Raises:
        KeywordError: the keyword expression cannot be read.
        ConditionError: the condition cannot be read or needs too many steps.
        InvalidFilesError: a case cannot be built.
    """
    condition = Condition(selection.where) if selection.where is not None else None
    left: Sequence[PlannedCase] = PlannedCases(cases)
    for name, fits in _criteria(selection, condition):
        rest = PlannedCases(filter(fits, left))
        if not rest:
            return name, left
        left = rest
    return None


_Criterion = tuple[str, Callable[[PlannedCase], bool]]
"""A field of `Selection`, and a predicate: whether a case meets it."""


def _criteria(selection: Selection, condition: Condition | None) -> list[_Criterion]:
    """Return what a case must meet, the quickest first, except for fields at their defaults."""
    criteria: list[_Criterion] = []
    if selection.operators:
        criteria.append(("operators", lambda case: _is_of(case, selection.operators)))
    lists = [identifier_matcher(names) for names in selection.lists]
    if selection.identifiers:
        lists.append(identifier_matcher(selection.identifiers))
    if lists:
        criteria.append(("lists", lambda case: all(each(case.identifier) for each in lists)))
    if selection.tags:
        criteria.append(("tags", lambda case: not selection.tags.isdisjoint(case.template.tags)))
    if selection.without_tags:
        unwanted = selection.without_tags
        criteria.append(("without_tags", lambda case: unwanted.isdisjoint(case.template.tags)))
    if selection.keywords:
        matches = keyword_matcher(selection.keywords)
        criteria.append(("keywords", lambda case: matches(case.identifier.casefold())))
    if condition is not None:
        criteria.append(("where", condition.holds))
    level = selection.feature_level
    if level is not None:
        criteria.append(("feature_level", lambda case: needs_at_most(case, level)))
    return criteria


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
