"""Find names in options that choose cases, such as a mistyped tag, that stand for no case.

Such a name is no error, since one selection may serve several suites, but each gets a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from dmlconf.cases.loading.loader import Suite
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.keywords import keyword_words
from dmlconf.cases.selecting.selection import (
    CAPTURED_TAG,
    LARGE_TAG,
    MODEL_TAG,
    Selection,
    graphs_in,
)
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import operator_names
from dmlconf.documents.problems import nearest
from dmlconf.tensors.datatypes import DataType

__all__ = ["did_you_mean", "names_without_cases", "tags_of"]

_USUAL_TAGS: Final = frozenset(
    {
        CAPTURED_TAG,
        LARGE_TAG,
        MODEL_TAG,
        "boundary",
        "combinations",
        "documented",
        "graph",
        "invalid",
        "matrix",
        "questions",
        "sizes",
        "slow",
        "triples",
        "undefined",
    }
)
"""Tags that a suite may lack: to leave their cases out is no mistake then."""


def names_without_cases(
    selection: Selection,
    operators: Mapping[str, Collection[str]],
    chosen: Sequence[PlannedCase],
    suite: Suite,
    whole: Callable[[], Suite],
) -> Iterator[str]:
    """Yield a message for each tag, operator and word of the selection that no case has.

    A word of `-k` counts if it is also in no name of an operator, data type or usual tag, since a
    suite need not have what `-k 'not graphs'` leaves out.

    Args:
        operators: by each name that the user gives, the operators that it stands for.
        chosen: the selected cases.
        suite: the loaded cases, among which are those of the selected operators.
        whole: returns all cases under the paths of the command.
    """
    yield from _tags(selection, suite, whole)
    yield from _operators(selection, operators, suite)
    yield from _words(selection, chosen, whole)


def tags_of(suite: Suite) -> set[str]:
    """Return the tags that the suite's cases have."""
    return {tag for template in suite.templates for tag in template.tags}


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return `; did you mean X?` with the most similar known name; "" if none is similar."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def _tags(selection: Selection, suite: Suite, whole: Callable[[], Suite]) -> Iterator[str]:
    named = [("--tag", tag) for tag in sorted(selection.tags)]
    named += [("--without-tag", tag) for tag in sorted(selection.without_tags - _USUAL_TAGS)]
    known = tags_of(suite) if named else set()
    if all(tag in known for _, tag in named):
        return
    known = tags_of(whole())
    for option, tag in named:
        if tag not in known:
            yield f"{option}: no case has the tag {tag}{did_you_mean(tag, known | _USUAL_TAGS)}"


def _operators(
    selection: Selection, named: Mapping[str, Collection[str]], suite: Suite
) -> Iterator[str]:
    present = {template.operator_name for template in suite.templates}
    lacking = {
        name: operators
        for name, operators in named.items()
        if selection.operators.issuperset(operators) and present.isdisjoint(operators)
    }
    if not lacking:
        return
    from dmlconf.cases.building.graph_build import operators_in  # Few files have graphs.

    for graph in graphs_in(suite.plan()):
        present |= operators_in(graph)
    for name, operators in lacking.items():
        if present.isdisjoint(operators):
            yield f"--operator: there is no case of {name}"


def _words(
    selection: Selection, chosen: Sequence[PlannedCase], whole: Callable[[], Suite]
) -> Iterator[str]:
    if not selection.keywords:
        return
    usual = {GRAPHS.lower(), *_USUAL_TAGS, *map(str.lower, (*operator_names(), *DataType))}
    unusual = [
        word
        for word in keyword_words(selection.keywords)
        if not any(word in each for each in usual)
        and not any(word in case.identifier.casefold() for case in chosen)
    ]
    if not unusual:
        return
    identifiers = "\n".join(case.identifier for case in whole().plan()).casefold()
    for word in dict.fromkeys(unusual):
        if word not in identifiers:
            yield f"-k: no case has {word} in its identifier{did_you_mean(word, usual)}"
