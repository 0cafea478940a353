"""Prepare graphs of rewrites, here called patterns, which `graphs` inserts into random graphs.

Random nodes may read a pattern's outputs, and copies of graph inputs may feed it. The case keeps
the mutant of the rewrite, so that `dmlconf diagnose` can tell whether a device ran it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.loading.matrix import expand
from dmlconf.cases.loading.rewrites import rewritten
from dmlconf.cases.model import Case, CaseTemplate, PlannedCase
from dmlconf.cases.writing.desc_entry import attribute_entry, tensor_entry
from dmlconf.cases.writing.graph_entry import graph_parts
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.search import MOST_ELEMENTS
from dmlconf.graphs.model import CONSTANT_TENSOR
from dmlconf.resources import cases_directory

__all__ = ["Pattern", "pattern_of", "plantable", "rewrite_files"]

_MOST_NODES: Final = 12
"""The most nodes of a pattern, not counting those that copy."""
_PREFIX: Final = "p_"
"""The prefix of all names in a pattern; names of random nodes do not have it."""

_COPIED: Final = frozenset({"FLOAT32", "FLOAT16", "INT32", "UINT32"})
"""The data types of graph inputs that nodes may copy."""


@dataclass(frozen=True)
class Pattern:
    """The graph of a rewrite, as entries of a case file.

    Attributes:
        outputs: the descs of its outputs, each by its source, `NODE.TENSOR`.
        rewrite: the entry `rewrite` of a case, with the parts that the mutant adds or changes.
            Parts that the mutant lacks stay, but nothing reads them.
    """

    inputs: Mapping[str, Mapping[str, Any]]
    constants: Mapping[str, Mapping[str, Any]]
    nodes: Mapping[str, Mapping[str, Any]]
    outputs: Mapping[str, TensorDesc]
    rewrite: Mapping[str, Any]


def rewrite_files() -> list[Path]:
    """Return the suite's files of rewrites."""
    return sorted((cases_directory() / "graphs").glob("rewrites-*.yaml"))


def plantable(
    templates: Iterable[CaseTemplate], operators: Collection[str]
) -> tuple[CaseTemplate, ...]:
    """Return the templates of small cases of rewrites whose graphs have only these operators.

    The mutants may have others. Rewrites that change which tensors are outputs, and graphs with
    repeated nodes, are left out.
    """
    return tuple(
        template
        for template in templates
        if _may_be_planted(template.data) and _operators(template.data) <= set(operators)
    )


def _may_be_planted(entry: Mapping[str, Any]) -> bool:
    if "rewrite" not in entry:
        return False
    nodes = entry["nodes"]
    whole = len(nodes) <= _MOST_NODES and not any("repeat" in node for node in nodes.values())
    tensors = [*entry.get("inputs", {}).values(), *entry.get("constants", {}).values()]
    small = all(math.prod(tensor["Sizes"]) <= MOST_ELEMENTS for tensor in tensors)
    return whole and small and "outputs" not in entry["rewrite"]


def _operators(entry: Mapping[str, Any]) -> frozenset[str]:
    """Return the operators of a graph's nodes; for a parameter of a matrix, all its values."""
    names: set[str] = set()
    for node in entry["nodes"].values():
        name = node["operator"]
        names |= set(entry["matrix"][name[1:]]) if name.startswith("=") else {name}
    return frozenset(names)


def pattern_of(template: CaseTemplate, chance: Chance) -> Pattern:
    """Return the pattern of one case of a template, perhaps with nodes that copy its inputs."""
    return _with_copies(_pattern(chance.pick(list(expand(template)))), chance)


def _pattern(planned: PlannedCase) -> Pattern:
    case, mutant = valid_case(planned), rewritten(planned)
    right, wrong = _parts(case), _parts(mutant)
    entry = planned.template.data["rewrite"]
    rewrite = {name: entry[name] for name in ("name", "breaks") if name in entry}
    for part in ("inputs", "constants", "nodes"):
        changed = {
            name: each for name, each in wrong[part].items() if each != right[part].get(name)
        }
        if changed or part == "nodes":
            rewrite[part] = changed
    nodes = {_named(node.name): node for node in case.graph.operator_nodes}
    outputs = {}
    for source in right["outputs"].values():
        node, _, tensor = source.partition(".")
        tensor = tensor or CONSTANT_TENSOR
        outputs[f"{node}.{tensor}"] = nodes[node].outputs[tensor]
    return Pattern(right["inputs"], right["constants"], right["nodes"], outputs, rewrite)


def _named(name: str) -> str:
    return _PREFIX + name


def _parts(case: Case) -> dict[str, dict[str, Any]]:
    """Return the parts of the case's entry, with prefixed names and data as lists."""
    data = {**case.inputs(), **{each.name: each.data for each in case.graph.constants}}
    values = {name: array.ravel().tolist() for name, array in data.items()}
    parts = graph_parts(case.graph, values, tensor_entry, attribute_entry)
    # `graph_parts` renames a node that has the name of an output.
    own = zip(parts["nodes"], case.graph.operator_nodes, strict=True)
    names = {written: _named(node.name) for written, node in own}
    names |= {
        name: _named(name) for part in ("inputs", "constants") for name in parts.get(part, {})
    }
    return {
        "inputs": {names[name]: each for name, each in parts.get("inputs", {}).items()},
        "constants": {names[name]: each for name, each in parts.get("constants", {}).items()},
        "nodes": {names[name]: _fed_by(each, names) for name, each in parts["nodes"].items()},
        "outputs": {name: _renamed(each, names) for name, each in parts["outputs"].items()},
    }


def _renamed(source: str, names: Mapping[str, str]) -> str:
    node, dot, tensor = source.partition(".")
    return names.get(node, node) + dot + tensor


def _fed_by(entry: Any, names: Mapping[str, str]) -> Any:
    """Return an entry with other sources: `names` has the new names by the old ones."""
    if isinstance(entry, Mapping):
        return {
            key: _renamed(value, names)
            if key == "from" and isinstance(value, str)
            else _fed_by(value, names)
            for key, value in entry.items()
        }
    if isinstance(entry, list):
        return [_fed_by(each, names) for each in entry]
    return entry


def _with_copies(pattern: Pattern, chance: Chance) -> Pattern:
    """Return the pattern with some of its inputs copied by nodes of ELEMENT_WISE_IDENTITY."""
    read = set(_sources(pattern.nodes))
    copied = [
        name
        for name, entry in pattern.inputs.items()
        if name in read and _may_be_copied(entry) and chance.once_in(4)
    ]
    if not copied:
        return pattern
    names = {name: f"{name}_copy.OutputTensor" for name in copied}
    return Pattern(
        pattern.inputs,
        pattern.constants,
        {**_copies(pattern, copied), **_fed_by(pattern.nodes, names)},
        pattern.outputs,
        {**pattern.rewrite, "nodes": _fed_by(pattern.rewrite["nodes"], names)},
    )


def _sources(entry: Any) -> Iterator[str]:
    if isinstance(entry, Mapping):
        for key, value in entry.items():
            if key == "from" and isinstance(value, str):
                yield value
            else:
                yield from _sources(value)
    elif isinstance(entry, list):
        for each in entry:
            yield from _sources(each)


def _may_be_copied(entry: Mapping[str, Any]) -> bool:
    return entry["DataType"] in _COPIED and not {"Flags", "Strides"} & entry.keys()


def _copies(pattern: Pattern, names: Iterable[str]) -> dict[str, Any]:
    copies = {}
    for name in names:
        tensor = {key: pattern.inputs[name][key] for key in ("Sizes", "DataType")}
        desc = {"InputTensor": {"from": name, **tensor}, "OutputTensor": tensor}
        copies[f"{name}_copy"] = {"operator": "ELEMENT_WISE_IDENTITY", "desc": desc}
    return copies
