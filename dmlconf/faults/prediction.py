"""Predict the outputs of a runtime with a fault, for an operator or a graph."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from operator import attrgetter
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, Formula, may_concern
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.allowance import Allowance, Interval, SumErrors
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import NodeValues, evaluate_nodes, graph_outputs
from dmlconf.tensors.datatypes import Array, bits_of

__all__ = ["Prediction", "predictions"]

_MOST_KERNELS: Final = 8
"""The most kernels with a fault that are tried in a graph."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The outputs of a case with a fault.

    Attributes:
        changed: the outputs that differ from the right ones in some bit, or that `unknown` or
            `anywhere` lists.
        allowance: returns what an output's rule permits around the predicted elements. If None,
            changed outputs must agree in every bit outside `unknown`.
        unknown: by tensor, True for elements that may have any value. In a graph, elements
            that are computed from unknown elements are not marked.
        anywhere: as in `Computed`; in a graph, only of nodes whose outputs are the graph's.
        spills: as in `Computed`; False if the formula was applied to the nodes of a graph.
    """

    outputs: Mapping[str, Array]
    changed: frozenset[str]
    allowance: Callable[[str], Allowance] | None
    unknown: Mapping[str, Array] = field(default_factory=dict)
    spills: bool = False
    anywhere: Mapping[str, Array] = field(default_factory=dict)

    def is_free(self, output: str, values: Array, indices: Array | None = None) -> Array:
        """Return a mask of values of an output, flat: True where the prediction permits them.

        It is also True for any other value in place of an unknown one.

        Args:
            values: elements of an output of the runtime.
            indices: the row-major indices of the elements; None if they are all.
        """
        free = np.zeros(values.size, bool)
        if output in self.unknown:
            unknown = self.unknown[output].ravel()
            free |= unknown if indices is None else unknown[indices]
        if output in self.anywhere:
            free |= np.isin(bits_of(values.ravel()), bits_of(self.anywhere[output]))
        return free


def predictions(
    case: Case, formula: Formula, right: Mapping[str, Array] | None = None
) -> Iterator[Prediction]:
    """Yield a case's outputs on each kernel with a fault, unless all are right.

    Args:
        case: an operator, or a graph whose nodes may have the fault.
        formula: returns the outputs with the fault. If it returns None for a graph, it is applied
            to each node.
        right: the right outputs; computed if None.
    """
    computed = formula(case)
    if computed is None:
        if case.nodes and may_concern(case, formula):
            yield from _of_graph(case, formula, evaluate(case) if right is None else right)
        return
    right = evaluate(case) if right is None else right
    for each in _kernels(computed):
        changed = _changed(each.outputs, right, {*each.unknown, *each.anywhere})
        if changed:
            yield Prediction(
                each.outputs, changed, _around(each), each.unknown, each.spills, each.anywhere
            )


def _around(computed: Computed) -> Callable[[str], Allowance] | None:
    """Return a function from an output's name to its allowance; None if every bit is known."""
    if computed.allowance is not None:
        return computed.allowance
    if computed.around is not None:
        return CaseAllowances(computed.around).of
    terms = computed.terms
    if terms is None:
        return None
    return lambda output: Allowance(right=computed.outputs[output], errors=terms[output])


def _of_graph(case: Case, formula: Formula, right: Mapping[str, Array]) -> Iterator[Prediction]:
    """Yield a graph's outputs on each of the first `_MOST_KERNELS` kernels, unless all are right.

    All nodes run the kernel of the same number. A node with fewer kernels runs its first one.
    """
    nodes = evaluate_nodes(case, partial(_outputs, formula))
    yield from _of_kernel(case, formula, nodes, right)
    each_node = nodes.cases.values()
    few = (islice(_kernels(formula(node)), _MOST_KERNELS) for node in each_node)
    for number in range(1, max((sum(1 for _ in each) for each in few), default=0)):
        kernel = partial(_numbered, formula, number)
        nodes = evaluate_nodes(case, partial(_outputs, kernel))
        yield from _of_kernel(case, kernel, nodes, right)


def _kernels(computed: Computed | None) -> Iterator[Computed]:
    if computed is None:
        return
    yield computed
    if computed.others is not None:
        yield from computed.others()


def _numbered(formula: Formula, number: int, node: Case) -> Computed | None:
    """Return a node's outputs with kernel `number`, or kernel 0 if it has fewer."""
    first = formula(node)
    return next(islice(_kernels(first), number, None), first)


def _outputs(formula: Formula, node: Case) -> Mapping[str, Array]:
    wrong = formula(node)
    return evaluate(node) if wrong is None else wrong.outputs


def _of_kernel(
    case: Case, formula: Formula, nodes: NodeValues, right: Mapping[str, Array]
) -> Iterator[Prediction]:
    def permitted(node: Case, output: str) -> Allowance:
        wrong = formula(node)
        if wrong is None:
            return CaseAllowances(node).of(output)
        around = _around(wrong)
        return _exactly(wrong.outputs[output]) if around is None else around(output)

    outputs = graph_outputs(case.graph, nodes.outputs)
    wrong = {name: formula(node) for name, node in nodes.cases.items()}
    unknown, anywhere = (
        {
            output: masks[tensor]
            for output, (name, tensor) in case.graph.output_sources().items()
            if (each := wrong[name]) is not None and tensor in (masks := part(each))
        }
        for part in (attrgetter("unknown"), attrgetter("anywhere"))
    )
    changed = _changed(outputs, right, {*unknown, *anywhere})
    if not changed:
        return

    @cache
    def candidates() -> Mapping[str, Sequence[Interval]]:
        # Few runs need this module.
        from dmlconf.permitted.graphs.allowance import graph_candidates

        return graph_candidates(case, partial(_outputs, formula), permitted)

    yield Prediction(
        outputs,
        changed,
        lambda output: _one_of(outputs[output], candidates()[output]),
        unknown,
        anywhere=anywhere,
    )


def _changed(
    outputs: Mapping[str, Array], right: Mapping[str, Array], open_outputs: Container[str]
) -> frozenset[str]:
    return frozenset(
        name
        for name, array in outputs.items()
        if name in open_outputs or array.tobytes() != right[name].tobytes()
    )


def _one_of(values: Array, intervals: Sequence[Interval]) -> Allowance:
    return Allowance(right=values, interval=intervals[0], candidates=intervals)


def _exactly(values: Array) -> Allowance:
    alone = (values, values)
    errors = SumErrors(np.zeros(values.shape), spans=(alone,))
    return Allowance(right=values, errors=errors, interval=alone, candidates=[alone])
