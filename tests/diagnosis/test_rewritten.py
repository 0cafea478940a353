"""The diagnosis of a graph names a rewrite that gives exactly the wrong outputs of the device.

The tested code is in `dmlconf/diagnosis/rewritten.py`, `dmlconf/diagnosis/graph_mutants.py` and
`dmlconf/reports/diagnoses/report.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import NumpyBackend
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.loading.rewrites import case_rewrite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.diagnosis.diagnose import Diagnosis, diagnose
from dmlconf.diagnosis.graph_mutants import mutants_of
from dmlconf.diagnosis.rewritten import own_mutant
from dmlconf.graphs.model import Graph
from dmlconf.reference.evaluation import evaluate
from dmlconf.reports.diagnoses.report import rewrite_sentence
from tests.bundled import bundled
from tests.diagnosis.in_process import InProcessBench

GRAPHS = """\
graph: two products
cases:
  - name: beta
    inputs: &inputs
      a: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, 2, 3, 4]}
      w: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, -1, 2, 0]}
      c: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [-50, 6, 7, -8]}
    nodes:
      first: &first
        operator: GEMM
        desc: {ATensor: a, BTensor: w, CTensor: c, OutputTensor: {}, TransA: NONE, TransB: NONE,
          Alpha: 1, Beta: 1}
      second:
        operator: GEMM
        desc: {ATensor: a, BTensor: w, CTensor: c, OutputTensor: {}, TransA: NONE, TransB: NONE,
          Alpha: 1, Beta: 3}
      y: &y
        operator: ELEMENT_WISE_SUBTRACT
        desc: {ATensor: first, BTensor: second, OutputTensor: {}}
    outputs: {y: y}

  - name: activation
    inputs: *inputs
    nodes:
      first: *first
      second: {operator: ACTIVATION_RELU, desc: {InputTensor: first, OutputTensor: {}}}
      y: *y
    outputs: {y: y}

  - name: clip
    inputs: {x: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1, -2, 3]}}
    nodes:
      c: {operator: ACTIVATION_RELU, desc: {InputTensor: x, OutputTensor: {}}}
      y: {operator: ELEMENT_WISE_CLIP, desc: {InputTensor: c, OutputTensor: {}, Min: -6, Max: 6}}
    outputs: {y: y}
    rewrite:
      name: drop-relu-before-clip
      breaks: minimum-is-not-negative
      nodes:
        y: {operator: ELEMENT_WISE_CLIP, desc: {InputTensor: x, OutputTensor: {}, Min: -6, Max: 6}}
"""


def planned(folder: Path, name: str) -> PlannedCase:
    path = folder / "two.yaml"
    path.write_text(GRAPHS)
    [case] = [each for each in load_suite([path]).plan() if each.identifier.endswith(name)]
    return case


class Compiler(NumpyBackend):
    """A backend that gives graphs of several nodes the outputs of `compiled`."""

    def __init__(self, compiled: Callable[[GraphCase], dict[str, np.ndarray]]) -> None:
        self._compiled = compiled

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            if isinstance(case, GraphCase) and len(case.graph.nodes) > 1:
                yield Outputs(self._compiled(case), 0.0)
            else:
                yield from super().run([case])


def diagnosed(
    case: PlannedCase, compiled: Callable[[GraphCase], dict[str, np.ndarray]]
) -> Diagnosis:
    """Return the diagnosis, without reduction, of a graph with the outputs of `compiled`."""
    bench = InProcessBench("faulty:negated", Compiler(compiled))
    return diagnose(valid_case(case), bench, 0, own=own_mutant(case))


def outputs_of_changed_graph(
    change: Callable[[Graph], Graph],
) -> Callable[[GraphCase], dict[str, np.ndarray]]:
    return lambda case: dict(evaluate(replace(case, graph=change(case.graph))))


def second_reads_first(graph: Graph) -> Graph:
    links = (
        replace(link, from_node="first") if link.from_node == "second" else link
        for link in graph.intermediate_edges
    )
    return replace(graph, intermediate_edges=tuple(links))


def y_reads_second_twice(graph: Graph) -> Graph:
    links = (
        replace(link, from_node="second") if link.to_node == "y" else link
        for link in graph.intermediate_edges
    )
    return replace(graph, intermediate_edges=tuple(links))


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        (
            "beta",
            second_reads_first,
            "if Beta of first serves second as well (merge-equal-products)",
        ),
        (
            "activation",
            y_reads_second_twice,
            "if second writes over what first gives, which is read later (write-in-place)",
        ),
    ],
)
def test_the_rewrite_that_gives_the_same_bits_is_named(
    tmp_path: Path, name: str, change: Callable[[Graph], Graph], sentence: str
) -> None:
    diagnosis = diagnosed(planned(tmp_path, name), outputs_of_changed_graph(change))
    assert diagnosis.reproduced
    assert rewrite_sentence(diagnosis) == f"Equal in every bit to what you get {sentence}."


def test_rewrite_is_named_with_the_condition_that_does_not_hold(
    tmp_path: Path,
) -> None:
    def without_relu(case: GraphCase) -> dict[str, np.ndarray]:
        return {"y": np.clip(case.inputs()["x"], -6, 6)}

    diagnosis = diagnosed(planned(tmp_path, "clip"), without_relu)
    assert rewrite_sentence(diagnosis) == (
        "Equal in every bit to what you get if CLIP of RELU becomes CLIP, although this does not "
        "hold: Min is at least 0 (drop-relu-before-clip)."
    )


@pytest.mark.parametrize(
    "kind",
    ["fills", "lookups", "rearrangements", "scatters", "searches", "softmaxes", "tests"],
)
def test_merging_mutant_is_named_after_the_kind_of_node(kind: str) -> None:
    names: set[str] = set()
    for case in bundled("graphs/rewrites-attributes.yaml").plan():
        rewrite = case_rewrite(case.template)
        if rewrite is not None and rewrite.name == f"merge-equal-{kind}":
            graph = valid_case(case).graph
            names |= {each.rewrite for each in mutants_of(graph) if "serves" in each.what}
    assert names == {f"merge-equal-{kind}"}


def test_outputs_that_no_rewrite_gives_are_not_explained(tmp_path: Path) -> None:
    def off_by_one(case: GraphCase) -> dict[str, np.ndarray]:
        return {name: array + 1 for name, array in evaluate(case).items()}

    diagnosis = diagnosed(planned(tmp_path, "beta"), off_by_one)
    assert diagnosis.reproduced
    assert rewrite_sentence(diagnosis) is None


def test_a_rewrite_with_the_devices_own_rounding_is_named(tmp_path: Path) -> None:
    """All exponentials of the device are one ULP too high."""
    path = tmp_path / "exp.yaml"
    path.write_text("""\
graph: exponentials
cases:
  - name: exp
    inputs: {x: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1, -2, 3]}}
    nodes:
      e: {operator: ELEMENT_WISE_EXP, desc: {InputTensor: x, OutputTensor: {}}}
      n: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: e, OutputTensor: {}}}
      y: {operator: ELEMENT_WISE_ADD, desc: {ATensor: e, BTensor: n, OutputTensor: {}}}
    outputs: {y: y}
""")
    [case] = load_suite([path]).plan()

    def exponential(x: np.ndarray) -> np.ndarray:
        above: np.ndarray = np.nextafter(np.exp(x), np.float32(np.inf))
        return above

    class InexactCompiler(Compiler):
        def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
            for each in cases:
                if each.operator_name == "ELEMENT_WISE_EXP":
                    yield Outputs({"OutputTensor": exponential(each.inputs()["InputTensor"])}, 0.0)
                else:
                    yield from super().run([each])

    def twice_negated(graph: GraphCase) -> dict[str, np.ndarray]:
        return {"y": -2 * exponential(graph.inputs()["x"])}

    bench = InProcessBench("faulty:negated", InexactCompiler(twice_negated))
    diagnosis = diagnose(valid_case(case), bench, 0)
    assert rewrite_sentence(diagnosis) == (
        "Equal in every bit to what you get if n writes over what e gives, which is read later "
        "(write-in-place)."
    )
