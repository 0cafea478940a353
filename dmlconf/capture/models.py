"""Write cases of several captured models: each desc of an operator and each kind of block once.

Blocks that differ only in names, sizes, strides, numbers and data become one case, made from the
block with the fewest elements. Blocks of one node are left out: their operators have cases.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from dmlconf.capture.blocks import Block, blocks, with_references
from dmlconf.capture.captured import Captured, CapturedOperator
from dmlconf.capture.case_files import (
    FILE,
    Entry,
    File,
    Written,
    execution_tags,
    operator_entries,
    with_data,
    written,
)
from dmlconf.capture.shortening import shortened
from dmlconf.cases.selecting.selection import CAPTURED_NOTE, MODEL_TAG
from dmlconf.catalogue.graph import GRAPHS

__all__ = ["MOST_ELEMENTS", "MOST_NODES_OF_BLOCKS", "write_models"]

MOST_NODES_OF_BLOCKS: Final = 8
"""The most nodes of a block."""

MOST_ELEMENTS: Final = 4_000_000
"""Cases whose entries state more elements get the tag `slow`: judging one takes over 240 MiB."""


def write_models(folder: Path, captured: Mapping[str, Captured]) -> Written:
    """Write case files below a folder, one for each operator and one for blocks of graphs.

    Cases that do not load, and files without cases, are not written.

    Args:
        folder: the folder for the files, such as `gemm/captured.yaml`.
        captured: the captured calls of each model, by the model's name.

    Raises:
        OSError: a file cannot be written.
    """
    files = (*_operators(folder, captured), _blocks(folder, captured))
    return written((path, head, [*map(_tagged, entries)]) for path, head, entries in files)


def _tagged(entry: Entry) -> Entry:
    if _elements(entry) <= MOST_ELEMENTS:
        return entry
    tags = [*entry.get("tags", ()), "slow"]
    return {
        "name": entry["name"],
        "note": entry["note"],
        "tags": tags,
        **{key: value for key, value in entry.items() if key not in ("name", "note", "tags")},
    }


def _operators(folder: Path, captured: Mapping[str, Captured]) -> Iterable[File]:
    found: dict[str, dict[str, CapturedOperator]] = {}
    models: dict[str, list[str]] = {}
    for model, each in captured.items():
        for operator in each.operators:
            key = f"{operator.operator} {operator.desc!r} {execution_tags(operator.flags)}"
            found.setdefault(operator.operator, {}).setdefault(key, operator)
            models.setdefault(key, []).append(model)
    for name, members in sorted(found.items()):
        notes = {id(operator): _note(models[key]) for key, operator in members.items()}

        def note(operator: CapturedOperator, notes: Mapping[int, str] = notes) -> str:
            return notes[id(operator)]

        entries = operator_entries(name, [*members.values()], note)
        head = {"operator": name, "tags": [MODEL_TAG]}
        yield folder / name.lower() / f"{FILE}.yaml", head, list(entries)


def _blocks(folder: Path, captured: Mapping[str, Captured]) -> File:
    smallest: dict[str, tuple[int, Block]] = {}
    models: dict[str, dict[str, None]] = {}
    for model, each in captured.items():
        for graph in each.graphs:
            for block in blocks(graph.parts, MOST_NODES_OF_BLOCKS):
                if len(block.nodes) == 1:
                    continue
                block = _named_alike(block)
                key, size = _key(block), _elements(block.parts)
                models.setdefault(key, {})[model] = None
                if key not in smallest or size < smallest[key][0]:
                    smallest[key] = size, block
    used: dict[str, int] = {}
    entries: list[Entry] = [
        {
            "name": _name(block, used),
            "note": _note([*models[key]]),
            **shortened(with_data(block.parts)),
        }
        for key, (_, block) in smallest.items()
    ]
    head = {"graph": "blocks of captured models", "tags": [MODEL_TAG]}
    return folder / GRAPHS.lower() / f"{FILE}.yaml", head, entries


def _note(models: Iterable[str]) -> str:
    return CAPTURED_NOTE.format(", ".join(models))


def _name(block: Block, used: dict[str, int]) -> str:
    kinds = dict.fromkeys(node["operator"] for node in block.parts["nodes"].values())
    name = "-".join(kind.lower().replace("_", "-") for kind in kinds)[:60].strip("-")
    used[name] = used.get(name, 0) + 1
    return name if used[name] == 1 else f"{name}-{used[name]}"


def _named_alike(block: Block) -> Block:
    """Return a block with numbered names, such as `input-1`, or `gemm-2` for a GEMM as node 2."""
    names: dict[str, str] = {}
    parts = block.parts
    for name in parts.get("inputs", {}):
        names[name] = f"input-{len(names) + 1}"
    for number, name in enumerate(parts.get("constants", {}), 1):
        names[name] = f"constant-{number}"
    for number, name in enumerate(block.nodes, 1):
        kind = parts["nodes"][name]["operator"].lower().replace("_", "-")
        names[name] = f"{kind}-{number}"

    def reference(text: str) -> str:
        if text in names:
            return names[text]
        node, dot, tensor = text.partition(".")
        return f"{names[node]}{dot}{tensor}"

    new: dict[str, Any] = {}
    for kind in ("inputs", "constants"):
        if kind in parts:
            new[kind] = {names[name]: value for name, value in parts[kind].items()}
    new["nodes"] = {
        names[name]: with_references(parts["nodes"][name], reference) for name in block.nodes
    }
    new["outputs"] = {
        f"output-{number}": reference(source)
        for number, source in enumerate(parts["outputs"].values(), 1)
    }
    sources = {names[name]: source for name, source in block.sources.items()}
    return Block(tuple(new["nodes"]), new, sources)


_NOT_IN_KEYS: Final = ("Sizes", "Strides", "TotalTensorSizeInBytes", "values", "fill")


def _key(block: Block) -> str:
    """Return a key; blocks with equal keys become one case."""

    def kept(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: kept(item) for key, item in value.items() if key not in _NOT_IN_KEYS}
        if isinstance(value, list):
            return [kept(item) for item in value if not isinstance(item, int | float)]
        return None if isinstance(value, int | float) and not isinstance(value, bool) else value

    return json.dumps(kept(block.parts), sort_keys=True)


def _elements(entry: Mapping[str, Any]) -> int:

    def count(value: Any) -> int:
        if isinstance(value, Mapping):
            own = math.prod(value["Sizes"]) if "Sizes" in value else 0
            return own + sum(map(count, value.values()))
        return sum(map(count, value)) if isinstance(value, list) else 0

    return count(entry)
