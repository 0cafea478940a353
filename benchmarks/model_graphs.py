"""Layers of networks as ONNX graphs, for ONNX Runtime to compute as the peer of the reference.

A function for each operator adds the nodes that compute a case's first output from the same inputs,
or returns None if ONNX has no such layer. Weights are inputs too, as they are for the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from benchmarks.model_attention import attention
from benchmarks.onnx_graph import Graph
from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array

__all__ = ["graph_of"]

Arrays = Mapping[str, Array]
Builder = Callable[[Graph, Mapping[str, Any], Arrays], str | None]

_UNARY: Final = {
    "ACTIVATION_RELU": "Relu",
    "ACTIVATION_SIGMOID": "Sigmoid",
    "ACTIVATION_TANH": "Tanh",
    "ACTIVATION_GELU": "Gelu",
    "ACTIVATION_HARD_SWISH": "HardSwish",
    "ELEMENT_WISE_SQRT": "Sqrt",
    "ELEMENT_WISE_EXP": "Exp",
    "ELEMENT_WISE_ERF": "Erf",
    "ELEMENT_WISE_SIN": "Sin",
    "ELEMENT_WISE_COS": "Cos",
}
_BINARY: Final = {
    "ELEMENT_WISE_ADD": "Add",
    "ELEMENT_WISE_SUBTRACT": "Sub",
    "ELEMENT_WISE_MULTIPLY": "Mul",
    "ELEMENT_WISE_DIVIDE": "Div",
    "ELEMENT_WISE_MAX": "Max",
}
_REDUCTIONS: Final = {
    "SUM": "ReduceSum",
    "AVERAGE": "ReduceMean",
    "MAX": "ReduceMax",
    "MIN": "ReduceMin",
    "L1": "ReduceL1",
    "L2": "ReduceL2",
    "SUM_SQUARE": "ReduceSumSquare",
    "LOG_SUM_EXP": "ReduceLogSumExp",
}


def graph_of(case: Case, arrays: Arrays) -> tuple[Any, Arrays] | None:
    """Return an ONNX model that computes a case's first output, and its inputs.

    None if no builder supports the operator, or the case has fields that ONNX lacks.

    Args:
        case: the case.
        arrays: its inputs by tensor.
    """
    build = _BUILDERS.get(case.operator_name)
    if build is None:
        return None
    graph = Graph()
    output = build(graph, case.desc, arrays)
    if output is None:
        return None
    output = _activated(graph, output, case.desc.get("FusedActivation"))
    return None if output is None else graph.model(output)


def _activated(graph: Graph, name: str, fused: Any) -> str | None:
    if fused is None:
        return name
    node = _UNARY.get(fused["operator"])
    return None if node is None else graph.add(node, name)


def _unary(node: str) -> Builder:
    def build(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
        scale = desc.get("ScaleBias")
        return None if scale is not None else graph.add(node, graph.feed(arrays["InputTensor"]))

    return build


def _binary(node: str) -> Builder:
    def build(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
        return graph.add(node, graph.feed(arrays["ATensor"]), graph.feed(arrays["BTensor"]))

    return build


def _swish(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    values = graph.feed(arrays["InputTensor"])
    if desc["SigmoidInputScale"] != 1:
        return None
    return graph.add("Mul", values, graph.add("Sigmoid", values))


def _convolution(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    if desc["Mode"] != "CROSS_CORRELATION":
        return None
    backward = desc["Direction"] == "BACKWARD"
    attributes: dict[str, Any] = {
        "strides": desc["Strides"],
        "dilations": desc["Dilations"],
        "pads": (*desc["StartPadding"], *desc["EndPadding"]),
        "group": desc["GroupCount"],
    }
    if backward:
        attributes["output_padding"] = desc["OutputPadding"]
    operands = [graph.feed(arrays["InputTensor"]), graph.feed(arrays["FilterTensor"])]
    if "BiasTensor" in arrays:
        operands.append(graph.feed(arrays["BiasTensor"].ravel()))
    return graph.add("ConvTranspose" if backward else "Conv", *operands, **attributes)


def _product(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    a, b, c = (arrays.get(name) for name in ("ATensor", "BTensor", "CTensor"))
    assert a is not None
    assert b is not None
    transposed = [desc[name] == "TRANSPOSE" for name in ("TransA", "TransB")]
    alpha, beta = desc["Alpha"], desc["Beta"]
    if max(a.size // (a.shape[-1] * a.shape[-2]), b.size // (b.shape[-1] * b.shape[-2])) == 1:
        operands = [graph.feed(a.reshape(a.shape[-2:])), graph.feed(b.reshape(b.shape[-2:]))]
        if c is not None:
            operands.append(graph.feed(c.reshape(c.shape[-2:])))
        a_too, b_too = map(int, transposed)
        return graph.add("Gemm", *operands, alpha=alpha, beta=beta, transA=a_too, transB=b_too)
    last = [*range(a.ndim - 2), a.ndim - 1, a.ndim - 2]
    names = [graph.feed(a), graph.feed(b)]
    names = [
        graph.add("Transpose", name, perm=last) if swapped else name
        for name, swapped in zip(names, transposed, strict=True)
    ]
    product = graph.add("MatMul", *names)
    if alpha != 1:
        product = graph.add("Mul", product, graph.constant(np.float32(alpha)))
    if c is not None:
        term = graph.feed(c)
        if beta != 1:
            term = graph.add("Mul", term, graph.constant(np.float32(beta)))
        product = graph.add("Add", product, term)
    return product


def _softmax(node: str) -> Builder:
    def build(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
        axes = desc["Axes"]
        if len(axes) != 1:
            return None
        return graph.add(node, graph.feed(arrays["InputTensor"]), axis=axes[0])

    return build


def _mean_variance(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    values, axes = arrays["InputTensor"], sorted(desc["Axes"])
    scale, bias = arrays.get("ScaleTensor"), arrays.get("BiasTensor")
    use_mean = desc.get("UseMean", True)
    if not desc.get("UseVariance", desc.get("NormalizeVariance", True)):
        return None
    trailing = axes == list(range(axes[0], values.ndim))
    sizes = values.shape[axes[0] :]
    if use_mean and trailing and scale is not None and scale.size == np.prod(sizes):
        operands = [graph.feed(values), graph.feed(scale.reshape(sizes))]
        if bias is not None:
            operands.append(graph.feed(bias.reshape(sizes)))
        return graph.add(
            "LayerNormalization", *operands, axis=axes[0], epsilon=float(desc["Epsilon"])
        )
    return _written_out(graph, desc, arrays, use_mean=use_mean)


def _written_out(graph: Graph, desc: Mapping[str, Any], arrays: Arrays, *, use_mean: bool) -> str:
    values = graph.feed(arrays["InputTensor"])
    axes = graph.constant(np.array(desc["Axes"], np.int64))
    if use_mean:
        values = graph.add("Sub", values, graph.add("ReduceMean", values, axes))
    squares = graph.add("ReduceMean", graph.add("Mul", values, values), axes)
    epsilon = graph.constant(np.float32(desc["Epsilon"]))
    deviation = graph.add("Sqrt", graph.add("Add", squares, epsilon))
    found = graph.add("Div", values, deviation)
    if "ScaleTensor" in arrays:
        found = graph.add("Mul", found, graph.feed(arrays["ScaleTensor"]))
    if "BiasTensor" in arrays:
        found = graph.add("Add", found, graph.feed(arrays["BiasTensor"]))
    return found


def _batch(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    names = ("ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor")
    values = arrays["InputTensor"]
    if any(arrays[name].size != values.shape[1] for name in names):
        return None
    parameters = [graph.feed(arrays[name].ravel()) for name in names]
    return graph.add(
        "BatchNormalization", graph.feed(values), *parameters, epsilon=float(desc["Epsilon"])
    )


def _gather(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    indices = arrays["IndicesTensor"]
    indices = indices.reshape(indices.shape[indices.ndim - desc["IndexDimensions"] :])
    table = graph.feed(arrays["InputTensor"])
    return graph.add("Gather", table, graph.feed(indices.astype(np.int64)), axis=desc["Axis"])


def _pooling(desc: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kernel_shape": desc["WindowSize"],
        "strides": desc["Strides"],
        "pads": (*desc["StartPadding"], *desc["EndPadding"]),
        "dilations": desc["Dilations"],
    }


def _max_pooling(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    return graph.add("MaxPool", graph.feed(arrays["InputTensor"]), **_pooling(desc))


def _average_pooling(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    counted = int(desc["IncludePadding"])
    values = graph.feed(arrays["InputTensor"])
    return graph.add("AveragePool", values, **_pooling(desc), count_include_pad=counted)


def _resample(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    offsets = {abs(offset) for offset in desc["InputPixelOffsets"]}
    attributes: dict[str, Any] = {
        "coordinate_transformation_mode": "half_pixel" if offsets == {0.5} else "asymmetric"
    }
    if desc["InterpolationMode"] == "LINEAR":
        attributes["mode"] = "linear"
    else:
        attributes |= {"mode": "nearest", "nearest_mode": "floor"}
    scales = graph.constant(np.array(desc["Scales"], np.float32))
    return graph.add("Resize", graph.feed(arrays["InputTensor"]), "", scales, **attributes)


def _reduction(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    node = _REDUCTIONS.get(desc["Function"])
    axes = graph.constant(np.array(desc["Axes"], np.int64))
    return None if node is None else graph.add(node, graph.feed(arrays["InputTensor"]), axes)


def _join(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    return graph.add("Concat", *map(graph.feed, arrays.values()), axis=desc["Axis"])


def _slice(graph: Graph, desc: Mapping[str, Any], arrays: Arrays) -> str | None:
    starts, strides = desc["InputWindowOffsets"], desc["InputWindowStrides"]
    if min(strides) < 0:
        return None
    ends = [start + size for start, size in zip(starts, desc["InputWindowSizes"], strict=True)]
    axes: Sequence[int] = range(len(starts))
    bounds = [
        graph.constant(np.array(values, np.int64)) for values in (starts, ends, axes, strides)
    ]
    return graph.add("Slice", graph.feed(arrays["InputTensor"]), *bounds)


_BUILDERS: Final[Mapping[str, Builder]] = {
    **{name: _unary(node) for name, node in _UNARY.items()},
    **{name: _binary(node) for name, node in _BINARY.items()},
    "ACTIVATION_SWISH": _swish,
    "ACTIVATION_SOFTMAX1": _softmax("Softmax"),
    "ACTIVATION_LOG_SOFTMAX1": _softmax("LogSoftmax"),
    "AVERAGE_POOLING1": _average_pooling,
    "BATCH_NORMALIZATION": _batch,
    "CONVOLUTION": _convolution,
    "GATHER": _gather,
    "GEMM": _product,
    "JOIN": _join,
    "MAX_POOLING2": _max_pooling,
    "MEAN_VARIANCE_NORMALIZATION1": _mean_variance,
    "MEAN_VARIANCE_NORMALIZATION2": _mean_variance,
    "MULTIHEAD_ATTENTION": attention,
    "REDUCE": _reduction,
    "RESAMPLE2": _resample,
    "SLICE1": _slice,
}
