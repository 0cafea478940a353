"""Place a case's tensors in the device's memory, and fill that memory before each dispatch.

All tensors lie in one buffer, the arena, with a guard band before and after each. An output in
place lies where its input does.

Before the first dispatch of a plain run, every byte that is not an element of a bound input holds
0xCD, before the second 0xFF. Output elements that were not written keep these values, except in
place. An output that depends on bytes outside the inputs' elements usually differs between the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dmlconf.cases.plans import Binding, Plan
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.layout import packed_strides

__all__ = [
    "GUARD",
    "POISONS",
    "PlacedTensor",
    "Placement",
    "decode",
    "elements_of",
    "encode",
    "placement_of",
]

GUARD: Final = 256
"""Minimum bytes of a guard band, and the minimum alignment of tensors."""

POISONS: Final = (0xCD, 0xFF)
"""The fill values of the first and of the second dispatch; floats of bytes 0xFF are NaN."""


@dataclass(frozen=True, slots=True)
class PlacedTensor:
    """A tensor of a case, and where it lies in the arena.

    Attributes:
        offset: the offset of its first byte in the arena.
        in_place: for an output, the input whose buffer it shares, or None.
    """

    name: str
    desc: TensorDesc
    offset: int
    is_output: bool
    in_place: str | None = None

    @property
    def size(self) -> int:
        """Bytes that are bound."""
        return self.desc.TotalTensorSizeInBytes

    @property
    def end(self) -> int:
        """Offset of the end, rounded up to 4 bytes: shaders write no fewer bytes at once."""
        return self.offset + -(-self.size // 4) * 4

    @property
    def owned(self) -> bool:
        """Whether DirectML takes over the data at initialisation."""
        return self.desc.Owned


@dataclass(frozen=True, slots=True)
class Placement:
    """The offsets of all tensors of a case in the arena.

    Attributes:
        inputs: in the order of the bindings; None where nothing is bound.
        outputs: likewise.
        span: bytes of the arena, including guard bands.
    """

    inputs: tuple[PlacedTensor | None, ...]
    outputs: tuple[PlacedTensor | None, ...]
    span: int

    @property
    def alignment(self) -> int:
        """The required alignment of the arena in a larger buffer."""
        tensors = (tensor for tensor in (*self.inputs, *self.outputs) if tensor)
        return max([GUARD, *(tensor.desc.GuaranteedBaseOffsetAlignment for tensor in tensors)])

    def ordered(self) -> list[PlacedTensor]:
        """Return the tensors by offset; of two that share a buffer, only the output."""
        shared = {output.in_place for output in self.outputs if output}
        inputs = [tensor for tensor in self.inputs if tensor and tensor.name not in shared]
        outputs = [tensor for tensor in self.outputs if tensor]
        return sorted(inputs + outputs, key=lambda tensor: tensor.offset)

    def holds_elements(self) -> bool:
        """Return whether each tensor's elements lie between its `offset` and its `end`."""
        return all(
            _last_element(tensor.desc)
            < 8 * (tensor.end - tensor.offset) // tensor.desc.DataType.bits
            for tensor in (*self.inputs, *self.outputs)
            if tensor
        )

    def any_owned(self) -> bool:
        """Return whether DirectML takes over the data of any input."""
        return any(tensor.owned for tensor in self.inputs if tensor)

    def initial(self, data: Mapping[str, Array]) -> Array:
        """Return the arena's bytes for the initialisation, with the inputs of OWNED_BY_DML."""
        return self._image(data, POISONS[0], owned=True)

    def image(self, data: Mapping[str, Array], poison: int) -> Array:
        """Return the arena's bytes for a dispatch.

        All bytes are `poison` except the elements of inputs that DirectML has not taken over.
        """
        return self._image(data, poison, owned=False)

    def _image(self, data: Mapping[str, Array], poison: int, *, owned: bool) -> Array:
        image = np.full(self.span, poison, np.uint8)
        for tensor in self.inputs:
            if tensor and tensor.owned is owned:
                encode(data[tensor.name], tensor.desc, image[tensor.offset : tensor.end])
        return image

    def poison(self, image: Array, poison: int) -> None:
        """Change the fill value in an array that `image` returned; keep the inputs' elements."""
        inputs = {tensor.offset: tensor for tensor in self.inputs if tensor and not tensor.owned}
        end = 0
        for tensor in self.ordered():
            image[end : tensor.offset] = poison
            region = image[tensor.offset : tensor.end]
            source = inputs.get(tensor.offset)
            if source is None:
                region[...] = poison
            elif source.desc.Strides is None and source.desc.DataType.bits >= 8:
                region[math.prod(source.desc.Sizes) * source.desc.DataType.bits // 8 :] = poison
            else:
                elements = decode(source.desc, region)
                region[...] = poison
                encode(elements, source.desc, region)
            end = tensor.end
        image[end:] = poison


def placement_of(plan: Plan) -> Placement:
    """Place the tensors of an operator or a graph."""
    end = 0
    inputs_by_name: dict[str, PlacedTensor] = {}
    shared: dict[str, list[TensorDesc]] = {}
    for binding in plan.outputs:
        if binding is not None and binding.name in plan.in_place:
            shared.setdefault(plan.in_place[binding.name], []).append(binding.desc)

    def put(binding: Binding | None, *, is_output: bool) -> PlacedTensor | None:
        nonlocal end
        if binding is None:
            return None
        name, desc = binding.name, binding.desc
        source = plan.in_place.get(name) if is_output else None
        if source is not None:
            return PlacedTensor(name, desc, inputs_by_name[source].offset, True, source)
        alignment = max(GUARD, desc.GuaranteedBaseOffsetAlignment)
        offset = -(-(end + GUARD) // alignment) * alignment
        tensor = PlacedTensor(name, desc, offset, is_output)
        end = tensor.end
        if not is_output:
            inputs_by_name[name] = tensor
            # An output that shares this input's buffer may have larger strides.
            end = max([end, *(replace(tensor, desc=each).end for each in shared.get(name, ()))])
        return tensor

    inputs = tuple(put(binding, is_output=False) for binding in plan.inputs)
    outputs = tuple(put(binding, is_output=True) for binding in plan.outputs)
    span = -(-(end + GUARD) // GUARD) * GUARD
    return Placement(inputs, outputs, span)


def encode(values: Array, desc: TensorDesc, into: Array) -> None:
    """Write a tensor's elements to the bytes of its buffer, UINT8, and leave the holes as they are.

    `values` is shaped like Sizes. `IndexError` is raised if the buffer is too small.
    """
    if desc.DataType.bits < 8:
        elements = _nibbles(into)
        _view(desc, elements)[...] = values.view(np.uint8) & 0x0F
        into[:] = elements[0::2] | elements[1::2] << 4
        return
    _view(desc, _elements(desc, into))[...] = values


def decode(desc: TensorDesc, content: Array) -> Array:
    """Return a copy of a tensor's elements in its buffer's bytes, shaped like its Sizes.

    Raises:
        IndexError: the buffer is too small.
    """
    elements = elements_of(desc, content)
    return elements.copy() if elements.base is not None else elements


def elements_of(desc: TensorDesc, content: Array) -> Array:
    """Return a tensor's elements as a view of its buffer's bytes; of 4-bit types, as a copy.

    Raises:
        IndexError: the buffer is too small.
    """
    if desc.DataType.bits < 8:
        elements = _view(desc, _nibbles(content))
        if desc.DataType.is_signed:
            elements = ((elements ^ 8) - np.uint8(8)).view(np.int8)
        return elements
    return _view(desc, _elements(desc, content))


def _elements(desc: TensorDesc, content: Array) -> Array:
    dtype = desc.DataType.dtype
    return content[: len(content) // dtype.itemsize * dtype.itemsize].view(dtype)


def _nibbles(content: Array) -> Array:
    return np.stack([content & 0x0F, content >> 4], axis=-1).ravel()


def _strides(desc: TensorDesc) -> Sequence[int]:
    return packed_strides(desc.Sizes) if desc.Strides is None else desc.Strides


def _last_element(desc: TensorDesc) -> int:
    """Return the index of a tensor's last element in its buffer; -1 if it has no elements."""
    if 0 in desc.Sizes:
        return -1
    return sum((size - 1) * step for size, step in zip(desc.Sizes, _strides(desc), strict=True))


def _view(desc: TensorDesc, elements: Array) -> Array:
    """Return a view of the buffer's elements, shaped like Sizes."""
    if 0 in desc.Sizes:
        return elements[:0].reshape(desc.Sizes)
    last = _last_element(desc)
    if last >= len(elements):
        raise IndexError(f"element {last} of a buffer of {len(elements)}")
    in_bytes = [step * elements.itemsize for step in _strides(desc)]
    return np.lib.stride_tricks.as_strided(elements, desc.Sizes, in_bytes)
