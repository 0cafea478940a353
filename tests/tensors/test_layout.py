"""Strides say where elements are stored, which of them overlap, and how large a buffer is.

The tested code is in `dmlconf/tensors/layout.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.layout import (
    LAYOUTS,
    as_stored,
    element_offsets,
    minimum_buffer_bytes,
    overlaps,
    packed_strides,
)

Sizes = tuple[int, ...]

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
STRIDED = SIZES.flatmap(
    lambda sizes: st.tuples(
        st.just(sizes),
        st.lists(st.integers(0, 9), min_size=len(sizes), max_size=len(sizes)).map(tuple),
    )
)


def coordinates(sizes: Sizes) -> Iterator[Sizes]:
    return itertools.product(*map(range, sizes))


def offset(coordinate: Sizes, strides: Sizes) -> int:
    return sum(c * s for c, s in zip(coordinate, strides, strict=True))


@given(SIZES)
def test_packed_strides_number_the_elements_in_row_major_order(sizes: Sizes) -> None:
    strides = packed_strides(sizes)
    actual = [offset(coordinate, strides) for coordinate in coordinates(sizes)]
    assert actual == list(range(math.prod(sizes)))


@given(STRIDED)
def test_element_offsets_agree_with_a_loop(strided: tuple[Sizes, Sizes]) -> None:
    sizes, strides = strided
    offsets = element_offsets(sizes, strides)
    assert offsets.shape == sizes
    for coordinate in coordinates(sizes):
        assert offsets[coordinate] == offset(coordinate, strides)


@given(STRIDED)
def test_a_tensor_overlaps_if_two_elements_have_the_same_offset(
    strided: tuple[Sizes, Sizes],
) -> None:
    sizes, strides = strided
    offsets = [offset(coordinate, strides) for coordinate in coordinates(sizes)]
    assert overlaps(sizes, strides) == (len(set(offsets)) < len(offsets))


def test_interleaved_rows_may_not_overlap() -> None:
    assert not overlaps((2, 3), (3, 2))  # The offsets are 0, 2 and 4, and 3, 5 and 7.
    assert overlaps((3, 4), (3, 2))  # 2 * 3 = 3 * 2.


def test_a_stride_of_0_along_one_element_is_no_overlap() -> None:
    assert not overlaps((1, 3), (0, 1))


def test_empty_tensor_does_not_overlap_or_change() -> None:
    empty = np.zeros((0, 2, 2), np.float32)
    assert not overlaps(empty.shape, (5, 1, 1))
    assert as_stored(empty, (5, 1, 1)).shape == empty.shape


def test_overlap_is_found_in_a_tensor_beyond_memory() -> None:
    assert overlaps((1 << 20, 1 << 24), (1, 1))
    assert not overlaps((1 << 20, 1 << 24), (1 << 24, 1))


@given(STRIDED)
def test_stored_values_agree_with_a_loop(
    strided: tuple[Sizes, Sizes],
) -> None:
    sizes, strides = strided
    values = np.arange(1, math.prod(sizes) + 1, dtype=np.int32).reshape(sizes)
    buffer = {offset(c, strides): values[c] for c in coordinates(sizes)}
    stored = as_stored(values, strides)
    assert stored.dtype == values.dtype
    for coordinate in coordinates(sizes):
        assert stored[coordinate] == buffer[offset(coordinate, strides)]


@given(STRIDED)
def test_storing_again_changes_nothing(strided: tuple[Sizes, Sizes]) -> None:
    sizes, strides = strided
    once = as_stored(np.arange(math.prod(sizes)).reshape(sizes), strides)
    assert np.array_equal(as_stored(once, strides), once)


def test_without_strides_values_are_stored_unchanged() -> None:
    values = np.arange(6).reshape(2, 3)
    assert as_stored(values, None) is values


@given(STRIDED, st.sampled_from(list(DataType)))
def test_a_buffer_ends_with_the_word_of_the_last_element(
    strided: tuple[Sizes, Sizes], data_type: DataType
) -> None:
    sizes, strides = strided
    last = max(offset(coordinate, strides) for coordinate in coordinates(sizes))
    total = minimum_buffer_bytes(data_type, sizes, strides)
    assert total % 4 == 0
    assert total * 8 - 32 < (last + 1) * data_type.bits <= total * 8


@given(SIZES, st.sampled_from(list(DataType)))
def test_implicit_strides_need_as_many_bytes_as_packed_strides(
    sizes: Sizes, data_type: DataType
) -> None:
    packed = minimum_buffer_bytes(data_type, sizes, packed_strides(sizes))
    assert minimum_buffer_bytes(data_type, sizes, None) == packed


@pytest.mark.parametrize(
    ("data_type", "count", "total"),
    [
        (DataType.UINT8, 1, 4),
        (DataType.UINT8, 5, 8),
        (DataType.INT4, 8, 4),
        (DataType.INT4, 9, 8),
        (DataType.FLOAT64, 1, 8),
    ],
)
def test_buffer_is_rounded_up_to_words_of_4_bytes(
    data_type: DataType, count: int, total: int
) -> None:
    assert minimum_buffer_bytes(data_type, (count,), None) == total


def test_the_names_of_the_layouts_are_fixed() -> None:
    assert list(LAYOUTS) == [
        "implicit",
        "packed",
        "padded",
        "transposed",
        "channels-last",
        "broadcast",
    ]


def strides_of(layout: str, sizes: Sizes) -> Sizes:
    strides = LAYOUTS[layout](sizes)
    assert strides is not None
    return strides


def test_the_implicit_layout_has_no_strides() -> None:
    assert LAYOUTS["implicit"]((2, 3)) is None


@pytest.mark.parametrize(
    ("layout", "sizes", "strides"),
    [
        ("packed", (2, 3, 4), (12, 4, 1)),
        ("padded", (2, 3, 4), (28, 7, 1)),
        ("padded", (2, 1, 4), (14, 7, 1)),
        ("transposed", (2, 3, 4), (1, 2, 6)),
        ("channels-last", (2, 3), (3, 1)),
        ("channels-last", (2, 3, 4), (12, 1, 3)),
        ("channels-last", (2, 3, 4, 5), (60, 1, 15, 3)),
        ("broadcast", (2, 3, 4), (0, 4, 1)),
        ("broadcast", (1, 3, 4), (4, 0, 1)),
    ],
)
def test_a_named_layout_gives_its_strides(layout: str, sizes: Sizes, strides: Sizes) -> None:
    assert LAYOUTS[layout](sizes) == strides


@given(SIZES, st.sampled_from(["packed", "padded", "transposed", "channels-last"]))
def test_no_layout_but_broadcast_overlaps(sizes: Sizes, layout: str) -> None:
    assert not overlaps(sizes, strides_of(layout, sizes))


@given(SIZES)
def test_padded_layout_leaves_gaps_between_rows(sizes: Sizes) -> None:
    offsets = element_offsets(sizes, strides_of("padded", sizes))
    assert len(np.unique(offsets)) == math.prod(sizes)
    if max(sizes[:-1], default=1) > 1:
        assert offsets.max() > math.prod(sizes) - 1


@given(SIZES)
def test_transposed_layout_has_the_first_dimension_fastest(
    sizes: Sizes,
) -> None:
    strides = strides_of("transposed", sizes)
    reverse = sorted(coordinates(sizes), key=lambda coordinate: coordinate[::-1])
    assert [offset(coordinate, strides) for coordinate in reverse] == list(range(len(reverse)))


@given(SIZES)
def test_broadcast_layout_repeats_the_first_larger_dimension(sizes: Sizes) -> None:
    strides = strides_of("broadcast", sizes)
    repeated = next((i for i, size in enumerate(sizes) if size > 1), None)
    assert overlaps(sizes, strides) == (repeated is not None)
    for coordinate in coordinates(sizes):
        first = tuple(0 if i == repeated else c for i, c in enumerate(coordinate))
        assert offset(coordinate, strides) == offset(first, strides)
