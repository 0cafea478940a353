"""Conditions that explain failures of several operators at once.

If GEMM and CONVOLUTION fail where `FLOAT16 in DataTypes`, the report has one line for both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from dmlconf.diagnosis.groups import Group, OperatorFailures
from dmlconf.diagnosis.search import description_bits, pair_indices
from dmlconf.tensors.datatypes import Array

__all__ = ["SharedGroups", "shared_groups"]

MOST_PAIRED: Final = 60
"""The most expressions that are combined into pairs, `A and B`.

An expression that at least 90% of a group's failures meet gets a point for each failure of the
group. The expressions with the most points are combined.
"""

_NEARLY: Final = 0.9
"""A condition explains nearly all of a group if it holds for at least this share of the group's
failures, and for at most a tenth as many passes.
"""

_SLIGHTLY_LONGER: Final = 6.0
"""A shared condition, with its exceptions, may take this many bits more than the group's own."""

_PLAIN: Final = 8.0
"""The most bits of an expression in a pair; see `dmlconf.diagnosis.atoms`."""


@dataclass(frozen=True, slots=True)
class SharedGroups:
    """Groups of several operators, and the condition that explains them.

    Attributes:
        text: the condition as an expression; empty if every case meets it.
        failures: how many failures of the groups meet it.
        passes: how many of the compared passes meet it.
    """

    groups: tuple[Group, ...]
    text: str
    failures: int
    passes: int


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Conditions, and how many failures and passes of each group meet them.

    Attributes:
        failures: has the shape (groups, conditions), as have `passes` and `accepted`.
        accepted: whether the condition explains the group.
    """

    texts: tuple[str, ...]
    bits: Array
    failures: Array
    passes: Array
    accepted: Array


_Member = tuple[Group, OperatorFailures]


def shared_groups(
    operators: Sequence[OperatorFailures],
) -> tuple[list[SharedGroups], list[Group]]:
    """Return groups that a condition explains together, and the other groups.

    Only groups with the same outcome and variants, of at least two operators, are explained
    together.
    """
    by_outcome: dict[tuple[str, str], list[_Member]] = {}
    for of in operators:
        for group in of.groups:
            by_outcome.setdefault((group.outcome, group.variants), []).append((group, of))
    shared: list[SharedGroups] = []
    left: list[Group] = []
    for members in by_outcome.values():
        explained, others = _shared(members)
        shared += explained
        left += others
    return shared, left


def _shared(members: Sequence[_Member]) -> tuple[list[SharedGroups], list[Group]]:
    operators = list({id(of): of for _, of in members}.values())
    if len(operators) < 2:
        return [], [group for group, _ in members]
    candidates = _candidates(members, operators)
    names = np.array([group.operator for group, _ in members])
    left = np.ones(len(members), bool)
    shared = []
    while (best := _widest(candidates, names, left)) is not None:
        taken = left & candidates.accepted[:, best]
        passes = candidates.passes[taken, best].tolist()
        shared.append(
            SharedGroups(
                tuple(members[at][0] for at in np.flatnonzero(taken).tolist()),
                candidates.texts[best],
                int(candidates.failures[taken, best].sum()),
                # Groups of one operator have the same passes.
                sum(dict(zip(names[taken], passes, strict=True)).values()),
            )
        )
        left &= ~taken
    return shared, [members[at][0] for at in np.flatnonzero(left).tolist()]


_PAIR: Final = 1.1
"""The worth of a pair is divided by this, so that single expressions are preferred."""


def _widest(candidates: _Candidates, names: Array, left: Array) -> int | None:
    accepted = candidates.accepted & left[:, None]
    worth = ((candidates.failures - candidates.passes) * accepted).sum(axis=0).astype(float)
    worth /= np.where([" and " in text for text in candidates.texts], _PAIR, 1.0)
    for at in np.lexsort((candidates.bits, -worth)):
        if worth[at] <= 0:
            return None
        if len(set(names[accepted[:, at]])) > 1:
            return int(at)
    return None


def _candidates(members: Sequence[_Member], operators: Sequence[OperatorFailures]) -> _Candidates:
    rows = {of.operator: _texts_by_row(of) for of in operators}
    counted = [_row_counts(member) for member in members]
    useful: dict[str, set[str]] = {}
    nearly: Counter[str] = Counter()
    bits: dict[str, float] = {"": 0.0}
    for (group, of), (failures, passes) in zip(members, counted, strict=True):
        size = len(group.failures)
        own = np.array([atom.bits for atom in of.table.atoms])
        accepted = _accepted(group, own, failures, passes)
        for at in np.flatnonzero(accepted | (failures >= _NEARLY * size)).tolist():
            for text in rows[of.operator][at]:
                far = of.table.bits[text]
                if accepted[at]:
                    useful.setdefault(text, set()).add(of.operator)
                if far <= _PLAIN and failures[at] >= _NEARLY * size:
                    nearly[text] += size
                bits[text] = min(far, bits.get(text, far))
    singles = ["", *(text for text, names in useful.items() if len(names) > 1)]
    ranked = sorted(nearly, key=lambda text: (-nearly[text], bits[text], text))
    paired = ranked[:MOST_PAIRED]
    pairs = list(combinations(paired, 2))
    texts = (*singles, *(f"{a} and {b}" for a, b in pairs))
    every = np.array([*(bits[text] for text in singles), *(bits[a] + bits[b] for a, b in pairs)])
    hits = [
        _counts_with_pairs(member, singles, paired, counts)
        for member, counts in zip(members, counted, strict=True)
    ]
    explained = [
        _accepted(group, every, hit, wrong)
        for (group, _), (hit, wrong) in zip(members, hits, strict=True)
    ]
    failing, passing = (np.array([hit[at] for hit in hits]) for at in (0, 1))
    return _Candidates(texts, every, failing, passing, np.array(explained))


def _texts_by_row(of: OperatorFailures) -> list[list[str]]:
    texts: list[list[str]] = [[] for _ in of.table.atoms]
    for text, row in of.table.index.items():
        texts[row].append(text)
    return texts


def _row_counts(member: _Member) -> tuple[Array, Array]:
    group, of = member
    holds = of.table.holds
    return holds[:, group.failing].sum(axis=1), holds[:, group.passing].sum(axis=1)


def _counts_with_pairs(
    member: _Member, singles: Sequence[str], paired: Sequence[str], counts: Sequence[Array]
) -> list[Array]:
    """Return how many failures, and how many passes, meet each expression and each pair."""
    group, of = member
    index = of.table.index
    # Every case meets the empty expression, and none meets an expression that the table lacks.
    every, none = len(of.table.atoms), len(of.table.atoms) + 1
    single = [index.get(text, none) if text else every for text in singles]
    known = [at for at, text in enumerate(paired) if text in index]
    holds = of.table.holds[[index[paired[at]] for at in known]]
    hits = []
    for verdicts, count in zip((group.failing, group.passing), counts, strict=True):
        rows = np.zeros((len(paired), len(verdicts)), np.float32)
        if known:
            rows[known] = holds[:, verdicts]
        both = (rows @ rows.T)[pair_indices(len(paired))]
        alone = np.array([*count.tolist(), len(verdicts), 0], int)[single]
        hits.append(np.concatenate([alone, both.astype(int)]))
    return hits


def _accepted(group: Group, bits: Array, failures: Array, passes: Array) -> Array:
    """Return which conditions explain a group nearly as well as the group's own condition.

    These conditions explain nearly all of the group, or have a description that is nearly as short.
    If the facts of all failures are unknown, there are no such conditions.
    """
    of, total = len(group.failures), group.compared
    nearly = (failures >= _NEARLY * of) & (10 * passes <= failures)
    if not any(verdict.facts for verdict in group.failures):
        return np.zeros(len(bits), bool)
    best = group.explanation.bits if group.explanation is not None else -np.inf
    length = bits + description_bits(failures, passes, of, total)
    accepted: Array = nearly | ((length <= best + _SLIGHTLY_LONGER) & (failures > 0))
    return accepted
