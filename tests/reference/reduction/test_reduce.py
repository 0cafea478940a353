"""ARGMIN gives the index that a scan of each row ends with, also for NaN and signed zeros.

The tested code is in `dmlconf/reference/reduction/reduce.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import DataType


def coordinates(sizes: tuple[int, ...]) -> Any:
    return itertools.product(*map(range, sizes))


@st.composite
def shapes(draw: st.DrawFn, least: int = 1, greatest: int = 4) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, 4), min_size=least, max_size=greatest)))


def scanned(values: list[float], replaces: Callable[[float, float], bool]) -> int:
    """Return the index that a scan ends with; `replaces(new, old)` says when it moves on."""
    best = 0
    for at, value in enumerate(values):
        if at and replaces(value, values[best]):
            best = at
    return best


@given(shapes(1, 3), st.data())
def test_argmin_agrees_with_a_scan(sizes: tuple[int, ...], data: st.DataObject) -> None:
    axes = tuple(data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=3)))
    direction = data.draw(st.sampled_from(["INCREASING", "DECREASING"]))
    values = st.sampled_from([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-45])
    count = int(np.prod(sizes))
    source = np.array([data.draw(values) for _ in range(count)], np.float32).reshape(sizes)
    out_sizes = tuple(1 if axis in axes else size for axis, size in enumerate(sizes))
    output = TensorDesc(DataType.INT64, out_sizes)
    result = reference_function("ARGMIN")(source, output, axes, direction)
    assert result.dtype == np.int64
    increasing = direction == "INCREASING"
    for at in coordinates(out_sizes):
        row = source[tuple(slice(None) if i in axes else c for i, c in enumerate(at))]
        best = scanned(
            np.asarray(row).ravel().tolist(),
            lambda new, old: new < old if increasing else new <= old,
        )
        assert result.reshape(out_sizes)[at] == best
