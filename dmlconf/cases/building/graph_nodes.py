"""Read the nodes of a graph's entry: their descs, and the sources of their inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.cases.building.attributes import array_length, read_attribute, require_scalars
from dmlconf.cases.building.files import CaseFiles
from dmlconf.cases.building.formulas import Fixed, evaluated
from dmlconf.cases.building.tensor_entry import read_tensor, require_list
from dmlconf.cases.errors import CaseError, CaseErrors
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.model import Field, FieldKind, Operator
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.documents.problems import name_hint
from dmlconf.expressions import Namespace
from dmlconf.graphs.model import CONSTANT_TENSOR, Node, Slot
from dmlconf.limits import MOST_NODES

__all__ = ["NodeEntry", "NodeReader", "Source", "UnreadSourceError", "node_entries"]

_MOST_COPIES: Final = 1024
_MOST_NAMED: Final = 8
"""The most names in a message about a cycle, which begins and ends with the same node."""

_ABSENT: Final = Fixed(None)

Where = tuple[str | int, ...]

Source = str | Slot
"""What feeds a tensor: a graph input by name, or the output tensor of a node or a constant."""

_REFERENCE: Final = re.compile(r"(?P<node>[\w-]+(?:\[\d+\])?)(?:\.(?P<tensor>\w+(?:\[\d+\])?))?\Z")


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """A node in a case file, or one copy of a node with `repeat`.

    Attributes:
        key: the node's key in the file: `conv` for the copy `conv[1]`.
        desc: the fields' values by name, as `prepared` returns them.
        names: the named values that the node's expressions may use.
        previous: the name of the previous copy, `conv[0]` for `conv[1]`; None if there is none.
    """

    name: str
    key: str
    operator: Operator
    desc: Mapping[str, Any]
    names: Namespace
    previous: str | None = None


def node_entries(written: Mapping[str, Any], names: Namespace) -> tuple[NodeEntry, ...]:
    """Return the nodes of a graph's entry, in order.

    Args:
        written: the entry of each node by key, with its parts as `prepared` returns them.

    Raises:
        CaseError: an operator, a field, an expression or the number of nodes or copies is wrong.
    """
    entries: list[NodeEntry] = []
    errors = CaseErrors()
    for key, parts in written.items():
        with errors.collected():
            entries += _copies(key, parts, names)
        if len(entries) > MOST_NODES:
            raise CaseError(("nodes",), f"more than {MOST_NODES:,} nodes")
    errors.raise_any()
    return tuple(entries)


def _copies(key: str, parts: Mapping[str, Any], names: Namespace) -> list[NodeEntry]:
    where = ("nodes", key)
    operator = _operator(evaluated(parts["operator"], names), (*where, "operator"))
    _known_fields(operator, parts["desc"], names, where)
    if "repeat" not in parts:
        return [NodeEntry(key, key, operator, parts["desc"], names)]
    count = evaluated(parts["repeat"], names)
    if not isinstance(count, int) or not 1 <= count <= _MOST_COPIES:
        message = f"{count!r} is not a number from 1 to {_MOST_COPIES}"
        raise CaseError((*where, "repeat"), message)
    return [
        NodeEntry(
            f"{key}[{index}]",
            key,
            operator,
            parts["desc"],
            {**names, "Index": index},
            previous=f"{key}[{index - 1}]" if index else None,
        )
        for index in range(count)
    ]


def _operator(name: Any, where: Where) -> Operator:
    try:
        entry = catalogue.entry_of(str(name))
    except catalogue.UnknownOperatorError as error:
        raise CaseError(where, error.message, error.hint) from error
    if not isinstance(entry, Operator):
        raise CaseError(where, "a graph cannot be a node of a graph", "name an operator")
    return entry


def _known_fields(
    operator: Operator, desc: Mapping[str, Any], names: Namespace, where: Where
) -> None:
    """Raise `CaseError` for fields that the operator lacks, unless their value is null."""
    known = [field.name for field in operator.fields]
    errors = CaseErrors()
    for name, node in desc.items():
        if name not in known and evaluated(node, names) is not None:
            hint = name_hint(name, known, f"known here: {', '.join(known)}", mark="`")
            message = f"unknown field `{name}` in {operator.name}"
            errors.add(CaseError((*where, "desc", name), message, hint))
    errors.raise_any()


class NodeReader:
    """Reads nodes, each after the nodes whose descs it needs.

    Attributes:
        edges: the sources of each input tensor read so far.
    """

    def __init__(
        self,
        entries: Sequence[NodeEntry],
        inputs: Mapping[str, TensorDesc],
        constants: Mapping[str, TensorDesc],
        files: CaseFiles,
        *,
        rejected: bool,
    ) -> None:
        """`rejected`: whether the case expects a rejection, so that sources need not exist."""
        self._entries = {entry.name: entry for entry in entries}
        self._last = {entry.key: entry.name for entry in entries}
        self._inputs, self._constants, self._files = inputs, constants, files
        self._rejected = rejected
        self._reading: dict[str, None] = {}
        self._failed: dict[str, CaseError] = {}
        self.nodes: dict[str, Node] = {}
        self.edges: dict[Slot, list[Source]] = {}

    def read_all(self) -> None:
        """Read all nodes.

        Raises:
            CaseError: the errors of all nodes, without those that follow from other errors.
        """
        errors = CaseErrors()
        for name in self._entries:
            if name not in self._failed:
                self._read_with_feeders(name, errors)
        errors.raise_causes(UnreadSourceError)

    def _read_with_feeders(self, name: str, errors: CaseErrors) -> None:
        waiting = [name]
        while waiting:
            name = waiting[-1]
            if name in self.nodes or name in self._failed:
                self._reading.pop(name, None)
                waiting.pop()
                continue
            self._reading[name] = None
            try:
                self.nodes[name] = self._read(self._entries[name])
            except _NotYetReadError:
                waiting += self._unread_feeders(self._entries[name])
            except CaseError as error:
                self._failed[name] = error
                errors.add(error)

    def _unread_feeders(self, entry: NodeEntry) -> Iterator[str]:
        """Yield the nodes that must be read before a node, except those being read."""
        for field in entry.operator.of_kind(FieldKind.INPUT):
            try:
                value = evaluated(entry.desc.get(field.name, _ABSENT), entry.names)
            except CaseError:
                continue  # Reading the node will report it.
            for item in value if isinstance(value, list | tuple) else (value,):
                written = {"from": item} if isinstance(item, str) else item
                if not isinstance(written, Mapping):
                    continue
                try:
                    sources = self._sources(entry, written, ())
                except CaseError:
                    continue  # Reading the node will report it.
                for source in sources[:1]:
                    if self._is_unread(source) and source[0] not in self._reading:
                        yield source[0]

    def _is_unread(self, source: Source) -> bool:
        if isinstance(source, str):
            return False  # A graph input.
        name, _ = source
        return name in self._entries and name not in self.nodes and name not in self._failed

    def source(self, text: Any, where: Where) -> Source:
        """Return the source that a text in a case file names.

        `conv` names the first output of the node `conv` or, if that is repeated, of its last copy.

        Raises:
            CaseError: the text is malformed; or nothing has that name, and the case expects no
                rejection.
        """
        match = _REFERENCE.match(text) if isinstance(text, str) else None
        if match is None:
            hint = "name a graph input, a constant, NODE, or NODE.OutputTensor"
            raise CaseError(where, f"{text!r} does not name what a tensor comes from", hint)
        name, tensor = match["node"], match["tensor"]
        if tensor is None and name in self._inputs:
            return str(name)
        if tensor is None and name in self._constants:
            return name, CONSTANT_TENSOR
        node = self._last.get(name, name)
        if node in self._entries:
            return node, tensor or _first_output(self._entries[node])
        if self._rejected:
            return (name, tensor) if tensor else name
        if name in self._inputs or name in self._constants:
            kind = "a graph input" if name in self._inputs else "a constant"
            message = f"{name} is {kind}, which has no output {tensor}"
            raise CaseError(where, message, f"write `{name}` alone")
        known = [*self._inputs, *self._constants, *self._last]
        hint = name_hint(name, known, f"known here: {', '.join(known)}")
        raise CaseError(where, f"there is no node, graph input or constant {name}", hint)

    def tensor(self, source: Source, where: Where) -> TensorDesc:
        """Return the desc of a source's tensor.

        Raises:
            CaseError: there is no such tensor, its node cannot be read, or the nodes form a cycle.
            _NotYetReadError: its node has not been read; never raised after `read_all`.
        """
        if isinstance(source, str):
            if source not in self._inputs:
                raise CaseError(where, f"there is no graph input {source}")
            return self._inputs[source]
        name, tensor = source
        if name in self._constants:
            return self._constants[name]
        outputs = self._node(name, where).outputs
        if tensor not in outputs:
            hint = f"its outputs: {', '.join(outputs)}" if outputs else None
            raise CaseError(where, f"the node {name} has no output {tensor}", hint)
        return outputs[tensor]

    def _node(self, name: str, where: Where = ()) -> Node:
        if name in self.nodes:
            return self.nodes[name]
        if name in self._failed:
            raise UnreadSourceError(where, f"the node {name} cannot be read")
        if name not in self._entries:
            raise CaseError(where, f"there is no node {name}")
        if name in self._reading:
            reading = list(self._reading)
            cycle = [*reading[reading.index(name) :], name]
            if len(cycle) > _MOST_NAMED:
                more = len(cycle) - _MOST_NAMED
                cycle[_MOST_NAMED - 1 : -1] = [f"({more:,} more)"]
            hint = "a node cannot come before those that feed it"
            raise CaseError(where, f"the nodes form a cycle: {' -> '.join(cycle)}", hint)
        raise _NotYetReadError

    def _read(self, entry: NodeEntry) -> Node:
        desc: dict[str, Any] = {}
        errors = CaseErrors()
        kinds = FieldKind.INPUT, FieldKind.ATTRIBUTE, FieldKind.OUTPUT
        for kind in kinds:  # Inputs first: an output without Sizes has those of the first input.
            for field in entry.operator.of_kind(kind):
                try:
                    desc[field.name] = self._field(entry, field, desc)
                except CaseError as error:
                    errors.add(error)
            errors.raise_causes(UnreadSourceError)
        where = ("nodes", entry.key, "desc")
        for count, arrays in entry.operator.count_fields.items():
            desc[count] = array_length(count, desc, arrays, where)
        ordered = {field.name: desc[field.name] for field in entry.operator.fields}
        require_scalars(entry.operator, ordered, where)
        return Node(entry.name, entry.operator.name, ordered)

    def _field(self, entry: NodeEntry, field: Field, desc: Mapping[str, Any]) -> Any:
        where: Where = ("nodes", entry.key, "desc", field.name)
        node = entry.desc.get(field.name)
        value = None if node is None else evaluated(node, entry.names)
        if value is None:
            return None
        if not field.is_tensor:
            return read_attribute(field, value, where)
        read = self._input if field.kind is FieldKind.INPUT else self._output
        if not field.is_array:
            return read(entry, field.name, value, where, desc)
        require_list(value, where)
        return tuple(
            read(entry, str(TensorRef(field.name, index)), item, (*where, index), desc)
            for index, item in enumerate(value)
        )

    def _input(
        self, entry: NodeEntry, name: str, value: Any, where: Where, desc: Mapping[str, Any]
    ) -> TensorDesc:
        written = {"from": value} if isinstance(value, str) else value
        if not isinstance(written, Mapping):
            raise CaseError(where, f"must say where the data comes from, not {value!r}")
        sources = self._sources(entry, written, where)
        self.edges[entry.name, name] = sources
        whole = {"Sizes", "DataType"} <= written.keys()
        source = None
        if sources and not (self._rejected and whole):
            source = self.tensor(sources[0], where)
        if source is None and not whole:
            hint = "give it `from`: a graph input, a constant or a node"
            raise CaseError(where, f"nothing says what feeds {name}", hint)
        return self._view(written, name, source, sources, where)

    def _sources(self, entry: NodeEntry, written: Mapping[str, Any], where: Where) -> list[Source]:
        if "chain" in written:
            if entry.previous is not None:
                return [self.source(entry.previous, where)]
            return [self.source(written["chain"], where)]
        texts = written.get("from", [])
        texts = [texts] if isinstance(texts, str) else texts
        require_list(texts, where)
        return [self.source(text, where) for text in texts]

    def _view(
        self,
        written: Mapping[str, Any],
        name: str,
        source: TensorDesc | None,
        sources: Sequence[Source],
        where: Where,
    ) -> TensorDesc:
        """Return an input's desc: what its entry states, completed from its source."""
        own = {key: value for key, value in written.items() if key not in ("from", "chain")}
        if source is None:
            return read_tensor(own, name, {}, self._files, where)
        own.setdefault("DataType", str(source.DataType))
        if not own.keys() & {"Sizes", "Strides", "layout"}:
            own["Strides"] = None if source.Strides is None else list(source.Strides)
            if source.DeclaredTensorSizeInBytes is not None:
                own.setdefault("TotalTensorSizeInBytes", source.DeclaredTensorSizeInBytes)
        own.setdefault("Sizes", list(source.Sizes))
        if sources and isinstance(sources[0], str):
            own.setdefault("Flags", list(source.Flags))
        return read_tensor(own, name, {}, self._files, where)

    def _output(
        self, entry: NodeEntry, name: str, value: Any, where: Where, desc: Mapping[str, Any]
    ) -> TensorDesc:
        if not isinstance(value, Mapping):
            raise CaseError(where, f"must be a tensor, not {value!r}", "{} is like the first input")
        own = dict(value)
        missing = [key for key in ("Sizes", "DataType") if key not in own]
        like = _first_input(entry.operator, desc) if missing else None
        if missing and like is None:
            message = f"{name} lacks {' and '.join(missing)}, and no input supplies it"
            raise CaseError(where, message)
        if like is not None:
            own.setdefault("Sizes", list(like.Sizes))
            own.setdefault("DataType", str(like.DataType))
        return read_tensor(own, name, {}, self._files, where)


class _NotYetReadError(Exception):
    """A node cannot be read before another node, which feeds it."""


class UnreadSourceError(CaseError):
    """A tensor comes from a node with errors, which are reported at that node's entry."""


def _first_output(entry: NodeEntry) -> str:
    field = next(entry.operator.of_kind(FieldKind.OUTPUT))
    return f"{field.name}[0]" if field.is_array else field.name


def _first_input(operator: Operator, desc: Mapping[str, Any]) -> TensorDesc | None:
    for field in operator.of_kind(FieldKind.INPUT):
        value = desc.get(field.name)
        first = value[0] if isinstance(value, tuple) and value else value
        if isinstance(first, TensorDesc):
            return first
    return None
