"""Convert WebNN's tests of matrix products and of quantization into cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import DataType
from tests.backends.stated_cases import with_rank
from tests.backends.webnn.wpt_cases.building import Conversion, case_of
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["CONVERSIONS"]

_MOST_DIMENSIONS: Final = 4
"""The most dimensions that tensors of GEMM may have."""

_FOUR_BITS: Final = (DataType.INT4, DataType.UINT4)


def _gemm(test: WptTest) -> Case:
    a, b, c, output = test.input("a"), test.input("b"), test.optional("c"), test.output()
    inputs = {
        "ATensor": np.broadcast_to(a, (*output.shape[:-2], *a.shape[-2:])),
        "BTensor": np.broadcast_to(b, (*output.shape[:-2], *b.shape[-2:])),
    }
    if c is not None:
        inputs["CTensor"] = np.broadcast_to(c, output.shape)
    if output.ndim > _MOST_DIMENSIONS:  # All dimensions but the last three become one.
        inputs = {n: each.reshape(-1, *each.shape[-3:]) for n, each in inputs.items()}
        output = output.reshape(-1, *output.shape[-3:])
    return case_of(
        test,
        "GEMM",
        inputs,
        {"OutputTensor": output},
        TransA="TRANSPOSE" if test.arguments.get("aTranspose") else "NONE",
        TransB="TRANSPOSE" if test.arguments.get("bTranspose") else "NONE",
        Alpha=test.number("alpha", 1),
        Beta=test.number("beta", 1) if c is not None else 0.0,
    )


def _quantize(test: WptTest) -> Case:
    quantizes = test.operation == "quantizeLinear"
    rank = max(test.input("input").ndim, 1)
    tensors = [with_rank(test.input(each), rank) for each in ("scale", "zeroPoint")]
    kinds = test.type_of("scale"), test.type_of("zeroPoint")
    if test.type_of("input") is DataType.INT32:  # DEQUANTIZE does not take INT32.
        fields = ("ScaleTensor", "ZeroPointTensor")
        inputs = {"InputTensor": test.input("input"), **dict(zip(fields, tensors, strict=True))}
        return case_of(test, "ELEMENT_WISE_DEQUANTIZE_LINEAR", inputs)
    types = {
        "InputTensor": test.type_of("input"),
        "OutputTensor": test.outputs[0].data_type,
        **{f"QuantizationTensors[{n}]": each for n, each in enumerate(kinds)},
    }
    return case_of(
        test,
        "QUANTIZE" if quantizes else "DEQUANTIZE",
        {
            "InputTensor": test.input("input"),
            **{f"QuantizationTensors[{n}]": each for n, each in enumerate(tensors)},
        },
        types={name: each for name, each in types.items() if each in _FOUR_BITS},
        QuantizationType="SCALE_ZERO_POINT",
        QuantizationTensorCount=2,
        QuantizationTensors=tuple(
            TensorDesc(kind, each.shape) for kind, each in zip(kinds, tensors, strict=True)
        ),
    )


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "dequantizeLinear": _quantize,
    "gemm": _gemm,
    "matmul": _gemm,
    "quantizeLinear": _quantize,
}
