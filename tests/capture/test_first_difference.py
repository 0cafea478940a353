"""The first node of a model whose output differs between two providers is found.

The tested code is in `dmlconf/capture/model_runs/first_difference.py`,
`dmlconf/capture/model_runs/onnx_graph.py` and `dmlconf/capture/model_runs/output_difference.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dmlconf.capture.model_runs.first_difference import Search, first_difference, search_lines
from dmlconf.capture.model_runs.onnx_graph import OnnxGraph, read_graph
from dmlconf.capture.model_runs.onnx_sessions import OnnxSession, SessionSettings
from dmlconf.capture.model_runs.output_difference import output_difference

NET: Final = Path(__file__).parents[1] / "lab" / "capture" / "net.onnx"
"""A model of eight nodes, from a convolution to a softmax."""

X: Final = np.linspace(-1, 1, 3 * 9 * 9, dtype=np.float32).reshape(1, 3, 9, 9)

needs_onnx: Final = pytest.mark.runtimes


def search(
    change: Callable[[Any], None],
    file: Path = NET,
    inputs: Mapping[str, np.ndarray[Any, Any]] | None = None,
) -> Search:
    """Compare a model with a changed copy of it; both run on the CPU provider."""
    import onnx

    settings = SessionSettings(file, {"batch": 1})

    def changed(model: bytes) -> OnnxSession:
        proto = onnx.ModelProto.FromString(model)
        change(proto.graph)
        return settings.cpu(proto.SerializeToString())

    return first_difference(read_graph(file), inputs or {"x": X}, settings.cpu, changed)


def replaced(operator: str, by: str) -> Callable[[Any], None]:
    """Return a change that replaces all nodes of one ONNX operator by those of another."""

    def change(graph: Any) -> None:
        for node in graph.node:
            if node.op_type == operator:
                node.op_type = by

    return change


def is_compared(graph: Any, tensor: str) -> bool:
    """Return whether the search made a tensor of the model an output."""
    return any(node.op_type == "Identity" and node.input == [tensor] for node in graph.node)


@needs_onnx
@pytest.mark.parametrize(
    ("operator", "by", "name", "compared_before"),
    [("Relu", "Neg", "/layer1/relu", 1), ("Softmax", "LogSoftmax", "/softmax", 7)],
)
def test_the_node_that_a_provider_computes_differently_is_named(
    operator: str, by: str, name: str, compared_before: int
) -> None:
    result = search(replaced(operator, by))
    assert result.first is not None
    assert (result.first.node.name, result.first.node.operator) == (name, operator)
    assert result.compared == compared_before + 1
    assert not result.failures
    assert [each.beyond for each in result.first.inputs.values()] == [False]
    assert result.first.alone is not None
    assert result.first.alone.beyond
    text = "\n".join(search_lines(result))
    assert f" of the node {name} ({operator})" in text
    assert "alone, with the CPU provider's inputs: at most" in text


@needs_onnx
def test_first_node_of_a_model_is_tried_alone() -> None:
    def change(graph: Any) -> None:
        for constant in graph.initializer:
            if constant.name == "b":
                constant.raw_data = bytes(len(constant.raw_data))

    result = search(change)
    assert result.first is not None
    assert result.first.node.name == "/layer1/conv"
    assert result.first.inputs == {}
    assert result.first.alone is not None
    assert result.first.alone.beyond
    assert "before it" not in "\n".join(search_lines(result))


@needs_onnx
def test_model_of_a_single_node_has_its_sparse_constant() -> None:
    import onnx
    from onnx import helper

    values = helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [5])
    indices = helper.make_tensor("at", onnx.TensorProto.INT64, [1], [1])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "sum",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3])],
        sparse_initializer=[helper.make_sparse_tensor(values, indices, [3])],
    )
    whole = OnnxGraph(helper.make_model(graph))
    x = np.array([1, 2, 3], np.float32)
    alone = whole.alone(whole.nodes[0], {"x": x})
    assert alone is not None
    [small] = onnx.ModelProto.FromString(alone).graph.sparse_initializer
    assert (small.values.name, list(small.dims)) == ("w", [3])


@needs_onnx
def test_report_says_that_a_node_is_right_alone() -> None:
    def change(graph: Any) -> None:
        if len(graph.node) > 1:
            replaced("Relu", "Neg")(graph)

    result = search(change)
    assert result.first is not None
    assert result.first.node.name == "/layer1/relu"
    assert result.first.alone is not None
    assert not result.first.alone.beyond
    suspected = "it enlarges what its inputs differ by, or is wrong only among its neighbours"
    right = f"  alone, with the CPU provider's inputs, it is right: {suspected}"
    assert right in search_lines(result)


@needs_onnx
def test_difference_that_disappears_is_put_down_to_fusions() -> None:
    def change(graph: Any) -> None:
        if not is_compared(graph, "c"):  # The input of the Relu.
            replaced("Relu", "Neg")(graph)

    result = search(change)
    assert result.first is None
    assert result.compared == 8  # All nodes of the model.
    [line] = search_lines(result)
    assert "look at its fusions, or try --unfused" in line


@needs_onnx
def test_node_that_gives_a_sequence_is_not_compared(tmp_path: Path) -> None:
    from onnx import TensorProto, helper, save

    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["s"], "/construct"),
        helper.make_node("SequenceAt", ["s", "first"], ["t"], "/at"),
        helper.make_node("Relu", ["t"], ["y"], "/relu"),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    first = helper.make_tensor("first", TensorProto.INT64, [], [0])
    graph = helper.make_graph(nodes, "sequences", [x], [y], [first])
    opset = helper.make_opsetid("", 17)
    save(helper.make_model(graph, opset_imports=[opset], ir_version=8), tmp_path / "model.onnx")
    values = {"x": np.array([1, 2, 3], np.float32)}
    result = search(replaced("Relu", "Neg"), tmp_path / "model.onnx", values)
    assert result.first is not None
    assert result.first.node.name == "/relu"
    assert result.compared == 2
    assert "  1 node before it is right;" in "\n".join(search_lines(result))


@needs_onnx
def test_nodes_that_fail_are_named_and_others_compared() -> None:
    def change(graph: Any) -> None:
        replaced("Softmax", "LogSoftmax")(graph)
        if is_compared(graph, "p"):  # The output of /pool.
            graph.node[0].op_type = "NoSuchOperator"

    result = search(change)
    assert [*result.failures] == ["/pool"]
    assert "NoSuchOperator" in result.failures["/pool"]
    assert result.first is not None
    assert result.first.node.name == "/softmax"
    assert any(line.startswith("Not compared: /pool: ") for line in search_lines(result))


@pytest.mark.parametrize(
    ("actual", "expected", "beyond"),
    [
        ([1.0, 2.0], [1.0, 2 * (1 + 0.95e-4)], False),
        ([1.0, 2.0], [1.0, 2 * (1 + 1.05e-4)], True),
        ([np.nan, np.inf], [np.nan, np.inf], False),
        ([1.0, np.inf], [1.0, -np.inf], True),
        ([1.0, np.nan], [1.0, 2.0], True),
        ([1.0], [1.0, 2.0], True),
    ],
)
def test_float32_may_differ_by_a_ten_thousandth_of_the_largest(
    actual: list[float], expected: list[float], beyond: bool
) -> None:
    difference = output_difference(np.array(actual, np.float32), np.array(expected, np.float32))
    assert difference.beyond is beyond


def test_float16_may_differ_by_a_hundredth_and_integers_not() -> None:
    half = np.array([1, 10], np.float16)
    assert not output_difference(half + np.float16(0.09), half).beyond
    assert output_difference(half + np.float16(0.11), half).beyond
    whole = np.array([2**40, 1])
    assert output_difference(whole + 1, whole).beyond
    assert not output_difference(whole, whole).beyond


def test_output_that_is_no_array_is_not_compared() -> None:
    array = np.array([1, 10], np.float16)
    for actual, expected in (([array], [array]), ([array], array), (array, [array])):
        difference = output_difference(actual, expected)
        assert difference.text == "not compared with the CPU provider"
        assert not difference.compared
        assert not difference.beyond


def test_only_equal_types_and_bits_are_called_the_same() -> None:
    zeros, same_bytes = np.zeros(2, np.float32), np.zeros(2, np.int32)
    assert output_difference(zeros, zeros.copy()).text == "the same bits as the CPU provider"
    for other in (-zeros, np.zeros(2, np.float16), same_bytes):
        difference = output_difference(zeros, other)
        assert difference.text == "equal to the CPU provider, in other bits"
        assert not difference.beyond


def test_integers_that_become_equal_as_float64_differ() -> None:
    large = np.array([2**53], np.int64)
    assert not output_difference(large, large).beyond
    assert output_difference(large + 1, large).beyond
