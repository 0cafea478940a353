"""Gradients that belong outside the tensor go to its first or last element."""

from __future__ import annotations

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.resampling.gradient_candidates import linear_interval
from dmlconf.reference.resampling.interpolation import Coordinates
from dmlconf.tensors.datatypes import DataType

GRADIENT = np.array([1, 2, 4], np.float32)


def interval(gradient: np.ndarray, coordinates: list[float], size: int) -> tuple[list[float], ...]:
    """Return what is right where every coordinate is off by 10 at most."""
    at = Coordinates(np.array(coordinates), np.full(len(coordinates), 10.0))
    ends = linear_interval(gradient, [at], TensorDesc(DataType.FLOAT32, (size,)))
    return tuple(end.tolist() for end in ends)


def test_uncertain_coordinates_beside_the_tensor_leave_little_room() -> None:
    lowest, highest = interval(GRADIENT, [-50, -40, -30], 2)
    assert 6.999 < lowest[0] <= 7 <= highest[0] < 7.001
    assert (lowest[1], highest[1]) == (0, 0)


def test_uncertain_coordinates_within_the_tensor_leave_much() -> None:
    lowest, highest = interval(GRADIENT, [-5, -4, -3], 2)
    assert highest[0] - lowest[0] > 1


def test_nan_beside_the_tensor_opens_the_axis() -> None:
    gradient = np.array([np.nan, 2], np.float32)
    assert interval(gradient, [-50, -40], 4) == ([-np.inf] * 4, [np.inf] * 4)
