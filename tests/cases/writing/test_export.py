"""An exported case keeps its tolerances, flags, origin, relation, data and edges.

The tested code is in `dmlconf/cases/writing/export.py` and `dmlconf/cases/writing/graph_entry.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, ExpectedOutputs, Provenance
from dmlconf.cases.writing.export import export_case
from dmlconf.graphs.relations import Relation
from tests.cases.suites import SUM, TILE, built, replace_once

GRAPH = """\
graph: sums
cases:
  - name: a
    inputs: {X: {Sizes: [4], DataType: FLOAT32, values: [1, 2, 3, 4]}}
    nodes:
      first:
        operator: ELEMENT_WISE_IDENTITY
        desc: {InputTensor: {from: X}, OutputTensor: {Sizes: [4], DataType: FLOAT32}}
      second:
        operator: ELEMENT_WISE_IDENTITY
        desc: {InputTensor: {from: first}, OutputTensor: {Sizes: [4], DataType: FLOAT32}}
    outputs: {Y: second}
"""


def exported(case: Case, folder: Path) -> Case:
    """Export a case, and load it again."""
    path = folder / "exported.yaml"
    path.with_suffix("").mkdir()  # For the .npy files of its tensors.
    export_case(path, case, case.expectation, case.inputs())
    (planned,) = load_suite([path]).plan()
    return build(planned)


@pytest.mark.parametrize(
    "tolerance",
    [
        "{ulp: 2}",
        "{absolute: 0.25}",
        "{relative: 0.5}",
        "{relative: 0.5, absolute: 1, reason: the driver is coarse}",
    ],
)
def test_an_exported_case_keeps_its_tolerance(tolerance: str, tmp_path: Path) -> None:
    case = built(tmp_path, f"{SUM}    tolerance: {{OutputTensor: {tolerance}}}\n")
    assert case.tolerances
    assert exported(case, tmp_path).tolerances == case.tolerances


def test_an_exported_case_keeps_its_compilation_flags(tmp_path: Path) -> None:
    tags = ["half-precision", "no-metacommands", "descriptors-volatile"]
    case = built(tmp_path, f"{SUM}    tags: [network, {', '.join(tags)}]\n")
    assert exported(case, tmp_path).tags == ("exported", *tags)


def test_an_exported_expectation_keeps_its_origin(tmp_path: Path) -> None:
    case = built(tmp_path, f"{TILE}    origin: counted by hand\n")
    again = exported(case, tmp_path)
    assert again.about.origin == "counted by hand"
    assert isinstance(again.expectation, ExpectedOutputs)
    assert again.expectation.provenance is Provenance.STATED


def test_an_exported_graph_keeps_its_relation(tmp_path: Path) -> None:
    case = built(tmp_path, f"{GRAPH}    relation: cut\n")
    assert exported(case, tmp_path).relation is Relation.CUT


def test_a_constant_named_like_an_output_is_exported(tmp_path: Path) -> None:
    text = replace_once(GRAPH, "{from: X}", "{from: Y}")
    text = replace_once(text, "inputs: {X:", "constants: {Y:")
    case = built(tmp_path, text)
    [constant] = exported(case, tmp_path).graph.constants
    assert constant.data.tolist() == case.graph.constants[0].data.tolist()


def test_exported_inputs_with_similar_names_keep_their_data(tmp_path: Path) -> None:
    others = "".join(
        f", {name}: {{Sizes: [4], DataType: FLOAT32, values: [{index}, 0, 0, 0]}}"
        for index, name in enumerate(("X_", "X-", "X--"))
    )
    text = replace_once(GRAPH, "[1, 2, 3, 4]}", f"[1, 2, 3, 4]}}{others}")
    case = built(tmp_path, f"{text}    expect: {{rejected: E_INVALIDARG}}\n")
    again = exported(case, tmp_path)
    assert {name: array.tolist() for name, array in again.inputs().items()} == {
        name: array.tolist() for name, array in case.inputs().items()
    }


def test_an_exported_output_keeps_all_its_nodes(tmp_path: Path) -> None:
    text = replace_once(GRAPH, "{Y: second}", "{Y: [first, second, first]}")
    case = built(tmp_path, f"{text}    expect: {{rejected: E_INVALIDARG}}\n")
    edges = [(edge.node, edge.graph_output) for edge in case.graph.output_edges]
    assert edges == [("first", "Y"), ("second", "Y"), ("first", "Y")]
    assert exported(case, tmp_path).graph.output_edges == case.graph.output_edges
