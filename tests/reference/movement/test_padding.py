"""The reference of PADDING agrees with `numpy.pad`.

The tested code is in `dmlconf/reference/movement/padding.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType

MODES = {"EDGE": "edge", "REFLECTION": "reflect", "SYMMETRIC": "symmetric", "WRAP": "wrap"}
"""NumPy's names of all modes except CONSTANT."""

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def padded(tensor: Array, mode: str, around: list[tuple[int, int]], value: float = 0.0) -> Array:
    """Return what PADDING gives with `around[axis]` elements before and after."""
    start, end = zip(*around, strict=True)
    sizes = tuple(np.add(tensor.shape, np.add(start, end)).tolist())
    output = TensorDesc(DataType.FLOAT32, sizes)
    result: Array = reference_function("PADDING")(tensor, output, mode, value, start, end)
    return result


@pytest.mark.parametrize("mode", MODES)
@given(shape=SHAPES, data=st.data())
def test_padding_adds_the_elements_that_numpy_pad_adds(
    mode: str, shape: list[int], data: st.DataObject
) -> None:
    around = [data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9))) for _ in shape]
    tensor = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    # NumPy's annotations take a mode only as a literal.
    expected = np.pad(tensor, around, MODES[mode])  # type: ignore[call-overload]
    np.testing.assert_array_equal(padded(tensor, mode, around), expected)


@given(shape=SHAPES, value=st.floats(width=32), data=st.data())
def test_constant_padding_adds_the_constant(
    shape: list[int], value: float, data: st.DataObject
) -> None:
    around = [data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3))) for _ in shape]
    tensor = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    expected = np.pad(tensor, around, constant_values=value)
    np.testing.assert_array_equal(padded(tensor, "CONSTANT", around, value), expected)
