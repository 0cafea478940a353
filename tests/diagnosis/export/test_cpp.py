"""C++ programs have the nodes and edges of graphs, and say whether 4-bit numbers have signs.

The tested code is in `dmlconf/diagnosis/export/cpp.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.cases.loading.loader import valid_case
from dmlconf.diagnosis.export.cpp import cpp_program
from dmlconf.diagnosis.reduction.reduce import with_own_data
from tests.bundled import bundled
from tests.diagnosis.export.graph_cases import graph_of


@pytest.mark.parametrize("beginning", ["wiring/two-users", "views/", "recurrent/"])
def test_program_has_all_nodes_and_edges_of_a_graph(beginning: str) -> None:
    graph = graph_of(beginning).graph
    source = cpp_program(graph_of(beginning), beginning)
    assert "compile_graph = true" in source
    for node in graph.operator_nodes:
        assert f'{{"{node.name}", &node_' in source
    edges = (
        ("INPUT", graph.input_edges),
        ("INTERMEDIATE", graph.intermediate_edges),
        ("OUTPUT", graph.output_edges),
    )
    for kind, expected in edges:
        rows = source.partition(f"DML_{kind}_GRAPH_EDGE_DESC> ")[2].partition("};")[0]
        assert rows.count("nullptr}") == len(expected)


def test_only_a_program_with_constant_nodes_defines_has_constants() -> None:
    assert "#define HAS_CONSTANTS" in cpp_program(graph_of("constants/constant-node"), "")
    assert "#define HAS_CONSTANTS" not in cpp_program(graph_of("constants/owned-input"), "")


def test_program_compares_signs_of_zeros_if_the_rule_does() -> None:
    plan = {each.identifier: each for each in bundled("element_wise_floor/boundary.yaml").plan()}
    for name, signed_zeros in (("without-scale-bias", "true"), ("bias-after-scale", "false")):
        case = with_own_data(valid_case(plan[f"element_wise_floor/boundary/{name}"]))
        rows = cpp_program(case, "").partition("std::vector<Output> expected = {")[2]
        assert rows.partition("}")[0].split(", ")[-2] == signed_zeros


@pytest.mark.slow
@pytest.mark.parametrize(("data_type", "signed"), [("INT4", "true"), ("UINT4", "false")])
def test_program_says_whether_4_bit_elements_are_signed(data_type: str, signed: str) -> None:
    beginning = f"quantize/sizes/four-bits[DataType={data_type}"
    plan = bundled("quantize/sizes.yaml").plan()
    planned = next(each for each in plan if each.identifier.startswith(beginning))
    source = cpp_program(with_own_data(valid_case(planned)), "")
    rows = source.partition("std::vector<Output> expected = {")[2].partition("};")[0]
    assert f"DML_TENSOR_DATA_TYPE_{data_type}, " in rows
    assert rows.strip().endswith(f", {signed}}},")
