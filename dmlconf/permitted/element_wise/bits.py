"""Permitted results of bit shifts: any, if an integer of w bits is shifted by w bits or more.

For UINT32 only the reference's result is right, since Direct3D shifts by the low 5 bits.
"""

from __future__ import annotations

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.bits import (
    element_wise_bit_shift_left,
    element_wise_bit_shift_right,
)
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_bit_shift_left_interval",
    "element_wise_bit_shift_right_interval",
]


def element_wise_bit_shift_left_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Interval:
    """Return the bits shifted left as both ends, or 0 and the greatest number if any is right."""
    return _interval(element_wise_bit_shift_left(ATensor, BTensor, OutputTensor), BTensor)


def element_wise_bit_shift_right_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Interval:
    """Return the bits shifted right as both ends, or 0 and the greatest number if any is right."""
    return _interval(element_wise_bit_shift_right(ATensor, BTensor, OutputTensor), BTensor)


def _interval(shifted: Array, shift: Array) -> Interval:
    width = 8 * shifted.dtype.itemsize
    if width == 32:
        return shifted, shifted
    open_to_choice = shift >= width
    limit = np.iinfo(shifted.dtype).max
    return np.where(open_to_choice, 0, shifted), np.where(open_to_choice, limit, shifted)
