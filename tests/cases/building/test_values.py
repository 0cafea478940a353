"""Values in case files become tensors: rounded once, and refused outside the data type.

The tested code is in `dmlconf/cases/building/values.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.cases.building.values import ValuesError, tensor_values
from dmlconf.tensors.datatypes import DataType

SIZES = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple)
INTEGERS = [data_type for data_type in DataType if not data_type.is_float]


def nested(flat: list[Any], sizes: tuple[int, ...]) -> Any:
    """Nest a list: with sizes (2, 2), [1, 2, 3, 4] becomes [[1, 2], [3, 4]]."""
    if len(sizes) == 1:
        return flat
    length = math.prod(sizes[1:])
    return [nested(flat[i * length :][:length], sizes[1:]) for i in range(sizes[0])]


@pytest.mark.slow
@given(SIZES, st.sampled_from(INTEGERS), st.data())
def test_nested_and_flat_lists_give_the_same_array(
    sizes: tuple[int, ...], data_type: DataType, data: st.DataObject
) -> None:
    whole = st.integers(int(data_type.minimum), int(data_type.maximum))
    count = math.prod(sizes)
    flat = data.draw(st.lists(whole, min_size=count, max_size=count))
    from_flat = tensor_values(flat, sizes, data_type)
    from_nested = tensor_values(nested(flat, sizes), sizes, data_type)
    assert np.array_equal(tensor_values(tuple(flat), sizes, data_type), from_flat)
    assert from_flat.dtype == data_type.dtype
    assert from_flat.shape == sizes
    assert from_flat.ravel().tolist() == flat
    assert np.array_equal(from_flat, from_nested)


@given(st.lists(st.floats(width=16), min_size=1, max_size=8))
def test_floats_that_float16_can_represent_are_not_changed(values: list[float]) -> None:
    actual = tensor_values(values, (len(values),), DataType.FLOAT16)
    for value, written in zip(actual.tolist(), values, strict=True):
        assert math.isnan(value) == math.isnan(written)
        if not math.isnan(written):
            assert (value, math.copysign(1, value)) == (written, math.copysign(1, written))


def test_one_number_makes_a_tensor_of_one_element() -> None:
    assert tensor_values(5, (1, 1), DataType.INT8).tolist() == [[5]]


def test_floats_without_a_fraction_are_accepted_as_integers() -> None:
    assert tensor_values([1.0, 1e3, -0.0], (3,), DataType.INT32).tolist() == [1, 1000, 0]


def test_extreme_64_bit_integers_are_exact() -> None:
    assert tensor_values([2**64 - 1], (1,), DataType.UINT64).tolist() == [2**64 - 1]
    assert tensor_values([-(2**63), 2**63 - 1], (2,), DataType.INT64).tolist() == [
        -(2**63),
        2**63 - 1,
    ]


def test_numbers_are_rounded_once_to_the_nearest() -> None:
    # FLOAT32 rounds 65519.9999 to 65520, which FLOAT16 would round to infinity.
    assert tensor_values([65519.9999], (1,), DataType.FLOAT16).tolist() == [65504]
    assert tensor_values([1 + 2**-24], (1,), DataType.FLOAT32).tolist() == [1]
    above = 1 + 2**-24 + 2**-40  # Nearer to the next FLOAT32 number, 1 + 2^-23, than to 1.
    assert tensor_values([above, -above], (2,), DataType.FLOAT32).tolist() == [
        1 + 2**-23,
        -1 - 2**-23,
    ]


@pytest.mark.parametrize("data_type", INTEGERS)
@pytest.mark.parametrize("beyond", [1, 1000])
def test_integers_outside_the_type_are_refused(data_type: DataType, beyond: int) -> None:
    least, greatest = int(data_type.minimum), int(data_type.maximum)
    for value in (least - beyond, greatest + beyond):
        with pytest.raises(ValuesError) as caught:
            tensor_values([0, value], (2,), data_type)
        assert caught.value.where == (1,)
        assert caught.value.message == f"{value} does not fit {data_type}"
        assert caught.value.hint == f"it holds {least} to {greatest}"


@pytest.mark.parametrize(
    ("values", "sizes", "data_type", "where", "message", "hint"),
    [
        ([1, 2, 3], (2,), "FLOAT32", (), "3 values are given where Sizes {2} ask for 2", None),
        ([], (2,), "FLOAT32", (), "0 values are given where Sizes {2} ask for 2", None),
        (1, (2, 3), "FLOAT32", (), "1 value is given where Sizes {2, 3} ask for 6", None),
        (
            [[1, 2]],
            (2, 1),
            "FLOAT32",
            (),
            "values are nested as {1, 2} where Sizes are {2, 1}",
            "nest the lists like Sizes, or give one flat list",
        ),
        (
            [[1, 2, 3], [4]],
            (2, 2),
            "FLOAT32",
            (),
            "values are nested as rows of unequal length where Sizes are {2, 2}",
            "nest the lists like Sizes, or give one flat list",
        ),
        (
            [[1, 2], 3, 4],
            (2, 2),
            "FLOAT32",
            (),
            "values are nested as rows of unequal length where Sizes are {2, 2}",
            "nest the lists like Sizes, or give one flat list",
        ),
        (
            [[1, 2], [3, 1.5]],
            (2, 2),
            "INT32",
            (1, 1),
            "1.5 is not a whole number, as INT32 asks",
            None,
        ),
        (
            [70000],
            (1,),
            "FLOAT16",
            (0,),
            "70000 does not fit FLOAT16",
            "its largest is 65504; infinity is written .inf",
        ),
        (
            [65520.0],
            (1,),
            "FLOAT16",
            (0,),
            "65520.0 does not fit FLOAT16",
            "its largest is 65504; infinity is written .inf",
        ),
        (
            [-(10**400)],
            (1,),
            "FLOAT64",
            (0,),
            f"-1{'0' * 400} does not fit FLOAT64",
            "its largest is 1.79769e+308; infinity is written .inf",
        ),
        ([math.inf], (1,), "INT8", (0,), "inf does not fit INT8", None),
        ([math.nan], (1,), "UINT64", (0,), "nan does not fit UINT64", None),
        ([True], (1,), "UINT8", (0,), "True is not a number", None),
        ([None], (1,), "FLOAT32", (0,), "None is not a number", None),
        (
            ["-Inf"],
            (1,),
            "FLOAT32",
            (0,),
            "'-Inf' is not a number",
            "infinities and NaN are written .inf, -.inf and .nan",
        ),
        (
            ["nan"],
            (1,),
            "FLOAT32",
            (0,),
            "'nan' is not a number",
            "infinities and NaN are written .inf, -.inf and .nan",
        ),
        (["1"], (1,), "FLOAT32", (0,), "'1' is not a number", None),
    ],
)
def test_values_unlike_the_sizes_or_data_type_are_refused(
    values: Any,
    sizes: tuple[int, ...],
    data_type: str,
    where: tuple[int, ...],
    message: str,
    hint: str | None,
) -> None:
    with pytest.raises(ValuesError) as caught:
        tensor_values(values, sizes, DataType(data_type))
    assert (caught.value.where, caught.value.message, caught.value.hint) == (where, message, hint)


@pytest.mark.parametrize("data_type", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_float_types_accept_infinities_and_nan(data_type: str) -> None:
    actual = tensor_values([math.inf, -math.inf, math.nan], (3,), DataType(data_type)).tolist()
    assert actual[:2] == [math.inf, -math.inf]
    assert math.isnan(actual[2])
