"""Convert WebNN's tests of operators along axes, such as reductions and softmax, into cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.stated_cases import along_axes
from tests.backends.webnn.wpt_cases.building import Conversion, case_of
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["CONVERSIONS"]

_FUNCTIONS: Final = {
    "reduceL1": "L1",
    "reduceL2": "L2",
    "reduceLogSum": "LOG_SUM",
    "reduceLogSumExp": "LOG_SUM_EXP",
    "reduceMax": "MAX",
    "reduceMean": "AVERAGE",
    "reduceMin": "MIN",
    "reduceProduct": "MULTIPLY",
    "reduceSum": "SUM",
    "reduceSumSquare": "SUM_SQUARE",
}


def _softmax(test: WptTest) -> Case:
    # An older form of softmax has no axis, and is along the rows of a matrix.
    return case_of(test, "ACTIVATION_SOFTMAX1", AxisCount=1, Axes=(test.axis(default=1),))


def _reduced(test: WptTest, axes: Sequence[int]) -> dict[str, Array]:
    """Return the output with sizes of 1 for the axes along which it was reduced."""
    return {"OutputTensor": along_axes(test.output(), test.input("input").shape, axes)}


def _arg_min_or_max(test: WptTest) -> Case:
    axes = (test.axis(),)
    return case_of(
        test,
        test.operation.upper(),
        outputs=_reduced(test, axes),
        AxisCount=1,
        Axes=axes,
        AxisDirection="INCREASING",
    )


def _reduce(test: WptTest) -> Case:
    rank = max(test.input("input").ndim, 1)
    # A scalar is a tensor of one dimension, along which one element is reduced.
    axes = range(rank) if test.input("input").ndim == 0 else test.sizes("axes", range(rank))
    axes = tuple(sorted(axes))
    return case_of(
        test,
        "REDUCE",
        outputs=_reduced(test, axes),
        Function=_FUNCTIONS[test.operation],
        AxisCount=len(axes),
        Axes=axes,
    )


def _cumulative(test: WptTest) -> Case:
    return case_of(
        test,
        "CUMULATIVE_SUMMATION",
        Axis=test.axis(),
        AxisDirection="DECREASING" if test.arguments.get("reversed") else "INCREASING",
        HasExclusiveSum=bool(test.arguments.get("exclusive")),
    )


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    **dict.fromkeys(_FUNCTIONS, _reduce),
    "argMax": _arg_min_or_max,
    "argMin": _arg_min_or_max,
    "cumulativeSum": _cumulative,
    "softmax": _softmax,
}
