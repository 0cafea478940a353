"""Workloads for timing the references: a million elements, or a layer of a real network.

Each workload is described twice, as a DirectML operator's arguments and as an ONNX operator's node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["Workload", "desc", "random_tensor", "workloads"]

SQUARE: Final = (1000, 1000)
FLOAT32: Final = DataType.FLOAT32

UNARY: Final = {
    "element_wise": {"ABS": "Abs", "NEGATE": "Neg", "FLOOR": "Floor", "SIGN": "Sign"},
    "element_wise_exponential": {"EXP": "Exp", "LOG": "Log", "SQRT": "Sqrt", "ERF": "Erf"},
    "element_wise_trigonometry": {"SIN": "Sin", "COS": "Cos", "ATAN": "Atan", "TANH": "Tanh"},
}
BINARY: Final = {
    "ADD": "Add",
    "SUBTRACT": "Sub",
    "MULTIPLY": "Mul",
    "DIVIDE": "Div",
    "MAX": "Max",
    "POW": "Pow",
}
COMPARISONS: Final = {
    "GREATER_THAN": "Greater",
    "LESS_THAN_OR_EQUAL": "LessOrEqual",
    "EQUALS": "Equal",
}
ACTIVATIONS: Final[Mapping[str, tuple[str, dict[str, float], dict[str, float]]]] = {
    "RELU": ("Relu", {}, {}),
    "SIGMOID": ("Sigmoid", {}, {}),
    "TANH": ("Tanh", {}, {}),
    "GELU": ("Gelu", {}, {}),
    "SOFTPLUS": ("Softplus", {"Steepness": 1.0}, {}),
    "ELU": ("Elu", {"Alpha": 1.0}, {}),
    "LEAKY_RELU": ("LeakyRelu", {"Alpha": 0.5}, {"alpha": 0.5}),
    "HARD_SIGMOID": ("HardSigmoid", {"Alpha": 0.2, "Beta": 0.5}, {}),
}
REDUCTIONS: Final = {"SUM": "ReduceSum", "MAX": "ReduceMax", "L2": "ReduceL2", "MEAN": "ReduceMean"}


@dataclass(frozen=True, slots=True)
class Workload:
    """One operator with its inputs.

    Attributes:
        family: the group by which figures are summarized.
        name: the operator, and what else distinguishes the workload from others.
        operator: the DirectML operator.
        arguments: its fields; inputs are arrays, those left out are None.
        node: the ONNX operator.
        feeds: its inputs in order, None for absent ones.
        attributes: its attributes.
        outputs: how many outputs it has.
    """

    family: str
    name: str
    operator: str
    arguments: Mapping[str, Any]
    node: str
    feeds: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1


def workloads() -> Iterator[Workload]:
    """Yield every workload; its arrays are generated on demand."""
    for family in (_element_wise, _activations, _moves, _indexing, _reductions, _resizes):
        yield from family()


def random_tensor(*sizes: int, seed: int = 1, low: float = 0.1, high: float = 2.0) -> Array:
    """Return uniformly distributed FLOAT32 numbers, the same each time."""
    return np.random.default_rng(seed).uniform(low, high, sizes).astype(np.float32)


def desc(*sizes: int, of: DataType = FLOAT32) -> TensorDesc:
    """Return an output tensor."""
    return TensorDesc(of, sizes)


def _element_wise() -> Iterator[Workload]:
    a, b = random_tensor(*SQUARE), random_tensor(*SQUARE, seed=2)
    out = desc(*SQUARE)
    for family, names in UNARY.items():
        for name, node in names.items():
            arguments = {"InputTensor": a, "OutputTensor": out}
            yield Workload(family, name, f"ELEMENT_WISE_{name}", arguments, node, [a])
    both = {"ATensor": a, "BTensor": b, "OutputTensor": out}
    for name, node in BINARY.items():
        arguments = both
        if name == "POW":
            arguments = {"InputTensor": a, "ExponentTensor": b, "OutputTensor": out}
        yield Workload("element_wise", name, f"ELEMENT_WISE_{name}", arguments, node, [a, b])
    flags = desc(*SQUARE, of=DataType.UINT8)
    for name, node in COMPARISONS.items():
        operator = f"ELEMENT_WISE_LOGICAL_{name}"
        arguments = {**both, "OutputTensor": flags}
        yield Workload("element_wise_logic", name, operator, arguments, node, [a, b])
    chosen = a > b
    arguments = {"ConditionTensor": chosen.astype(np.uint8), **both}
    yield Workload(
        "element_wise_logic", "IF", "ELEMENT_WISE_IF", arguments, "Where", [chosen, a, b]
    )
    clip = {"InputTensor": a, "OutputTensor": out, "Min": 0.5, "Max": 1.5}
    bounds = [np.array(0.5, np.float32), np.array(1.5, np.float32)]
    yield Workload("element_wise", "CLIP", "ELEMENT_WISE_CLIP", clip, "Clip", [a, *bounds])
    for data_type, number in ((DataType.FLOAT16, 10), (DataType.INT32, 6), (DataType.UINT8, 2)):
        cast = {"InputTensor": a, "OutputTensor": desc(*SQUARE, of=data_type)}
        yield Workload(
            "conversion", f"CAST to {data_type.name}", "CAST", cast, "Cast", [a], {"to": number}
        )
    yield from _quantization(a)


def _quantization(a: Array) -> Iterator[Workload]:
    scale, zero = np.array(0.01, np.float32), np.array(3, np.uint8)
    wide = {
        "ScaleTensor": np.broadcast_to(scale, SQUARE),
        "ZeroPointTensor": np.broadcast_to(zero, SQUARE),
    }
    whole = {"InputTensor": a, **wide, "OutputTensor": desc(*SQUARE, of=DataType.UINT8)}
    name = "QUANTIZE_LINEAR"
    operator = f"ELEMENT_WISE_{name}"
    yield Workload("quantization", name, operator, whole, "QuantizeLinear", [a, scale, zero])
    small = (a * 100).astype(np.uint8)
    real = {"InputTensor": small, **wide, "OutputTensor": desc(*SQUARE)}
    name = "DEQUANTIZE_LINEAR"
    operator = f"ELEMENT_WISE_{name}"
    yield Workload("quantization", name, operator, real, "DequantizeLinear", [small, scale, zero])


def _activations() -> Iterator[Workload]:
    x = random_tensor(*SQUARE, low=-3, high=3)
    for name, (node, fields, attributes) in ACTIVATIONS.items():
        arguments = {"InputTensor": x, "OutputTensor": desc(*SQUARE), **fields}
        yield Workload("activation", name, f"ACTIVATION_{name}", arguments, node, [x], attributes)
    arguments = {"InputTensor": x, "OutputTensor": desc(*SQUARE), "Axes": [1]}
    for name, node in (("SOFTMAX1", "Softmax"), ("LOG_SOFTMAX1", "LogSoftmax")):
        yield Workload("softmax", name, f"ACTIVATION_{name}", arguments, node, [x])


def _moves() -> Iterator[Workload]:
    x = random_tensor(*SQUARE)
    half = x[:500]
    join = {"InputTensors": [half, half], "OutputTensor": desc(1000, 1000), "Axis": 1}
    join["OutputTensor"] = desc(500, 2000)
    yield Workload("data movement", "JOIN", "JOIN", join, "Concat", [half, half], {"axis": 1})
    small = x[:250, :500]
    tile = {"InputTensor": small, "OutputTensor": desc(1000, 1000), "Repeats": [4, 2]}
    yield Workload("data movement", "TILE", "TILE", tile, "Tile", [small, np.array([4, 2])])
    window = {
        "InputTensor": x,
        "OutputTensor": desc(999, 500),
        "InputWindowOffsets": [1, 0],
        "InputWindowSizes": [999, 1000],
        "InputWindowStrides": [1, 2],
    }
    slices = [np.array(ends) for ends in ([1, 0], [1000, 1000], [0, 1], [1, 2])]
    yield Workload("data movement", "SLICE1", "SLICE1", window, "Slice", [x, *slices])
    image = random_tensor(1, 64, 112, 112)
    for mode, value in (("CONSTANT", "constant"), ("REFLECTION", "reflect")):
        padding = {
            "InputTensor": image,
            "OutputTensor": desc(1, 64, 116, 116),
            "PaddingMode": mode,
            "PaddingValue": 0.0,
            "StartPadding": [0, 0, 2, 2],
            "EndPadding": [0, 0, 2, 2],
        }
        pads = np.array([0, 0, 2, 2, 0, 0, 2, 2])
        yield Workload(
            "data movement",
            f"PADDING {mode}",
            "PADDING",
            padding,
            "Pad",
            [image, pads],
            {"mode": value},
        )
    blocks = {
        "InputTensor": image,
        "OutputTensor": desc(1, 16, 224, 224),
        "BlockSize": 2,
        "Order": "DEPTH_COLUMN_ROW",
    }
    attributes = {"blocksize": 2}
    yield Workload(
        "data movement",
        "DEPTH_TO_SPACE1",
        "DEPTH_TO_SPACE1",
        blocks,
        "DepthToSpace",
        [image],
        attributes,
    )


def _indexing() -> Iterator[Workload]:
    x = random_tensor(*SQUARE)
    random = np.random.default_rng(3)
    rows = random.integers(0, 1000, (1, 1000))
    out = desc(*SQUARE)
    gather = {
        "InputTensor": x,
        "IndicesTensor": rows.astype(np.uint32),
        "OutputTensor": out,
        "Axis": 0,
        "IndexDimensions": 1,
    }
    yield Workload("indexing", "GATHER", "GATHER", gather, "Gather", [x, rows[0]])
    each = random.permuted(np.tile(np.arange(1000), (1000, 1)), axis=1)
    elements = {"InputTensor": x, "IndicesTensor": each.astype(np.uint32), "Axis": 1}
    elements["OutputTensor"] = out
    name = "GATHER_ELEMENTS"
    yield Workload("indexing", name, name, elements, "GatherElements", [x, each], {"axis": 1})
    name = "SCATTER_ELEMENTS"
    scatter = {**elements, "UpdatesTensor": x[::-1].copy()}
    feeds = [x, each, x[::-1].copy()]
    yield Workload("indexing", name, name, scatter, "ScatterElements", feeds, {"axis": 1})
    classes = random.integers(0, 1000, (1000, 1))
    values = np.array([0, 1], np.float32)
    one_hot = {
        "IndicesTensor": classes.astype(np.uint32),
        "ValuesTensor": values.reshape(1, 2),
        "OutputTensor": out,
        "Axis": 1,
    }
    depth = np.array(1000)
    yield Workload(
        "indexing", "ONE_HOT", "ONE_HOT", one_hot, "OneHot", [classes[:, 0], depth, values]
    )


def _reductions() -> Iterator[Workload]:
    x = random_tensor(*SQUARE)
    for axis in (0, 1):
        sizes = (1, 1000) if axis == 0 else (1000, 1)
        for name, node in REDUCTIONS.items():
            if name == "MEAN":
                name = "AVERAGE"
            reduce = {
                "Function": name,
                "InputTensor": x,
                "OutputTensor": desc(*sizes),
                "Axes": [axis],
            }
            yield Workload(
                "reduction",
                f"REDUCE {name}, axis {axis}",
                "REDUCE",
                reduce,
                node,
                [x, np.array([axis])],
            )
        largest = {
            "InputTensor": x,
            "OutputTensor": desc(*sizes, of=DataType.INT64),
            "Axes": [axis],
            "AxisDirection": "INCREASING",
        }
        yield Workload(
            "reduction", f"ARGMAX, axis {axis}", "ARGMAX", largest, "ArgMax", [x], {"axis": axis}
        )
    top = {
        "InputTensor": x,
        "OutputValueTensor": desc(1000, 10),
        "OutputIndexTensor": desc(1000, 10, of=DataType.UINT32),
        "Axis": 1,
        "K": 10,
        "AxisDirection": "DECREASING",
    }
    yield Workload("selection", "TOP_K1", "TOP_K1", top, "TopK", [x, np.array([10])], {}, 2)
    running = {
        "InputTensor": x,
        "OutputTensor": desc(*SQUARE),
        "Axis": 1,
        "AxisDirection": "INCREASING",
        "HasExclusiveSum": False,
    }
    name = "CUMULATIVE_SUMMATION"
    yield Workload("cumulation", name, name, running, "CumSum", [x, np.array(1)])


def _resizes() -> Iterator[Workload]:
    image = random_tensor(1, 64, 112, 112, low=-1)
    for mode, value in (("LINEAR", "linear"), ("NEAREST_NEIGHBOR", "nearest")):
        resample = {
            "InputTensor": image,
            "OutputTensor": desc(1, 64, 224, 224),
            "InterpolationMode": mode,
            "Scales": [1.0, 1.0, 2.0, 2.0],
        }
        scales = np.array([1, 1, 2, 2], np.float32)
        attributes = {"mode": value, "nearest_mode": "round_prefer_ceil"}
        yield Workload(
            "resampling",
            f"RESAMPLE {mode} to 2x",
            "RESAMPLE",
            resample,
            "Resize",
            [image, None, scales],
            attributes,
        )
