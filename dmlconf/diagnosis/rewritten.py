"""Find a wrong rewrite of a graph that gives a device's outputs bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final

import numpy as np

from dmlconf.cases.graph_case import with_graph
from dmlconf.cases.loading.rewrites import case_rewrite, rewrites, rewritten
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.diagnosis.graph_mutants import Mutant, mutants_of
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array, bits_of

__all__ = ["Outputs", "own_mutant", "same_as_rewritten"]

Outputs = Mapping[str, Array]

_MOST_MUTANTS: Final = 400
"""The most mutants of `graph_mutants` that the reference computes."""
_MOST_RUNS: Final = 12
"""The most mutants whose nodes run one by one on the device."""

_NEAR: Final = 0.02
"""A mutant runs on the device only if its computed outputs differ from the device's by at most this
share of the largest finite magnitude in the device's output.
"""


def own_mutant(planned: PlannedCase) -> Mutant | None:
    """Return the mutant of the rewrite that a case tests; None if it tests none.

    Raises:
        CaseError: there is no such rewrite or condition, or the nodes do not make a graph.
        InvalidFilesError: `schemas/rewrites.yaml` is invalid.
    """
    rewrite = case_rewrite(planned.template)
    if rewrite is None:
        return None
    entry = rewrites()[rewrite.name]
    condition = rewrite.breaks and entry.conditions[rewrite.breaks]
    so = f", although this does not hold: {condition}" if condition else ""
    other = rewritten(planned).with_inputs()
    return Mutant(f"{entry.does}{so}", rewrite.name, other.graph, other.data)


def same_as_rewritten(
    case: Case,
    outputs: Outputs,
    own: Mutant | None,
    one_by_one: Callable[[Case], Outputs | None],
) -> Mutant | None:
    """Return a mutant of a graph that gives the device's outputs bit by bit; None if none is found.

    All NaN are equal.

    Args:
        outputs: the device's outputs of the graph.
        own: the mutant of the case's own rewrite, which is tried first; None without a rewrite.
        one_by_one: runs a graph's nodes one by one on the device, which may round otherwise than
            the reference.
    """
    mutants: Iterable[Mutant] = mutants_of(case.graph)
    candidates = [*([own] if own is not None else []), *islice(mutants, _MOST_MUTANTS)]
    near: list[tuple[Mutant, Case]] = []
    for mutant in candidates:
        other = _with(case, mutant)
        computed = _computed(other)
        if computed is None:
            continue
        if _all(_same_bits, computed, outputs):
            return mutant
        if _all(_near, computed, outputs):
            near.append((mutant, other))
    for mutant, other in near[:_MOST_RUNS]:
        result = one_by_one(other)
        if result is not None and _all(_same_bits, result, outputs):
            return mutant
    return None


def _with(case: Case, mutant: Mutant) -> Case:
    return with_graph(
        case,
        mutant.graph,
        identifier=f"{case.identifier}#{mutant.rewrite}",
        data=case.data if mutant.data is None else mutant.data,
        expectation=None,
        relation=None,
        tolerances={},
    )


def _computed(case: Case) -> Outputs | None:
    try:
        with np.errstate(all="ignore"):
            return evaluate(case)
    except (ArithmeticError, KeyError, ValueError, IndexError):
        return None  # A mutant may read what a node must not, such as an index out of range.


def _all(alike: Callable[[Array, Array], bool], computed: Outputs, outputs: Outputs) -> bool:
    """Return whether the device's outputs are like the computed outputs.

    Shapes, data types and integers must be equal.
    """

    def fits(one: Array, other: Array) -> bool:
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return alike(one, other) if one.dtype.kind == "f" else np.array_equal(one, other)

    return computed.keys() >= outputs.keys() and all(
        fits(computed[name], array) for name, array in outputs.items()
    )


def _same_bits(one: Array, other: Array) -> bool:
    nan = np.isnan(one) & np.isnan(other)
    return bool(np.all(nan | (bits_of(one) == bits_of(other))))


def _near(one: Array, other: Array) -> bool:
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)):
        return False
    scale = float(np.max(np.abs(other[finite].astype(np.float64)), initial=0.0))
    gap = np.abs(one[finite].astype(np.float64) - other[finite].astype(np.float64))
    return bool(np.all(gap <= _NEAR * scale))
