"""ONNX's own node tests as cases of DirectML's operators, with the outputs that ONNX expects.

A test has a model of one node, its inputs and its outputs. It becomes the desc of the operator that
`schemas/translation/onnx.yaml` expresses by this node; translated back, it must give what ONNX
expects.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from dmlconf.cases.model import About, Case, ExpectedOutputs, Location, Provenance
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["LeftOutError", "NodeTest", "as_case", "node_tests"]

_MOST_DIMENSIONS: Final = 8
_TYPES: Final = {each.dtype: each for each in DataType if each.bits >= 8}


class LeftOutError(Exception):
    """A test does not become a case; the message says why.

    Attributes:
        operator: of ONNX, if none of its tests do; else empty.
    """

    def __init__(self, message: str, operator: str = "") -> None:
        """Take the reason."""
        super().__init__(message)
        self.operator = operator


@dataclass(frozen=True, slots=True)
class NodeTest:
    """A test of one node.

    Attributes:
        name: ONNX's name of it.
        operation: the node's operator.
        attributes: of the node, with the defaults of those that it leaves out.
        inputs: of the node; None for those that are absent.
        outputs: what ONNX expects.
    """

    name: str
    operation: str
    attributes: Mapping[str, Any]
    inputs: Sequence[Array | None]
    outputs: Sequence[Array]

    def input(self, place: int) -> Array:
        """Return an input that must be there."""
        found = self.optional(place)
        if found is None:
            raise LeftOutError("an input that is absent")
        return found

    def optional(self, place: int) -> Array | None:
        """Return an input, None if it is absent."""
        return self.inputs[place] if place < len(self.inputs) else None


def node_tests() -> Iterator[NodeTest]:
    """Yield the tests of one node that the package onnx has, but those of other domains."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(action="ignore"):  # Of casts that overflow, which ONNX means to.
        tests = list(collect_testcases(None))
    for test in tests:
        graph = test.model.graph
        if len(graph.node) == 1 and graph.node[0].domain in ("", "ai.onnx") and test.data_sets:
            made = _node_test(test.name, test.model, *test.data_sets[0])
            if made is not None:
                yield made


def _node_test(
    name: str, model: onnx.ModelProto, inputs: Sequence[Any], outputs: Sequence[Any]
) -> NodeTest | None:
    [node] = model.graph.node
    if not all(isinstance(each, np.ndarray | np.generic) for each in (*inputs, *outputs)):
        return None  # Sequences and optional values.
    known = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    known |= dict(zip((each.name for each in model.graph.input), inputs, strict=False))
    schema = defs.get_schema(node.op_type, model.opset_import[0].version, "")
    attributes = {
        key: helper.get_attribute_value(each.default_value)
        for key, each in schema.attributes.items()
        if each.default_value.name
    }
    attributes |= {each.name: helper.get_attribute_value(each) for each in node.attribute}
    text = {key: v.decode() if isinstance(v, bytes) else v for key, v in attributes.items()}
    given = [np.asarray(known[each]) if each else None for each in node.input]
    return NodeTest(name, node.op_type, text, given, [np.asarray(each) for each in outputs])


def as_case(test: NodeTest) -> Case:
    """Return a test as a case.

    Raises:
        LeftOutError: there is no such case.
    """
    maker = _MAKERS.get(test.operation)
    if maker is None:
        raise LeftOutError("an operator that is not made into cases", test.operation)
    return maker(test)


def _case(
    test: NodeTest,
    operator: str,
    inputs: Mapping[str, Array | None],
    outputs: Mapping[str, Array],
    **fields: Any,
) -> Case:
    """Return a case of an operator; fields that are not named are absent."""
    present = {name: _plain(each) for name, each in inputs.items() if each is not None}
    expected = {name: _plain(each) for name, each in outputs.items()}
    tensors = {name: _desc(each) for name, each in {**present, **expected}.items()}
    desc = {
        each.name: tensors.get(each.name, fields.get(each.name))
        for each in catalogue.operator(operator).fields
    }
    made = Case(
        identifier=f"onnx/{test.name}",
        operator_name=operator,
        desc=desc,
        data=present,
        expectation=ExpectedOutputs(expected, Provenance.STATED),
        tags=("onnx",),
        about=About(Location(Path(test.name), 1), "onnx"),
    )
    broken = made.violations()
    if broken:
        raise LeftOutError(f"DirectML refuses it: {broken[0]}")
    return made


def _plain(array: Array) -> Array:
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype not in _TYPES:
        raise LeftOutError("a data type that DirectML lacks")
    if array.ndim > _MOST_DIMENSIONS or not array.size:
        raise LeftOutError("tensors of more than eight dimensions, or without elements")
    return np.ascontiguousarray(array.reshape(array.shape or (1,)))


def _desc(array: Array) -> TensorDesc:
    return TensorDesc(_TYPES[array.dtype], array.shape)


_Maker = Callable[[NodeTest], Case]
_MAKERS: Final[dict[str, _Maker]] = {}


def _makes(*operations: str) -> Callable[[_Maker], _Maker]:
    def register(maker: _Maker) -> _Maker:
        _MAKERS.update(dict.fromkeys(operations, maker))
        return maker

    return register


_ELEMENT_WISE: Final = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf"),
    *("Exp", "Floor", "Identity", "Log", "Round", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh"),
)
_ACTIVATION: Final = ("Celu", "Elu", "Relu", "Shrink", "Sigmoid", "Softplus", "Softsign", "Swish")
_UNARY: Final = {
    **{name: f"ELEMENT_WISE_{name.upper()}" for name in _ELEMENT_WISE},
    **{name: f"ACTIVATION_{name.upper()}" for name in _ACTIVATION},
    "BitwiseNot": "ELEMENT_WISE_BIT_NOT",
    "Cast": "CAST",
    "HardSigmoid": "ACTIVATION_HARD_SIGMOID",
    "HardSwish": "ACTIVATION_HARD_SWISH",
    "IsNaN": "ELEMENT_WISE_IS_NAN",
    "LeakyRelu": "ACTIVATION_LEAKY_RELU",
    "Neg": "ELEMENT_WISE_NEGATE",
    "Not": "ELEMENT_WISE_LOGICAL_NOT",
    "Reciprocal": "ELEMENT_WISE_RECIP",
    "Selu": "ACTIVATION_SCALED_ELU",
    "ThresholdedRelu": "ACTIVATION_THRESHOLDED_RELU",
}
_FIELDS_OF_UNARY: Final[Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]]] = {
    "Round": lambda a: {"RoundingMode": "HALVES_TO_NEAREST_EVEN"},
    "Softplus": lambda a: {"Steepness": 1.0},
    "Swish": lambda a: {"SigmoidInputScale": a["alpha"]},
    "HardSwish": lambda a: {"Alpha": 1 / 6, "Beta": 0.5},
    "Celu": lambda a: {"Alpha": a["alpha"]},
    "Elu": lambda a: {"Alpha": a["alpha"]},
    "LeakyRelu": lambda a: {"Alpha": a["alpha"]},
    "ThresholdedRelu": lambda a: {"Alpha": a["alpha"]},
    "HardSigmoid": lambda a: {"Alpha": a["alpha"], "Beta": a["beta"]},
    "Selu": lambda a: {"Alpha": a["alpha"], "Gamma": a["gamma"]},
    "Shrink": lambda a: {"Bias": a["bias"], "Threshold": a["lambd"]},
}
_BINARY: Final = {
    "Add": "ELEMENT_WISE_ADD1",
    "And": "ELEMENT_WISE_LOGICAL_AND",
    "BitwiseAnd": "ELEMENT_WISE_BIT_AND",
    "BitwiseOr": "ELEMENT_WISE_BIT_OR",
    "BitwiseXor": "ELEMENT_WISE_BIT_XOR",
    "Div": "ELEMENT_WISE_DIVIDE",
    "Equal": "ELEMENT_WISE_LOGICAL_EQUALS",
    "Greater": "ELEMENT_WISE_LOGICAL_GREATER_THAN",
    "GreaterOrEqual": "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL",
    "Less": "ELEMENT_WISE_LOGICAL_LESS_THAN",
    "LessOrEqual": "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL",
    "Max": "ELEMENT_WISE_MAX",
    "Mean": "ELEMENT_WISE_MEAN",
    "Min": "ELEMENT_WISE_MIN",
    "Mul": "ELEMENT_WISE_MULTIPLY",
    "Or": "ELEMENT_WISE_LOGICAL_OR",
    "Sub": "ELEMENT_WISE_SUBTRACT",
    "Sum": "ELEMENT_WISE_ADD",
    "Xor": "ELEMENT_WISE_LOGICAL_XOR",
}


@_makes(*_UNARY)
def _unary(test: NodeTest) -> Case:
    of_attributes = _FIELDS_OF_UNARY.get(test.operation)
    fields = of_attributes(test.attributes) if of_attributes is not None else {}
    inputs, outputs = {"InputTensor": test.input(0)}, {"OutputTensor": test.outputs[0]}
    return _case(test, _UNARY[test.operation], inputs, outputs, **fields)


@_makes("Gelu")
def _gelu(test: NodeTest) -> Case:
    if test.attributes["approximate"] != "none":
        raise LeftOutError("an approximation that DirectML lacks")
    inputs, outputs = {"InputTensor": test.input(0)}, {"OutputTensor": test.outputs[0]}
    return _case(test, "ACTIVATION_GELU", inputs, outputs)


@_makes("IsInf")
def _is_infinity(test: NodeTest) -> Case:
    found = test.attributes["detect_negative"], test.attributes["detect_positive"]
    mode = {(1, 1): "EITHER", (0, 1): "POSITIVE", (1, 0): "NEGATIVE"}[found]
    inputs, outputs = {"InputTensor": test.input(0)}, {"OutputTensor": test.outputs[0]}
    return _case(test, "ELEMENT_WISE_IS_INFINITY", inputs, outputs, InfinityMode=mode)


def _operands(test: NodeTest) -> dict[str, Array]:
    if len(test.inputs) != 2:
        raise LeftOutError("other than two operands")
    sizes = test.outputs[0].shape
    a, b = (np.broadcast_to(test.input(place), sizes) for place in (0, 1))
    return {"ATensor": a, "BTensor": b}


@_makes(*_BINARY)
def _binary(test: NodeTest) -> Case:
    return _case(test, _BINARY[test.operation], _operands(test), {"OutputTensor": test.outputs[0]})


@_makes("BitShift")
def _shift(test: NodeTest) -> Case:
    operator = f"ELEMENT_WISE_BIT_SHIFT_{test.attributes['direction']}"
    return _case(test, operator, _operands(test), {"OutputTensor": test.outputs[0]})


@_makes("Mod")
def _mod(test: NodeTest) -> Case:
    kind = "TRUNCATE" if test.attributes["fmod"] else "FLOOR"
    outputs = {"OutputTensor": test.outputs[0]}
    return _case(test, f"ELEMENT_WISE_MODULUS_{kind}", _operands(test), outputs)


@_makes("Pow")
def _pow(test: NodeTest) -> Case:
    operands = _operands(test)
    inputs = {"InputTensor": operands["ATensor"], "ExponentTensor": operands["BTensor"]}
    return _case(test, "ELEMENT_WISE_POW", inputs, {"OutputTensor": test.outputs[0]})


@_makes("PRelu")
def _prelu(test: NodeTest) -> Case:
    operands = _operands(test)
    inputs = {"InputTensor": operands["ATensor"], "SlopeTensor": operands["BTensor"]}
    outputs = {"OutputTensor": test.outputs[0]}
    return _case(test, "ACTIVATION_PARAMETERIZED_RELU", inputs, outputs)


@_makes("Where")
def _where(test: NodeTest) -> Case:
    names = ("ConditionTensor", "ATensor", "BTensor")
    sizes = test.outputs[0].shape
    inputs = {name: np.broadcast_to(test.input(n), sizes) for n, name in enumerate(names)}
    return _case(test, "ELEMENT_WISE_IF", inputs, {"OutputTensor": test.outputs[0]})


@_makes("Clip")
def _clip(test: NodeTest) -> Case:
    tensor = test.input(0)
    limits = np.finfo(tensor.dtype) if tensor.dtype.kind == "f" else np.iinfo(tensor.dtype)
    low, high = test.optional(1), test.optional(2)
    fields = {
        "MinMaxDataType": _TYPES[tensor.dtype],
        "Min": float(limits.min) if low is None else low.item(),
        "Max": float(limits.max) if high is None else high.item(),
    }
    outputs = {"OutputTensor": test.outputs[0]}
    return _case(test, "ELEMENT_WISE_CLIP1", {"InputTensor": tensor}, outputs, **fields)


@_makes("Softmax", "LogSoftmax", "Hardmax")
def _softmax(test: NodeTest) -> Case:
    operator = {
        "Softmax": "ACTIVATION_SOFTMAX1",
        "LogSoftmax": "ACTIVATION_LOG_SOFTMAX1",
        "Hardmax": "ACTIVATION_HARDMAX1",
    }[test.operation]
    tensor = test.input(0)
    axes = (test.attributes["axis"] % tensor.ndim,)
    outputs = {"OutputTensor": test.outputs[0]}
    return _case(test, operator, {"InputTensor": tensor}, outputs, AxisCount=1, Axes=axes)


@_makes("ArgMax", "ArgMin")
def _argument(test: NodeTest) -> Case:
    tensor = test.input(0)
    axis = test.attributes["axis"] % tensor.ndim
    sizes = tuple(1 if n == axis else size for n, size in enumerate(tensor.shape))
    last = test.attributes["select_last_index"]
    return _case(
        test,
        test.operation.upper(),
        {"InputTensor": tensor},
        {"OutputTensor": test.outputs[0].reshape(sizes)},
        AxisCount=1,
        Axes=(axis,),
        AxisDirection="DECREASING" if last else "INCREASING",
    )


_REDUCTIONS: Final = {
    "ReduceL1": "L1",
    "ReduceL2": "L2",
    "ReduceLogSum": "LOG_SUM",
    "ReduceLogSumExp": "LOG_SUM_EXP",
    "ReduceMax": "MAX",
    "ReduceMean": "AVERAGE",
    "ReduceMin": "MIN",
    "ReduceProd": "MULTIPLY",
    "ReduceSum": "SUM",
    "ReduceSumSquare": "SUM_SQUARE",
}


@_makes(*_REDUCTIONS)
def _reduce(test: NodeTest) -> Case:
    tensor = test.input(0)
    given = test.optional(1)
    axes = test.attributes.get("axes") if given is None else given.tolist()
    if not axes and test.attributes.get("noop_with_empty_axes"):
        raise LeftOutError("a reduction along no axis")
    axes = tuple(sorted(axis % tensor.ndim for axis in axes or range(tensor.ndim)))
    sizes = tuple(1 if n in axes else size for n, size in enumerate(tensor.shape))
    return _case(
        test,
        "REDUCE",
        {"InputTensor": tensor},
        {"OutputTensor": test.outputs[0].reshape(sizes)},
        Function=_REDUCTIONS[test.operation],
        AxisCount=len(axes),
        Axes=axes,
    )


@_makes("CumSum")
def _cumulative(test: NodeTest) -> Case:
    tensor = test.input(0)
    return _case(
        test,
        "CUMULATIVE_SUMMATION",
        {"InputTensor": tensor},
        {"OutputTensor": test.outputs[0]},
        Axis=int(test.input(1).item()) % tensor.ndim,
        AxisDirection="DECREASING" if test.attributes["reverse"] else "INCREASING",
        HasExclusiveSum=bool(test.attributes["exclusive"]),
    )


@_makes("Tile")
def _tile(test: NodeTest) -> Case:
    tensor, repeats = test.input(0), tuple(test.input(1).tolist())
    outputs = {"OutputTensor": test.outputs[0]}
    fields = {"RepeatsCount": len(repeats), "Repeats": repeats}
    return _case(test, "TILE", {"InputTensor": tensor}, outputs, **fields)


@_makes("Gather")
def _gather(test: NodeTest) -> Case:
    tensor, indices = test.input(0), test.input(1)
    axis = test.attributes["axis"] % tensor.ndim
    rank = tensor.ndim + max(indices.ndim, 1) - 1
    kept, after = tensor.shape[:axis], tensor.shape[axis + 1 :]
    return _case(
        test,
        "GATHER",
        {
            "InputTensor": _ranked(tensor, rank),
            "IndicesTensor": _ranked(indices, rank),
        },
        {"OutputTensor": test.outputs[0].reshape(*kept, *(indices.shape or (1,)), *after)},
        Axis=rank - tensor.ndim + axis,
        IndexDimensions=max(indices.ndim, 1),
    )


def _ranked(tensor: Array, rank: int) -> Array:
    return tensor.reshape(*(1,) * (rank - tensor.ndim), *tensor.shape)


@_makes("GatherElements", "ScatterElements")
def _elements(test: NodeTest) -> Case:
    tensor = test.input(0)
    inputs = {"InputTensor": tensor, "IndicesTensor": test.input(1)}
    if test.operation == "ScatterElements":
        if test.attributes["reduction"] != "none":
            raise LeftOutError("a reduction while scattering")
        inputs["UpdatesTensor"] = test.input(2)
    operator = "GATHER_ELEMENTS" if len(inputs) == 2 else "SCATTER_ELEMENTS"
    axis = test.attributes["axis"] % tensor.ndim
    return _case(test, operator, inputs, {"OutputTensor": test.outputs[0]}, Axis=axis)


@_makes("GatherND", "ScatterND")
def _tuples(test: NodeTest) -> Case:
    tensor, indices, output = test.input(0), test.input(1), test.outputs[0]
    updates = test.optional(2)
    if updates is not None and test.attributes["reduction"] != "none":
        raise LeftOutError("a reduction while scattering")
    rank = max(tensor.ndim, indices.ndim, output.ndim, 0 if updates is None else updates.ndim)
    inputs = {"InputTensor": _ranked(tensor, rank), "IndicesTensor": _ranked(indices, rank)}
    fields = {"InputDimensionCount": tensor.ndim, "IndicesDimensionCount": indices.ndim}
    if updates is not None:
        inputs["UpdatesTensor"] = _ranked(updates, rank)
    else:
        fields["BatchDimensionCount"] = test.attributes["batch_dims"]
    operator = "GATHER_ND1" if updates is None else "SCATTER_ND"
    return _case(test, operator, inputs, {"OutputTensor": _ranked(output, rank)}, **fields)


@_makes("Slice")
def _slice(test: NodeTest) -> Case:
    tensor = test.input(0)
    starts, ends = test.input(1).tolist(), test.input(2).tolist()
    given_axes, given_steps = test.optional(3), test.optional(4)
    axes = range(len(starts)) if given_axes is None else given_axes.tolist()
    steps = [1] * len(starts) if given_steps is None else given_steps.tolist()
    window = [(0, size, 1) for size in tensor.shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = tensor.shape[axis]
        places = range(*slice(start, end, step).indices(size))
        if not places:
            raise LeftOutError("tensors of more than eight dimensions, or without elements")
        first = min(places[0], places[-1])
        window[axis] = (first, abs(places[-1] - places[0]) + 1, step)
    offsets, sizes, strides = zip(*window, strict=True)
    return _case(
        test,
        "SLICE1",
        {"InputTensor": tensor},
        {"OutputTensor": test.outputs[0]},
        DimensionCount=tensor.ndim,
        InputWindowOffsets=offsets,
        InputWindowSizes=sizes,
        InputWindowStrides=strides,
    )


@_makes("Pad")
def _pad(test: NodeTest) -> Case:
    mode = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION"}.get(
        test.attributes["mode"]
    )
    tensor, pads, value = test.input(0), test.input(1).tolist(), test.optional(2)
    if mode is None or test.optional(3) is not None or min(pads) < 0:
        raise LeftOutError("padding that DirectML lacks")
    return _case(
        test,
        "PADDING1",
        {"InputTensor": tensor},
        {"OutputTensor": test.outputs[0]},
        PaddingMode=mode,
        PaddingValueDataType=_TYPES[tensor.dtype],
        PaddingValue=0 if value is None else value.item(),
        DimensionCount=tensor.ndim,
        StartPadding=tuple(pads[: tensor.ndim]),
        EndPadding=tuple(pads[tensor.ndim :]),
    )


@_makes("DepthToSpace", "SpaceToDepth")
def _blocks(test: NodeTest) -> Case:
    crd = test.attributes.get("mode", "DCR") == "CRD"
    operator = "DEPTH_TO_SPACE1" if test.operation == "DepthToSpace" else "SPACE_TO_DEPTH1"
    return _case(
        test,
        operator,
        {"InputTensor": test.input(0)},
        {"OutputTensor": test.outputs[0]},
        BlockSize=test.attributes["blocksize"],
        Order="COLUMN_ROW_DEPTH" if crd else "DEPTH_COLUMN_ROW",
    )


def _windows(test: NodeTest, tensor: Array, kernel: Sequence[int]) -> dict[str, Any]:
    """Return strides, dilations and padding, as `auto_pad` and `ceil_mode` mean them."""
    rank = tensor.ndim - 2
    strides = tuple(test.attributes.get("strides") or (1,) * rank)
    dilations = tuple(test.attributes.get("dilations") or (1,) * rank)
    pads = list(test.attributes.get("pads") or (0,) * 2 * rank)
    auto = test.attributes.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        for n in range(rank):
            size, stride = tensor.shape[n + 2], strides[n]
            reach = (kernel[n] - 1) * dilations[n] + 1
            total = max((ceil(size / stride) - 1) * stride + reach - size, 0)
            less, more = total // 2, total - total // 2
            pads[n], pads[n + rank] = (less, more) if auto == "SAME_UPPER" else (more, less)
    if test.attributes.get("ceil_mode"):
        raise LeftOutError("a window that begins within the padding at the end")
    return {
        "DimensionCount": rank,
        "Strides": strides,
        "Dilations": dilations,
        "StartPadding": tuple(pads[:rank]),
        "EndPadding": tuple(pads[rank:]),
    }


@_makes("AveragePool", "LpPool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool")
def _pool(test: NodeTest) -> Case:
    tensor = test.input(0)
    kernel = tuple(test.attributes.get("kernel_shape", tensor.shape[2:]))
    fields = {**_windows(test, tensor, kernel), "WindowSize": kernel}
    outputs = {"OutputTensor": test.outputs[0]}
    if test.operation.endswith("MaxPool"):
        if test.attributes.get("storage_order"):
            raise LeftOutError("indices by columns")
        outputs |= dict(zip(("OutputTensor", "OutputIndicesTensor"), test.outputs, strict=False))
        return _case(test, "MAX_POOLING2", {"InputTensor": tensor}, outputs, **fields)
    if test.operation == "LpPool":
        fields["P"] = test.attributes["p"]
        return _case(test, "LP_POOLING1", {"InputTensor": tensor}, outputs, **fields)
    fields["IncludePadding"] = bool(test.attributes.get("count_include_pad", 0))
    return _case(test, "AVERAGE_POOLING1", {"InputTensor": tensor}, outputs, **fields)


@_makes("Conv", "ConvTranspose")
def _convolution(test: NodeTest) -> Case:
    tensor, kernel, bias = test.input(0), test.input(1), test.optional(2)
    backward = test.operation == "ConvTranspose"
    if backward and (
        test.attributes.get("output_shape") or test.attributes["auto_pad"] != "NOTSET"
    ):
        raise LeftOutError("sizes of the output in place of padding")
    fields = _windows(test, tensor, kernel.shape[2:])
    shape = (1, -1, *(1,) * (tensor.ndim - 2))
    return _case(
        test,
        "CONVOLUTION",
        {
            "InputTensor": tensor,
            "FilterTensor": kernel,
            "BiasTensor": None if bias is None else bias.reshape(shape),
        },
        {"OutputTensor": test.outputs[0]},
        **fields,
        Mode="CROSS_CORRELATION",
        Direction="BACKWARD" if backward else "FORWARD",
        OutputPadding=tuple(test.attributes.get("output_padding") or (0,) * (tensor.ndim - 2)),
        GroupCount=test.attributes["group"],
    )


@_makes("Gemm", "MatMul")
def _gemm(test: NodeTest) -> Case:
    a, b, output = test.input(0), test.input(1), test.outputs[0]
    c = test.optional(2)
    if min(a.ndim, b.ndim) < 2:
        raise LeftOutError("a matrix of one dimension")
    rank = output.ndim
    a, b = (np.broadcast_to(each, (*output.shape[:-2], *each.shape[-2:])) for each in (a, b))
    attributes = test.attributes
    return _case(
        test,
        "GEMM",
        {
            "ATensor": _ranked(a, rank),
            "BTensor": _ranked(b, rank),
            "CTensor": None if c is None else np.broadcast_to(c, output.shape),
        },
        {"OutputTensor": output},
        TransA="TRANSPOSE" if attributes.get("transA") else "NONE",
        TransB="TRANSPOSE" if attributes.get("transB") else "NONE",
        Alpha=attributes.get("alpha", 1.0),
        Beta=attributes.get("beta", 1.0) if c is not None else 0.0,
    )


def _by_channel(values: Array, rank: int) -> Array:
    return values.reshape(1, -1, *(1,) * (rank - 2))


@_makes("BatchNormalization")
def _batch_normalization(test: NodeTest) -> Case:
    if test.attributes["training_mode"]:
        raise LeftOutError("training")
    tensor = test.input(0)
    names = ("ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor")
    inputs = {name: _by_channel(test.input(n + 1), tensor.ndim) for n, name in enumerate(names)}
    return _case(
        test,
        "BATCH_NORMALIZATION",
        {"InputTensor": tensor, **inputs},
        {"OutputTensor": test.outputs[0]},
        Spatial=True,
        Epsilon=test.attributes["epsilon"],
    )


@_makes("InstanceNormalization", "MeanVarianceNormalization")
def _mean_variance(test: NodeTest) -> Case:
    tensor = test.input(0)
    instance = test.operation == "InstanceNormalization"
    axes = tuple(range(2, tensor.ndim)) if instance else tuple(test.attributes["axes"])
    inputs: dict[str, Array | None] = {"InputTensor": tensor}
    if instance:
        names = ("ScaleTensor", "BiasTensor")
        inputs |= {
            name: _by_channel(test.input(n + 1), tensor.ndim) for n, name in enumerate(names)
        }
    return _case(
        test,
        "MEAN_VARIANCE_NORMALIZATION1",
        inputs,
        {"OutputTensor": test.outputs[0]},
        AxisCount=len(axes),
        Axes=axes,
        NormalizeVariance=True,
        Epsilon=test.attributes["epsilon"] if instance else 1e-9,
    )


@_makes("LRN")
def _local_response(test: NodeTest) -> Case:
    attributes = test.attributes
    return _case(
        test,
        "LOCAL_RESPONSE_NORMALIZATION",
        {"InputTensor": test.input(0)},
        {"OutputTensor": test.outputs[0]},
        CrossChannel=True,
        LocalSize=attributes["size"],
        Alpha=attributes["alpha"],
        Beta=attributes["beta"],
        Bias=attributes["bias"],
    )


@_makes("OneHot")
def _one_hot(test: NodeTest) -> Case:
    indices, values, output = test.input(0), test.input(2), test.outputs[0]
    axis = test.attributes["axis"] % output.ndim
    if indices.dtype.kind == "f":
        raise LeftOutError("indices that are not integers")
    sizes = (*output.shape[:axis], 1, *output.shape[axis + 1 :])
    return _case(
        test,
        "ONE_HOT",
        {"IndicesTensor": indices.reshape(sizes), "ValuesTensor": _ranked(values, output.ndim)},
        {"OutputTensor": output},
        Axis=axis,
    )


@_makes("TopK")
def _top_k(test: NodeTest) -> Case:
    tensor = test.input(0)
    return _case(
        test,
        "TOP_K1",
        {"InputTensor": tensor},
        {"OutputValueTensor": test.outputs[0], "OutputIndexTensor": test.outputs[1]},
        Axis=test.attributes["axis"] % tensor.ndim,
        K=int(test.input(1).item()),
        AxisDirection="DECREASING" if test.attributes["largest"] else "INCREASING",
    )


@_makes("MatMulInteger")
def _matrix_multiply_integer(test: NodeTest) -> Case:
    a, b = test.input(0), test.input(1)
    points = {"AZeroPointTensor": test.optional(2), "BZeroPointTensor": test.optional(3)}
    zero = {n: None if each is None else each.reshape(1, 1) for n, each in points.items()}
    inputs = {"ATensor": a, "BTensor": b, **zero}
    return _case(test, "MATRIX_MULTIPLY_INTEGER", inputs, {"OutputTensor": test.outputs[0]})


@_makes("QuantizeLinear", "DequantizeLinear")
def _quantize(test: NodeTest) -> Case:
    tensor, scale, zero_point = test.input(0), test.input(1), test.optional(2)
    if test.attributes.get("block_size"):
        sizes = scale.shape
    else:
        axis = test.attributes.get("axis", 1)
        sizes = tuple(
            scale.size if scale.ndim and n == axis % tensor.ndim else 1 for n in range(tensor.ndim)
        )
    names = ("QuantizationTensors[0]", "QuantizationTensors[1]")
    given = [each.reshape(sizes) for each in (scale, zero_point) if each is not None]
    operator = "QUANTIZE" if test.operation == "QuantizeLinear" else "DEQUANTIZE"
    kind = "SCALE" if zero_point is None else "SCALE_ZERO_POINT"
    plain = tuple(map(_plain, given))
    return _case(
        test,
        operator,
        {"InputTensor": tensor, **dict(zip(names, plain, strict=False))},
        {"OutputTensor": test.outputs[0]},
        QuantizationType=kind,
        QuantizationTensorCount=len(plain),
        QuantizationTensors=tuple(map(_desc, plain)),
    )


@_makes("DynamicQuantizeLinear")
def _dynamic_quantize(test: NodeTest) -> Case:
    tensor = test.input(0)
    one = (1,) * tensor.ndim
    quantized, scale, zero_point = test.outputs
    outputs = {
        "OutputTensor": quantized,
        "OutputScaleTensor": scale.reshape(one),
        "OutputZeroPointTensor": zero_point.reshape(one),
    }
    return _case(test, "DYNAMIC_QUANTIZE_LINEAR", {"InputTensor": tensor}, outputs)


@_makes("Concat")
def _join(test: NodeTest) -> Case:
    tensors = [test.input(n) for n in range(len(test.inputs))]
    plain = tuple(map(_plain, tensors))
    return _case(
        test,
        "JOIN",
        {f"InputTensors[{n}]": each for n, each in enumerate(plain)},
        {"OutputTensor": test.outputs[0]},
        InputCount=len(plain),
        InputTensors=tuple(map(_desc, plain)),
        Axis=test.attributes["axis"] % tensors[0].ndim,
    )


@_makes("Split")
def _split(test: NodeTest) -> Case:
    tensor = test.input(0)
    plain = tuple(map(_plain, test.outputs))
    return _case(
        test,
        "SPLIT",
        {"InputTensor": tensor},
        {f"OutputTensors[{n}]": each for n, each in enumerate(plain)},
        OutputCount=len(plain),
        OutputTensors=tuple(map(_desc, plain)),
        Axis=test.attributes["axis"] % tensor.ndim,
    )


@_makes("Col2Im")
def _fold(test: NodeTest) -> Case:
    image, block = test.input(1).tolist(), tuple(test.input(2).tolist())
    rank = len(image)
    pads = test.attributes.get("pads") or [0] * 2 * rank
    return _case(
        test,
        "FOLD",
        {"InputTensor": test.input(0)},
        {"OutputTensor": test.outputs[0]},
        DimensionCount=rank,
        WindowSizes=block,
        Strides=tuple(test.attributes.get("strides") or (1,) * rank),
        Dilations=tuple(test.attributes.get("dilations") or (1,) * rank),
        StartPadding=tuple(pads[:rank]),
        EndPadding=tuple(pads[rank:]),
    )


@_makes("ReverseSequence")
def _reverse(test: NodeTest) -> Case:
    tensor, lengths = test.input(0), test.input(1)
    batch, axis = test.attributes["batch_axis"], test.attributes["time_axis"]
    sizes = tuple(size if n == batch else 1 for n, size in enumerate(tensor.shape))
    every = tuple(1 if n == axis else size for n, size in enumerate(tensor.shape))
    return _case(
        test,
        "REVERSE_SUBSEQUENCES",
        {
            "InputTensor": tensor,
            "SequenceLengthsTensor": np.broadcast_to(lengths.reshape(sizes), every).astype("u4"),
        },
        {"OutputTensor": test.outputs[0]},
        Axis=axis,
    )


@_makes("MaxUnpool")
def _unpool(test: NodeTest) -> Case:
    if test.optional(2) is not None:
        raise LeftOutError("an output of other sizes than what was pooled")
    inputs = {"InputTensor": test.input(0), "IndicesTensor": test.input(1).astype(np.uint64)}
    return _case(test, "MAX_UNPOOLING", inputs, {"OutputTensor": test.outputs[0]})


@_makes("ConvInteger")
def _convolution_integer(test: NodeTest) -> Case:
    tensor, kernel = test.input(0), test.input(1)
    points = test.optional(2), test.optional(3)
    zero = [None if each is None else _by_channel(each, tensor.ndim) for each in points]
    return _case(
        test,
        "CONVOLUTION_INTEGER",
        {
            "InputTensor": tensor,
            "InputZeroPointTensor": zero[0],
            "FilterTensor": kernel,
            "FilterZeroPointTensor": zero[1],
        },
        {"OutputTensor": test.outputs[0]},
        **_windows(test, tensor, kernel.shape[2:]),
        GroupCount=test.attributes["group"],
    )


@_makes("QLinearMatMul")
def _quantized_product(test: NodeTest) -> Case:
    output = test.outputs[0]
    names = ("A", "AScale", "AZeroPoint", "B", "BScale", "BZeroPoint", "OutputScale")
    inputs = {}
    for place, name in enumerate((*names, "OutputZeroPoint")):
        each = test.input(place)
        if each.dtype == np.float16:
            raise LeftOutError("FLOAT16 scales")
        sizes = each.shape if name in "AB" else (1, 1)
        leading = output.shape[:-2] if name in "AB" else (1,) * (output.ndim - 2)
        inputs[f"{name}Tensor"] = np.broadcast_to(each.reshape(sizes), (*leading, *sizes[-2:]))
    return _case(test, "QUANTIZED_LINEAR_MATRIX_MULTIPLY", inputs, {"OutputTensor": output})


@_makes("RoiAlign")
def _regions(test: NodeTest) -> Case:
    attributes = test.attributes
    half = attributes["coordinate_transformation_mode"] == "half_pixel"
    return _case(
        test,
        "ROI_ALIGN1",
        {
            "InputTensor": test.input(0),
            "ROITensor": test.input(1),
            "BatchIndicesTensor": test.input(2).astype(np.uint32),
        },
        {"OutputTensor": test.outputs[0]},
        ReductionFunction="AVERAGE" if attributes["mode"] == "avg" else "MAX",
        InterpolationMode="LINEAR",
        SpatialScaleX=attributes["spatial_scale"],
        SpatialScaleY=attributes["spatial_scale"],
        InputPixelOffset=0.5 if half else 0.0,
        OutputPixelOffset=-0.5,
        OutOfBoundsInputValue=0.0,
        MinimumSamplesPerOutput=attributes["sampling_ratio"],
        MaximumSamplesPerOutput=attributes["sampling_ratio"],
        AlignRegionsToCorners=False,
    )


@_makes("LayerNormalization")
def _layer_normalization(test: NodeTest) -> Case:
    tensor, scale, bias = test.input(0), test.input(1), test.optional(2)
    axes = tuple(range(test.attributes["axis"] % tensor.ndim, tensor.ndim))
    factors = [None if each is None else _ranked(each, tensor.ndim) for each in (scale, bias)]
    return _case(
        test,
        "MEAN_VARIANCE_NORMALIZATION2",
        {"InputTensor": tensor, "ScaleTensor": factors[0], "BiasTensor": factors[1]},
        {"OutputTensor": test.outputs[0]},
        AxisCount=len(axes),
        Axes=axes,
        UseMean=True,
        UseVariance=True,
        Epsilon=test.attributes["epsilon"],
    )


_ACTIVATIONS: Final = {
    "RNN": ("ACTIVATION_TANH",),
    "GRU": ("ACTIVATION_SIGMOID", "ACTIVATION_TANH"),
    "LSTM": ("ACTIVATION_SIGMOID", "ACTIVATION_TANH", "ACTIVATION_TANH"),
}


@_makes(*_ACTIVATIONS)
def _recurrent(test: NodeTest) -> Case:
    if test.attributes.get("layout"):
        raise LeftOutError("batches before steps")
    if test.attributes["direction"] != "forward" or test.attributes.get("clip"):
        raise LeftOutError("a direction or a clip")
    operator, activations = test.operation, _ACTIVATIONS[test.operation]
    names = ["Weight", "Recurrence", "Bias", "", "HiddenInit", "CellMemInit", "Peephole"]
    inputs: dict[str, Array | None] = {"InputTensor": test.input(0)[np.newaxis]}
    for place, name in enumerate(names, 1):
        each = test.optional(place)
        if each is not None and name:
            whole = each[np.newaxis, np.newaxis] if each.ndim == 2 else each[np.newaxis]
            inputs[f"{name}Tensor"] = whole
    if len(test.outputs) > 1 or test.outputs[0].ndim != 3:
        raise LeftOutError("several outputs")
    single = {"OutputSingleTensor": test.outputs[0][np.newaxis]}
    fields: dict[str, Any] = {
        "ActivationDescCount": len(activations),
        "ActivationDescs": tuple(
            {"operator": each, "InputTensor": None, "OutputTensor": None} for each in activations
        ),
        "Direction": "FORWARD",
    }
    if operator == "GRU":
        fields["LinearBeforeReset"] = bool(test.attributes["linear_before_reset"])
    if operator == "LSTM":
        fields |= {"UseClipThreshold": False, "ClipThreshold": 0.0, "CoupleInputForget": False}
    return _case(test, operator, inputs, single, **fields)


@_makes("LpNormalization")
def _lp_normalization(test: NodeTest) -> Case:
    tensor = test.input(0)
    return _case(
        test,
        "LP_NORMALIZATION",
        {"InputTensor": tensor},
        {"OutputTensor": test.outputs[0]},
        Axis=test.attributes["axis"] % tensor.ndim,
        Epsilon=0.0,
        P=test.attributes["p"],
    )
