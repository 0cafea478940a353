"""Order items so that the first few, which a short report shows, are of many kinds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

__all__ = ["alternating", "spread"]

_Item = TypeVar("_Item")


def alternating(lists: Iterable[Sequence[_Item]]) -> Iterator[_Item]:
    """Yield the first item of each list, then the second of each, and so on.

    Args:
        lists: lists without None.
    """
    for row in zip_longest(*lists):
        yield from (item for item in row if item is not None)


def spread(
    items: Iterable[_Item],
    kind: Callable[[_Item], Hashable],
    ordered: Callable[[list[_Item]], Sequence[_Item]] = list,
) -> Iterator[_Item]:
    """Yield the first item of each kind, then the second of each, and so on.

    Kinds are in the order of their first items.

    Args:
        items: any but None.
        ordered: sorts the items of one kind.
    """
    kinds: dict[Hashable, list[_Item]] = {}
    for item in items:
        kinds.setdefault(kind(item), []).append(item)
    return alternating([ordered(each) for each in kinds.values()])
