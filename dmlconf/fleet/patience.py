"""Calls that may never return, because they wait for processes that hang or are cut off."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["in_thread", "within"]

_Result = TypeVar("_Result")


def in_thread(function: Callable[[], None]) -> None:
    """Start a function in another thread; it ends with the process at the latest."""
    threading.Thread(target=function, name="dmlconf-cluster", daemon=True).start()


def within(seconds: float, function: Callable[[], _Result]) -> _Result:
    """Return a function's result within a time limit; past it, the function keeps its own thread.

    Raises:
        TimeoutError: it takes longer than that many seconds.
    """
    result: Future[_Result] = Future()

    def run() -> None:
        try:
            result.set_result(function())
        except BaseException as error:  # Raised again in the waiting thread.
            result.set_exception(error)

    in_thread(run)
    try:
        return result.result(seconds)
    except TimeoutError as error:
        if result.done():
            raise
        raise TimeoutError(f"no answer within {seconds:.0f} seconds") from error
