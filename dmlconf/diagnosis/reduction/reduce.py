"""Reduce a case: try smaller and simpler ones, and keep each that still fails.

The method is delta debugging (Zeller and Hildebrandt, Simplifying and isolating failure-inducing
input, 2002). No tried case breaks a constraint that the original meets, except constraints of a
graph's nodes that DirectML does not enforce.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.diagnosis.reduction.cost import Cost, cost
from dmlconf.diagnosis.reduction.graph_passes import GRAPH_PASSES
from dmlconf.diagnosis.reduction.passes import PASSES
from dmlconf.diagnosis.reduction.search import Fails, OutOfTime, Search

__all__ = ["Reduced", "reduce_case", "with_own_data"]


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smallest case that a reduction reached.

    Attributes:
        case: the case, whose data are arrays; it states no outputs.
        trials: how many cases were tried.
        complete: False if time ran out, or after Ctrl+C.
        interrupted: whether Ctrl+C ended the reduction.
    """

    case: Case
    trials: int
    complete: bool
    interrupted: bool = False


def with_own_data(case: Case) -> Case:
    """Return the case with arrays for data, and without the outputs and tolerances that it states.

    A case that must be rejected keeps its expectation and, of its data, only arrays.
    """
    if isinstance(case.expectation, ExpectedRejection):
        data = {name: array for name, array in case.data.items() if isinstance(array, np.ndarray)}
        return replace(case, data=data)
    return replace(case, data=case.inputs(), expectation=None, tolerances={}, files={})


def reduce_case(
    case: Case,
    fails: Fails,
    stopped: Callable[[], bool] = lambda: False,
    on_smaller: Callable[[Case], None] = lambda case: None,
) -> Reduced:
    """Return the smallest case found that fails as `case` does; Ctrl+C ends the search early.

    Args:
        case: a case that fails, as `with_own_data` returns it.
        stopped: returns whether the time is up.
        on_smaller: is called with each smaller case that fails.
    """
    passes = GRAPH_PASSES if case.nodes else PASSES
    search = Search(case, fails, stopped, on_smaller)
    search.permitted  # noqa: B018  # Cached for the first case.
    try:
        before: Cost = ()
        while cost(search.case) != before:
            before = cost(search.case)
            for reduction in passes:
                reduction(search)
    except OutOfTime:
        return Reduced(search.case, search.trials, complete=False)
    except KeyboardInterrupt:
        return Reduced(search.case, search.trials, complete=False, interrupted=True)
    return Reduced(search.case, search.trials, complete=True)
