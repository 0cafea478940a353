"""Trees of JSON values in which equal parts are written once."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["with_repeats", "without_repeats"]

_NEAR: Final = 10
"""Lists and objects among this many last parts are counted from the end, which compresses best."""


def without_repeats(tree: Any) -> list[Any]:
    """Return the different parts of a tree, the tree itself last.

    In place of its values, a list or an object holds indices of earlier parts; -1 is the part right
    before it. `[[1, 2], [1, 2]]` becomes `[1, 2, [0, 1], [-1, -1]]`.
    """
    parts: list[Any] = []
    known: dict[tuple[Any, ...], int] = {}

    def written(index: int) -> int:
        behind = index - len(parts)
        return behind if behind >= -_NEAR and isinstance(parts[index], list | dict) else index

    def index_of(value: Any) -> int:
        part: Any
        key: tuple[Any, ...]
        if isinstance(value, dict):
            indices = {name: index_of(each) for name, each in value.items()}
            part = {name: written(index) for name, index in indices.items()}
            key = (dict, *indices.items())
        elif isinstance(value, list | tuple):
            items = [index_of(each) for each in value]
            part, key = [written(index) for index in items], (list, *items)
        else:
            part, key = value, (type(value), repr(value))  # 1, 1.0 and true must stay apart.
        index = known.setdefault(key, len(parts))
        if index == len(parts):
            parts.append(part)
        return index

    index_of(tree)
    return parts


def with_repeats(parts: list[Any]) -> Any:
    """Return the tree that `without_repeats` took, with lists for tuples.

    The tree must not be changed, since equal parts are one object.

    Raises:
        LookupError, TypeError: the parts are damaged.
    """
    values: list[Any] = []
    for part in parts:
        if type(part) is list:
            values.append([values[index] for index in part])
        elif type(part) is dict:
            values.append({name: values[index] for name, index in part.items()})
        else:
            values.append(part)
    return values[-1]
