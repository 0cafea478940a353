"""The outputs that DirectML computes instead of the right ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps

from dmlconf.cases.model import Case
from dmlconf.precision.allowance import Allowance
from dmlconf.tensors.datatypes import Array

__all__ = ["Computed", "Formula", "of_operators"]


@dataclass(frozen=True, slots=True)
class Computed:
    """The outputs of a case on a DirectML with a fault.

    Attributes:
        outputs: arrays by tensor. Those that the fault leaves right are as the reference has them.
        around: a case whose right outputs these are, and whose rules say how far DirectML's
            arithmetic may be from them; None if every bit is known.
        terms: for sums that no case has as its right outputs, the sums of their terms' sizes,
            FLOAT64, by tensor: what the operator's rule is a share of.
        allowance: gives what is permitted around each output where neither says it.
        unknown: which elements may be anything, by tensor; none of those that are left out.
        spills: whether something is written past the end of an output.
        others: gives what else such a DirectML may compute, where a kernel is chosen by what is
            not known; None if nothing else. Nodes of graphs are not tried with these.
    """

    outputs: Mapping[str, Array]
    around: Case | None = None
    terms: Mapping[str, Array] | None = None
    allowance: Callable[[str], Allowance] | None = None
    unknown: Mapping[str, Array] = field(default_factory=dict)
    spills: bool = False
    others: Callable[[], Iterator[Computed]] | None = None


Formula = Callable[[Case], Computed | None]
"""Computes what a DirectML with one fault gives; None if the fault does not concern the case.

It is given one operator with its inputs, which may be a node of a graph; a formula of what several
nodes give together is given the graph.
"""


def of_operators(*names: str) -> Callable[[Formula], Formula]:
    """Return a decorator of formulas that concern these operators, and no others and no graphs."""

    def decorator(formula: Formula) -> Formula:
        @wraps(formula)
        def of_these(case: Case) -> Computed | None:
            return formula(case) if case.operator_name in names else None

        return of_these

    return decorator
