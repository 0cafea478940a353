"""Apply a function in several processes, or in this one where others cannot be started."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from dmlconf.workers.working_folder import existing_working_folder

__all__ = ["Mapping", "in_processes"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Mapping(Protocol):
    """Gives what a function returns for each item, in their order."""

    def __call__(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], /
    ) -> Iterator[_Result]:
        """Yield the results; several items may be in work at once."""
        ...


@contextmanager
def in_processes(
    jobs: int, start: Callable[..., None], state: tuple[Any, ...]
) -> Iterator[Mapping]:
    """Start processes for the block.

    Processes share locks in shared memory (`/dev/shm`). Without that, this process does all.

    Args:
        jobs: how many; 1 is this process.
        start: is called once in each process, with the state, before anything else.
        state: its arguments.
    """
    pool = None
    if jobs > 1:
        with suppress(OSError, ImportError):
            pool = ProcessPoolExecutor(jobs, get_context("spawn"), start, state)
    if pool is None:
        start(*state)
        yield map
        return
    with pool:

        def apply(
            function: Callable[[_Item], _Result], items: Sequence[_Item]
        ) -> Iterator[_Result]:
            with existing_working_folder():
                return pool.map(function, items)

        yield apply
