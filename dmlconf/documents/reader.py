"""Read a YAML file strictly, and find the line of any value.

The reader follows YAML 1.2's core schema: `4_1`, `no` and `1:30` are text, and `1e20` is a number.
But `-0` is -0.0, and a key is always text: the key of `1: x` is "1".

The reader rejects keys that are not scalars, duplicate keys, merge keys, tags, a second document,
numbers that are too long, and decimals too large for FLOAT64. It rejects files that are empty, too
large, too deep or not UTF-8, and files that have too many values with all aliases expanded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, Final, NamedTuple

import yaml

from dmlconf.documents.files import UnreadableFileError, read_bytes
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.recognition import YAML_KINDS, recognised
from dmlconf.limits import DEEPEST_DOCUMENT, LARGEST_DOCUMENT, LONGEST_NUMBER, MOST_DOCUMENT_VALUES

__all__ = ["Document", "line_problem", "read_document"]

_TOO_DEEP: Final = f"nested deeper than {DEEPEST_DOCUMENT} levels"

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

KeyPath = tuple[str | int, ...]
"""The location of a value: the keys and indices that lead to it."""

_INTEGER: Final = re.compile(r"[-+]?[0-9]+\Z")
_OTHER_BASE: Final = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)\Z")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NAMED: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}


@lru_cache(maxsize=4096)  # The same names and small numbers recur in a suite.
def _scalar(text: str) -> Any:
    if text in _NAMED:
        return _NAMED[text]
    if len(text) > LONGEST_NUMBER and (_FLOAT.match(text) or _OTHER_BASE.match(text)):
        raise ValueError(f"a number of more than {LONGEST_NUMBER} characters")
    if _INTEGER.match(text):
        # `-0` among a tensor's elements means the negative zero.
        return int(text) if int(text) or text[0] != "-" else -0.0
    if _FLOAT.match(text):
        number = float(text)
        if math.isinf(number):
            raise ValueError(f"{text} is larger than any FLOAT64; infinity is written .inf")
        return number
    return int(text, 0) if _OTHER_BASE.match(text) else text


_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_FORBIDDEN: Final = "[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""A character that the parser rejects; not compiled here, since that takes long."""


class _Stop(Exception):
    def __init__(self, message: str, mark: Any, hint: str | None = None, width: int = 1) -> None:
        self.message, self.mark, self.hint, self.width = message, mark, hint, width


class _Built(NamedTuple):
    """A value, the number of values that it expands to, and its depth."""

    value: Any
    size: int = 1
    levels: int = 0


class _Builder:
    """Turns parser events into values, and counts the values with all aliases expanded."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        self._next = next_event
        self._anchors: dict[str, _Built] = {}
        self._section = ""
        self.duplicates: list[_Stop] = []
        self.item_lines: dict[str, list[int]] = {}

    def document(self) -> Any:
        start = self._next(), self._next()
        if isinstance(start[1], yaml.StreamEndEvent):
            raise _Stop("the file is empty", None)
        value = self._value(self._next(), 0).value
        self._next()
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise _Stop("a second YAML document begins; one file holds one", after.start_mark)
        return value

    def _value(self, event: Any, depth: int) -> _Built:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise _Stop(f"alias *{event.anchor} has no anchor before it", event.start_mark)
            known = self._anchors[event.anchor]
            _limit_nesting(depth + known.levels, event)
            return known
        if event.tag is not None:
            raise _Stop(f"tag {event.tag} is not allowed", event.start_mark, "leave the tag out")
        if isinstance(event, yaml.ScalarEvent):
            built = _Built(_text_or_plain(event))
        else:
            _limit_nesting(depth + 1, event)
            is_list = isinstance(event, yaml.SequenceStartEvent)
            built = self._sequence(depth) if is_list else self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = built
        return built

    def _sequence(self, depth: int) -> _Built:
        values, count, levels = [], 1, 0
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            if depth == 1:
                self.item_lines.setdefault(self._section, []).append(event.start_mark.line + 1)
            if _is_simple(event):
                values.append(_text_or_plain(event))
                count = self._counted(count + 1, event)
                continue
            item = self._value(event, depth + 1)
            values.append(item.value)
            count = self._counted(count + item.size, event)
            levels = max(levels, item.levels)
        return _Built(values, count, levels + 1)

    def _mapping(self, depth: int) -> _Built:
        values: dict[str, Any] = {}
        count, levels = 1, 0
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent) or key.tag is not None:
                raise _Stop("a key must be plain text", key.start_mark)
            if key.value == "<<" and key.implicit[0]:
                hint = "write out the keys that it stands for"
                raise _Stop("merge keys are not allowed", key.start_mark, hint, 2)
            if key.value in values:
                self.duplicates.append(
                    _Stop(
                        f"key `{key.value}` is given twice",
                        key.start_mark,
                        "the second would silently replace the first: remove one",
                        _width(key),
                    )
                )
            if depth == 0:
                self._section = key.value
            event, name = self._next(), intern(key.value)
            if _is_simple(event):
                values[name] = _text_or_plain(event)
                count = self._counted(count + 1, event)
                continue
            item = self._value(event, depth + 1)
            values[name] = item.value
            count = self._counted(count + item.size, event)
            levels = max(levels, item.levels)
        return _Built(values, count, levels + 1)

    @staticmethod
    def _counted(count: int, event: Any) -> int:
        if count > MOST_DOCUMENT_VALUES:
            raise _Stop(
                f"the file expands to more than {MOST_DOCUMENT_VALUES:,} values",
                event.start_mark,
                "use fewer aliases, or a fill instead of long lists",
            )
        return count


def _is_simple(event: Any) -> bool:
    return type(event) is yaml.ScalarEvent and event.tag is None and event.anchor is None


def _text_or_plain(event: Any) -> Any:
    """Return the value of a scalar; a quoted scalar or a block is text."""
    if not event.implicit[0]:
        return event.value
    try:
        return _scalar(event.value)
    except ValueError as error:
        raise _Stop(str(error), event.start_mark, width=_width(event)) from None


def _width(event: Any) -> int:
    begin, end = event.start_mark, event.end_mark
    return end.column - begin.column if begin.line == end.line else 1


def _limit_nesting(levels: int, event: Any) -> None:
    if levels > DEEPEST_DOCUMENT:
        raise _Stop(_TOO_DEEP, event.start_mark)


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file that was read.

    Attributes:
        text: its content as text.
        data: its content as dicts with text keys, lists, numbers, text, booleans and None.
        item_lines: the line of each item, from 1, by the top-level key of the list. Empty lists and
            lists given by an alias are left out.
    """

    path: Path
    text: str
    data: Any
    item_lines: Mapping[str, Sequence[int]]

    def problem(
        self,
        where: Sequence[str | int],
        message: str,
        hint: str | None = None,
        *,
        key: bool = False,
    ) -> Problem:
        """Return a problem at the value under `where`, or at its key if `key` is true.

        If the file has no such value, the problem is at the innermost value around it.
        """
        mark, width = self._mark(tuple(where), key)
        return _problem(self.path, self.text, message, mark, hint, width)

    def repeated_names(self, key: str) -> Iterator[Problem]:
        """Yield a problem for each entry under `key` that has the `name` of an earlier entry."""
        names: set[str] = set()
        for index, entry in enumerate(self.data[key]):
            if entry["name"] in names:
                yield self.problem((key, index, "name"), f"{entry['name']} is listed twice")
            names.add(entry["name"])

    def _mark(self, where: KeyPath, key: bool) -> tuple[Any, int]:
        node = nearest_node = _composed(self.text)
        for depth, step in enumerate(where):
            last = depth == len(where) - 1
            child = _child(node, step, want_key=key and last)
            if child is None:
                break
            node = nearest_node = child
        return nearest_node.start_mark, _width(nearest_node)


@lru_cache(maxsize=1)
def _composed(text: str) -> Any:
    """Return the nodes of a file; cached, since a file with one problem often has more."""
    return yaml.compose(text, Loader=_Loader)


@lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    """Return the lines of a file; cached as the nodes are."""
    return _BREAK.split(text)


def _child(node: Any, step: str | int, *, want_key: bool) -> Any:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key if want_key else value
    return None


def _problem(
    path: Path, text: str, message: str, mark: Any, hint: str | None, width: int = 1
) -> Problem:
    if mark is None:
        return Problem(path, message, hint=hint)
    lines = _lines(text)
    source = lines[mark.line] if mark.line < len(lines) else ""
    return Problem(path, message, mark.line + 1, mark.column + 1, source, width, hint)


def _decoded(path: Path) -> str:
    try:
        content = read_bytes(path, LARGEST_DOCUMENT)
    except UnreadableFileError as error:
        hint = "split the file, or use a fill instead of long lists" if error.too_large else None
        raise InvalidFilesError([Problem(path, str(error), hint=hint)]) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        kind = recognised(path)
        if kind is not None and kind not in YAML_KINDS:
            raise InvalidFilesError([Problem(path, f"is {kind}, not a YAML file")]) from error
        text = error.object  # Without a byte order mark.
        before = text[: error.start].decode("utf-8", "replace")
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        source = text.split(b"\n")[line - 1].decode("utf-8", "replace")
        message = f"is not UTF-8: byte 0x{text[error.start]:02x}"
        raise InvalidFilesError(
            [Problem(path, message, line, column, source, hint="save the file as UTF-8")]
        ) from error


def line_problem(path: Path, line: int, message: str, hint: str | None = None) -> Problem:
    """Return a problem at a line of a file, from 1; raise `OSError` if the file cannot be read."""
    source = path.read_text(encoding="utf-8").splitlines()[line - 1]
    text = source.strip()
    column = source.index(text) + 1
    return Problem(path, message, line, column, source=source, width=len(text), hint=hint)


def read_document(path: Path) -> Document:
    """Read a YAML file.

    Raises:
        InvalidFilesError: the file cannot be read, is not YAML, or is rejected.
    """
    if path.suffix == ".jsonl" and path.is_file():
        message = "is a run log, to judge by its name, not a YAML file"
        hint = "`dmlconf report LOG` shows it, `dmlconf run --failed LOG` repeats what failed"
        raise InvalidFilesError([Problem(path, message, hint=hint)])
    text = _decoded(path)
    try:
        builder = _Builder(_Loader(text).get_event)
        data = builder.document()
    except _Stop as stop:
        raise InvalidFilesError(
            [_problem(path, text, stop.message, stop.mark, stop.hint, stop.width)]
        ) from None
    except yaml.MarkedYAMLError as error:
        message = ": ".join(filter(None, (error.context, error.problem))) or "is not YAML"
        mark = error.problem_mark or error.context_mark
        if "nesting depth" in message:  # LibYAML has a limit of its own.
            message = _TOO_DEEP
        problem = _problem(path, text, message, mark, None)
        if problem.source[problem.column - 1 : problem.column] == "\t":
            problem = replace(problem, hint="YAML indents by spaces; there is a tab here")
        raise InvalidFilesError([problem]) from error
    except yaml.YAMLError as error:
        raise InvalidFilesError([_unreadable(path, text, error)]) from error
    if builder.duplicates:
        raise InvalidFilesError(
            [_problem(path, text, d.message, d.mark, d.hint, d.width) for d in builder.duplicates]
        )
    if data is None:
        raise InvalidFilesError([Problem(path, "the file is empty")])
    return Document(path, text, data, builder.item_lines)


def _unreadable(path: Path, text: str, error: yaml.YAMLError) -> Problem:
    """Return a problem that points at the first forbidden character, if any."""
    forbidden = re.search(_FORBIDDEN, text)
    if forbidden is None:
        return Problem(path, f"is not YAML: {error}")
    before = _BREAK.split(text[: forbidden.start()])
    source = before[-1] + _BREAK.split(text[forbidden.start() :], maxsplit=1)[0]
    message = f"character {forbidden.group()!r} is not allowed in YAML"
    hint = 'write it as an escape in double quotes, such as "\\x1b"'
    return Problem(path, message, len(before), len(before[-1]) + 1, source, hint=hint)
