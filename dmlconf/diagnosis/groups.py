"""Group the failures of each operator in a run, and explain each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.diagnosis.atoms import AtomTable
from dmlconf.diagnosis.desc_atoms import atom_table
from dmlconf.diagnosis.search import Explanation, explain
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.choosing import failing, where
from dmlconf.verdicts.grouping import verdicts_by_operator
from dmlconf.verdicts.verdict import Judgement, ReasonKind, Status, Verdict, failing_variants

__all__ = ["Group", "OperatorFailures", "operator_failures"]

_REJECTIONS: Final = frozenset({ReasonKind.ACCEPTED_INVALID, ReasonKind.WRONG_REJECTION})
"""Failures by a missing or wrong rejection; they are compared with correctly rejected cases."""

_LEAST_LEFT: Final = 2
"""At least this many failures that do not meet a group's condition form another group."""

_MOST_PARTS: Final = 3
"""The most conditions that split the failures; the failures left over form one group."""


@dataclass(frozen=True, slots=True)
class Group:
    """Failures of an operator with the same outcome and failing variants.

    Attributes:
        outcome: `broken`, `rejection` or `result`.
        reasons: the kinds of reason, the most frequent first, with their counts.
        explanation: what separates the failures from passes; None if no known fact does. Its field
            `of` may also count failures of other groups, which do not meet the condition.
        compared: the number of passes with which the failures were compared.
        failing: the failures, as indices of columns of `OperatorFailures.table.holds`.
        passing: the passes that the failures were compared with, likewise.
        variants: which variants of the backend fail; empty if all do, or if there are none.
    """

    operator: str
    outcome: str
    reasons: tuple[tuple[str, int], ...]
    failures: tuple[Verdict, ...]
    explanation: Explanation | None
    compared: int
    failing: Array
    passing: Array
    variants: str


@dataclass(frozen=True, slots=True)
class OperatorFailures:
    """The groups of an operator, and the atoms for their explanations."""

    operator: str
    groups: tuple[Group, ...]
    table: AtomTable


def operator_failures(verdicts: Sequence[Verdict]) -> Iterator[OperatorFailures]:
    """Yield the groups of each operator that has failures."""
    judged = where(
        verdicts, Judgement, lambda each: each.status.fails_run or each.status is Status.PASSED
    )
    for operator, members in verdicts_by_operator(judged).items():
        if failing(members):
            yield _of_operator(operator, members)


def _of_operator(operator: str, verdicts: Sequence[Verdict]) -> OperatorFailures:
    classes: dict[tuple[str, str], list[int]] = {}
    for index, verdict in enumerate(verdicts):
        if verdict.status.fails_run:
            key = _class(verdict), failing_variants(verdict.judgement.variants)
            classes.setdefault(key, []).append(index)
    by_reason = {name: _by_reason(verdicts, np.array(indices)) for name, indices in classes.items()}
    bounds = [group for groups in by_reason.values() for group in groups]
    table = atom_table(verdicts, bounds)
    groups: list[Group] = []
    for (name, _), parts in by_reason.items():
        passing = _compared(verdicts, name)
        whole = np.concatenate(parts)
        joint = _explained(table, verdicts, whole, passing)
        if len(parts) == 1 or (joint is not None and joint.exact):
            groups += _parted(operator, table, verdicts, whole, passing, joint)
            continue
        for part in parts:
            explanation = _explained(table, verdicts, part, passing)
            groups += _parted(operator, table, verdicts, part, passing, explanation)
    return OperatorFailures(operator, tuple(groups), table)


def _class(verdict: Verdict) -> str:
    if verdict.status is Status.BROKEN:
        return "broken"
    kind = verdict.reason.kind if verdict.reason else None
    return "rejection" if kind in _REJECTIONS else "result"


def _by_reason(verdicts: Sequence[Verdict], indices: Array) -> list[Array]:
    by_kind: dict[str, list[int]] = {}
    for index in indices.tolist():
        by_kind.setdefault(_kind(verdicts[index]), []).append(index)
    return [np.array(part) for part in sorted(by_kind.values(), key=len, reverse=True)]


def _kind(verdict: Verdict) -> str:
    return str(verdict.reason.kind if verdict.reason else verdict.status)


def _compared(verdicts: Sequence[Verdict], outcome: str) -> Array:
    """Return the indices of the passes with which failures of an outcome are compared.

    A pass that was rejected as expected says nothing about values or crashes, and vice versa.
    """
    passing = [at for at, verdict in enumerate(verdicts) if verdict.status is Status.PASSED]
    ran = outcome != "rejection"
    alike = [at for at in passing if bool(verdicts[at].figures) is ran]
    return np.array(alike, np.intp)


def _explained(
    table: AtomTable, verdicts: Sequence[Verdict], failing: Array, passing: Array
) -> Explanation | None:
    known = any(verdicts[index].facts for index in failing.tolist())
    return explain(table, failing, passing) if known else None


def _parted(
    operator: str,
    table: AtomTable,
    verdicts: Sequence[Verdict],
    failing: Array,
    passing: Array,
    explanation: Explanation | None,
) -> Iterator[Group]:
    for _ in range(_MOST_PARTS):
        left = failing[:0]
        if explanation is not None and explanation.failures <= len(failing) - _LEAST_LEFT:
            meets = _meets(table, explanation)[failing]
            failing, left = failing[meets], failing[~meets]
        yield _group(operator, verdicts, failing, passing, explanation)
        if not len(left):
            return
        failing, explanation = left, _explained(table, verdicts, left, passing)
    yield _group(operator, verdicts, failing, passing, explanation)


def _meets(table: AtomTable, explanation: Explanation) -> Array:
    rows = [table.index[term.text] for term in explanation.terms]
    meets: Array = np.logical_and.reduce(table.holds[rows], axis=0)
    return meets


def _group(
    operator: str,
    verdicts: Sequence[Verdict],
    failing: Array,
    passing: Array,
    explanation: Explanation | None,
) -> Group:
    failures = tuple(verdicts[index] for index in failing.tolist())
    reasons = tuple(Counter(map(_kind, failures)).most_common())
    return Group(
        operator,
        _class(failures[0]),
        reasons,
        failures,
        explanation,
        len(passing),
        failing,
        passing,
        failing_variants(failures[0].judgement.variants),
    )
