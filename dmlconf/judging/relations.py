"""Run graphs in other forms that must give the same outputs, and compare the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dmlconf.backends.protocol import Breakdown, Declined, Outcome, Outputs, Rejection
from dmlconf.backends.recording.digest import outputs_problem
from dmlconf.backends.recording.model import Mismatch
from dmlconf.cases.graph_case import GraphCase, with_graph
from dmlconf.cases.model import Case, Fill, Provenance
from dmlconf.graphs.model import Graph, Node, Slot
from dmlconf.graphs.relations import (
    Relation,
    exported,
    halves,
    owned_otherwise,
    part,
    reversed_nodes,
)
from dmlconf.judging.figures import figures_of
from dmlconf.judging.judge import JudgeOne
from dmlconf.judging.needs_run import Steps
from dmlconf.judging.nodes import data_of_constants, node_alone
from dmlconf.judging.undefined import without_excused_faults
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.compare import compare
from dmlconf.precision.room import room
from dmlconf.tensors.datatypes import Array, bits_of
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.verdict import OF_VALUES, Reason, ReasonKind, Status, Verdict

__all__ = [
    "Stopped",
    "in_other_form",
    "intermediates",
    "judge_relation",
    "with_unfused",
]

_FORMS: Mapping[Relation, str] = {
    Relation.EXPORTED: "the same graph with every intermediate as an output",
    Relation.UNFUSED: "the same nodes one by one",
    Relation.CUT: "the same graph cut in two",
    Relation.OWNED: "the same graph with constants and inputs owned otherwise",
    Relation.ORDER: "the same graph with its nodes in the opposite order",
}


_COMPARED: Final = OF_VALUES | {
    ReasonKind.NO_INDEPENDENT_EXPECTATION,
    ReasonKind.ANY_VALUE_PERMITTED,
}
"""A relation's other form runs only for a verdict with one of these reasons or with none."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why another form of a graph did not run, or did not give the outputs of the graph.

    Attributes:
        step: the form, node or part that did not run or gave other outputs.
    """

    step: str
    outcome: Outcome

    @property
    def unknown(self) -> bool:
        """Whether the backend is a recording that lacks this form."""
        return isinstance(self.outcome, Breakdown) and self.outcome.message == Mismatch.MISSING

    def __str__(self) -> str:
        if isinstance(self.outcome, Rejection):
            return f"{self.step} is rejected with {self.outcome.hresult} by {self.outcome.stage}"
        if isinstance(self.outcome, Declined):
            return f"{self.step} cannot be expressed: {self.outcome.reason}"
        message = getattr(self.outcome, "message", "it gave no such outputs")
        return f"{self.step} did not run: {message}"


def in_other_form(case: Case, relation: Relation) -> Steps[dict[str, Array] | Stopped]:
    """Return the graph's outputs from another form, whose cases are yielded, or why it has none."""
    if relation is Relation.UNFUSED:
        alone = yield from _node_by_node(case)
        return alone if isinstance(alone, Stopped) else _graph_outputs(case, alone.computed)
    if relation is Relation.CUT:
        return (yield from _in_parts(case))
    other = _transformed(case, relation)
    outcome: Outcome = yield other
    if not isinstance(outcome, Outputs) or not case.graph.outputs.keys() <= outcome.arrays.keys():
        return Stopped(_FORMS[relation], outcome)
    return {name: outcome.arrays[name] for name in case.graph.outputs}


def _transformed(case: Case, relation: Relation) -> GraphCase:
    transform = {
        Relation.EXPORTED: exported,
        Relation.OWNED: owned_otherwise,
        Relation.ORDER: reversed_nodes,
    }[relation]
    data = {**case.inputs(), **{node.name: node.data for node in case.graph.constants}}
    return _graph_case(case, f"{case.identifier}#{relation}", transform(case.graph), data)


def intermediates(case: Case, relation: Relation) -> Steps[dict[Slot, Array] | Stopped]:
    """Return what the nodes of a graph give in another form, by output, or why there is nothing.

    Args:
        relation: `UNFUSED` or `EXPORTED`; `EXPORTED` leaves out the outputs that neither a node
            nor the graph uses.
    """
    if relation is Relation.UNFUSED:
        alone = yield from _node_by_node(case)
        return alone if isinstance(alone, Stopped) else alone.computed
    other = _transformed(case, relation)
    outcome: Outcome = yield other
    if not isinstance(outcome, Outputs) or outputs_problem(other, outcome) is not None:
        return Stopped(_FORMS[relation], outcome)
    return {slot: outcome.arrays[name] for name, slot in other.graph.output_sources().items()}


def _graph_case(
    case: Case, identifier: str, graph: Graph, data: Mapping[str, Array | Fill]
) -> GraphCase:
    return with_graph(
        case,
        graph,
        identifier=identifier,
        data={name: data[name] for name in graph.inputs},
        expectation=None,
        relation=None,
        tolerances={},
    )


@dataclass(frozen=True, slots=True)
class _NodesAlone:
    """What the nodes of a graph gave one by one.

    Attributes:
        faults: a text for each fault of a node, such as a touched guard band.
    """

    computed: dict[Slot, Array]
    faults: Sequence[str]


def _node_by_node(case: Case) -> Steps[_NodesAlone | Stopped]:
    computed: dict[Slot, Array] = {}
    faults: list[str] = []
    for node in case.graph.in_order():
        if not isinstance(node, Node):
            continue
        alone = node_alone(case, node, computed)
        outcome: Outcome = yield alone
        if not isinstance(outcome, Outputs) or outputs_problem(alone, outcome) is not None:
            return Stopped(f"the node {node.name} alone", outcome)
        own = without_excused_faults(alone, outcome).faults
        faults += (f"the node {node.name} alone is at fault: {each.message}" for each in own)
        computed |= {(node.name, name): outcome.arrays[name] for name in node.outputs}
    return _NodesAlone(computed, faults)


def _graph_outputs(case: Case, computed: Mapping[Slot, Array]) -> dict[str, Array]:
    values = {**computed, **data_of_constants(case)}
    return {name: values[slot] for name, slot in case.graph.output_sources().items()}


def _in_parts(case: Case) -> Steps[dict[str, Array] | Stopped]:
    inputs = case.inputs()
    computed: dict[Slot, Array] = {}
    for number, names in enumerate(halves(case.graph), 1):
        piece = part(case.graph, names)
        data = {name: inputs[name] for name in piece.graph.inputs if name not in piece.fed}
        data |= {name: computed[slot] for name, slot in piece.fed.items()}
        half = _graph_case(case, f"{case.identifier}#{number}", piece.graph, data)
        outcome: Outcome = yield half
        if not isinstance(outcome, Outputs) or outputs_problem(half, outcome) is not None:
            return Stopped(f"part {number} of 2", outcome)
        computed |= {slot: outcome.arrays[name] for name, slot in piece.gives.items()}
    return _graph_outputs(case, computed)


def judge_relation(case: Case, outcome: Outputs, verdict: Verdict, *, half: bool) -> Steps[Verdict]:
    """Return the verdict on a relation: whether another form of the graph gives the same outputs.

    A verdict with a reason that `_COMPARED` lacks is kept, and a failing one stays a failure.
    Otherwise the graph

    - is `unsupported` if the backend cannot express the other form;
    - is `unchecked` if a recording lacks the form;
    - fails if the form does not run, if either form gives outputs of other names, sizes or data
      types, or if outputs differ by more than the rules permit;
    - passes otherwise.

    Args:
        half: whether the backend may compute FLOAT16 outputs in FLOAT16 throughout.
    """
    assert case.relation is not None
    if verdict.reason is not None and verdict.reason.kind not in _COMPARED:
        return verdict
    form = _FORMS[case.relation]
    other = yield from in_other_form(case, case.relation)
    if not isinstance(other, Stopped) and outputs_problem(case, Outputs(other)) is not None:
        other = Stopped(form, Outputs(other))
    inconclusive = isinstance(other, Stopped) and (
        other.unknown or isinstance(other.outcome, Declined)
    )
    if inconclusive and verdict.status.fails_run:
        return verdict
    if isinstance(other, Stopped) and isinstance(other.outcome, Declined):
        reason = Reason(ReasonKind.NOT_EXPRESSIBLE, f"relation {case.relation}: {other}")
        return verdict.judged(status=Status.UNSUPPORTED, expectation=None, reason=reason)
    verdict = verdict.judged(expectation=Provenance.RELATION, unchecked_outputs=())
    if isinstance(other, Stopped) and other.unknown:
        message = f"relation {case.relation}: the recording does not hold the other form"
        reason = Reason(ReasonKind.NO_INDEPENDENT_EXPECTATION, message)
        return verdict.judged(status=Status.UNCHECKED, expectation=None, reason=reason)
    if isinstance(other, Stopped):
        message = f"relation {case.relation}: the graph runs, but {other}"
        reason = Reason(ReasonKind.RELATION, message)
        return verdict.judged(status=Status.FAILED, reason=reason, figures={})
    problem = outputs_problem(case, outcome)
    if problem is not None:
        if verdict.status.fails_run:
            return verdict
        reason = Reason(ReasonKind.RELATION, f"relation {case.relation}: the graph gives {problem}")
        return verdict.judged(status=Status.FAILED, reason=reason, figures={})
    allowances = CaseAllowances(case, half_precision=half)
    figures: dict[str, Figures] = {}
    complaints: list[str] = []
    differences: list[Mapping[str, Any]] = []
    for name, array in other.items():
        rule, allowance = case.rule(name), allowances.of(name)
        comparison = compare(outcome.arrays[name], array, rule, allowance)
        open_room = room(array, rule, allowance)
        figures[name] = replace(
            figures_of(comparison, rule, open_room, Provenance.RELATION),
            same_bits=_same_bits(outcome.arrays[name], array),
        )
        if not comparison.passed:
            complaints.append(
                f"{comparison.differing:,} of {comparison.elements:,} elements of {name} differ "
                f"between the graph and {form}"
            )
            differences += [
                {
                    "tensor": name,
                    "coordinates": list(each.coordinates),
                    "expected": each.expected,
                    "actual": each.actual,
                }
                for each in comparison.first
            ]
    if not complaints and verdict.status.fails_run:
        return _wrong_in_both_forms(verdict, form)
    if not complaints:
        return verdict.judged(status=Status.PASSED, reason=None, figures=figures)
    message = f"relation {case.relation}: {'; '.join(complaints)}"
    reason = Reason(ReasonKind.RELATION, message, tuple(differences))
    return verdict.judged(status=Status.FAILED, reason=reason, figures=figures)


def _wrong_in_both_forms(verdict: Verdict, form: str) -> Verdict:
    assert verdict.reason is not None
    message = f"{verdict.reason.message}, in {form} too"
    return verdict.judged(reason=replace(verdict.reason, message=message))


def _same_bits(one: Array, other: Array) -> int:
    if one.dtype != other.dtype or one.shape != other.shape:
        return 0
    return int(np.count_nonzero(bits_of(one) == bits_of(other)))


def with_unfused(
    case: Case,
    outcome: Outputs,
    verdict: Verdict,
    judge: JudgeOne,
) -> Steps[Verdict]:
    """Return a graph's verdict with the results of its unfused run, whose cases are yielded.

    A failure, except a contradiction, gets a remark on what is at fault:

    - the graph compiler, if the nodes are right one by one;
    - a node, if it has a fault when it runs alone, or if the nodes give the same wrong bits.

    Otherwise the remark says that the nodes are wrong too, or why they did not run. There is none
    if the outputs of the nodes are `unchecked`.
    """
    alone = yield from _node_by_node(case)
    unfused = alone if isinstance(alone, Stopped) else _graph_outputs(case, alone.computed)
    if not isinstance(unfused, Stopped) and outputs_problem(case, Outputs(unfused)) is not None:
        unfused = Stopped("a node alone", Outputs(unfused))
    if isinstance(unfused, Stopped):
        return _with_remark(verdict, f"unfused, {unfused}")
    figures = {
        name: replace(known, unfused_same_bits=_same_bits(outcome.arrays[name], unfused[name]))
        if name in unfused and name in outcome.arrays
        else known
        for name, known in verdict.figures.items()
    }
    verdict = verdict.judged(figures=figures)
    if not isinstance(alone, Stopped) and alone.faults:
        return _with_remark(verdict, f"unfused, {alone.faults[0]}")
    again = judge(case, Outputs(unfused))
    if again.status is Status.UNCHECKED:
        return verdict
    if again.status is Status.PASSED:
        return _with_remark(
            verdict, "unfused, the same nodes are right: the graph compiler is at fault"
        )
    arrays = outcome.arrays
    if all(n in arrays and _same_bits(arrays[n], a) == a.size for n, a in unfused.items()):
        return _with_remark(
            verdict, "unfused, the same nodes give the same bits: a node is at fault"
        )
    return _with_remark(verdict, "unfused, the same nodes are wrong too")


def _with_remark(verdict: Verdict, message: str) -> Verdict:
    if verdict.reason is None or not verdict.status.fails_run:
        return verdict
    if verdict.reason.kind is ReasonKind.CONTRADICTION:
        return verdict  # Neither the compiler nor a node is at fault.
    reason = replace(verdict.reason, message=f"{verdict.reason.message}; {message}")
    return verdict.judged(reason=reason)
