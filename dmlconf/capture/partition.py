"""Read the graphs that ONNX Runtime gives to DirectML from its files `Partition_N.bin`.

ONNX Runtime writes these FlatBuffers with the session option `ep.dml.enable_graph_serialization`.
The type of an attribute is taken from its field in the catalogue, since ONNX Runtime's versions
number types differently.

Source: the generated headers DmlGraphDesc and OperatorFieldTypes of ONNX Runtime.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.directml.api.decoding import shortest
from dmlconf.capture.captured import Captured, captured_from
from dmlconf.capture.graph_decoding import DecodedGraph, Names
from dmlconf.capture.journal_lines import graph_line
from dmlconf.cases.building.attributes import set_counts
from dmlconf.cases.errors import CaseError
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator
from dmlconf.documents.files import UnreadableFileError, read_bytes
from dmlconf.extras import install_command
from dmlconf.graphs.model import Graph, InputEdge, IntermediateEdge, Node, OutputEdge
from dmlconf.limits import LARGEST_PARTITION, MOST_NODES
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.scalar import scalar_value

__all__ = ["PartitionError", "captured_partitions"]

_MOST_PARTS: Final = 1 << 16
"""The most items of a list in a file."""

_MOST_READS: Final = 8
"""The texts and lists of a file may together have this many times its size."""

_LONGEST_NAME: Final = 80
"""The most characters of an operator's name, and of other names in messages."""

_OPERATOR: Final = 1
_CONSTANT: Final = 2


class PartitionError(ValueError):
    """A partition that cannot be read."""


class _DamageError(ValueError):
    """Bytes that cannot belong to a partition; the message calls the file `it`."""


def captured_partitions(paths: list[Path]) -> Captured:
    """Return the graphs of partitions, as if an application had compiled them.

    Raises:
        PartitionError: a file cannot be read, is no partition or has more than `MOST_NODES` nodes;
            a node names too few or too many tensors; the catalogue lacks an operator, a field or an
            enum value; or `flatbuffers` is missing.
    """
    lines = []
    for number, path in enumerate(paths, 1):
        try:
            content = read_bytes(path, LARGEST_PARTITION)
            decoded = _Partition(content).graph()
        except (UnreadableFileError, OSError) as error:
            raise PartitionError(f"{path} {error}") from error
        except PartitionError as error:
            raise PartitionError(f"{path}: {error}") from error
        except (_DamageError, CaseError) as error:
            raise PartitionError(_refusal(path, str(error))) from error
        except _DAMAGES as error:
            reason = f"its parts do not fit together ({type(error).__name__}: {error})"
            raise PartitionError(_refusal(path, reason)) from error
        _, line = graph_line(decoded, 0)
        lines += [
            {"event": "compile", "number": number, **line},
            {"event": "compiled", "number": number, "hresult": "S_OK"},
        ]
    return captured_from(lines)


_DAMAGES: Final = (LookupError, OverflowError, RecursionError, TypeError, ValueError)
"""Exceptions that building a graph from damaged bytes may raise."""


def _refusal(path: Path, reason: str) -> str:
    return (
        f"{path} is not a partition of ONNX Runtime, or damaged: {reason}. Expected is a file "
        "Partition_N.bin, which ONNX Runtime writes with ep.dml.enable_graph_serialization"
    )


def _unpacked(form: str, content: bytes, position: int) -> tuple[Any, ...]:
    end = position + struct.calcsize(form)
    if position < 0 or end > len(content):
        raise _DamageError(f"it refers to byte {end:,}, but has {len(content):,}")
    return struct.unpack_from(form, content, position)


class _Content:
    """The bytes of a file, and how many bytes of texts and lists may still be read.

    Parts of a FlatBuffer may share bytes, so that a small file could stand for a huge one.
    """

    def __init__(self, content: bytes) -> None:
        self.bytes = content
        self._left = _MOST_READS * len(content)

    def count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _DamageError(f"its parts have more than {_MOST_READS} times its size together")


class _Table:
    """A table of a FlatBuffer; each position is checked when it is read.

    A field's slot is its number in the generated header: 4, 6, 8 and so on.
    """

    def __init__(self, content: _Content, position: int) -> None:
        try:
            from flatbuffers.table import Table
        except ImportError as error:
            message = f"flatbuffers is missing ({error}): {install_command('capture')}"
            raise PartitionError(message) from error
        _unpacked("<i", content.bytes, position)
        self._table = Table(content.bytes, position)
        self._content = content

    def _position(self, slot: int) -> int | None:
        try:
            offset = int(self._table.Offset(slot))
        except (TypeError, struct.error) as error:  # The list lies outside the file.
            message = f"its table at byte {self._table.Pos:,} has no list of fields"
            raise _DamageError(message) from error
        return self._table.Pos + offset if offset else None

    def number(self, slot: int, form: str) -> int:
        position = self._position(slot)
        return 0 if position is None else int(_unpacked(form, self._content.bytes, position)[0])

    def text(self, slot: int) -> str:
        position = self._position(slot)
        return "" if position is None else self._string(position)

    def target(self, slot: int) -> int | None:
        position = self._position(slot)
        return None if position is None else self._referred(position)

    def table(self, slot: int) -> _Table | None:
        position = self.target(slot)
        return None if position is None else _Table(self._content, position)

    def tables(self, slot: int) -> list[_Table]:
        return [
            _Table(self._content, self._referred(position)) for position in self._items(slot, 4)
        ]

    def texts(self, slot: int) -> list[str]:
        return [self._string(position) for position in self._items(slot, 4)]

    def numbers(self, slot: int, form: str) -> tuple[Any, ...] | None:
        if self._position(slot) is None:
            return None
        size = struct.calcsize(form)
        return tuple(
            _unpacked(form, self._content.bytes, position)[0]
            for position in self._items(slot, size)
        )

    def _referred(self, position: int) -> int:
        return position + int(_unpacked("<I", self._content.bytes, position)[0])

    def _string(self, position: int) -> str:
        start = self._referred(position)
        (length,) = _unpacked("<I", self._content.bytes, start)
        self._content.count(length)
        text = self._content.bytes[start + 4 : start + 4 + length]
        if len(text) != length:
            raise _DamageError(
                f"it has a text of {length:,} bytes, of which it ends after {len(text):,}"
            )
        return text.decode("utf-8", "replace")

    def _items(self, slot: int, size: int) -> Iterator[int]:
        position = self._position(slot)
        if position is None:
            return
        start = self._referred(position)
        (count,) = _unpacked("<I", self._content.bytes, start)
        if count > _MOST_PARTS:
            raise _DamageError(
                f"it has a list of {count:,} parts; at most {_MOST_PARTS:,} are read"
            )
        self._content.count(count * size)
        yield from range(start + 4, start + 4 + count * size, size)


class _Partition:
    """The content of one file."""

    def __init__(self, content: bytes) -> None:
        self._content = _Content(content)
        if not content:
            raise _DamageError("it is empty")
        (root,) = _unpacked("<I", content, 0)
        self._root = _Table(self._content, root)

    def graph(self) -> DecodedGraph:
        """Return the graph; constants become inputs, since their data is in another file."""
        names = Names()
        nodes: list[Node] = []
        sources: dict[str, tuple[str, str]] = {}  # Tensor -> its node and output.
        weights: dict[str, str] = {}  # A constant's tensor -> the constant.
        fed: list[tuple[str, str, str]] = []  # A tensor's name, and a node and input that read it.
        tables = self._root.tables(4)
        if len(tables) > MOST_NODES:
            raise PartitionError(f"it is a graph of {len(tables):,} nodes; at most {MOST_NODES:,}")
        for table in tables:
            kind, desc = table.number(4, "<B"), table.table(6)
            if desc is None or kind not in (_OPERATOR, _CONSTANT):
                raise _DamageError(f"it has a node of the unknown kind {kind}")
            if kind == _CONSTANT:  # Nodes that read it get an input of the graph instead.
                weights.update(dict.fromkeys(table.texts(12), table.text(8)))
                continue
            operator = _operator(desc.text(4))
            node = self._node(names.unique(table.text(8), operator.name.lower()), operator, desc)
            nodes.append(node)
            for tensor, name in self._bound(table.texts(10), node, FieldKind.INPUT):
                fed.append((name, node.name, tensor))
            for tensor, name in self._bound(table.texts(12), node, FieldKind.OUTPUT):
                sources[name] = (node.name, tensor)
        if not nodes:
            raise _DamageError("its graph has no operators")
        inputs: dict[str, str] = {}
        input_edges, links = [], []
        for name, to, tensor in fed:
            if name in sources:
                links.append(IntermediateEdge(*sources[name], to, tensor))
            else:
                if name not in inputs:
                    inputs[name] = names.unique(weights.get(name, name), "input")
                input_edges.append(InputEdge(inputs[name], to, tensor))
        by_name = {node.name: node for node in nodes}
        given = self._root.texts(8)
        for name in given:
            if name not in sources:
                raise _DamageError(f"no node computes its output {_quoted(name)}")
        outputs = [OutputEdge(*sources[name], names.unique(name, "output")) for name in given]
        tensors: dict[str, TensorDesc] = {}
        for edge in input_edges:
            tensors.setdefault(edge.graph_input, by_name[edge.node].inputs[edge.tensor])
        graph = Graph(
            inputs=tensors,
            outputs={out.graph_output: by_name[out.node].outputs[out.tensor] for out in outputs},
            nodes=tuple(nodes),
            input_edges=tuple(input_edges),
            intermediate_edges=tuple(links),
            output_edges=tuple(outputs),
        )
        return DecodedGraph(graph, names.own, tuple(range(len(graph.inputs))), 0)

    def _bound(self, names: list[str], node: Node, kind: FieldKind) -> Iterator[tuple[str, str]]:
        """Yield a node's tensors of a kind with their names in the file."""
        present = [name for name in names if name]
        tensors = [name for name, _, _ in tensors_of(node.operator, node.desc, kind)]
        if len(present) != len(tensors):
            count = f"{len(present)} {kind} names for {len(tensors)} tensors"
            raise PartitionError(f"the node {node.name} has {count}")
        yield from zip(tensors, present, strict=True)

    def _node(self, name: str, operator: Operator, table: _Table) -> Node:
        attributes = {each.text(4): each for each in table.tables(10)}
        sides = {
            FieldKind.INPUT: [_tensor(each) for each in table.tables(6)],
            FieldKind.OUTPUT: [_tensor(each) for each in table.tables(8)],
        }
        desc: dict[str, Any] = {}
        for field in operator.fields:
            if not field.is_tensor:
                desc[field.name] = self._attribute(field, attributes.pop(field.name, None), desc)
                continue
            side = sides[field.kind]
            if field.is_array:
                desc[field.name] = tuple(filter(None, side))
                side.clear()
            else:
                desc[field.name] = side.pop(0) if side else None
            if not field.optional and not desc[field.name]:
                raise _DamageError(f"its node {_quoted(name)} has no {field.name}")
        attributes.pop("", None)  # An absent optional tensor.
        if attributes:
            unknown = ", ".join(map(_quoted, attributes))
            raise PartitionError(f"{operator.name} has no field {unknown}")
        set_counts(operator, desc)
        return Node(name, operator.name, desc)

    def _attribute(self, field: Field, table: _Table | None, desc: Mapping[str, Any]) -> Any:
        position = None if table is None else table.target(8)
        if table is None or position is None or not table.number(6, "<B"):
            return None
        kind = field.attribute_kind
        value = _Table(self._content, position)
        if field.is_array and kind is not AttributeKind.OPERATOR:
            form = {AttributeKind.INT: "<i", AttributeKind.FLOAT: "<f"}.get(kind, "<I")
            items = value.numbers(4, form) or ()
            return tuple(map(shortest, items)) if kind is AttributeKind.FLOAT else items
        if kind is AttributeKind.OPERATOR:
            several = value.tables(4) if field.is_array else [value]
            nested = tuple(self._activation(each) for each in several)
            return nested if field.is_array else nested[0]
        if kind is AttributeKind.SCALAR_UNION:
            inner = value.target(6)  # Bytes beyond the end of the file count as 0.
            stored = self._content.bytes[inner : inner + 8] if inner is not None else b""
            return scalar_value(stored.ljust(8, b"\0"), _data_type(desc[field.type_field or ""]))
        return self._plain(field, position)

    def _plain(self, field: Field, position: int) -> Any:
        match field.attribute_kind:
            case AttributeKind.FLOAT:
                return shortest(_unpacked("<f", self._content.bytes, position)[0])
            case AttributeKind.BOOL:
                return bool(_unpacked("<B", self._content.bytes, position)[0])
            case AttributeKind.INT:
                return _unpacked("<i", self._content.bytes, position)[0]
            case AttributeKind.SIZE_2D:
                return dict(
                    zip(
                        ("Width", "Height"),
                        _unpacked("<II", self._content.bytes, position),
                        strict=True,
                    )
                )
            case AttributeKind.SCALE_BIAS:
                scale, bias = _unpacked("<ff", self._content.bytes, position)
                return {"Scale": shortest(scale), "Bias": shortest(bias)}
        (number,) = _unpacked("<I", self._content.bytes, position)
        if field.attribute_kind is not AttributeKind.ENUM:
            return number
        known = {
            value: name for name, value in catalogue.enumeration(field.base_type).values.items()
        }
        if number not in known:
            raise PartitionError(f"{field.base_type} has no constant {number}")
        return known[number]

    def _activation(self, table: _Table) -> Mapping[str, Any]:
        operator = _operator(table.text(4))
        attributes = {each.text(4): each for each in table.tables(6)}
        desc: dict[str, Any] = {}
        for field in operator.fields:
            own = None if field.is_tensor else attributes.get(field.name)
            desc[field.name] = None if own is None else self._attribute(field, own, desc)
        return {"operator": operator.name, **desc}


def _quoted(name: str) -> str:
    return repr(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}...")


def _operator(name: str) -> Operator:
    if len(name) > _LONGEST_NAME:
        raise _DamageError(f"it has a node of the operator {_quoted(name)}")
    try:
        return catalogue.operator(name.removeprefix("DML_OPERATOR_"))
    except catalogue.UnknownOperatorError as error:
        raise PartitionError(str(error)) from error


def _data_type(name: str) -> DataType:
    try:
        return DataType(name)
    except ValueError as error:
        raise _DamageError(f"it has a tensor of the data type {_quoted(str(name))}") from error


def _tensor(table: _Table) -> TensorDesc | None:
    """Return a tensor; None for an absent one, which has no data type."""
    name = table.text(4)
    if not name:
        return None
    data_type = _data_type(name.removeprefix("DML_TENSOR_DATA_TYPE_"))
    sizes, strides = table.numbers(6, "<I") or (), table.numbers(8, "<I")
    tensor = TensorDesc(data_type, sizes, strides or None)
    total = table.number(10, "<Q")
    if total in (0, tensor.TotalTensorSizeInBytes):
        return tensor
    return TensorDesc(data_type, sizes, strides or None, (), total)
