"""An operator's desc: the tensors and attributes that describe one use of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.catalogue.model import Entry, Field, FieldKind
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.tensors import layout
from dmlconf.tensors.datatypes import DataType

__all__ = ["OWNED", "Desc", "TensorDesc", "tensors_of"]

Desc = Mapping[str, Any]
"""A desc's values by field: `TensorDesc`, a tuple of them, None if absent, or an attribute.

Enum constants are names without their prefix; a scale and bias, a 2-D size and a nested operator
are mappings.
"""


OWNED: Final = "OWNED_BY_DML"
"""The flag of tensors whose data DirectML owns: DML_TENSOR_FLAG_OWNED_BY_DML."""


@dataclass(frozen=True, slots=True)
class TensorDesc:
    """A `DML_BUFFER_TENSOR_DESC`.

    Expressions may read its fields and properties, except `DeclaredTensorSizeInBytes`,
    `FittingStrides` and `Owned`.

    Attributes:
        Sizes: elements along each dimension.
        Strides: elements from one coordinate to the next along each dimension; None means packed.
        Flags: names of `DML_TENSOR_FLAGS` without the prefix.
        DeclaredTensorSizeInBytes: TotalTensorSizeInBytes if the case gives it, else None.
        GuaranteedBaseOffsetAlignment: in bytes; 0 for none.
    """

    DataType: DataType
    Sizes: tuple[int, ...]
    Strides: tuple[int, ...] | None = None
    Flags: tuple[str, ...] = ()
    DeclaredTensorSizeInBytes: int | None = None
    GuaranteedBaseOffsetAlignment: int = 0

    @property
    def DimensionCount(self) -> int:
        """Number of dimensions."""
        return len(self.Sizes)

    @property
    def ElementCount(self) -> int:
        """Number of elements."""
        return math.prod(self.Sizes)

    @property
    def Packed(self) -> bool:
        """Whether elements are contiguous, the last dimension fastest, with or without strides."""
        return self.Strides is None or layout.is_packed(self.Sizes, self.Strides)

    @property
    def FittingStrides(self) -> tuple[int, ...] | None:
        """The strides; None if there are none, or more or fewer than sizes."""
        fitting = self.Strides is not None and len(self.Strides) == len(self.Sizes)
        return self.Strides if fitting else None

    @property
    def Owned(self) -> bool:
        """Whether DirectML copies the data when it initialises an operator, and keeps it."""
        return OWNED in self.Flags

    @property
    def Broadcast(self) -> bool:
        """Whether a stride of 0 repeats elements along a dimension."""
        return self.Strides is not None and any(
            stride == 0 and size > 1 for size, stride in zip(self.Sizes, self.Strides, strict=False)
        )

    @property
    def MinimumTensorSizeInBytes(self) -> int:
        """Bytes up to the end of the last element, rounded up to a multiple of 4; 0 if empty."""
        if 0 in self.Sizes:
            return 0
        return layout.minimum_buffer_bytes(self.DataType, self.Sizes, self.FittingStrides)

    @property
    def TotalTensorSizeInBytes(self) -> int:
        """Bytes that the desc claims: those that the case declares, else the minimum."""
        declared = self.DeclaredTensorSizeInBytes
        return self.MinimumTensorSizeInBytes if declared is None else declared

    @property
    def OverlappingStrides(self) -> bool:
        """Whether two elements have the same offset; ValueError if the strides do not fit."""
        return self.Strides is not None and layout.overlaps(self.Sizes, self.Strides)


def tensors_of(
    entry: Entry, desc: Desc, *kinds: FieldKind
) -> Iterator[tuple[str, Field, TensorDesc]]:
    """Yield the name, the field and the desc of each present tensor, in struct order.

    A tensor in an array has a name such as `InputTensors[0]`. Without `kinds`, inputs and outputs
    are yielded.
    """
    for field in entry.of_kind(*(kinds or (FieldKind.INPUT, FieldKind.OUTPUT))):
        value = desc.get(field.name)
        if isinstance(value, TensorDesc):
            yield field.name, field, value
        elif value is not None:
            for index, tensor in enumerate(value):
                yield str(TensorRef(field.name, index)), field, tensor
