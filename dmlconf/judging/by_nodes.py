"""Judge a graph by its nodes: it is right if each node is right for the inputs that it got.

The samples of `dmlconf.permitted.graphs` may miss a right result. So a graph with wrong values runs
again, first with every intermediate as an output, then node by node. If each node is right for its
inputs in one of these runs, the outputs of this run are right, and so are the elements of the first
run that have the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case
from dmlconf.graphs.model import Node, Slot
from dmlconf.graphs.relations import Relation
from dmlconf.judging.judge import JudgeOne, judge
from dmlconf.judging.needs_run import Steps
from dmlconf.judging.nodes import node_alone
from dmlconf.judging.relations import Stopped, intermediates
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array, bits_of
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict

__all__ = ["judge_by_nodes"]

_RIGHT: Final = frozenset({Status.PASSED, Status.UNCHECKED})


def judge_by_nodes(
    case: Case, outcome: Outputs, verdict: Verdict, judge_graph: JudgeOne, *, half: bool
) -> Steps[Verdict]:
    """Return the given verdict or, if a graph's nodes show that its values are right, a better one.

    Only verdicts with the reason `wrong values` are tried. The cases to run are yielded.

    Args:
        judge_graph: judges outputs of the graph.
        half: whether the backend may compute FLOAT16 outputs in FLOAT16 throughout.
    """
    if verdict.reason is None or verdict.reason.kind is not ReasonKind.WRONG_VALUES:
        return verdict
    for form in (Relation.EXPORTED, Relation.UNFUSED):
        computed = yield from intermediates(case, form)
        if isinstance(computed, Stopped) or not _are_right(case, computed, half=half):
            continue
        again = judge_graph(case, _with_right_elements(case, outcome, computed))
        if again.status in _RIGHT:
            figures = {
                name: replace(known, by_nodes=verdict.figures[name].differing or None)
                for name, known in again.figures.items()
            }
            return verdict.judged(status=again.status, reason=again.reason, figures=figures)
    return verdict


def _are_right(case: Case, computed: Mapping[Slot, Array], *, half: bool) -> bool:
    """Return whether each node is right for its inputs.

    Outputs of nodes that `computed` lacks count as right.
    """
    values = dict(computed)
    for node in case.graph.in_order():
        if not isinstance(node, Node):
            continue
        alone = node_alone(case, node, values)
        right = evaluate(alone)
        values = {(node.name, name): array for name, array in right.items()} | values
        given = Outputs({name: values[node.name, name] for name in right})
        verdict = judge(alone, given, partial(_outputs, right), half_precision=half)
        if verdict.status not in _RIGHT:
            return False
    return True


def _outputs(arrays: Mapping[str, Array], case: Case) -> Outputs:
    return Outputs(arrays)


def _with_right_elements(case: Case, outcome: Outputs, computed: Mapping[Slot, Array]) -> Outputs:
    """Return the graph's outputs, with the reference's elements where `computed` has equal bits.

    Constants, and outputs of other sizes or data types, stay as they are.
    """
    right = evaluate(case)
    constants = {node.name for node in case.graph.constants}
    arrays = dict(outcome.arrays)
    for name, slot in case.graph.output_sources().items():
        actual, other = arrays.get(name), computed.get(slot)
        if slot[0] in constants or actual is None or other is None:
            continue
        if actual.shape != right[name].shape:
            continue
        if actual.dtype != other.dtype:
            continue
        same = bits_of(actual) == bits_of(other.reshape(actual.shape))
        arrays[name] = np.where(same, right[name], actual)
    return replace(outcome, arrays=arrays)
