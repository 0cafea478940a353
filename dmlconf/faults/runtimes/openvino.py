"""Formulas of wrong results of ONNX Runtime's OpenVINO provider."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dmlconf.cases.graph_case import with_graph
from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.graphs.model import Node
from dmlconf.reference.evaluation import evaluate

__all__ = [
    "interleaved_blocks",
    "nan_taken_for_greater",
    "odd_windows_with_a_whole_bias",
    "products_merged_with_the_transposed",
    "recurrent_parts_left_out",
    "reductions_along_no_axis_left_out",
]


@of_operators(
    *("ACTIVATION_RELU_GRAD", "ELEMENT_WISE_CLIP_GRAD", "ELEMENT_WISE_CLIP_GRAD1"),
    *("ELEMENT_WISE_LOGICAL_GREATER_THAN", "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL"),
)
def nan_taken_for_greater(case: Case) -> Computed | None:
    """Return the outputs of operators for which `a > b` is true if a or b is NaN.

    ACTIVATION_RELU_GRAD passes the gradient on for NaN; for ELEMENT_WISE_CLIP_GRAD, every number
    exceeds a Min of NaN.
    """
    inputs = case.inputs()
    if any(array.dtype.kind != "f" for array in inputs.values()):
        return None
    if case.operator_name == "ACTIVATION_RELU_GRAD":
        tensor = inputs["InputTensor"]
        above = np.where(np.isnan(tensor), tensor.dtype.type(1), tensor)
        return Computed(evaluate(case, {**inputs, "InputTensor": above}))
    if "Min" in case.desc:
        if not np.isnan(case.desc["Min"]):
            return None
        return Computed(evaluate(replace(case, desc={**case.desc, "Min": -np.inf})))
    right = evaluate(case)["OutputTensor"]
    nan = np.isnan(inputs["ATensor"]) | np.isnan(inputs["BTensor"])
    return Computed({"OutputTensor": np.where(nan, right.dtype.type(1), right)})


@of_operators("GRU", "LSTM", "RNN")
def recurrent_parts_left_out(case: Case) -> Computed | None:
    """Return the outputs of GRU, LSTM and RNN without the fields that the runtime ignores.

    It ignores LSTM's peepholes and CoupleInputForget; a second direction has the activations of the
    first.
    """
    activations = case.desc["ActivationDescs"]
    if case.desc["Direction"] == "BIDIRECTIONAL":
        activations = activations[: len(activations) // 2] * 2
    desc: dict[str, Any] = {**case.desc, "ActivationDescs": activations}
    data = dict(case.data)
    if case.operator_name == "LSTM":
        desc |= {"PeepholeTensor": None, "CoupleInputForget": False}
        data.pop("PeepholeTensor", None)
    if desc == case.desc:
        return None
    other = replace(case, desc=desc, data=data)
    return Computed(evaluate(other), around=other)


@of_operators("DEQUANTIZE")
def interleaved_blocks(case: Case) -> Computed | None:
    """Return DEQUANTIZE's output if element i of n blocks belongs to block i modulo n.

    Only the second axis has such blocks: of six elements in two blocks, 0, 2 and 4 belong to the
    first.
    """
    inputs = case.inputs()
    sizes = inputs["InputTensor"].shape
    blocks = inputs["QuantizationTensors[0]"].shape
    if (
        len(sizes) < 2
        or sizes[1] == blocks[1]
        or (sizes[0], *sizes[2:]) != (blocks[0], *blocks[2:])
    ):
        return None
    repeated = [sizes[1] // blocks[1] if axis == 1 else 1 for axis in range(len(sizes))]
    tiled = {name: np.tile(array, repeated) for name, array in inputs.items()}
    return Computed(evaluate(case, {**tiled, "InputTensor": inputs["InputTensor"]}))


@of_operators("LOCAL_RESPONSE_NORMALIZATION")
def odd_windows_with_a_whole_bias(case: Case) -> Computed | None:
    """Return LOCAL_RESPONSE_NORMALIZATION's output with odd windows and a whole Bias.

    Of four channels, three squares are added up and divided by four; a Bias of 0.5 becomes 0.
    """
    desc = case.desc
    if not desc["CrossChannel"]:
        return None
    size = desc["LocalSize"]
    odd = size - 1 + size % 2
    wrong = {"LocalSize": odd, "Alpha": desc["Alpha"] * odd / size, "Bias": int(desc["Bias"])}
    other = replace(case, desc={**desc, **wrong})
    return Computed(evaluate(other), around=other)


@of_operators("REDUCE")
def reductions_along_no_axis_left_out(case: Case) -> Computed | None:
    """Return REDUCE's input as its output if there is no axis: L2 of -4 gives -4, not 4."""
    output, tensor = case.desc["OutputTensor"], case.inputs()["InputTensor"]
    if case.desc["AxisCount"] or tensor.dtype != output.DataType.dtype:
        return None
    return Computed({"OutputTensor": tensor.reshape(output.Sizes)})


def products_merged_with_the_transposed(case: Case) -> Computed | None:
    """Return the outputs of a graph that computes products with B and with B transposed only once.

    Two products that differ only in TransB both get the first result.
    """
    graph = case.graph
    sources = graph.sources()
    first: dict[tuple[object, ...], str] = {}
    changed: dict[str, Node] = {}
    for node in graph.operator_nodes:
        if node.operator_name != "GEMM":
            continue
        read = tuple(sources.get((node.name, name)) for name in ("ATensor", "BTensor", "CTensor"))
        others = tuple(str(node.desc[name]) for name in ("TransA", "Alpha", "Beta"))
        of_first = first.setdefault((*read, *others), node.desc["TransB"])
        if node.desc["TransB"] != of_first:
            changed[node.name] = replace(node, desc={**node.desc, "TransB": of_first})
    if not changed:
        return None
    nodes = tuple(changed.get(each.name, each) for each in graph.nodes)
    wrong = with_graph(case, replace(graph, nodes=nodes))
    return Computed(evaluate(wrong), around=wrong)
