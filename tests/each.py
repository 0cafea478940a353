"""Make one test that checks many items, and reports each one that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["for_each"]

Item = TypeVar("Item")


def for_each(
    items: Iterable[Item], name: Callable[[Item], str] = str
) -> Callable[[Callable[[Item], None]], Callable[[], None]]:
    """Make one test of a function that checks one item.

    It fails if there are no items, or with a line such as `dmlconf.resources: assert 645 <= 600`
    for each item that fails.
    """

    def decorate(check: Callable[[Item], None]) -> Callable[[], None]:
        def test() -> None:
            problems, count = [], 0
            for item in items:
                count += 1
                try:
                    check(item)
                except AssertionError as error:
                    problems.append(f"{name(item)}: {error}")
            assert count, "nothing to check"
            if problems:
                text = "\n".join(problems)
                raise AssertionError(f"{len(problems)} of {count} do not hold\n{text}")

        test.__name__, test.__qualname__ = check.__name__, check.__qualname__
        test.__doc__, test.__module__ = check.__doc__, check.__module__
        return test

    return decorate
