"""Ctrl-C and other requests to end, deferred while something must not be interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

__all__ = [
    "INTERRUPTS",
    "Uninterrupted",
    "deferred_interrupts",
    "raise_if_interrupted",
    "treat_termination_as_interrupt",
]

_Handler = Callable[[int, Any], Any]

INTERRUPTS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    if hasattr(signal, name)
)  # fmt: skip
"""The signals that ask a program to end, of those that the platform has."""


class _Requests:
    """The state of interrupts.

    Attributes:
        came: whether there was one; one that is raised in a destructor is lost.
        deferred: whether they are only noted.
    """

    came = False
    deferred = False


def _interrupt(number: int, frame: Any) -> None:
    _Requests.came = True
    if not _Requests.deferred:
        raise KeyboardInterrupt


class Uninterrupted:
    """A block that interrupts do not end halfway; follow it by `raise_if_interrupted`.

    It costs next to nothing. It needs an earlier call of `treat_termination_as_interrupt`.
    """

    def __enter__(self) -> None:
        _Requests.deferred = True

    def __exit__(self, *_: object) -> None:
        _Requests.deferred = False


def treat_termination_as_interrupt() -> None:
    """Make a request to end (SIGTERM, SIGHUP, Ctrl-Break) do what Ctrl-C does.

    A process that was started to ignore a signal, as by nohup, keeps ignoring it.
    """
    _Requests.came = False
    for number in INTERRUPTS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)


def raise_if_interrupted() -> None:
    """Raise `KeyboardInterrupt` if an interrupt came before, even one that Python lost."""
    if _Requests.came:
        raise KeyboardInterrupt


@contextmanager
def deferred_interrupts(*, inherited: bool = False) -> Iterator[None]:
    """Defer interrupts, and raise the first of them at the end of the block.

    Args:
        inherited: whether processes that start in the block defer them too, until they
            say otherwise.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    handlers: dict[int, _Handler] = {}
    for number in INTERRUPTS:
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
            signal.signal(number, lambda received, frame: pending.append(received))
    # A mask is not enough here: one of NumPy's threads would receive the signal.
    masks = inherited and hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, handlers) if masks else set()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if pending:
            signal.raise_signal(pending[0])
