"""Formulas of wrong results of ONNX Runtime's OpenVINO provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from dmlconf.cases.graph_case import with_graph
from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.graphs.model import Node
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array

__all__ = [
    "default_for_attributes_of_0",
    "integers_in_float32",
    "low_words_of_int64",
    "powers_in_float32",
    "products_merged_with_the_transposed",
    "quotients_in_float32",
    "saturating_integers",
]


@of_operators("ACTIVATION_HARD_SIGMOID")
def default_for_attributes_of_0(case: Case) -> Computed | None:
    """Return the outputs of ACTIVATION_HARD_SIGMOID if 0 stands for ONNX's default, 0.2 or 0.5."""
    alpha, beta = case.desc["Alpha"] or 0.2, case.desc["Beta"] or 0.5
    other = replace(case, desc={**case.desc, "Alpha": alpha, "Beta": beta})
    return Computed(evaluate(other), around=other)


_REDUCED: Final[Mapping[str, np.ufunc]] = {
    "MAX": np.maximum,
    "MIN": np.minimum,
    "MULTIPLY": np.multiply,
    "SUM": np.add,
}


@of_operators(
    *("ACTIVATION_RELU", "ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1"),
    *("ELEMENT_WISE_LOGICAL_EQUALS", "REDUCE"),
)
def integers_in_float32(case: Case) -> Computed | None:
    """Return what is made of integers by way of their low 32 bits, signed, and of FLOAT32.

    16777216 of 16777217, the lowest INT32 of sums that it does not hold, and no maximum of UINT32
    beyond 2^31.
    """
    desc, inputs = case.desc, case.inputs()
    if any(array.dtype.kind not in "iu" for array in inputs.values()):
        return None
    words = [array.astype(np.int32).astype(np.float32) for array in inputs.values()]
    with np.errstate(all="ignore"):
        match case.operator_name:
            case "ACTIVATION_RELU":
                real = np.maximum(words[0], np.float32(0))
            case "ELEMENT_WISE_LOGICAL_EQUALS":
                real = (words[0] == words[1]).astype(np.float32)
            case "REDUCE":
                if desc["Function"] not in _REDUCED:
                    return None
                combine = _REDUCED[desc["Function"]]
                real = combine.reduce(words[0], axis=tuple(desc["Axes"]), keepdims=True)
            case _:
                low, high = np.float32(desc["Min"]), np.float32(desc["Max"])
                real = np.maximum(np.minimum(words[0], high), low)
    output = desc["OutputTensor"].DataType.dtype
    return Computed({"OutputTensor": _int32(real).astype(output)})


@of_operators("ELEMENT_WISE_POW")
def powers_in_float32(case: Case) -> Computed | None:
    """Return the outputs of ELEMENT_WISE_POW for INT32 by way of FLOAT32, or the lowest integer."""
    inputs = case.inputs()
    base, exponent = inputs["InputTensor"], inputs["ExponentTensor"]
    if base.dtype != np.int32 or exponent.dtype != np.int32:
        return None
    with np.errstate(all="ignore"):
        power = np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(np.float32)
    return Computed({"OutputTensor": _int32(power)})


@of_operators("ELEMENT_WISE_DIVIDE")
def quotients_in_float32(case: Case) -> Computed | None:
    """Return quotients of integers by way of their low 32 bits, signed, and of FLOAT32.

    What INT32 does not hold is its lowest integer. Those of 8 bits are rounded in some layouts.
    """
    inputs = case.inputs()
    a, b = inputs["ATensor"], inputs["BTensor"]
    if a.dtype.kind not in "iu":
        return None
    with np.errstate(all="ignore"):
        words = [each.astype(np.int32).astype(np.float32) for each in (a, b)]
        quotient = words[0] / words[1]
        truncated, rounded = (_int32(f(quotient)).astype(a.dtype) for f in (np.trunc, np.rint))
    nearest = Computed({"OutputTensor": rounded})
    others = (lambda: iter([nearest])) if a.dtype.itemsize == 1 else None
    return Computed({"OutputTensor": truncated}, others=others)


@of_operators("CAST", "ELEMENT_WISE_IDENTITY", "GATHER", "PADDING1", "SLICE1")
def low_words_of_int64(case: Case) -> Computed | None:
    """Return what a copy of INT64 gives if only its low 32 bits count: -1 for 2^63 - 1."""
    tensor = case.inputs()["InputTensor"]
    if tensor.dtype != np.int64:
        return None
    low = tensor.astype(np.int32).astype(np.int64)
    return Computed(evaluate(replace(case, data={**case.data, "InputTensor": low})))


def _int32(real: Array) -> Array:
    """Return whole numbers as INT32, and its lowest for what it does not hold."""
    wide = real.astype(np.float64)
    held = (wide > -(2.0**31) - 1) & (wide < 2.0**31)
    return np.where(held, wide, -(2.0**31)).astype(np.int32)


@of_operators("ELEMENT_WISE_ADD", "ELEMENT_WISE_MULTIPLY")
def saturating_integers(case: Case) -> Computed | None:
    """Return sums and products of INT8 and UINT8 that saturate: 127 for 100 times 2."""
    inputs = case.inputs()
    a, b = inputs["ATensor"], inputs["BTensor"]
    if a.dtype not in (np.int8, np.uint8):
        return None
    combine = np.add if case.operator_name == "ELEMENT_WISE_ADD" else np.multiply
    limits = np.iinfo(a.dtype)
    exact = combine(a.astype(np.int32), b.astype(np.int32))
    return Computed({"OutputTensor": np.clip(exact, limits.min, limits.max).astype(a.dtype)})


def products_merged_with_the_transposed(case: Case) -> Computed | None:
    """Return a graph's outputs if a product with B is taken for one with B transposed, or back.

    That of the same A and C that comes first counts for both.
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
