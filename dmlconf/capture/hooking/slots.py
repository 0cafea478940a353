"""The tensors of a compiled operator or graph in the order of their bindings, and what is bound."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dmlconf.backends.directml.api.dml import (
    DML_BINDING_DESC,
    DML_BINDING_TYPE,
    DML_BUFFER_ARRAY_BINDING,
    DML_BUFFER_BINDING,
)
from dmlconf.capture.graph_decoding import DecodedGraph, slot_names
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind, Operator

__all__ = ["Compiled", "Range", "Slot", "graph_slots", "operator_slots", "ranges"]

_MOST_BINDINGS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor of a compiled operator or graph, with its name in a case."""

    name: str
    tensor: TensorDesc

    @property
    def owned(self) -> bool:
        """Whether DirectML copies the data when it initialises (OWNED_BY_DML)."""
        return self.tensor.Owned


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled operator or graph, and the tensors that are bound to it.

    Attributes:
        number: the number of the operator or graph in the journal.
        flags: the DML_EXECUTION_FLAGS.
        inputs: the tensors in the order of bindings; None for a binding without a tensor.
        outputs: likewise.
    """

    number: int
    flags: int
    inputs: tuple[Slot | None, ...]
    outputs: tuple[Slot | None, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a buffer: the address of the ID3D12Resource, and an offset in bytes."""

    buffer: int
    offset: int


def operator_slots(number: int, flags: int, operator: Operator, desc: Desc) -> Compiled:
    """Return a compiled operator with its tensors."""
    kinds = FieldKind.INPUT, FieldKind.OUTPUT
    tensors = {name: tensor for name, _, tensor in tensors_of(operator, desc)}
    inputs, outputs = (
        tuple(
            None if name is None else Slot(name, tensors[name])
            for name in slot_names(operator, desc, kind)
        )
        for kind in kinds
    )
    return Compiled(number, flags, inputs, outputs)


def graph_slots(number: int, flags: int, decoded: DecodedGraph) -> Compiled:
    """Return a compiled graph with its inputs and outputs."""
    graph = decoded.graph
    by_number = dict(zip(decoded.inputs, graph.inputs.items(), strict=True))
    inputs = tuple(
        Slot(*by_number[index]) if index in by_number else None
        for index in range(max(decoded.inputs, default=-1) + 1)
    )
    outputs = tuple(Slot(name, tensor) for name, tensor in graph.outputs.items())
    return Compiled(number, flags, inputs, outputs)


def ranges(count: int, bindings: int | None) -> tuple[tuple[Range | None, ...], ...]:
    """Return the ranges of each binding of BindInputs or BindOutputs.

    A buffer array has one range per buffer. None stands for nothing bound. The table of an
    initialiser has a binding for each operator: an array of its inputs, or NONE. At most
    `_MOST_BINDINGS` bindings are read, and as many buffers of an array.

    Source: IDMLBindingTable::BindInputs and IDMLOperatorInitializer, Microsoft Learn.
    """
    size = ctypes.sizeof(DML_BINDING_DESC)
    addresses = range(bindings or 0, (bindings or 0) + size * min(count, _MOST_BINDINGS), size)
    descs = map(DML_BINDING_DESC.from_address, addresses if bindings else ())
    return tuple(tuple(_ranges(desc)) for desc in descs)


def _ranges(binding: DML_BINDING_DESC) -> Iterator[Range | None]:
    if binding.Type == DML_BINDING_TYPE.BUFFER and binding.Desc:
        yield _range(DML_BUFFER_BINDING.from_address(binding.Desc))
    elif binding.Type == DML_BINDING_TYPE.BUFFER_ARRAY and binding.Desc:
        array = DML_BUFFER_ARRAY_BINDING.from_address(binding.Desc)
        size = ctypes.sizeof(DML_BUFFER_BINDING)
        for item in range(min(array.BindingCount, _MOST_BINDINGS)):
            yield _range(DML_BUFFER_BINDING.from_address(array.Bindings + item * size))
    else:
        yield None


def _range(binding: DML_BUFFER_BINDING) -> Range | None:
    return Range(binding.Buffer, binding.Offset) if binding.Buffer else None
