"""Convert ONNX's node tests of matrix products and of quantization into cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from tests.backends.onnxruntime.node_cases.building import Conversion, case_of
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest
from tests.backends.stated_cases import NoCaseError, tensor_desc, tensor_of, with_rank

__all__ = ["CONVERSIONS"]


def _gemm(test: NodeTest) -> Case:
    a, b, c, output = test.input(0), test.input(1), test.optional(2), test.outputs[0]
    if min(a.ndim, b.ndim) < 2:
        raise NoCaseError("a matrix of one dimension")
    a, b = (np.broadcast_to(each, (*output.shape[:-2], *each.shape[-2:])) for each in (a, b))
    attributes = test.attributes
    return case_of(
        test,
        "GEMM",
        {
            "ATensor": with_rank(a, output.ndim),
            "BTensor": with_rank(b, output.ndim),
            "CTensor": None if c is None else np.broadcast_to(c, output.shape),
        },
        TransA="TRANSPOSE" if attributes.get("transA") else "NONE",
        TransB="TRANSPOSE" if attributes.get("transB") else "NONE",
        Alpha=attributes.get("alpha", 1.0),
        Beta=attributes.get("beta", 1.0) if c is not None else 0.0,
    )


def _matrix_multiply_integer(test: NodeTest) -> Case:
    points = {"AZeroPointTensor": test.optional(2), "BZeroPointTensor": test.optional(3)}
    zero = {n: None if each is None else each.reshape(1, 1) for n, each in points.items()}
    inputs = {"ATensor": test.input(0), "BTensor": test.input(1), **zero}
    return case_of(test, "MATRIX_MULTIPLY_INTEGER", inputs)


def _quantized_product(test: NodeTest) -> Case:
    output = test.outputs[0]
    names = ("A", "AScale", "AZeroPoint", "B", "BScale", "BZeroPoint", "OutputScale")
    inputs = {}
    for index, name in enumerate((*names, "OutputZeroPoint")):
        each = test.input(index)
        if each.dtype == np.float16:
            raise NoCaseError("FLOAT16 scales")
        sizes = each.shape if name in "AB" else (1, 1)
        leading = output.shape[:-2] if name in "AB" else (1,) * (output.ndim - 2)
        inputs[f"{name}Tensor"] = np.broadcast_to(each.reshape(sizes), (*leading, *sizes[-2:]))
    return case_of(test, "QUANTIZED_LINEAR_MATRIX_MULTIPLY", inputs)


def _quantize(test: NodeTest) -> Case:
    tensor, scale, zero_point = test.input(0), test.input(1), test.optional(2)
    sizes = scale.shape
    if not test.attributes.get("block_size"):
        axis = test.attributes.get("axis", 1) % tensor.ndim if scale.ndim else None
        sizes = tuple(scale.size if n == axis else 1 for n in range(tensor.ndim))
    arrays = (scale,) if zero_point is None else (scale, zero_point)
    tensors = [tensor_of(each.reshape(sizes)) for each in arrays]
    return case_of(
        test,
        "QUANTIZE" if test.operation == "QuantizeLinear" else "DEQUANTIZE",
        {
            "InputTensor": tensor,
            **{f"QuantizationTensors[{n}]": each for n, each in enumerate(tensors)},
        },
        QuantizationType="SCALE" if zero_point is None else "SCALE_ZERO_POINT",
        QuantizationTensorCount=len(tensors),
        QuantizationTensors=tuple(map(tensor_desc, tensors)),
    )


def _dynamic_quantize(test: NodeTest) -> Case:
    sizes = (1,) * test.input(0).ndim
    quantized, scale, zero_point = test.outputs
    outputs = {
        "OutputTensor": quantized,
        "OutputScaleTensor": scale.reshape(sizes),
        "OutputZeroPointTensor": zero_point.reshape(sizes),
    }
    return case_of(test, "DYNAMIC_QUANTIZE_LINEAR", outputs=outputs)


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "DequantizeLinear": _quantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "Gemm": _gemm,
    "MatMul": _gemm,
    "MatMulInteger": _matrix_multiply_integer,
    "QLinearMatMul": _quantized_product,
    "QuantizeLinear": _quantize,
}
