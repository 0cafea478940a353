"""Convert WebNN's tests of moving elements and of choosing them by indices into cases."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from dmlconf.cases.model import Case
from tests.backends.stated_cases import data_type, elements_of
from tests.backends.stated_descs import by_elements, by_tuples, gathered
from tests.backends.webnn.wpt_cases.building import Conversion, case_of
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["CONVERSIONS"]

_BEYOND_ALL_DIAGONALS: Final = 1 << 20
"""The number of a diagonal that lies outside all matrices of the tests."""


def _concat(test: WptTest) -> Case:
    arrays = (test.tensors[name].array() for name in test.arguments["inputs"])
    tensors, fields = elements_of("InputTensors", arrays)
    return case_of(test, "JOIN", tensors, Axis=test.axis(), **fields)


def _split(test: WptTest) -> Case:
    tensors, fields = elements_of("OutputTensors", (each.array() for each in test.outputs))
    return case_of(test, "SPLIT", outputs=tensors, Axis=test.axis(), **fields)


def _tile(test: WptTest) -> Case:
    repeats = test.sizes("repetitions", ()) or (1,)
    return case_of(test, "TILE", RepeatsCount=len(repeats), Repeats=repeats)


def _slice(test: WptTest) -> Case:
    rank = max(test.input("input").ndim, 1)
    return case_of(
        test,
        "SLICE1",
        DimensionCount=rank,
        InputWindowOffsets=test.sizes("starts", ()) or (0,),
        InputWindowSizes=test.sizes("sizes", ()) or (1,),
        InputWindowStrides=test.sizes("strides", (1,) * rank),
    )


def _reverse(test: WptTest) -> Case:
    sizes = test.input("input").shape
    axes = test.sizes("axes", range(len(sizes)))
    return case_of(
        test,
        "SLICE1",
        DimensionCount=len(sizes),
        InputWindowOffsets=(0,) * len(sizes),
        InputWindowSizes=sizes,
        InputWindowStrides=tuple(-1 if axis in axes else 1 for axis in range(len(sizes))),
    )


def _pad(test: WptTest) -> Case:
    tensor = test.input("input")
    start, end = test.sizes("beginningPadding", ()), test.sizes("endingPadding", ())
    modes = {"reflection": "REFLECTION", "symmetric": "SYMMETRIC"}
    mode = test.arguments.get("mode", "constant")
    return case_of(
        test,
        "PADDING1",
        PaddingMode=modes.get(mode, mode.upper()),
        PaddingValueDataType=data_type(tensor),
        PaddingValue=test.number("value", 0),
        DimensionCount=max(tensor.ndim, 1),
        StartPadding=start or (0,),
        EndPadding=end or (0,),
    )


def _gather(test: WptTest) -> Case:
    tensor, indices = test.input("input"), test.input("indices")
    return gathered(tensor, indices, test.output(), test.axis()).case(partial(case_of, test))


def _gather_or_scatter_elements(test: WptTest) -> Case:
    tensor, indices, updates = test.input("input"), test.input("indices"), test.optional("updates")
    return by_elements(tensor, indices, updates, test.output(), test.axis()).case(
        partial(case_of, test)
    )


def _gather_or_scatter_nd(test: WptTest) -> Case:
    tensor, indices, updates = test.input("input"), test.input("indices"), test.optional("updates")
    return by_tuples(tensor, indices, updates, test.output(), 0).case(partial(case_of, test))


def _triangular(test: WptTest) -> Case:
    diagonal = int(test.number("diagonal", 0))
    zeros = (
        (-_BEYOND_ALL_DIAGONALS, diagonal)
        if test.arguments.get("upper", True)
        else (diagonal + 1, _BEYOND_ALL_DIAGONALS)
    )
    return case_of(
        test,
        "DIAGONAL_MATRIX1",
        ValueDataType=data_type(test.input("input")),
        Value=0,
        DiagonalFillBegin=zeros[0],
        DiagonalFillEnd=zeros[1],
    )


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "concat": _concat,
    "gather": _gather,
    "gatherElements": _gather_or_scatter_elements,
    "gatherND": _gather_or_scatter_nd,
    "pad": _pad,
    "reverse": _reverse,
    "scatterElements": _gather_or_scatter_elements,
    "scatterND": _gather_or_scatter_nd,
    "slice": _slice,
    "split": _split,
    "tile": _tile,
    "triangular": _triangular,
}
