"""Convert ONNX's node tests of operators along axes, such as reductions and TopK, into cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.onnxruntime.node_cases.building import Conversion, case_of
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest
from tests.backends.stated_cases import NoCaseError, along_axes

__all__ = ["CONVERSIONS"]

_SOFTMAX: Final = {
    "Softmax": "ACTIVATION_SOFTMAX1",
    "LogSoftmax": "ACTIVATION_LOG_SOFTMAX1",
    "Hardmax": "ACTIVATION_HARDMAX1",
}
_FUNCTIONS: Final = {
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


def _direction(*, decreasing: bool) -> str:
    return "DECREASING" if decreasing else "INCREASING"


def _softmax(test: NodeTest) -> Case:
    return case_of(test, _SOFTMAX[test.operation], AxisCount=1, Axes=(test.axis,))


def _reduced(test: NodeTest, axes: Sequence[int]) -> dict[str, Array]:
    """Return the output with sizes of 1 for the axes along which it was reduced."""
    return {"OutputTensor": along_axes(test.outputs[0], test.input(0).shape, axes)}


def _arg_min_or_max(test: NodeTest) -> Case:
    axes = (test.axis,)
    return case_of(
        test,
        test.operation.upper(),
        outputs=_reduced(test, axes),
        AxisCount=1,
        Axes=axes,
        AxisDirection=_direction(decreasing=test.attributes["select_last_index"]),
    )


def _reduce(test: NodeTest) -> Case:
    rank, axes_input = test.input(0).ndim, test.optional(1)
    axes = test.attributes.get("axes") if axes_input is None else axes_input.tolist()
    if not axes and test.attributes.get("noop_with_empty_axes"):
        raise NoCaseError("a reduction along no axis")
    axes = tuple(sorted(axis % rank for axis in axes or range(rank)))
    return case_of(
        test,
        "REDUCE",
        outputs=_reduced(test, axes),
        Function=_FUNCTIONS[test.operation],
        AxisCount=len(axes),
        Axes=axes,
    )


def _cumulative(test: NodeTest) -> Case:
    return case_of(
        test,
        "CUMULATIVE_SUMMATION",
        Axis=int(test.input(1).item()) % test.input(0).ndim,
        AxisDirection=_direction(decreasing=test.attributes["reverse"]),
        HasExclusiveSum=bool(test.attributes["exclusive"]),
    )


def _top_k(test: NodeTest) -> Case:
    return case_of(
        test,
        "TOP_K1",
        outputs={"OutputValueTensor": test.outputs[0], "OutputIndexTensor": test.outputs[1]},
        Axis=test.axis,
        K=int(test.input(1).item()),
        AxisDirection=_direction(decreasing=test.attributes["largest"]),
    )


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    **dict.fromkeys(_SOFTMAX, _softmax),
    **dict.fromkeys(_FUNCTIONS, _reduce),
    "ArgMax": _arg_min_or_max,
    "ArgMin": _arg_min_or_max,
    "CumSum": _cumulative,
    "TopK": _top_k,
}
