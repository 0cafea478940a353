"""Add expected outputs to the entries of a case file, and leave the rest of its text as it is."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from dmlconf.documents.problems import InvalidFilesError
from dmlconf.documents.reader import Document, read_document
from dmlconf.tensors.datatypes import Array

__all__ = ["UnsuitableLayoutError", "entry_lines", "is_block", "number_text", "with_expectations"]

_WIDTH: Final = 100
_LINE: Final = re.compile(r"(?<=\n)")


class UnsuitableLayoutError(ValueError):
    """An entry whose text is laid out so that no lines can be added."""


def entry_lines(recorded: str, expect: Mapping[str, Array | Sequence[Array] | str]) -> list[str]:
    """Return the lines with the expected outputs of a case, without indentation.

    Args:
        recorded: the real DirectML that computed the outputs.
        expect: the expected values by field: an output, the outputs of an array of tensors, or the
            name of a file.
    """
    lines = [f"recorded: {recorded if _is_plain(recorded) else json.dumps(recorded)}", "expect:"]
    for field, value in expect.items():
        if isinstance(value, str):
            lines.append(f"  {field}: {{file: {json.dumps(value)}}}")
        elif isinstance(value, np.ndarray):
            lines += _wrapped(f"  {field}: ", _items(value))
        else:
            lines.append(f"  {field}:")
            for array in value:
                lines += _wrapped("    - ", _items(array))
    return lines


def is_block(document: Document, index: int) -> bool:
    """Return whether an entry is in YAML's block style, so that lines can be added to it."""
    return not _entries(document)[index].flow_style


def number_text(number: Any) -> str:
    """Return a short text that is read from a case file as the same NumPy number."""
    if not isinstance(number, np.floating):
        return str(int(number))
    value = float(number)
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    shortest = str(number)
    text = shortest if type(number)(float(shortest)) == number else repr(value)
    return text.removesuffix(".0") if value else text


def with_expectations(document: Document, lines: Mapping[int, Sequence[str]]) -> str:
    """Return the text of a case file with lines added to the end of entries.

    Args:
        lines: the lines to add, by the entry's index.

    Raises:
        UnsuitableLayoutError: lines cannot be added at the end of an entry.
    """
    break_ = "\r\n" if "\r\n" in document.text else "\n"
    parts = _LINE.split(document.text)
    if parts and not parts[-1]:
        parts.pop()
    nodes = _entries(document)
    for index, added in sorted(lines.items(), reverse=True):
        node = nodes[index]
        after = _last_line(node, parts)
        if not parts[after - 1].endswith("\n"):
            parts[after - 1] += break_
        indent = " " * node.value[0][0].start_mark.column
        parts[after:after] = [f"{indent}{line}{break_}" for line in added]
    text = "".join(parts)
    _require_only_added(document, text, lines)
    return text


def _is_plain(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z][\w. ()+/-]*(?<! )", text) is not None


def _items(array: Array) -> list[str]:
    return [number_text(number) for number in array.reshape(-1)]


def _wrapped(before: str, items: Sequence[str]) -> list[str]:
    """Return a list as lines of at most `_WIDTH` - 6 characters, to be indented by up to 6."""
    lines, line = [], before + "["
    indent = " " * len(line)
    for index, item in enumerate(items):
        text = item + ("," if index + 1 < len(items) else "]")
        if len(line) + len(text) + 6 > _WIDTH and line.strip("- ["):
            lines.append(line.rstrip())
            line = indent
        line += text + (" " if text.endswith(",") else "")
    return [*lines, line if items else line + "]"]


def _entries(document: Document) -> Any:
    top: Any = yaml.compose(document.text, Loader=yaml.SafeLoader)
    return next(value for key, value in top.value if key.value == "cases").value


def _last_line(node: Any, lines: Sequence[str]) -> int:
    """Return the line, from 1, on which the last value of an entry ends."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    line = int(node.end_mark.line) + 1
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        line = int(node.end_mark.line)  # Such text ends where the next line begins.
        if node.end_mark.column:
            line += 1
        while not lines[line - 1].strip():
            line -= 1
    return line


def _require_only_added(document: Document, text: str, lines: Mapping[int, Sequence[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / document.path.name
        path.write_bytes(text.encode())
        try:
            data = read_document(path).data
        except InvalidFilesError:
            data = None
    if isinstance(data, Mapping):
        cases = [
            {key: value for key, value in entry.items() if key not in ("recorded", "expect")}
            if index in lines and {"recorded", "expect"} <= entry.keys()
            else entry
            for index, entry in enumerate(data["cases"])
        ]
        if repr({**data, "cases": cases}) == repr(document.data):
            return
    raise UnsuitableLayoutError("lines cannot be added at its end")
