"""Search for the shortest condition that separates a group's failures from passes.

The shortest description wins (Rissanen, Modeling by shortest data description, 1978): the bits of
the condition, and those that identify its exceptions. Exceptions are passes that meet the condition
and failures that do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from dmlconf.diagnosis.atoms import Atom, AtomTable
from dmlconf.tensors.datatypes import Array

__all__ = ["Explanation", "description_bits", "explain", "pair_indices"]

MOST_PAIRED: Final = 160
"""The most atoms that are combined into pairs; the best ones are taken."""

MOST_EXTENDED: Final = 12
"""If every pair has exceptions, this many of the best pairs are extended by a third atom."""

EXACT_BONUS: Final = 10.0
"""Bits by which a condition without exceptions may be longer than one with exceptions."""

_NEARLY: Final = 0.9
"""A condition has few exceptions if it holds for at least this share of the failures, and for at
most a tenth as many passes.
"""

_FEW: Final = 0.05
"""If there are at most this many passes for each failure, nearly every case fails."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A condition that separates failures from passes.

    Attributes:
        terms: the atoms that must all hold; empty if every case meets the condition.
        failures: how many failures of the group meet it.
        of: how many failures the group has.
        passes: how many passes meet it.
        bits: those of the condition and of its exceptions.
        simpler: a shorter condition with few exceptions, if this one is exact and longer.
    """

    terms: tuple[Atom, ...]
    failures: int
    of: int
    passes: int
    bits: float
    simpler: Explanation | None = None

    @property
    def text(self) -> str:
        """The condition as an expression; empty if every case meets it."""
        return " and ".join(term.text for term in self.terms)

    @property
    def exact(self) -> bool:
        """Whether the condition holds for every failure and for no pass."""
        return self.failures == self.of and not self.passes


@lru_cache(maxsize=64)
def _log_factorials(most: int) -> Array:
    return np.concatenate(([0.0], np.cumsum(np.log2(np.arange(1, most + 1)))))


def description_bits(failures: Array | int, passes: Array | int, of: int, total: int) -> Array:
    """Return the bits that identify the exceptions of conditions.

    Args:
        failures: how many failures meet each condition.
        passes: how many passes meet each condition.
        of: how many failures there are in all.
        total: how many passes there are in all.
    """
    table = _log_factorials(1 << int(of + total).bit_length())
    hit: Array = np.asarray(failures, np.intp)
    wrong: Array = np.asarray(passes, np.intp)

    def chosen(some: Array, others: Array) -> Array:
        bits: Array = table[some + others] - table[some] - table[others]
        return bits

    bits: Array = chosen(hit, wrong) + chosen(of - hit, total - wrong)
    return bits


def explain(table: AtomTable, failing: Array, passing: Array) -> Explanation | None:
    """Return the condition that separates the cases best; None if nothing separates them.

    If there are no passes, or if nearly every case fails (`_FEW`) and some failures do not meet the
    best condition, the result is the condition that every case meets.

    Args:
        failing: indices of the group's failures.
        passing: indices of the passes to separate them from.
    """
    of, total = len(failing), len(passing)
    everywhere = Explanation((), of, of, total, float(description_bits(of, total, of, total)))
    if not table.atoms or not total:
        return everywhere if not total else None
    ours = table.holds[:, failing].astype(np.float32)
    others = table.holds[:, passing].astype(np.float32)
    singles = _best_single(table, ours, others)
    best = singles[:1] + [e for e in singles if e.exact][:1]
    if not any(e.exact and e.terms[0].bits < _ODD for e in singles):
        best += _best_pairs(table, ours, others)
    chosen = _chosen([everywhere, *best])
    if chosen.failures < of and total <= _FEW * of:
        return everywhere
    return chosen if chosen.terms else None


_ODD: Final = 8.0
"""If an exact atom has fewer bits, no pairs are tried. An exact atom of more bits may fit by
accident."""

_MOST_SINGLE: Final = 20
"""The most atoms that are considered alone, besides exact ones."""


def _chosen(candidates: list[Explanation]) -> Explanation:
    shortest = min(candidates, key=lambda e: e.bits)
    exact = min((e for e in candidates if e.exact), key=lambda e: e.bits, default=None)
    if exact is None or exact.bits > shortest.bits + EXACT_BONUS:
        return shortest
    simple = [
        e
        for e in candidates
        if 0 < len(e.terms) < len(exact.terms)
        and e.failures >= _NEARLY * e.of
        and 10 * e.passes <= e.failures
    ]
    simpler = min(simple, key=lambda e: e.bits, default=None)
    return Explanation(exact.terms, exact.failures, exact.of, 0, exact.bits, simpler)


def _explaining_bits(failures: Array, passes: Array, of: int, total: int) -> Array:
    """Return `description_bits`; infinity if passes meet a condition as often as failures do."""
    against = failures.astype(np.int64) * total <= passes.astype(np.int64) * of
    return np.where(against, np.inf, description_bits(failures, passes, of, total))


def _best_single(table: AtomTable, ours: Array, others: Array) -> list[Explanation]:
    of, total = ours.shape[1], others.shape[1]
    failures, passes = ours.sum(axis=1).astype(int), others.sum(axis=1).astype(int)
    own = np.array([atom.bits for atom in table.atoms])
    bits = own + _explaining_bits(failures, passes, of, total)
    order = np.argsort(bits, kind="stable")
    exact = (failures == of) & (passes == 0)
    shortlist = [*order[:_MOST_SINGLE], *(at for at in order[_MOST_SINGLE:] if exact[at])]
    return [
        Explanation((table.atoms[at],), int(failures[at]), of, int(passes[at]), float(bits[at]))
        for at in shortlist
        if np.isfinite(bits[at])
    ]


@lru_cache(maxsize=64)
def pair_indices(count: int) -> tuple[Array, Array]:
    """Return the rows and columns of the elements above a square matrix's diagonal."""
    return np.triu_indices(count, 1)


def _least(values: Array, most: int) -> Array:
    """Return the indices of up to `most` of the lowest values, the lowest first."""
    indices = np.arange(len(values))
    if most < len(values):
        indices = np.flatnonzero(values <= np.partition(values, most)[most])
    order: Array = indices[np.argsort(values[indices], kind="stable")][:most]
    return order


def _best_pairs(table: AtomTable, ours: Array, others: Array) -> list[Explanation]:
    of, total = ours.shape[1], others.shape[1]
    own = np.array([atom.bits for atom in table.atoms])
    failures = ours.sum(axis=1)
    useful = np.flatnonzero((failures * 2 >= of) & (others.sum(axis=1) < total))
    informative = description_bits(failures[useful], others[useful].sum(axis=1), of, total)
    shortlist = useful[np.argsort(own[useful] + informative, kind="stable")[:MOST_PAIRED]]
    if len(shortlist) < 2:
        return []
    a, b = ours[shortlist], others[shortlist]
    pair_failures, pair_passes = a @ a.T, b @ b.T
    rows, columns = pair_indices(len(shortlist))
    pair_failures, pair_passes = pair_failures[rows, columns], pair_passes[rows, columns]
    flat = own[shortlist][rows] + own[shortlist][columns]
    flat = flat + _explaining_bits(pair_failures, pair_passes, of, total)
    order = _least(flat, MOST_EXTENDED)
    exact = np.flatnonzero((pair_failures == of) & (pair_passes == 0))

    def pair(at: int) -> Explanation:
        i, j = rows[at], columns[at]
        terms = table.atoms[shortlist[i]], table.atoms[shortlist[j]]
        held = int(pair_failures[at]), of, int(pair_passes[at])
        return Explanation(terms, *held, float(flat[at]))

    order = order[np.isfinite(flat[order])]
    pairs = [pair(at) for at in order[:1]]
    if len(exact):
        return [*pairs, pair(exact[flat[exact].argmin()])]
    for at in order:
        i, j = rows[at], columns[at]
        three_failures, three_passes = a @ (a[i] * a[j]), b @ (b[i] * b[j])
        three = flat[at] - description_bits(pair_failures[at], pair_passes[at], of, total)
        three = three + own[shortlist] + _explaining_bits(three_failures, three_passes, of, total)
        k = int(three.argmin())
        if k in (i, j) or not np.isfinite(three[k]):
            continue
        terms = tuple(table.atoms[shortlist[index]] for index in (i, j, k))
        held = int(three_failures[k]), of, int(three_passes[k])
        pairs.append(Explanation(terms, *held, float(three[k])))
    return pairs
