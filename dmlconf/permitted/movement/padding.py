"""Permitted results of PADDING besides the reference's output."""

from __future__ import annotations

from collections.abc import Sequence

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.attributes import possible_conversions
from dmlconf.precision.allowance import Interval
from dmlconf.reference.movement.padding import padded
from dmlconf.tensors.datatypes import Array

__all__ = [
    "padding1_candidates",
]


def padding1_candidates(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    PaddingMode: str,
    PaddingValueDataType: str,
    PaddingValue: float,
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
) -> Sequence[Interval]:
    """Return one padded tensor for each number of the input's type that PaddingValue may become.

    There are several only if PaddingValue is a FLOAT32 number outside an integer type's range, or
    NaN.
    """
    values = possible_conversions(PaddingValue, PaddingValueDataType, InputTensor.dtype)
    outputs = (padded(InputTensor, PaddingMode, each, StartPadding, EndPadding) for each in values)
    return [(output, output) for output in outputs]
