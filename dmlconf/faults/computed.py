"""What formulas (functions of this package) return, and to which operators they apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import update_wrapper

from dmlconf.cases.model import Case
from dmlconf.graphs.model import Node
from dmlconf.precision.allowance import Allowance, SumErrors
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array

__all__ = ["Computed", "Formula", "activation_of", "may_concern", "of_operators"]


@dataclass(frozen=True, slots=True)
class Computed:
    """The outputs of a case on a runtime with a fault.

    What is permitted around `outputs` comes from `allowance`, `around` or `terms`, the first that
    is not None. If all are None, every bit outside `unknown` is known.

    Attributes:
        outputs: all outputs of the case, by tensor.
        around: a case whose right outputs and rules say what is permitted.
        terms: the errors of all outputs' sums by tensor.
        allowance: returns the allowance of an output by its name.
        unknown: masks by tensor: True for elements that may have any value.
        anywhere: by tensor, values that any of its elements may have instead of its own.
        spills: whether the runtime writes past the end of an output.
        others: yields the outputs of other kernels with the fault; any of them may run.
    """

    outputs: Mapping[str, Array]
    around: Case | None = None
    terms: Mapping[str, SumErrors] | None = None
    allowance: Callable[[str], Allowance] | None = None
    unknown: Mapping[str, Array] = field(default_factory=dict)
    anywhere: Mapping[str, Array] = field(default_factory=dict)
    spills: bool = False
    others: Callable[[], Iterator[Computed]] | None = None


Formula = Callable[[Case], Computed | None]
"""Computes the outputs of a case on a runtime with one fault; None if the fault does not concern
it.

The case is one operator or, if the fault concerns several nodes together, a graph.
"""


def activation_of(case: Case) -> tuple[str, Array | None]:
    """Return the activation that an operator is or has fused, and its input.

    For example ("ACTIVATION_RELU", x). Without an activation ("", None). The input is also None if
    the activation has no InputTensor.
    """
    if case.operator_name.startswith("ACTIVATION_"):
        return case.operator_name, case.inputs().get("InputTensor")
    fused = case.desc.get("FusedActivation")
    if fused is None:
        return "", None
    alone = replace(case, desc={**case.desc, "FusedActivation": None})
    return fused["operator"], evaluate(alone)["OutputTensor"]


class _OfOperators:
    """A formula that applies only to some operators, and to no graphs."""

    def __init__(self, formula: Formula, operators: frozenset[str]) -> None:
        self.operators = operators
        self._formula = formula
        update_wrapper(self, formula)

    def __call__(self, case: Case) -> Computed | None:
        return self._formula(case) if case.operator_name in self.operators else None


def of_operators(*names: str) -> Callable[[Formula], Formula]:
    """Return a decorator of formulas that apply only to these operators, and to no graphs."""

    def decorator(formula: Formula) -> Formula:
        return _OfOperators(formula, frozenset(names))

    return decorator


def may_concern(case: Case, formula: Formula) -> bool:
    """Return whether a formula may apply to a node of a graph; True without `of_operators`."""
    if not isinstance(formula, _OfOperators):
        return True
    return any(isinstance(n, Node) and n.operator_name in formula.operators for n in case.nodes)
