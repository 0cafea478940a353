"""A graph with a relation fails if the outputs of its two forms differ, or are wrong alike.

A relation names another form of the graph, such as its nodes one by one. With `compare_unfused`,
the nodes of any graph run one by one, too.

The tested code is in `dmlconf/judging/relations.py` and `dmlconf/judging/conclusion.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import NumpyBackend, run_case
from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Declined,
    Fault,
    FaultKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.backends.recording.model import Mismatch
from dmlconf.backends.registry import create, parse
from dmlconf.cases.building.build import build
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import Case, Provenance
from dmlconf.engine.session import in_process, judged
from dmlconf.judging import conclusion
from dmlconf.judging.conclusion import Conclusion, JudgeOptions
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.graphs.suites import planned_graph

GRAPH = """
inputs:
  x: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, fill: {normal: {seed: 1}}}
nodes:
  double: {operator: ELEMENT_WISE_ADD, desc: {ATensor: x, BTensor: x, OutputTensor: {}}}
  tanh: {operator: ACTIVATION_TANH, desc: {InputTensor: double, OutputTensor: {}}}
outputs: {y: tanh}
"""


class FusesWrongly(NumpyBackend):
    """Swaps the two rows of the output of graphs with one output."""

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            outcome = run_case(case)
            fused = isinstance(case, GraphCase) and len(case.graph.outputs) == 1
            if isinstance(outcome, Outputs) and fused:
                rolled = {name: np.roll(a, 1, axis=2) for name, a in outcome.arrays.items()}
                outcome = replace(outcome, arrays=rolled)
            yield outcome


class HalvesAll(NumpyBackend):
    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            outcome = run_case(case)
            assert isinstance(outcome, Outputs)
            halved = {name: array / 2 for name, array in outcome.arrays.items()}
            yield replace(outcome, arrays=halved)


def verdict_of(
    folder: Path, graph: str, backend: NumpyBackend, *, compare_unfused: bool = False
) -> Verdict:
    ready = in_process(parse("numpy"), backend)
    plan = [planned_graph(folder, graph)]
    [verdict] = judged(plan, ready, run_case, JudgeOptions(compare_unfused=compare_unfused))
    return verdict


@pytest.mark.parametrize("relation", ["exported", "unfused"])
def test_a_broken_relation_fails_and_is_named(tmp_path: Path, relation: str) -> None:
    verdict = verdict_of(tmp_path, GRAPH + f"relation: {relation}\n", FusesWrongly())
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.RELATION
    assert verdict.reason.message.startswith(f"relation {relation}: 6 of 6 elements of y differ")
    assert verdict.figures["y"].same_bits == 0


def test_a_relation_that_holds_between_right_values_passes(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, GRAPH + "relation: order\n", NumpyBackend())
    assert verdict.status is Status.PASSED
    assert verdict.expectation is Provenance.RELATION
    assert verdict.figures["y"].same_bits == 6


def test_a_relation_that_holds_between_wrong_values_fails(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, GRAPH + "relation: order\n", HalvesAll())
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.WRONG_VALUES
    assert verdict.reason.message == (
        "6 of 6 elements of y differ, in the same graph with its nodes in the opposite order too"
    )


class CutsColumns(NumpyBackend):
    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            outcome = run_case(case)
            if isinstance(case, GraphCase) and isinstance(outcome, Outputs):
                cut = {name: array[..., :2] for name, array in outcome.arrays.items()}
                outcome = replace(outcome, arrays=cut)
            yield outcome


def test_outputs_of_other_sizes_break_a_relation(tmp_path: Path) -> None:
    """Without an expectation, only the two forms are compared."""
    case = build(planned_graph(tmp_path, GRAPH + "relation: unfused\n"))
    execute = in_process(parse("numpy"), CutsColumns()).execute
    verdict = conclusion.verdict_of(case, execute, Conclusion(lambda case: None))
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.RELATION
    assert "the graph gives y is float32 [1, 1, 2, 2], not" in verdict.reason.message


class LacksOtherForms(NumpyBackend):
    """A recording that has outputs only of the graph itself, multiplied by a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            if "#" in case.identifier:
                yield Breakdown(BreakdownKind.ERROR, Mismatch.MISSING)
                continue
            outcome = run_case(case)
            assert isinstance(outcome, Outputs)
            scaled = {name: array * self._factor for name, array in outcome.arrays.items()}
            yield replace(outcome, arrays=scaled)


@pytest.mark.parametrize(("factor", "status"), [(1, Status.UNCHECKED), (0.5, Status.FAILED)])
def test_only_a_right_graph_is_unchecked_without_its_other_form(
    tmp_path: Path, factor: float, status: Status
) -> None:
    verdict = verdict_of(tmp_path, GRAPH + "relation: unfused\n", LacksOtherForms(factor))
    assert verdict.status is status


class DeclinesOperators(NumpyBackend):
    """Declines single operators, and multiplies the outputs of graphs by a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            outcome = run_case(case)
            assert isinstance(outcome, Outputs)
            scaled = {name: array * self._factor for name, array in outcome.arrays.items()}
            alone = not isinstance(case, GraphCase)
            yield Declined("no such node") if alone else replace(outcome, arrays=scaled)


@pytest.mark.parametrize(("factor", "status"), [(1, Status.UNSUPPORTED), (0.5, Status.FAILED)])
def test_a_declined_node_makes_only_a_right_graph_unsupported(
    tmp_path: Path, factor: float, status: Status
) -> None:
    verdict = verdict_of(tmp_path, GRAPH + "relation: unfused\n", DeclinesOperators(factor))
    assert verdict.status is status
    assert verdict.reason is not None
    if status is Status.UNSUPPORTED:
        assert verdict.reason.kind is ReasonKind.NOT_EXPRESSIBLE
        alone = "relation unfused: the node double alone cannot be expressed: no such node"
        assert verdict.reason.message == alone


class RejectsOperators(NumpyBackend):
    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            alone = not isinstance(case, GraphCase)
            yield Rejection("CompileOperator", "E_FAIL") if alone else run_case(case)


def test_a_rejected_node_breaks_a_relation(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, GRAPH + "relation: unfused\n", RejectsOperators())
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.RELATION
    assert verdict.reason.message == (
        "relation unfused: the graph runs, but the node double alone is rejected with E_FAIL by "
        "CompileOperator"
    )


def test_a_right_unfused_run_blames_the_graph_compiler(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, GRAPH, FusesWrongly(), compare_unfused=True)
    assert verdict.reason is not None
    assert verdict.reason.message.endswith("the graph compiler is at fault")
    assert verdict.figures["y"].unfused_same_bits == 0


def test_a_wrong_unfused_run_does_not_blame_the_compiler(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, GRAPH, HalvesAll(), compare_unfused=True)
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.message.endswith("; unfused, the same nodes are wrong too")


def test_an_unfused_run_blames_no_node_for_a_contradiction(
    tmp_path: Path,
) -> None:
    text = GRAPH + "expect: {y: {fill: {constant: {value: 7}}}}\n"
    verdict = verdict_of(tmp_path, text, NumpyBackend(), compare_unfused=True)
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.CONTRADICTION
    assert "at fault" not in verdict.reason.message


class TouchesGuardsOfSums(NumpyBackend):
    """Writes beyond the buffers of sums and of graphs."""

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            outcome = run_case(case)
            assert isinstance(outcome, Outputs)
            if isinstance(case, GraphCase) or case.operator_name == "ELEMENT_WISE_ADD":
                fault = Fault(FaultKind.GUARD_BAND, "a guard band was touched")
                outcome = replace(outcome, faults=(fault,))
            yield outcome


def test_an_unfused_run_blames_a_faulty_node(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, GRAPH, TouchesGuardsOfSums(), compare_unfused=True)
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.GUARD_BAND_TOUCHED
    alone = "the node double alone is at fault: a guard band was touched"
    assert verdict.reason.message.endswith(f"unfused, {alone}")


class SwapsRowsAndTouchesGuards(NumpyBackend):
    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            outcome = run_case(case)
            if isinstance(outcome, Outputs) and isinstance(case, GraphCase):
                fault = Fault(FaultKind.GUARD_BAND, "a guard band was touched", "y")
                rolled = {name: np.roll(a, 1, axis=2) for name, a in outcome.arrays.items()}
                outcome = replace(outcome, arrays=rolled, faults=(fault,))
            yield outcome


def test_an_unfused_run_without_expectation_blames_no_node(
    tmp_path: Path,
) -> None:
    ready = in_process(parse("numpy"), SwapsRowsAndTouchesGuards())
    options = JudgeOptions(compare_unfused=True)
    [verdict] = judged([planned_graph(tmp_path, GRAPH)], ready, lambda case: None, options)
    assert verdict.reason is not None
    assert verdict.reason.message == "a guard band was touched"


def test_a_passing_graph_counts_elements_equal_to_its_nodes(
    tmp_path: Path,
) -> None:
    verdict = verdict_of(tmp_path, GRAPH, NumpyBackend(), compare_unfused=True)
    assert verdict.status is Status.PASSED
    assert verdict.figures["y"].unfused_same_bits == 6


@pytest.mark.parametrize("fault", ["no-output", "wrong-sizes", "wrong-type", "rejects", "zeros"])
@pytest.mark.parametrize("relation", ["unfused", "exported", "cut", "order"])
def test_a_faulty_graph_and_other_form_give_one_failed_verdict(
    tmp_path: Path, fault: str, relation: str
) -> None:
    name = parse(f"faulty:{fault}")
    ready = in_process(name, create(name))
    for graph in (GRAPH, GRAPH + f"relation: {relation}\n"):
        plan = [planned_graph(tmp_path, graph)]
        [verdict] = judged(plan, ready, run_case, JudgeOptions(compare_unfused=True))
        assert verdict.status is Status.FAILED
