"""The figure "by graph" counts the defects that verdicts notice, and right outputs that fail.

The tested code is in `dmlconf/strength/graph_figure.py`, `dmlconf/strength/graph_defects.py`,
`dmlconf/reports/strength/graphs.py` and `dmlconf/cli/commands/writing/strength.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.engine.session import no_expectation
from dmlconf.reference.evaluation import evaluate
from dmlconf.reports.strength.graphs import Graphs
from dmlconf.strength.graph_defects import GRAPH_DEFECTS, LEGITIMATE_GRAPH_DIFFERENCES, GraphSite
from dmlconf.strength.graph_figure import GraphFigure, GraphTally, measure_graphs
from tests.cli.process import dmlconf_here
from tests.graphs.suites import graph_case, graph_file

GATED = """
inputs:
  x: {Sizes: [1, 1, 3, 5], DataType: FLOAT32, fill: {normal: {seed: 1}}}
  w: {Sizes: [1, 1, 3, 5], DataType: FLOAT32, Flags: OWNED_BY_DML, fill: {normal: {seed: 2}}}
constants:
  c: {Sizes: [1, 1, 3, 5], DataType: FLOAT32, fill: {normal: {seed: 3}}}
nodes:
  product: {operator: ELEMENT_WISE_MULTIPLY, desc: {ATensor: x, BTensor: w, OutputTensor: {}}}
  rest: {operator: ELEMENT_WISE_SUBTRACT, desc: {ATensor: product, BTensor: c, OutputTensor: {}}}
  gate: {operator: ACTIVATION_SIGMOID, desc: {InputTensor: rest, OutputTensor: {}}}
  all: {operator: ELEMENT_WISE_MULTIPLY, desc: {ATensor: gate, BTensor: product, OutputTensor: {}}}
outputs: {y: all}
"""
"""The product x * w times the sigmoid of x * w - c; `w` is owned by DirectML, `c` a constant."""


def test_every_defect_of_graphs_changes_outputs(tmp_path: Path) -> None:
    case = graph_case(tmp_path, GATED)
    right = evaluate(case)
    site = GraphSite(case, right)
    for name, inject in GRAPH_DEFECTS.items():
        changed = [not np.array_equal(wrong["y"], right["y"]) for _, wrong in inject(site)]
        assert any(changed), name


def test_edges_to_other_buffers_make_no_cycle(
    tmp_path: Path,
) -> None:
    case = graph_case(tmp_path, GATED)
    site = GraphSite(case, evaluate(case))
    notes = [note for note, _ in GRAPH_DEFECTS["an edge reads another buffer"](site)]
    assert "all.BTensor reads rest.OutputTensor" in notes
    assert not any(note.startswith("rest.ATensor reads gate") for note in notes), "a cycle"
    assert not any(note.startswith("gate.InputTensor reads") for note in notes), (
        "rest would be unread"
    )


def test_other_orders_of_sums_give_equal_elements_equal_errors(tmp_path: Path) -> None:
    """HARDMAX chooses the first of equal elements; with unequal errors it would choose another."""
    text = """
inputs: {x: {Sizes: [1, 1, 1, 9], DataType: FLOAT32, fill: {constant: {value: 3}}}}
nodes:
  norm:
    operator: LP_NORMALIZATION
    desc: {InputTensor: x, OutputTensor: {}, Axis: 3, Epsilon: 0.0, P: 2}
  best: {operator: ACTIVATION_HARDMAX1, desc: {InputTensor: norm, OutputTensor: {}, Axes: [3]}}
outputs: {y: best}
"""
    case = graph_case(tmp_path, text)
    right = evaluate(case)
    site = GraphSite(case, right)
    others = list(LEGITIMATE_GRAPH_DIFFERENCES["sums in other orders"](site))
    assert len(others) > 0
    for note, other in others:
        np.testing.assert_array_equal(other["y"], right["y"], note)


def test_defects_are_noticed_and_legitimate_differences_pass(tmp_path: Path) -> None:
    for data_type in ("FLOAT32", "FLOAT16"):
        case = graph_case(tmp_path, GATED.replace("FLOAT32", data_type))
        figure = measure_graphs([case], no_expectation)
        assert figure.cases == 1
        assert {name for name, tally in figure.legitimate.items() if tally.tried} == {
            *LEGITIMATE_GRAPH_DIFFERENCES
        }
        failing = [tally.unexpected for tally in figure.legitimate.values() if tally.unexpected]
        assert not failing
        # In FLOAT16 one of 40 defects passes: an intermediate rounded through BFLOAT16.
        assert Graphs(figure).share >= 97.5


def test_passing_defects_and_failing_differences_are_reported() -> None:
    figure = GraphFigure(
        cases=2,
        defects={"dropped": GraphTally(4, 3, ["graphs/a: relu"])},
        legitimate={"fused": GraphTally(2, 1, ["graphs/b"])},
    )
    assert list(Graphs(figure).remarks()) == [
        "passes: dropped, graphs/a: relu",
        "fails although it is right: fused, graphs/b",
    ]
    assert Graphs(figure).share == 75  # 3 of 4 defects, in percent.


@pytest.mark.slow
def test_command_measures_graphs_alike_with_two_processes(tmp_path: Path) -> None:
    graph_file(tmp_path, GATED)
    options = "--figure", "graphs", "-q", "--report", "json:s.json"
    threshold = "--fail-under", "graphs=100"
    done = dmlconf_here(tmp_path, "strength", "graphs.yaml", *options, *threshold)
    data = json.loads((tmp_path / "s.json").read_text())["graphs"]
    assert (data["cases"], data["share"], done.returncode) == (1, 100, 0)
    assert "by graph: " in done.stdout
    both = dmlconf_here(tmp_path, "strength", "graphs.yaml", *options, "-j", "2")
    assert both.returncode == 0
    assert json.loads((tmp_path / "s.json").read_text())["graphs"] == data


def test_a_threshold_above_100_is_refused(tmp_path: Path) -> None:
    graph_file(tmp_path, GATED)
    options = "--figure", "graphs", "--fail-under", "graphs=101"
    done = dmlconf_here(tmp_path, "strength", "graphs.yaml", *options)
    assert done.returncode == 2
    assert "101" in done.stderr


def test_figure_graphs_is_refused_without_graphs(tmp_path: Path) -> None:
    (tmp_path / "relu.yaml").write_text(
        "operator: ACTIVATION_RELU\ncases:\n  - desc:\n"
        "      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, -1]}\n"
        "      OutputTensor: {Sizes: [2], DataType: FLOAT32}\n"
    )
    result = dmlconf_here(tmp_path, "strength", "relu.yaml", "--figure", "graphs")
    assert result.returncode == ExitCode.NOTHING_SELECTED
    assert "--figure graphs measures graphs, and none is among the cases" in result.stderr
