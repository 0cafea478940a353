"""Tensors lie in memory between guard bands; a fill value (poison) fills all but the inputs.

The tested code is in `dmlconf/backends/directml/dispatch/placement.py` and
`dmlconf/cases/plans.py`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.backends.directml.dispatch.placement import (
    GUARD,
    POISONS,
    PlacedTensor,
    decode,
    encode,
    placement_of,
)
from dmlconf.cases.model import Case
from dmlconf.cases.plans import plan
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.layout import LAYOUTS, minimum_buffer_bytes
from tests.backends.directml.cases import case, gather, tile

FILL: Final = 0xCD
"""The byte that fills memory before a test writes to it."""


def tensors_by_name(case: Case) -> dict[str, PlacedTensor]:
    result = placement_of(plan(case))
    return {found.name: found for found in (*result.inputs, *result.outputs) if found}


def test_guard_bands_lie_before_between_and_after_tensors() -> None:
    actual = placement_of(plan(gather()))
    tensors = actual.ordered()
    assert len(tensors) == 3
    ends = [0, *(found.end for found in tensors)]
    begins = [*(found.offset for found in tensors), actual.span]
    assert all(begin - end >= GUARD for end, begin in zip(ends, begins, strict=True))


def test_tensors_are_aligned_as_their_descs_promise() -> None:
    desc = TensorDesc(DataType.FLOAT32, (2,), GuaranteedBaseOffsetAlignment=4096)
    tensors = tensors_by_name(tile(InputTensor=desc))
    assert tensors["InputTensor"].offset == 4096
    assert tensors["OutputTensor"].offset % GUARD == 0


def test_bindings_follow_the_operator_with_none_for_absent() -> None:
    actual = placement_of(plan(gather(IndicesTensor=None)))
    assert [found and found.name for found in actual.inputs] == ["InputTensor", None]
    desc = TensorDesc(DataType.FLOAT32, (1,))
    join = placement_of(plan(case("JOIN", InputTensors=(desc, desc, desc), OutputTensor=desc)))
    assert [found and found.name for found in join.inputs] == [
        "InputTensors[0]",
        "InputTensors[1]",
        "InputTensors[2]",
    ]


def test_a_graph_has_no_bindings_for_absent_tensors() -> None:
    actual = placement_of(plan(gather(IndicesTensor=None), as_graph=True))
    assert [found and found.name for found in actual.inputs] == ["InputTensor"]


def test_an_output_in_place_has_the_memory_of_its_input() -> None:
    shared = tile(in_place={"OutputTensor": "InputTensor"})
    tensors = tensors_by_name(shared)
    assert tensors["OutputTensor"].offset == tensors["InputTensor"].offset
    assert [found.name for found in placement_of(plan(shared)).ordered()] == ["OutputTensor"]


def test_output_in_place_has_room_for_its_strides() -> None:
    shared = tile(
        {"OutputTensor": "InputTensor"},
        InputTensor=TensorDesc(DataType.FLOAT32, (2, 2)),
        Repeats=(1, 1),
        OutputTensor=TensorDesc(DataType.FLOAT32, (2, 2), (512, 1)),
    )
    output = tensors_by_name(shared)["OutputTensor"]
    last_element = 512 + 1
    assert output.end == GUARD + 4 * (last_element + 1)
    assert placement_of(plan(shared)).span >= output.end + GUARD


def test_graph_output_is_in_place_only_if_packed() -> None:
    def tensors(strides: tuple[int, ...]) -> list[str]:
        desc = TensorDesc(DataType.FLOAT32, (2, 2), strides)
        shared = tile(
            {"OutputTensor": "InputTensor"},
            InputTensor=desc,
            Repeats=(1, 1),
            OutputTensor=desc,
        )
        return [found.name for found in placement_of(plan(shared, as_graph=True)).ordered()]

    assert tensors((2, 1)) == ["OutputTensor"]
    assert tensors((1, 2)) == ["InputTensor", "OutputTensor"]


def test_the_image_holds_the_inputs_and_poison_everywhere_else() -> None:
    actual = placement_of(plan(tile()))
    (source,) = actual.inputs
    assert source is not None
    data = {"InputTensor": np.array([1, 2], np.float32)}
    for poison in POISONS:
        image = actual.image(data, poison)
        assert image[source.offset : source.end].view(np.float32).tolist() == [1, 2]
        image[source.offset : source.end] = poison
        assert (image == poison).all()


def test_owned_data_is_in_memory_only_for_initialisation() -> None:
    owned = TensorDesc(DataType.FLOAT32, (2,), Flags=("OWNED_BY_DML",))
    actual = placement_of(plan(tile(InputTensor=owned)))
    data = {"InputTensor": np.array([1, 2], np.float32)}
    assert actual.any_owned()
    assert (actual.image(data, FILL) == FILL).all()
    offset = actual.ordered()[0].offset
    assert actual.initial(data)[offset : offset + 8].view(np.float32).tolist() == [1, 2]


def test_tensor_end_is_rounded_up_to_four_bytes() -> None:
    desc = TensorDesc(DataType.UINT8, (3,), DeclaredTensorSizeInBytes=13)
    actual = PlacedTensor("InputTensor", desc, 256, False)
    assert (actual.size, actual.end) == (13, 256 + 16)


def test_four_bit_elements_are_packed_low_half_first() -> None:
    desc = TensorDesc(DataType.INT4, (3,))
    content = np.full(4, FILL, np.uint8)
    encode(np.array([1, -2, 7], np.int8), desc, content)
    # -2 is 0xE in four bits. The C of FILL stays in the second byte.
    assert content.tolist() == [0xE1, 0xC7, FILL, FILL]
    assert decode(desc, content).tolist() == [1, -2, 7]


# Elements of `broadcast` share memory.
@pytest.mark.slow
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "broadcast"])
@given(data=st.data())
def test_decoding_gives_back_what_was_encoded(layout: str, data: Any) -> None:
    data_type = data.draw(st.sampled_from(DataType))
    sizes = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    strides = LAYOUTS[layout](sizes)
    desc = TensorDesc(data_type, sizes, strides)
    content = np.full(minimum_buffer_bytes(data_type, sizes, strides), FILL, np.uint8)
    count = int(np.prod(sizes))
    # INT4 has no number above 7.
    values = (np.arange(count) % 7).astype(data_type.dtype).reshape(sizes)
    encode(values, desc, content)
    assert (decode(desc, content) == values).all()


def test_encoding_writes_no_bytes_between_the_elements() -> None:
    desc = TensorDesc(DataType.UINT8, (2, 2), (4, 1))
    content = np.full(8, FILL, np.uint8)
    encode(np.array([[1, 2], [3, 4]], np.uint8), desc, content)
    assert content.tolist() == [1, 2, FILL, FILL, 3, 4, FILL, FILL]


def test_encoding_and_decoding_keep_the_bits_of_nan() -> None:
    # A signalling NaN, and a quiet one with a sign and a payload.
    bits = np.array([0x7FA00001, 0xFFC12345], np.uint32)
    desc = TensorDesc(DataType.FLOAT32, (2,))
    content = np.zeros(8, np.uint8)
    encode(bits.view(np.float32), desc, content)
    assert decode(desc, content).view(np.uint32).tolist() == bits.tolist()


@pytest.mark.parametrize("in_place", [None, {"OutputTensor": "InputTensor"}])
@pytest.mark.parametrize("layout", ["implicit", "padded", "transposed"])
@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.UINT8, DataType.INT4])
def test_poison_changes_the_fill_value_of_an_image(
    in_place: Any, layout: str, data_type: DataType
) -> None:
    desc = TensorDesc(data_type, (3, 5), LAYOUTS[layout]((3, 5)))
    actual = placement_of(plan(tile(in_place, InputTensor=desc, OutputTensor=desc)))
    data = {"InputTensor": np.arange(15).reshape(3, 5).astype(data_type.dtype) % 8}
    image = actual.image(data, POISONS[0])
    actual.poison(image, POISONS[1])
    assert image.tobytes() == actual.image(data, POISONS[1]).tobytes()


@pytest.mark.parametrize("row_stride", [9, 3])
def test_decoding_beyond_the_buffer_is_an_error(row_stride: int) -> None:
    last = row_stride + 1
    desc = TensorDesc(DataType.FLOAT32, (2, 2), (row_stride, 1))
    with pytest.raises(IndexError, match=f"element {last} of a buffer of 4"):
        decode(desc, np.zeros(16, np.uint8))
