"""NONZERO_COORDINATES finds all nonzero elements; TOP_K1 of a line with NaN has several results.

The tested code is in `dmlconf/reference/movement/selection.py` and
`dmlconf/permitted/movement/selection.py`.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.movement.selection import nonzero_coordinates_interval
from dmlconf.reference.evaluation import reference_function
from dmlconf.reference.movement.selection import nonzero_coordinates
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.intervals import is_permitted
from tests.properties import examples
from tests.reference.functions import function_of

tensors = hnp.arrays(
    np.int32, hnp.array_shapes(max_dims=4, max_side=3), elements=st.integers(-1, 1)
)
few_examples = settings(max_examples=examples(60), deadline=None)


def outputs(tensor: Array) -> tuple[TensorDesc, TensorDesc]:
    coordinates = TensorDesc(DataType.UINT32, (tensor.size, tensor.ndim))
    return TensorDesc(DataType.UINT32, (1,)), coordinates


@few_examples
@given(tensors)
def test_coordinates_are_those_of_all_nonzero_elements_in_order(tensor: Array) -> None:
    count, coordinates = nonzero_coordinates(tensor, *outputs(tensor))
    written = coordinates[: count[0]]
    assert np.array_equal(np.ravel_multi_index(written.T, tensor.shape), np.flatnonzero(tensor))


@few_examples
@given(tensors)
def test_coordinates_along_a_leading_1_may_be_left_out(tensor: Array) -> None:
    _, all_coordinates = nonzero_coordinates(tensor, *outputs(tensor))
    _, fewer_coordinates = nonzero_coordinates(tensor[np.newaxis], *outputs(tensor))
    assert np.array_equal(all_coordinates, fewer_coordinates)


@few_examples
@given(tensors)
def test_only_rows_after_the_last_coordinates_are_undefined(tensor: Array) -> None:
    counts, (lowest, highest) = nonzero_coordinates_interval(tensor, *outputs(tensor))
    count = int(counts[0][0])
    assert counts[0] == counts[1] == np.count_nonzero(tensor)
    assert (lowest[:count] == highest[:count]).all()
    assert (lowest[count:] == 0).all()
    assert (highest[count:] == 2**32 - 1).all()


def permitted_first(line: list[float]) -> tuple[list[bool], list[bool]]:
    """Return whether TOP_K1 may give 4, 5, 6, 9 and NaN first, and 0 to 4 as the first index."""
    tensor = np.array([line], np.float32)
    outputs = TensorDesc(DataType.FLOAT32, (1, 2)), TensorDesc(DataType.UINT32, (1, 2))
    fields = {"Axis": 1, "K": 2, "AxisDirection": "DECREASING"}
    right = reference_function("TOP_K1")(tensor, *outputs, **fields)
    candidates = function_of("TOP_K1", "candidates")(tensor, *outputs, **fields)
    tried = np.array([4, 5, 6, 9, np.nan], np.float32), np.arange(5, dtype=np.uint32)
    permitted = [
        is_permitted(
            values,
            np.full_like(values, expected[0, 0]),
            *((np.full_like(values, a[0, 0]), np.full_like(values, b[0, 0])) for a, b in intervals),
        ).tolist()
        for values, expected, intervals in zip(tried, right, candidates, strict=True)
    ]
    return permitted[0], permitted[1]


def test_top_k_of_a_line_with_nan_permits_each_element() -> None:
    elements, indices = permitted_first([4, np.nan, 6, 4])
    assert elements == [True, False, True, False, True]
    assert indices == [True, True, True, True, False]


def test_top_k_of_equal_elements_and_nan_permits_both() -> None:
    assert permitted_first([5, 5, np.nan, 5])[0] == [False, True, False, False, True]


def test_top_k_of_a_line_of_nan_must_begin_with_nan() -> None:
    assert permitted_first([np.nan] * 4)[0] == [False, False, False, False, True]


def test_top_k_of_a_long_line_with_nan_permits_its_range() -> None:
    assert permitted_first([*range(5, 30), np.nan])[0] == [False, True, True, True, True]
