"""SLICE1 takes every nth element of a window; SLICE_GRAD puts its gradient there, and 0 elsewhere.

The tested code is in `dmlconf/reference/movement/slicing.py`.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.movement.slicing import slice1, slice_grad
from dmlconf.tensors.datatypes import DataType
from tests.properties import examples

windows = st.integers(1, 5).flatmap(
    lambda size: st.tuples(st.integers(0, 2), st.just(size), st.sampled_from([1, 2, 3, -1, -2, -3]))
)
"""The offset, the extent and the stride of a slice along one axis."""

few_examples = settings(max_examples=examples(60), deadline=None)


@few_examples
@given(st.lists(windows, min_size=1, max_size=3), st.integers(0, 2))
def test_slice_and_its_gradient_have_the_same_elements(
    axes: list[tuple[int, int, int]], beyond: int
) -> None:
    offsets, extents, strides = zip(*axes, strict=True)
    sizes = tuple(offset + extent + beyond for offset, extent, _ in axes)
    sliced_sizes = tuple(1 + (extent - 1) // abs(stride) for _, extent, stride in axes)
    tensor = np.arange(1, np.prod(sizes) + 1, dtype=np.float32).reshape(sizes)
    sliced = slice1(tensor, TensorDesc(DataType.FLOAT32, sliced_sizes), offsets, extents, strides)
    # With a negative stride the slice begins at the last element of the window.
    taken = [range(offset, offset + extent)[::stride] for offset, extent, stride in axes]
    assert (sliced == tensor[np.ix_(*taken)]).all()
    whole = TensorDesc(DataType.FLOAT32, sizes)
    gradient = slice_grad(sliced, whole, offsets, extents, strides)
    assert set(np.unique(gradient[gradient != tensor])) <= {0}
    assert np.count_nonzero(gradient) == sliced.size
    again = slice1(gradient, TensorDesc(DataType.FLOAT32, sliced_sizes), offsets, extents, strides)
    assert (again == sliced).all()
