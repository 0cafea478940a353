"""The slopes of the image between the four elements around each sample.

Source: the page of DML_ROI_ALIGN_GRAD_OPERATOR_DESC, which reads the elements at ceil(x). Measured:
DirectML reads the elements at floor(x) + 1 instead.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from dmlconf.reference.regions.sampling import Reading, around
from dmlconf.tensors.datatypes import Array

__all__ = ["elements_around", "slopes"]


def slopes(reading: Reading, y: Array, x: Array) -> tuple[Array, Array]:
    """Return the slopes along x and along y at rows y and columns x, and for all channels."""
    down, across = ((at - np.floor(at))[..., np.newaxis] for at in (y, x))
    top_left, top_right, bottom_left, bottom_right = elements_around(reading, y, x)
    upper, lower = top_right - top_left, bottom_right - bottom_left
    left, right = bottom_left - top_left, bottom_right - top_right
    return upper + down * (lower - upper), left + across * (right - left)


def elements_around(reading: Reading, y: Array, x: Array) -> list[Array]:
    """Return the elements around samples: top left, top right, bottom left and bottom right."""
    return [reading.elements(*at) for at in product(around(y), around(x))]
