"""Generate random graphs, node after node.

As in NNSmith, a graph grows by one valid operator at a time. In most attempts, an earlier tensor,
the feeder, becomes one input, and the other fields are solved for it. Other inputs may be earlier
tensors that fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from dmlconf.cases.model import CaseTemplate, PlannedCase
from dmlconf.cases.writing.desc_entry import attribute_entry, tensor_entry
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.constraints import violations
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.data import data_of
from dmlconf.fuzzing.drafts import Drafts
from dmlconf.fuzzing.indices import constant_writes
from dmlconf.fuzzing.operators import planned
from dmlconf.fuzzing.planted_rewrites import Pattern, pattern_of
from dmlconf.fuzzing.search import valid_desc
from dmlconf.tensors.layout import LAYOUTS

__all__ = ["MOST_NODES", "graph_case", "planted_case"]

MOST_NODES: Final = 5
"""The most random nodes of a graph, unless the user says otherwise."""
_ATTEMPTS: Final = 6
_KIND: Final = "fuzz"


def graph_case(operators: Sequence[str], seed: int, number: int, nodes: int) -> PlannedCase:
    """Return the valid graph that these arguments determine, with at most `nodes` nodes."""
    chance = Chance(seed, GRAPHS, number, nodes, *operators)
    growth = _Growth(chance)
    for _ in range(chance.between(min(2, nodes), nodes)):
        growth.add_node(operators)
    return planned(catalogue.entry_of(GRAPHS), seed, number, growth.entry(str(number)), _KIND)


def planted_case(
    operators: Sequence[str],
    seed: int,
    number: int,
    nodes: int,
    rewrites: Sequence[CaseTemplate],
) -> PlannedCase:
    """Return a valid graph that contains the graph of one case of `rewrites`.

    It also has at most `nodes` random nodes.
    """
    chance = Chance(seed, GRAPHS, "rewrites", number, nodes, *operators)
    growth = _Growth(chance)
    growth.plant(pattern_of(chance.pick(rewrites), chance))
    for _ in range(chance.below(nodes + 1)):
        growth.add_node(operators)
    entry = growth.entry(str(number))
    return planned(catalogue.entry_of(GRAPHS), seed, number, entry, _KIND)


@dataclass(frozen=True)
class _Value:
    """A tensor that may feed nodes; `source` names a graph input, or is `NODE.TENSOR`."""

    source: str
    tensor: TensorDesc


@dataclass
class _Growth:
    """A graph that grows.

    Attributes:
        values: the tensors that may feed nodes.
        unused: sources of node outputs that feed nothing yet.
        parts: the other parts of the graph's entry, such as constants.
        exposed: sources that must be outputs of the graph.
    """

    chance: Chance
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: list[_Value] = field(default_factory=list)
    unused: dict[str, None] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    exposed: set[str] = field(default_factory=set)

    def plant(self, pattern: Pattern) -> None:
        """Begin with the graph of a rewrite; later nodes may read its outputs."""
        self.inputs.update({name: dict(entry) for name, entry in pattern.inputs.items()})
        self.nodes.update({name: dict(entry) for name, entry in pattern.nodes.items()})
        for source, tensor in pattern.outputs.items():
            self.values.append(_Value(source, tensor))
            self.unused[source] = None
            if self.chance.once_in(2):
                self.exposed.add(source)
        self.parts |= {"constants": dict(pattern.constants)} if pattern.constants else {}
        self.parts["rewrite"] = dict(pattern.rewrite)

    def add_node(self, operators: Sequence[str]) -> None:
        """Try to add a node of one of the operators, fed by an earlier tensor if possible."""
        for attempt in range(_ATTEMPTS):
            operator = catalogue.operator(self.chance.pick(operators))
            feeder = self._feeder() if attempt < _ATTEMPTS - 1 else None
            fields = _fed_fields(operator)
            if feeder is not None and not fields:
                continue
            name = self.chance.pick(fields) if feeder is not None else ""
            desc = self._desc(operator, name, feeder)
            sources = {name: feeder.source} if feeder else {}
            if desc is not None and self._add(operator, desc, sources):
                return

    def _feeder(self) -> _Value | None:
        """Return a tensor to feed the next node; None if there is none yet.

        In most calls, this is the latest node output that feeds nothing, if there is one.
        """
        if not self.values:
            return None
        unused = [value for value in self.values if value.source in self.unused]
        if unused and not self.chance.once_in(4):
            return unused[-1]
        return self.chance.pick(self.values)

    def _desc(self, operator: Operator, name: str, feeder: _Value | None) -> Desc | None:
        """Return a valid desc, whose input `name` fits the feeder if any; None if none is found."""

        def fits(desc: Desc) -> bool:
            return feeder is None or (
                isinstance(desc[name], TensorDesc) and _alike(desc[name], feeder.tensor)
            )

        def begin(desc: Desc, drafts: Drafts) -> Desc:
            if feeder is None:
                return desc
            tensor = feeder.tensor
            if desc[name] is None:
                desc = {**desc, name: tensor}
            return drafts.changed(
                desc,
                (((name, "DataType"), tensor.DataType), ((name, "Sizes"), tensor.Sizes)),
            )

        table = self.chance.pick(operator.support)
        if feeder is not None:
            row = table.tensors[name]
            in_ranks = row.has_rank(len(feeder.tensor.Sizes))
            if not in_ranks or feeder.tensor.DataType not in row.data_types:
                return None
        return valid_desc(operator, table, self.chance, fits, begin)

    def _add(self, operator: Operator, desc: Desc, sources: dict[str, str]) -> bool:
        """Add a node and graph inputs for its unfed tensors; return whether it was added.

        A feeder is refused if several of its elements may be written to one index: the result
        would be undefined.
        """
        node = f"n{len(self.nodes)}"
        data = data_of(operator, desc, self.chance)
        constant = constant_writes(operator, desc, data)
        if not constant.isdisjoint(sources):
            return False
        desc = self._laid_out(operator, desc, sources)
        entries: dict[str, Any] = {}
        for name, entry, tensor in tensors_of(operator, desc, FieldKind.INPUT):
            source = sources.get(name)
            if source is None and name not in constant:
                source = self._other_source(operator, entry.name, tensor)
            if source is None:
                source = f"x{len(self.inputs)}"
                self.inputs[source] = tensor_entry(tensor, data[name])
                if entry.bounds is None and not tensor.Flags:
                    self.values.append(_Value(source, tensor))
            self.unused.pop(source, None)
            entries[name] = {"from": source, **tensor_entry(tensor)}
        for name, _, tensor in tensors_of(operator, desc, FieldKind.OUTPUT):
            entries[name] = tensor_entry(tensor)
            self.values.append(_Value(f"{node}.{name}", tensor))
            self.unused[f"{node}.{name}"] = None
        self.nodes[node] = {"operator": operator.name, "desc": _entry(operator, desc, entries)}
        return True

    def _other_source(self, operator: Operator, name: str, tensor: TensorDesc) -> str | None:
        """Return the source of an earlier tensor that fits an input; None for a new graph input."""
        if operator.field(name).bounds is not None or tensor.Flags or self.chance.once_in(3):
            return None
        fitting = [value for value in self.values if _same_buffer(value.tensor, tensor)]
        return self.chance.pick(fitting).source if fitting else None

    def _laid_out(self, operator: Operator, desc: Desc, sources: dict[str, str]) -> Desc:
        """Return the desc with the feeder's layout.

        Other tensors may get random layouts, and other inputs the flag OWNED_BY_DML.
        """
        by_source = {value.source: value.tensor for value in self.values}
        for name, source in sources.items():
            tensor = by_source[source]
            desc = {**desc, name: replace(desc[name], Strides=tensor.Strides)}
        for entry in operator.of_kind(FieldKind.INPUT, FieldKind.OUTPUT):
            tensor = desc[entry.name]
            if entry.name in sources or not isinstance(tensor, TensorDesc):
                continue
            if self.chance.once_in(6):
                layout = self.chance.pick(("packed", "padded", "transposed"))
                desc = _if_valid(operator, desc, entry.name, Strides=LAYOUTS[layout](tensor.Sizes))
            if entry.kind is FieldKind.INPUT and self.chance.once_in(12):
                desc = _if_valid(operator, desc, entry.name, Flags=("OWNED_BY_DML",))
        return desc

    def entry(self, name: str) -> dict[str, Any]:
        """Return the graph's entry; its outputs are `unused` and `exposed`, and some others."""
        sources = [value.source for value in self.values if "." in value.source]
        outputs = [
            source
            for source in sources
            if source in self.unused or source in self.exposed or self.chance.once_in(5)
        ]
        return {
            "name": name,
            "inputs": self.inputs,
            "nodes": self.nodes,
            "outputs": {f"y{index}": source for index, source in enumerate(outputs)},
            **self.parts,
        }


def _alike(tensor: TensorDesc, other: TensorDesc) -> bool:
    return tensor.DataType is other.DataType and tensor.Sizes == other.Sizes


def _same_buffer(tensor: TensorDesc, other: TensorDesc) -> bool:
    return _alike(tensor, other) and tensor.Strides == other.Strides and not tensor.Flags


def _if_valid(operator: Operator, desc: Desc, name: str, **changes: Any) -> Desc:
    other = {**desc, name: replace(desc[name], **changes)}
    return desc if violations(operator, other, documented=True) else other


@cache
def _fed_fields(operator: Operator) -> tuple[str, ...]:
    """Return the inputs that may have a feeder: no arrays, and no indices or lengths."""
    return tuple(
        entry.name
        for entry in operator.of_kind(FieldKind.INPUT)
        if entry.bounds is None and not entry.is_array
    )


def _entry(operator: Operator, desc: Desc, tensors: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for part in operator.fields:
        value = desc[part.name]
        if part.name in operator.count_fields or value is None:
            continue
        if not part.is_tensor:
            entry[part.name] = attribute_entry(value)
        elif part.is_array:
            entry[part.name] = [
                tensors[str(TensorRef(part.name, index))] for index in range(len(value))
            ]
        else:
            entry[part.name] = tensors[part.name]
    return entry
