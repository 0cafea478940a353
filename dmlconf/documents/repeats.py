"""Trees of JSON values in which equal parts are written once.

A case file repeats its tensors, sizes and names again and again. Written once, they take less
space and time, and when they are read, equal parts become one object.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["with_repeats", "without_repeats"]

_NEAR: Final = 10
"""Lists and objects among this many last parts are referred to by negative indices, which compress
best."""


def without_repeats(tree: Any) -> list[Any]:
    """Return the different parts of a tree, the tree itself last.

    A plain value is a part as it is. In a list or an object, each value is replaced by its index
    among the parts before the list or object; a negative index counts from the last of these.
    `[[1, 2], [1, 2]]` becomes `[1, 2, [0, 1], [-1, -1]]`.

    Args:
        tree: lists, tuples, dictionaries and plain values.
    """
    parts: list[Any] = []
    known: dict[tuple[Any, ...], int] = {}

    def written(index: int) -> int:
        behind = index - len(parts)
        return behind if behind >= -_NEAR and isinstance(parts[index], list | dict) else index

    def place(value: Any) -> int:
        part: Any
        key: tuple[Any, ...]
        if isinstance(value, dict):
            places = {name: place(each) for name, each in value.items()}
            part = {name: written(index) for name, index in places.items()}
            key = (dict, *places.items())
        elif isinstance(value, list | tuple):
            indices = [place(each) for each in value]
            part, key = [written(index) for index in indices], (list, *indices)
        else:
            part, key = value, (type(value), repr(value))  # 1, 1.0 and true must stay apart.
        index = known.setdefault(key, len(parts))
        if index == len(parts):
            parts.append(part)
        return index

    place(tree)
    return parts


def with_repeats(parts: list[Any]) -> Any:
    """Return the tree that `without_repeats` took, with lists for tuples.

    It must not be changed, since equal parts of it are one object.

    Raises:
        LookupError: the parts are damaged.
        TypeError: the parts are damaged.
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
