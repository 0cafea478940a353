"""Graphs in case files become cases; all problems of wrong graphs are reported at once.

The tested code is in `graph_build.py`, `graph_nodes.py` and `tensor_entry.py` in
`dmlconf/cases/building/`, in `dmlconf/cases/loading/graph_problems.py`,
`dmlconf/cases/loading/validated.py` (stored graphs), `dmlconf/cases/graph_case.py`,
`dmlconf/graphs/model.py`, `dmlconf/graphs/wiring.py`, `dmlconf/cases/facts.py`,
`dmlconf/cases/selecting/selection.py` and `dmlconf/limits.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.building.graph_build import operators_in
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import Selection, select
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.documents.store import Store
from tests.graphs.suites import TWO_NODES, graph_case, graph_file


def problems(folder: Path, *graphs: str) -> list[str]:
    """Return the problems of a file of graphs, as `LINE:COLUMN: message`."""
    path = graph_file(folder, *graphs)
    with pytest.raises(InvalidFilesError) as error:
        load_suite([path])
    return [f"{p.line}:{p.column}: {p.message}" for p in error.value.problems]


def two_nodes_with(old: str, new: str) -> str:
    assert old in TWO_NODES
    return TWO_NODES.replace(old, new)


def test_a_graph_case_has_an_identifier_inputs_and_outputs(tmp_path: Path) -> None:
    case = graph_case(tmp_path, TWO_NODES)
    assert case.identifier == "graphs/graphs/a"
    assert case.outputs() == {"y": case.graph.inputs["x"]}
    np.testing.assert_array_equal(case.inputs()["x"].ravel(), [1, -2, 3])


def test_a_tensor_without_a_desc_has_its_sources_desc(tmp_path: Path) -> None:
    graph = graph_case(tmp_path, TWO_NODES).graph
    double, relu = graph.operator_nodes
    for node, name in ((double, "ATensor"), (double, "OutputTensor"), (relu, "OutputTensor")):
        assert node.desc[name] == graph.inputs["x"]


def test_a_node_may_read_other_sizes_and_strides(tmp_path: Path) -> None:
    view = "{from: double, Sizes: [1, 1, 3, 1], Strides: [3, 3, 1, 1]}"
    case = graph_case(tmp_path, two_nodes_with("InputTensor: double", f"InputTensor: {view}"))
    relu = case.graph.operator_nodes[1]
    assert relu.desc["InputTensor"].Sizes == (1, 1, 3, 1)
    assert relu.desc["OutputTensor"].Sizes == (1, 1, 3, 1)


def test_nodes_get_the_flags_of_their_graph_input(tmp_path: Path) -> None:
    case = graph_case(tmp_path, two_nodes_with("values:", "Flags: OWNED_BY_DML, values:"))
    double, relu = case.graph.operator_nodes
    assert double.desc["ATensor"].Flags == double.desc["BTensor"].Flags == ("OWNED_BY_DML",)
    assert relu.desc["InputTensor"].Flags == ()


def test_a_node_with_repeat_becomes_a_chain_of_nodes(tmp_path: Path) -> None:
    text = two_nodes_with("double: {", "double: {repeat: 3, ").replace(
        "ATensor: x", "ATensor: {chain: x}"
    )
    graph = graph_case(tmp_path, text).graph
    assert [node.name for node in graph.nodes] == ["double[0]", "double[1]", "double[2]", "relu"]
    sources = graph.sources()
    assert sources["double[0]", "ATensor"] == "x"
    assert sources["double[2]", "ATensor"] == ("double[1]", "OutputTensor")
    assert sources["relu", "InputTensor"] == ("double[2]", "OutputTensor")


def test_operators_may_be_parameters_of_a_matrix(tmp_path: Path) -> None:
    text = "matrix: {Activation: [ACTIVATION_RELU, ACTIVATION_SIGMOID]}\n" + two_nodes_with(
        "operator: ACTIVATION_RELU", "operator: =Activation"
    )
    plan = list(load_suite([graph_file(tmp_path, text)]).plan())
    assert [sorted(operators_in(planned)) for planned in plan] == [
        ["ACTIVATION_RELU", "ELEMENT_WISE_ADD"],
        ["ACTIVATION_SIGMOID", "ELEMENT_WISE_ADD"],
    ]
    chosen = select(plan, Selection(operators=frozenset({"ACTIVATION_SIGMOID"})))
    assert [planned.parameters for planned in chosen] == [{"Activation": "ACTIVATION_SIGMOID"}]


def test_operators_are_known_if_a_let_value_fails(tmp_path: Path) -> None:
    matrix = "matrix: {Activation: [ACTIVATION_RELU], Step: [0, 1]}\n"
    head = matrix + 'let: {Part: "=1 // (1 - Step)"}\n'
    text = two_nodes_with("operator: ACTIVATION_RELU", "operator: =Activation")
    plan = list(load_suite([graph_file(tmp_path, head + text)]).plan())
    assert [sorted(operators_in(planned)) for planned in plan] == [
        ["ACTIVATION_RELU", "ELEMENT_WISE_ADD"]
    ] * 2


def test_conditions_may_name_operators_neighbours_and_counts(tmp_path: Path) -> None:
    plan = list(load_suite([graph_file(tmp_path, TWO_NODES)]).plan())

    def selected(where: str) -> list[PlannedCase]:
        return list(select(plan, Selection(where=where)))

    assert selected("ACTIVATION_RELU in Operators and NodeCount == 2") == plan
    assert selected("'ELEMENT_WISE_ADD>ACTIVATION_RELU' in Neighbours") == plan
    assert selected("'ACTIVATION_RELU>ELEMENT_WISE_ADD' in Neighbours") == []
    assert selected("GEMM in Operators") == []
    assert selected("ConstantCount > 0") == []


def test_nodes_and_constants_raise_the_level_of_a_graph(
    tmp_path: Path,
) -> None:
    assert str(graph_case(tmp_path, TWO_NODES).required_level) == "2_1"  # Graphs need this level.
    newer = two_nodes_with("ACTIVATION_RELU", "ACTIVATION_GELU")
    assert str(graph_case(tmp_path, newer).required_level) == "5_1"
    constant = "constants: {c: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1, 2, 3]}}\n"
    text = constant + two_nodes_with("BTensor: x", "BTensor: c")
    assert str(graph_case(tmp_path, text).required_level) == "6_2"


def test_seven_mistakes_in_seven_graphs_are_reported_at_once(tmp_path: Path) -> None:
    reports = problems(
        tmp_path,
        two_nodes_with("BTensor: x", "BTensor: y"),
        two_nodes_with("ACTIVATION_RELU", "ACTIVATION_RLU"),
        two_nodes_with("ATensor: x", "ATensor: relu"),
        two_nodes_with("BTensor: x", "BTensor: {from: x, Sizes: [1, 1, 1, 4]}"),
        two_nodes_with("{y: relu}", "{y: double}"),
        two_nodes_with("InputTensor: double", "InputTensor: {from: [double, x]}"),
        two_nodes_with("{y: relu}", "{y: relu}\nexpect: {z: [1, 2, 3]}"),
    )
    assert [re.sub(r"^\d+:\d+: ", "", problem) for problem in reports] == [
        "there is no node, graph input or constant y",
        "the catalogue has no operator ACTIVATION_RLU",
        "the nodes form a cycle: double -> relu -> double",
        "BTensor of double has 16 bytes (Sizes [1, 1, 1, 4]), but the graph input x has 12 "
        "(Sizes [1, 1, 1, 3])",
        "relu feeds no node and is not an output of the graph",
        "2 edges feed InputTensor of the node relu",
        "the graph has no output z",
    ]
    assert reports[0].startswith("6:")
    assert reports[2].startswith("19:")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{y: relu}", "{x: relu}", "x is a graph input already"),
        ("{y: relu}", "{y: x}", "x is a graph input, and no edge leads from it to an output"),
        ("{y: relu}", "{y: relu, z: []}", "nothing says what feeds z"),
        ("  relu:", "  x:", "x is a graph input already"),
        ("values: [1, -2, 3]", "Strides: [3, 3, 3, 1]", "`x` has no data"),
        (
            "InputTensor: double",
            "InputTensor: double.OtherTensor",
            "the node double has no output OtherTensor",
        ),
        (
            "InputTensor: double",
            "InputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32}",
            "nothing feeds InputTensor of the node relu",
        ),
        (
            "InputTensor: double",
            "InputTensor: {DataType: FLOAT32}",
            "nothing says what feeds InputTensor",
        ),
        (
            "OutputTensor: {}}}\noutputs",
            "OutputTensor: {}, Alpha: 1}}\noutputs",
            "unknown field `Alpha` in the desc of ACTIVATION_RELU",
        ),
        ("operator: ACTIVATION_RELU", "operator: GRAPHS", "a graph cannot be a node of a graph"),
        ("nodes:", "Nodes:", "unknown field `Nodes` in a graph"),
        (
            "nodes:",
            "constants: {k: {Sizes: [2, 1], DataType: INT8, Strides: [1], values: [1, 2]}}\nnodes:",
            "k feeds no node and is not an output of the graph",
        ),
        ("double: {", "double: {repeat: 2000, ", "2000 is not a number from 1 to 1024"),
    ],
)
def test_a_mistake_in_a_graph_has_its_message(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert any(
        problem.endswith(message) for problem in problems(tmp_path, two_nodes_with(old, new))
    )


@pytest.mark.parametrize(
    ("source", "kind"), [("c.OutputTensor", "a constant"), ("x.Output", "a graph input")]
)
def test_output_of_a_constant_or_graph_input_is_refused(
    tmp_path: Path, source: str, kind: str
) -> None:
    constant = "constants: {c: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1, 2, 3]}}\n"
    path = graph_file(tmp_path, constant + two_nodes_with("BTensor: x", f"BTensor: {source}"))
    with pytest.raises(InvalidFilesError) as error:
        load_suite([path])
    [problem] = error.value.problems
    name, _, output = source.partition(".")
    assert problem.message == f"{name} is {kind}, which has no output {output}"
    assert problem.hint == f"write `{name}` alone"


def test_an_input_that_cannot_be_computed_is_refused(
    tmp_path: Path,
) -> None:
    late = "  late: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: x, OutputTensor: {}}}\n"
    text = two_nodes_with("ATensor: x, BTensor: x", 'ATensor: late, BTensor: "=(1,)[N]"')
    text = "matrix: {N: [1]}\n" + text.replace("outputs:", f"{late}outputs:")
    (problem,) = problems(tmp_path, text)
    assert problem.endswith("index out of range")


def test_a_number_as_flags_is_refused(
    tmp_path: Path,
) -> None:
    text = "matrix: {N: [1]}\n" + two_nodes_with("values:", "held: owned, Flags: =N, values:")
    (problem,) = problems(tmp_path, text)
    assert problem.endswith("must be a list, not 1")


def test_a_wrongly_wired_graph_violates_a_constraint(
    tmp_path: Path,
) -> None:
    rejected = "expect: {rejected: E_INVALIDARG, constraint: CONSTRAINT}\n"
    for constraint, graph in (
        ("edge-size", two_nodes_with("BTensor: x", "BTensor: {from: x, Sizes: [1, 1, 1, 4]}")),
        (
            "single-source",
            two_nodes_with("InputTensor: double", "InputTensor: {from: [double, x]}"),
        ),
        (
            "edge-ends-exist",
            two_nodes_with(
                "InputTensor: double",
                "InputTensor: {from: nothing, Sizes: [1, 1, 1, 3], DataType: FLOAT32}",
            ),
        ),
        (
            "acyclic",
            two_nodes_with(
                "ATensor: x", "ATensor: {from: relu, Sizes: [1, 1, 1, 3], DataType: FLOAT32}"
            ),
        ),
    ):
        case = graph_case(tmp_path, graph + rejected.replace("CONSTRAINT", constraint))
        assert constraint in case.violations()


def test_a_list_as_constraint_is_refused(tmp_path: Path) -> None:
    expect = '{rejected: E_INVALIDARG, constraint: "=[N]"}'
    text = "matrix: {N: [1]}\n" + two_nodes_with("{y: relu}", f"{{y: relu}}\nexpect: {expect}")
    (problem,) = problems(tmp_path, text)
    assert problem.endswith("neither graphs nor their nodes have a constraint [1]")


def test_an_unknown_constraint_is_refused(tmp_path: Path) -> None:
    text = TWO_NODES + "expect: {rejected: E_INVALIDARG, constraint: edge-sizes}\n"
    [problem] = problems(tmp_path, text)
    assert problem.endswith("neither graphs nor their nodes have a constraint 'edge-sizes'")


def test_a_file_with_operator_and_graph_is_refused(tmp_path: Path) -> None:
    path = graph_file(tmp_path, TWO_NODES)
    path.write_text("operator: GEMM\n" + path.read_text())
    with pytest.raises(InvalidFilesError, match="cannot have `operator` and `graph`"):
        load_suite([path])


def test_a_stored_graph_equals_the_graph_that_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = graph_file(tmp_path, TWO_NODES)
    store = Store(tmp_path / "store")
    first = build(next(load_suite([path], store=store).plan()))
    # Reading the file again would fail.
    monkeypatch.setattr("dmlconf.cases.loading.loader.read_document", None)
    second = build(next(load_suite([path], store=store).plan()))
    assert first.identifier == second.identifier
    assert first.content == second.content


def chain(count: int, feeder: Callable[[int], str]) -> str:
    """Return a graph of nodes n0, n1 and so on; `feeder(n)` names the source of node n."""
    nodes = "".join(
        f"  n{n}: {{operator: ELEMENT_WISE_IDENTITY, desc: "
        f"{{InputTensor: {feeder(n)}, OutputTensor: {{}}}}}}\n"
        for n in range(count)
    )
    row = "{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1, 2]}"
    return f"inputs: {{x: {row}}}\nnodes:\n{nodes}outputs: {{y: n0}}\n"


@pytest.mark.slow
def test_a_chain_of_2000_nodes_may_be_listed_backwards(tmp_path: Path) -> None:
    """Python's recursion limit is 1,000 by default."""
    graph = graph_case(tmp_path, chain(2000, lambda n: f"n{n + 1}" if n < 1999 else "x")).graph
    assert [node.name for node in graph.in_order()] == [f"n{n}" for n in reversed(range(2000))]


def test_the_message_about_a_long_cycle_is_cut(tmp_path: Path) -> None:
    with pytest.raises(InvalidFilesError) as caught:
        graph_case(tmp_path, chain(500, lambda n: f"n{(n + 1) % 500}"))
    [problem] = caught.value.problems
    cycle = "the nodes form a cycle: n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> (493 more) -> n0"
    assert cycle in problem.message


@pytest.mark.slow
def test_a_graph_of_more_than_10000_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFilesError, match="more than 10,000 nodes"):
        graph_case(tmp_path, chain(10_001, lambda n: f"n{n - 1}" if n else "x"))
