"""The keys that a journal's line of each event must have, and the types of their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["FormError", "require_keys"]

_Keys = Mapping[str, type]

_EVENTS: Final[Mapping[str, _Keys]] = {
    "created": {"operator": str},
    "refused": {"type": int, "hresult": str},
    "skipped": {"what": str, "reason": str},
    "failure": {"reason": str},
    "compile": {"number": int},
    "compiled": {"number": int, "hresult": str},
    "weights": {"number": int, "inputs": dict},
    "statistics": {"number": int, "inputs": dict},
    "dispatch": {"number": int, "inputs": dict, "outputs": dict},
}
"""The keys of a line by its event; lines of other events need none."""

_OPERATOR: Final[_Keys] = {"operator": str, "desc": dict, "flags": int}
_GRAPH: Final[_Keys] = {"graph": dict, "names": dict, "unused": int, "flags": int}
"""The further keys of an event `compile` that describes an operator or a graph."""

_PARTS: Final[_Keys] = {"nodes": dict, "outputs": dict}
_NODE: Final[_Keys] = {"operator": str, "desc": dict}
_ARRAY: Final[_Keys] = {"file": str, "elements": str, "finite": bool}
_STATISTICS: Final[_Keys] = {
    "low": object,
    "high": object,
    "zeros": object,
    "whole": bool,
    "count": int,
}
"""The keys of a graph, a node, a kept array, and a tensor's statistics."""

_FILE_NAME: Final = re.compile(r"[0-9a-f]{32}\.npy")
"""The names of the files of kept arrays, which `ArrayStore` makes."""

_KINDS: Final = {str: "a text", int: "an integer", bool: "true or false", dict: "an object"}


class FormError(ValueError):
    """A line lacks a key, has a value of another type, or names a kept array wrongly."""


def require_keys(line: Mapping[str, Any]) -> None:
    """Check that a line, and the objects in it, have the keys that its event needs.

    Raises:
        FormError: a key is missing, its value is of another type, or a kept array has no name of
            the form of those from `ArrayStore`.
    """
    event = str(line.get("event"))
    owner = f"the event {event!r}"
    _require(line, _EVENTS.get(event, {}), owner)
    match line:
        case {"event": "compile", "operator": _}:
            _require(line, _OPERATOR, owner)
        case {"event": "compile", "graph": parts}:
            _require(line, _GRAPH, owner)
            _require(parts, _PARTS, "its graph")
            for name, node in parts["nodes"].items():
                _require(node, _NODE, f"its node {name!r}")
        case {"event": "weights" | "dispatch"}:
            for name, kept in _tensors(line):
                _require(kept, _ARRAY, f"its tensor {name!r}")
                _require_file_name(kept["file"], name)
        case {"event": "statistics"}:
            for name, kept in _tensors(line):
                _require(kept, {"statistics": object}, f"its tensor {name!r}")
                if kept["statistics"] is not None:
                    _require(kept["statistics"], _STATISTICS, f"the statistics of {name!r}")


def _tensors(line: Mapping[str, Any]) -> list[tuple[str, Any]]:
    sides = ("inputs",) if line["event"] != "dispatch" else ("inputs", "outputs")
    return [each for side in sides for each in line[side].items()]


def _require_file_name(file: str, tensor: str) -> None:
    if _FILE_NAME.fullmatch(file) is None:
        form = "32 digits of 0-9 and a-f with the suffix .npy"
        raise FormError(f"the file of its tensor {tensor!r} is {file!r}, but names are {form}")


def _require(value: Any, keys: _Keys, owner: str) -> None:
    if not isinstance(value, dict):
        raise FormError(f"{owner} is not an object")
    for key, kind in keys.items():
        if key not in value:
            raise FormError(f"{owner} lacks the key {key!r}")
        if not isinstance(value[key], kind):
            raise FormError(f"the key {key!r} of {owner} is not {_KINDS[kind]}")
