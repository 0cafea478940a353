"""Conditions that explain the failures of several operators at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from dmlconf.diagnosis.groups import Group, OperatorFailures
from dmlconf.diagnosis.search import description_bits
from dmlconf.tensors.datatypes import Array

__all__ = ["SharedGroups", "shared_groups"]

MOST_PAIRED: Final = 60
"""Expressions that pairs are formed of: those that hold for most failures."""

_NEARLY: Final = 0.9
_SLIGHTLY_LONGER: Final = 6.0
_PAIR: Final = 1.1
"""A pair must explain so many times the failures of a single expression."""

_PLAIN: Final = 8.0


@dataclass(frozen=True, slots=True)
class SharedGroups:
    """Groups of several operators, and the condition that explains them.

    Attributes:
        groups: the groups.
        text: the condition as an expression; empty where it is every case.
        failures: how many failures of the groups meet it.
        passes: how many of the passes that they are compared with do.
    """

    groups: tuple[Group, ...]
    text: str
    failures: int
    passes: int


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Conditions, and how many failures and passes of each group meet them.

    Attributes:
        texts: the expressions.
        bits: how far-fetched each is.
        failures: of shape (groups, candidates).
        passes: of the same shape.
        accepted: whether the candidate explains the group; of the same shape.
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
    """Return the groups that a condition explains together, and the others."""
    by_outcome: dict[str, list[_Member]] = {}
    for of in operators:
        for group in of.groups:
            by_outcome.setdefault(group.outcome, []).append((group, of))
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
        shared.append(
            SharedGroups(
                tuple(members[at][0] for at in np.flatnonzero(taken).tolist()),
                candidates.texts[best],
                int(candidates.failures[taken, best].sum()),
                int(candidates.passes[taken, best].sum()),
            )
        )
        left &= ~taken
    return shared, [members[at][0] for at in np.flatnonzero(left).tolist()]


def _widest(candidates: _Candidates, names: Array, left: Array) -> int | None:
    """Return the place of the condition that explains most failures of several operators."""
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
    usage = Counter(text for of in operators for text in of.table.index)
    texts = ["", *(text for text, count in usage.items() if count > 1)]
    bits = np.array([0.0, *(_bits(text, operators) for text in texts[1:])])
    failures, passes = _counted(members, texts)
    sizes = np.array([len(group.failures) for group, _ in members])[:, None]
    nearly = ((failures >= _NEARLY * sizes) * sizes).sum(axis=0)
    order = [at for at in np.lexsort((bits, -nearly)) if texts[at] and bits[at] <= _PLAIN]
    paired = sorted(order[:MOST_PAIRED])
    pairs = list(combinations(range(len(paired)), 2))
    counts = [_pair_counts(member, [texts[at] for at in paired], pairs) for member in members]
    all_failures = np.hstack([failures, np.array([f for f, _ in counts])])
    all_passes = np.hstack([passes, np.array([p for _, p in counts])])
    all_bits = np.concatenate([bits, [bits[paired[a]] + bits[paired[b]] for a, b in pairs]])
    names = [f"{texts[paired[a]]} and {texts[paired[b]]}" for a, b in pairs]
    accepted = np.array(
        [
            _accepted(group, all_bits, all_failures[at], all_passes[at])
            for at, (group, _) in enumerate(members)
        ]
    )
    return _Candidates((*texts, *names), all_bits, all_failures, all_passes, accepted)


def _bits(text: str, operators: Sequence[OperatorFailures]) -> float:
    return min(of.table.bits[text] for of in operators if text in of.table.index)


def _rows(member: _Member, texts: Sequence[str]) -> Iterator[Array]:
    """Yield for each expression which cases of the member's operator meet it."""
    table = member[1].table
    nothing = np.zeros(table.holds.shape[1], bool)
    for text in texts:
        row = table.index.get(text)
        yield ~nothing if not text else nothing if row is None else table.holds[row]


def _counted(members: Sequence[_Member], texts: Sequence[str]) -> tuple[Array, Array]:
    failures, passes = [], []
    for member in members:
        holds = np.array(list(_rows(member, texts)))
        failures.append(holds[:, member[0].failing].sum(axis=1))
        passes.append(holds[:, member[0].passing].sum(axis=1))
    return np.array(failures), np.array(passes)


def _pair_counts(
    member: _Member, texts: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> tuple[Array, Array]:
    if not pairs:
        return np.zeros(0, int), np.zeros(0, int)
    holds = np.array(list(_rows(member, texts))).astype(np.float32)
    first, second = np.array(pairs).T
    counts = []
    for places in (member[0].failing, member[0].passing):
        some = holds[:, places]
        counts.append((some @ some.T)[first, second].astype(int))
    return counts[0], counts[1]


def _accepted(group: Group, bits: Array, failures: Array, passes: Array) -> Array:
    """Tell which conditions explain a group nearly as well as the best of its own."""
    of, total = len(group.failures), group.compared
    nearly = (failures >= _NEARLY * of) & (passes <= (1 - _NEARLY) * failures)
    if not any(verdict.facts for verdict in group.failures):
        return np.zeros(len(bits), bool)
    best = group.explanation.bits if group.explanation is not None else -np.inf
    length = bits + description_bits(failures, passes, of, total)
    accepted: Array = nearly | ((length <= best + _SLIGHTLY_LONGER) & (failures > 0))
    return accepted
