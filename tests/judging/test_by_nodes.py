"""A graph passes if each of its nodes is right for the inputs that it got.

The tested code is in `dmlconf/judging/by_nodes.py`, `dmlconf/judging/circumstances.py` and
`dmlconf/judging/conclusion.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from dmlconf.backends.numpy.backend import NumpyBackend, run_case
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.backends.registry import parse
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import Case
from dmlconf.engine.session import in_process, judged
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import evaluate_nodes
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.graphs.suites import planned_graph

SPIKE = """
inputs:
  x: {Sizes: [2], DataType: FLOAT32, values: [16777215, 1]}
  d: {Sizes: [2], DataType: FLOAT32, values: [3, 3]}
  c: {Sizes: [2], DataType: FLOAT32, values: [2.75, 2.75]}
nodes:
  rest: {operator: ELEMENT_WISE_MODULUS_FLOOR, desc: {ATensor: x, BTensor: d, OutputTensor: {}}}
  square: {operator: ELEMENT_WISE_DIFFERENCE_SQUARE,
           desc: {ATensor: rest, BTensor: c, OutputTensor: {}}}
  spike: {operator: ELEMENT_WISE_EXP, desc: {InputTensor: square, OutputTensor: {},
          ScaleBias: {Scale: -1.0e+6, Bias: 0}}}
outputs: {y: spike}
"""
"""exp(-1e6 * (remainder - 2.75)**2), which is 1 for the remainder 2.75, and 0 for others.

The rule permits any remainder from -3 to 6 for 16777215 and 3, and the reference gives 0."""


class Remainders(NumpyBackend):
    """Gives 2.75 for the first remainder.

    Args:
        fused: a factor of the only output of a graph.
        spike: a factor of the results of EXP.
    """

    def __init__(self, fused: float = 1, spike: float = 1) -> None:
        super().__init__()
        self._fused, self._spike = fused, spike

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            if not isinstance(case, GraphCase):
                yield Outputs(self._operator(case))
                continue
            given = evaluate_nodes(case, self._operator).outputs
            outputs = {name: given[slot] for name, slot in case.graph.output_sources().items()}
            if len(outputs) == 1:
                outputs = {name: array * np.float32(self._fused) for name, array in outputs.items()}
            yield Outputs(outputs)

    def _operator(self, case: Case) -> Mapping[str, Array]:
        outputs = dict(evaluate(case))
        array = outputs["OutputTensor"]
        if case.operator_name == "ELEMENT_WISE_MODULUS_FLOOR":
            outputs["OutputTensor"] = np.where([True, False], np.float32(2.75), array)
        if case.operator_name == "ELEMENT_WISE_EXP":
            outputs["OutputTensor"] = array * np.float32(self._spike)
        return outputs


def verdict_on(backend: NumpyBackend, tmp_path: Path, text: str = SPIKE) -> Verdict:
    ready = in_process(parse("numpy"), backend)
    [verdict] = judged([planned_graph(tmp_path, text)], ready, run_case)
    return verdict


def test_a_graph_passes_if_nodes_fit_their_actual_inputs(tmp_path: Path) -> None:
    verdict = verdict_on(Remainders(), tmp_path)
    assert verdict.status is Status.PASSED
    assert verdict.figures["y"].by_nodes == 1


def test_outputs_right_by_their_rules_lack_the_figure_by_nodes(
    tmp_path: Path,
) -> None:
    text = SPIKE.replace("outputs: {y: spike}", "outputs: {y: spike, r: rest}")
    verdict = verdict_on(Remainders(), tmp_path, text)
    assert verdict.status is Status.PASSED
    assert verdict.figures["y"].by_nodes == 1
    assert verdict.figures["r"].by_nodes is None


def test_right_nodes_do_not_excuse_a_graph_with_other_bits(
    tmp_path: Path,
) -> None:
    verdict = verdict_on(Remainders(fused=0.75), tmp_path)
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.WRONG_VALUES


def test_a_graph_fails_if_a_node_is_wrong(tmp_path: Path) -> None:
    verdict = verdict_on(Remainders(spike=1.5), tmp_path)
    assert verdict.status is Status.FAILED
    assert verdict.figures["y"].by_nodes is None


def test_right_nodes_do_not_excuse_a_graph_with_a_relation(tmp_path: Path) -> None:
    """Both forms of the graph give the same outputs."""
    verdict = verdict_on(Remainders(), tmp_path, SPIKE + "relation: order\n")
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.WRONG_VALUES


class HalvesTheExported(Remainders):
    """Halves `y` of graphs that export their intermediates, but not of nodes alone."""

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case, outcome in zip(cases, super().run(cases), strict=True):
            if isinstance(case, GraphCase) and len(case.graph.outputs) > 2:
                assert isinstance(outcome, Outputs)
                halved = {**outcome.arrays, "y": outcome.arrays["y"] / np.float32(2)}
                outcome = Outputs(halved)
            yield outcome


def test_nodes_run_alone_if_the_exported_form_is_wrong(
    tmp_path: Path,
) -> None:
    verdict = verdict_on(HalvesTheExported(), tmp_path)
    assert verdict.status is Status.PASSED
    assert verdict.figures["y"].by_nodes == 1


def test_a_graph_right_by_nodes_may_output_a_constant(
    tmp_path: Path,
) -> None:
    constant = "constants:\n  k: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}\nnodes:"
    text = SPIKE.replace("nodes:", constant).replace("{y: spike}", "{y: spike, z: k}")
    assert verdict_on(HalvesTheExported(), tmp_path, text).status is Status.PASSED


class WrongConstants(Remainders):
    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case, outcome in zip(cases, super().run(cases), strict=True):
            if isinstance(case, GraphCase):
                assert isinstance(outcome, Outputs)
                outcome = Outputs({**outcome.arrays, "z": np.full(2, 9, np.float32)})
            yield outcome


def test_right_nodes_do_not_excuse_a_wrong_constant_output(tmp_path: Path) -> None:
    constant = "constants:\n  k: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}\nnodes:"
    text = SPIKE.replace("nodes:", constant).replace("{y: spike}", "{y: spike, z: k}")
    assert verdict_on(WrongConstants(), tmp_path, text).status is Status.FAILED


class CutsRests(Remainders):
    """Leaves out the last element of `r` of graphs with two outputs."""

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case, outcome in zip(cases, super().run(cases), strict=True):
            if isinstance(case, GraphCase) and len(case.graph.outputs) == 2:
                assert isinstance(outcome, Outputs)
                outcome = Outputs({**outcome.arrays, "r": outcome.arrays["r"][:1]})
            yield outcome


def test_an_output_of_other_sizes_beside_wrong_values_fails(tmp_path: Path) -> None:
    text = SPIKE.replace("outputs: {y: spike}", "outputs: {y: spike, r: rest}")
    verdict = verdict_on(CutsRests(), tmp_path, text)
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert "r has sizes [1], not [2]" in verdict.reason.message
