"""Waive failures that known faults of DirectML explain, whatever the device.

A failure is waived if it has the fault's kind of outcome, and if the case or one of its nodes meets
the fault's conditions. If the fault has a formula in `dmlconf.faults`, wrong values are waived only
if the formula gives them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Fault,
    FaultKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.backends.recording.samples import paired
from dmlconf.cases.facts import names_of_node
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.excuses.scope import Scope, Version
from dmlconf.expressions import Expression, Namespace
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.allowance import Allowance, permitted_intervals
from dmlconf.precision.compare import compare
from dmlconf.precision.rules import undefined
from dmlconf.verdicts.verdict import OF_VALUES, Reason, ReasonKind, Status, Verdict

if TYPE_CHECKING:
    from dmlconf.faults.computed import Computed, Formula
    from dmlconf.faults.prediction import Prediction
    from dmlconf.graphs.model import Constant, Graph, Node

__all__ = [
    "NO_KNOWN_FAULTS",
    "ConstantCondition",
    "KnownFault",
    "KnownFaults",
    "NodeCondition",
]

_OUTPUTS: Final = "outputs"
_ACCEPTED: Final = "accepted"
_NOT_WRITTEN: Final = "output not written"
_INPUT_CHANGED: Final = "input changed"

_OF_UNDEFINED: Final = frozenset(
    {
        ReasonKind.OUTPUT_NOT_WRITTEN,
        ReasonKind.NOT_DETERMINISTIC,
        ReasonKind.GUARD_BAND_TOUCHED,
    }
)
"""Kinds of failures, besides wrong values, that a fault with a formula may cause."""

_OF_ELEMENTS: Final = frozenset({FaultKind.NOT_WRITTEN, FaultKind.NOT_DETERMINISTIC})

_EVERY_BIT: Final = PrecisionRule(RuleKind.EXACT, 0, "what DirectML computes is known in every bit")

_STAGES_IN_GRAPHS: Final = {"CompileOperator": "CompileGraph"}
"""The call that compiles an operator in a graph, by the call that compiles it alone."""


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A condition that at least one node of a graph must meet.

    Attributes:
        when: a condition over the names of `names_of_node`, and those of `joins_of` in
            `faults.graphs.joins`.
    """

    operators: frozenset[str]
    when: Expression

    def holds(self, case: Case) -> bool:
        """Return whether a graph has such a node."""
        return any(True for _ in self.nodes(case))

    def nodes(self, case: Case) -> Iterator[Node]:
        """Yield such nodes of a graph."""
        from dmlconf.faults.graphs.joins import joins_of

        for node in case.graph.operator_nodes if case.nodes else ():
            if node.operator_name in self.operators and self.when.holds(
                {**names_of_node(node), **joins_of(case.graph, node)}
            ):
                yield node


@dataclass(frozen=True, slots=True)
class ConstantCondition:
    """A condition that at least one constant of a graph must meet.

    Attributes:
        when: a condition over the constant's `ByteCount`, `ElementCount` and `DataType`, and
            `BytesRead`, the bytes of the largest node input that reads the constant.
    """

    when: Expression

    def holds(self, case: Case) -> bool:
        """Return whether a graph has such a constant."""
        graph = case.graph
        return any(self.when.holds(_names_of_constant(graph, each)) for each in graph.constants)


def _names_of_constant(graph: Graph, constant: Constant) -> Namespace:
    tensor, nodes = constant.tensor, graph.by_name
    read = [
        nodes[edge.to_node].inputs[edge.to_tensor].TotalTensorSizeInBytes
        for edge in graph.intermediate_edges
        if edge.from_node == constant.name
        and edge.to_node in nodes
        and edge.to_tensor in nodes[edge.to_node].inputs
    ]
    return {
        "ByteCount": constant.data.nbytes * min(tensor.DataType.bits, 8) // 8,
        "BytesRead": max(read, default=0),
        "ElementCount": tensor.ElementCount,
        "DataType": str(tensor.DataType),
    }


@dataclass(frozen=True, slots=True)
class KnownFault:
    """One fault of DirectML.

    Attributes:
        reason: what DirectML does, as a sentence.
        first: the first tested version with the fault.
        last: the last tested version with the fault.
        operators: the operators that have the fault, alone or as nodes; `GRAPHS` for graphs.
        outcome: how the fault shows: `outputs` for wrong outputs, `accepted` for a case that runs
            but must be refused, `output not written`, `input changed`, `crash`, `device removed`,
            or a refusal such as `E_INVALIDARG by CreateOperator`.
        cases: the affected cases, as in `Scope`; None for all.
        when: a condition on the desc of affected cases and nodes; None for all.
        node: affected graphs have a node that meets this condition; None for all.
        constant: affected graphs have a constant that meets this condition; None for all.
        breaks: affected cases break at least one of these constraints and no others; None for all.
        formula: computes the wrong outputs; None if they are not known.
        circumstance: the only circumstance under which the fault shows; None if any run shows it.
        graph: whether the fault shows only in operators that are compiled as graphs.
        nodes: whether the fault also shows in nodes of graphs.
        alone: whether affected cases may harm other cases in the same process.
        title: what DirectML does; `span` and `title` make a sentence.
        kernels: the devices on whose kernels the fault was seen.
        instead: what an application can do to get right results.
        example: the identifier of a small case that shows the fault.
        not_computed: why there is no `formula`.
    """

    name: str
    reason: str
    first: Version
    last: Version
    operators: frozenset[str]
    outcome: str
    cases: frozenset[str] | None = None
    when: Expression | None = None
    node: NodeCondition | None = None
    constant: ConstantCondition | None = None
    breaks: frozenset[str] | None = None
    formula: Formula | None = None
    circumstance: str | None = None
    graph: bool = False
    nodes: bool = True
    alone: bool = False
    title: str = ""
    kernels: str = ""
    instead: str = ""
    example: str = ""
    not_computed: str = ""

    @property
    def releases(self) -> str:
        """The releases with the fault, such as `1.8.0 to 1.15.4`."""
        first, last = (".".join(map(str, version)) for version in (self.first, self.last))
        return first if first == last else f"{first} to {last}"

    @property
    def span(self) -> str:
        """The subject of the sentence that `title` continues: `DirectML 1.8.0 to 1.15.4`."""
        return f"DirectML {self.releases}"

    def concerns(self, case: Case, *, as_graph: bool = True) -> bool:
        """Return whether the fault affects a case or one of its nodes.

        Args:
            as_graph: whether single operators are compiled as graphs.
        """
        if self.graph and not (as_graph or case.is_compiled_as_graph):
            return False
        if self.breaks is not None and not (case.violations() and self._breaks(case)):
            return False
        if case.nodes and case.operator_name not in self.operators:
            if not self.nodes:
                return False
            if self.cases is not None and not Scope(None, self.cases).covers(case):
                return False
            nodes = case.graph.operator_nodes
            return any(self._concerns_node(node) for node in nodes)
        if not Scope(self.operators, self.cases, self.when).covers(case):
            return False
        conditions = (self.node, self.constant)
        return all(each is None or each.holds(case) for each in conditions)

    def _breaks(self, case: Case) -> bool:
        return self.breaks is not None and self.breaks.issuperset(case.violations())

    def _concerns_node(self, node: Node) -> bool:
        if node.operator_name not in self.operators:
            return False
        return self.when is None or self.when.holds(names_of_node(node))

    def explains(
        self,
        case: Case,
        outcome: Outcome,
        circumstance: str | None = None,
        *,
        as_graph: bool = True,
    ) -> bool:
        """Return whether the fault explains why a case did not pass.

        Args:
            circumstance: the circumstance under which the case failed; None for the plain run.
            as_graph: whether single operators are compiled as graphs.
        """
        if self.circumstance not in (None, circumstance):
            return False
        if isinstance(outcome, Rejection) and self.circumstance != circumstance:
            return False  # The plain run passed, so DirectML does not refuse the case.
        if not self._shows(case, outcome) or not self.concerns(case, as_graph=as_graph):
            return False
        formula = self.computed
        if self.formula is None:
            if self.outcome != _NOT_WRITTEN or not case.nodes:
                return True
            formula = self._unwritten
        return isinstance(outcome, Outputs) and _gives(formula, case, outcome)

    def _shows(self, case: Case, outcome: Outcome) -> bool:
        match outcome:
            case Outputs() if self.outcome == _ACCEPTED:
                return isinstance(case.expectation, ExpectedRejection)
            case Outputs() if self.outcome == _NOT_WRITTEN:
                # If a node leaves elements unwritten, nodes that read them give wrong values.
                return bool(case.nodes) or _observed(FaultKind.NOT_WRITTEN, outcome, _OF_ELEMENTS)
            case Outputs() if self.outcome == _INPUT_CHANGED:
                return _observed(FaultKind.INPUT, outcome, _OF_ELEMENTS)
            case Outputs():
                return self.outcome == _OUTPUTS
            case Rejection():
                hresult, _, stage = self.outcome.partition(" by ")
                stages = stage, _STAGES_IN_GRAPHS.get(stage)
                return outcome.hresult == hresult and outcome.stage in stages
            case Breakdown(kind=BreakdownKind.CRASH | BreakdownKind.DEVICE_REMOVED as kind):
                return self.outcome == str(kind)
        return False

    def _unwritten(self, case: Case) -> Computed | None:
        """Return a graph's outputs, those unknown that read what a node with the fault makes."""
        from dmlconf.faults.graphs.unknown import with_unknown

        if self.node is not None:
            nodes = [node.name for node in self.node.nodes(case)]
        else:
            nodes = [node.name for node in case.graph.operator_nodes if self._concerns_node(node)]
        behind = (case.graph.nodes_behind(name) for name in nodes)
        return with_unknown(case, {*nodes, *chain.from_iterable(behind)})

    def may_cause(self, reason: ReasonKind, case: Case) -> bool:
        """Return whether the fault can cause a failure for this reason."""
        if self.formula is not None:
            return reason in OF_VALUES or reason in _OF_UNDEFINED
        if self.outcome == _INPUT_CHANGED or reason is ReasonKind.INPUT_CHANGED:
            return self.outcome == _INPUT_CHANGED and reason is ReasonKind.INPUT_CHANGED
        if self.outcome != _NOT_WRITTEN or reason is ReasonKind.OUTPUT_NOT_WRITTEN:
            return True
        unsteady = reason is ReasonKind.NOT_DETERMINISTIC
        return bool(case.nodes) and (unsteady or reason in OF_VALUES)

    def computed(self, case: Case) -> Computed | None:
        """Return a case's outputs with the fault; None without a `formula` that applies to it."""
        if self.formula is None or case.operator_name not in self.operators:
            return None
        if self.when is not None and not Scope(None, None, self.when).covers(case):
            return None
        return self.formula(case)


def _observed(kind: FaultKind, outcome: Outputs, others: Collection[FaultKind]) -> bool:
    """Return whether a backend observed a kind of fault, and no other kinds than some."""
    kinds = {fault.kind for fault in outcome.faults}
    return kind in kinds and kinds <= {kind, *others}


def _gives(formula: Formula, case: Case, outcome: Outputs) -> bool:
    from dmlconf.faults.prediction import predictions

    if isinstance(case.expectation, ExpectedRejection) or case.violations():
        return False
    return any(
        all(_is_predicted(case, outcome, prediction, name) for name in case.outputs())
        and all(_is_explained(case, fault, prediction) for fault in outcome.faults)
        for prediction in predictions(case, formula)
    )


def _is_explained(case: Case, fault: Fault, prediction: Prediction) -> bool:
    """Return whether a prediction explains a fault that the backend observed.

    Varying or unwritten elements are explained if the prediction leaves them unknown, or if a rule
    permits any value for them. A changed guard band is explained if the predicted outputs are
    longer than the buffer (`spills`).
    """
    if fault.kind is FaultKind.GUARD_BAND:
        return prediction.spills
    if fault.elements is None or fault.kind not in _OF_ELEMENTS:
        return False
    unknown = prediction.unknown.get(fault.output)
    if unknown is not None and unknown.ravel()[fault.elements].all():
        return True
    if fault.kind is FaultKind.NOT_DETERMINISTIC and fault.output in prediction.anywhere:
        return True
    kind = case.rule(fault.output).kind
    allowances = [CaseAllowances(case).of(fault.output)]
    if prediction.allowance is not None:
        allowances.append(prediction.allowance(fault.output))
    ends = [pair for allowance in allowances for pair in permitted_intervals(kind, allowance)]
    if not ends:
        return False
    opened = np.logical_or.reduce([undefined(*pair) for pair in ends])
    return bool(opened.ravel()[fault.elements].all())


def _is_predicted(case: Case, outcome: Outputs, prediction: Prediction, name: str) -> bool:
    """Return whether an output is the predicted one, in every bit or as its rule permits.

    Elements that the prediction leaves free may have other values.
    """
    actual = outcome.arrays.get(name, outcome.samples.get(name))
    target = prediction.outputs[name]
    if actual is None or actual.dtype != target.dtype or actual.shape != target.shape:
        return False
    if prediction.allowance is not None:
        rule, allowance = case.rule(name), prediction.allowance(name)
    elif name in prediction.changed:
        rule, allowance = _EVERY_BIT, Allowance()
    else:
        rule, allowance = case.rule(name), CaseAllowances(case).of(name)
    pair = paired(actual, target)
    found, wanted, permitted = pair.actual, pair.expected, pair.allowance(allowance)
    free = prediction.is_free(name, found, None if pair.sample is None else pair.sample.indices)
    if free.any():
        known = np.flatnonzero(~free)
        found, wanted, permitted = found.ravel()[known], wanted.ravel()[known], permitted.at(known)
    return compare(found, wanted, rule, permitted).passed


@dataclass(frozen=True, slots=True)
class KnownFaults:
    """The faults of the DirectML under test.

    Attributes:
        version: the version of DirectML, for messages; empty if it is unknown.
        as_graph: whether the backend compiles single operators as graphs.
    """

    version: str = ""
    faults: tuple[KnownFault, ...] = ()
    as_graph: bool = True

    def explaining(
        self, case: Case, outcome: Outcome, circumstance: str | None = None
    ) -> KnownFault | None:
        """Return the fault that explains why the case did not pass; None if there is none.

        If several faults explain a graph together, their names and reasons are joined in one fault.
        """
        for fault in self.faults:
            if fault.explains(case, outcome, circumstance, as_graph=self.as_graph):
                return fault
        if case.nodes and isinstance(outcome, Outputs):
            return self._together(case, outcome)
        return None

    def _together(self, case: Case, outcome: Outputs) -> KnownFault | None:
        concerned = [
            fault
            for fault in self.faults
            if fault.formula is not None and fault.circumstance is None and fault.concerns(case)
        ]

        def formula(part: Case) -> Computed | None:
            computed = (fault.computed(part) for fault in concerned)
            return next((each for each in computed if each is not None), None)

        if len(concerned) < 2 or not _gives(formula, case, outcome):
            return None
        name = " and ".join(fault.name for fault in concerned)
        reason = " ".join(fault.reason for fault in concerned)
        return replace(concerned[0], name=name, reason=reason)

    def waive(self, case: Case, outcome: Outcome, verdict: Verdict) -> Verdict:
        """Return the verdict; it is `waived` if a known fault explains the failure."""
        if not verdict.status.traits.excusable:
            return verdict
        fault = self.explaining(case, outcome, verdict.circumstance)
        before = verdict.reason
        if fault is None or before is None or not fault.may_cause(before.kind, case):
            return verdict
        message = f"{fault.name}, in DirectML {self.version}: {fault.reason}"
        diagnostics = ""
        if isinstance(outcome, Breakdown):
            diagnostics = "\n".join(filter(None, (outcome.message, outcome.diagnostics)))
        reason = Reason(ReasonKind.KNOWN_FAULT, message, before.differences, diagnostics)
        return verdict.judged(status=Status.WAIVED, reason=reason)

    def harms_others(self, case: Case) -> bool:
        """Return whether the case must run in a process of its own."""
        return any(
            fault.alone and fault.concerns(case, as_graph=self.as_graph) for fault in self.faults
        )


NO_KNOWN_FAULTS: Final = KnownFaults()
