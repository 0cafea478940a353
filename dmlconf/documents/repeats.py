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
    containers = bytearray()  # For each part, whether it is a list or an object.
    known: dict[tuple[Any, ...], int] = {}

    def index_of(value: Any) -> int:
        if isinstance(value, dict):
            indices = [index_of(each) for each in value.values()]
            key = (dict, *value, *indices)
        elif isinstance(value, list | tuple):
            indices = [index_of(each) for each in value]
            key = (list, *indices)
        else:
            # 1, 1.0 and true must stay apart, and 0.0 and -0.0.
            kind = type(value)
            key = (kind, value if kind is str or kind is int else repr(value))
            index = known.setdefault(key, len(parts))
            if index == len(parts):
                parts.append(value)
                containers.append(False)
            return index
        index = known.setdefault(key, len(parts))
        if index == (end := len(parts)):
            near = end - _NEAR
            written = [i - end if i >= near and containers[i] else i for i in indices]
            parts.append(dict(zip(value, written, strict=True)) if key[0] is dict else written)
            containers.append(True)
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
