"""Coverage of graphs counts nodes and neighbours: pairs of operators of which one feeds the other.

The tested code is in `dmlconf/coverage/graphs.py`, `dmlconf/coverage/expressible.py`,
`dmlconf/reports/suites/coverage.py`, `dmlconf/reports/suites/expressible.py` and
`dmlconf/cli/commands/writing/coverage.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

from dmlconf.cases.loading.loader import load_suite
from dmlconf.coverage.graphs import graph_coverage
from dmlconf.reports.suites.coverage import graph_sentence
from tests.cli.process import dmlconf_here
from tests.graphs.suites import TWO_NODES, graph_file


def test_neighbours_of_the_chosen_operators_are_counted(tmp_path: Path) -> None:
    other = TWO_NODES.replace("ACTIVATION_RELU", "ACTIVATION_TANH")
    plan = list(load_suite([graph_file(tmp_path, TWO_NODES, TWO_NODES, other)]).plan())
    coverage = graph_coverage(plan, ["ELEMENT_WISE_ADD", "ACTIVATION_RELU", "ACTIVATION_TANH"])
    assert coverage.neighbours == {
        ("ELEMENT_WISE_ADD", "ACTIVATION_RELU"): 2,
        ("ELEMENT_WISE_ADD", "ACTIVATION_TANH"): 1,
    }
    assert graph_sentence(coverage) == (
        "3 graphs of up to 2 nodes: 3 operators are nodes, and 2 pairs of operators are neighbours"
    )
    assert graph_coverage(plan, ["ACTIVATION_TANH"]).cases == 1
    assert graph_coverage(plan, ["GEMM"]).cases == 0


def test_the_command_coverage_lists_neighbours_as_text_and_json(tmp_path: Path) -> None:
    graph_file(tmp_path, TWO_NODES)
    done = dmlconf_here(
        tmp_path,
        "coverage",
        "graphs.yaml",
        "-q",
        "-o",
        "ELEMENT_WISE_ADD",
        "--report",
        "json:c.json",
    )
    assert "  ELEMENT_WISE_ADD feeds ACTIVATION_RELU: 1 graph" in done.stdout
    data = json.loads((tmp_path / "c.json").read_text())
    assert data["graphs"]["neighbours"] == [
        {"operator": "ELEMENT_WISE_ADD", "feeds": "ACTIVATION_RELU", "cases": 1}
    ]


def test_graphs_are_expressible_and_have_no_documented_parts(tmp_path: Path) -> None:
    graph_file(tmp_path, TWO_NODES)
    done = dmlconf_here(tmp_path, "coverage", "graphs.yaml", "-q", "--target", "onnx")
    assert "1 of 1 cases expressible (100.00%), of 0 of 0 operators" in done.stdout
    parts = dmlconf_here(tmp_path, "coverage", "graphs.yaml", "-q", "-o", "GRAPHS")
    assert "0 of 0 documented parts of 0 operators covered (100.00%)" in parts.stdout
