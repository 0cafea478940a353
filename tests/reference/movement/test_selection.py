from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.movement.selection import nonzero_coordinates, nonzero_coordinates_interval
from dmlconf.tensors.datatypes import Array, DataType

tensors = hnp.arrays(
    np.int32, hnp.array_shapes(max_dims=4, max_side=3), elements=st.integers(-1, 1)
)
few = settings(max_examples=60, deadline=None)


def outputs(tensor: Array) -> tuple[TensorDesc, TensorDesc]:
    coordinates = TensorDesc(DataType.UINT32, (tensor.size, tensor.ndim))
    return TensorDesc(DataType.UINT32, (1,)), coordinates


@few
@given(tensors)
def test_coordinates_are_those_of_all_nonzero_elements_in_order(tensor: Array) -> None:
    count, coordinates = nonzero_coordinates(tensor, *outputs(tensor))
    written = coordinates[: count[0]]
    assert np.array_equal(np.ravel_multi_index(written.T, tensor.shape), np.flatnonzero(tensor))


@few
@given(tensors)
def test_coordinates_along_leading_dimensions_may_be_left_out(tensor: Array) -> None:
    all_of_them = nonzero_coordinates(tensor, *outputs(tensor))
    some_of_them = nonzero_coordinates(tensor[np.newaxis], *outputs(tensor))
    assert np.array_equal(all_of_them[1], some_of_them[1])


@few
@given(tensors)
def test_only_what_follows_the_last_coordinates_is_undefined(tensor: Array) -> None:
    counts, (lowest, highest) = nonzero_coordinates_interval(tensor, *outputs(tensor))
    count = int(counts[0][0])
    assert counts[0] == counts[1] == np.count_nonzero(tensor)
    assert (lowest[:count] == highest[:count]).all()
    assert (lowest[count:] == 0).all()
    assert (highest[count:] == 2**32 - 1).all()
