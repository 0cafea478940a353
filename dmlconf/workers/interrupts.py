"""Defer Ctrl-C and other requests to end while something must not be interrupted."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final, NoReturn

from dmlconf.backends.process_start import INTERRUPTS, children_ignore_interrupts

__all__ = [
    "GRACE_SECONDS",
    "Grace",
    "Uninterrupted",
    "deferred_interrupts",
    "discarded_interrupts",
    "forget_interrupt",
    "grace",
    "raise_if_interrupted",
    "treat_termination_as_interrupt",
]

_Handler = Callable[[int, Any], Any]

GRACE_SECONDS: Final = 2.0
"""How long after an interrupt a block with grace may take to end."""


class _Requests:
    """The state of interrupts.

    Attributes:
        came: whether an interrupt came, even one whose `KeyboardInterrupt` Python has dropped, as
            it does in destructors.
        deferred: whether interrupts are only noted, unless one is overdue.
        graces: how many blocks with grace of the main thread have begun and not ended.
        pending: whether an interrupt came that a block with grace has yet to raise.
        overdue: whether `GRACE_SECONDS` have passed since that interrupt.
        timer: sets `overdue`.
    """

    came = False
    deferred = False
    graces = 0
    pending = False
    overdue = False
    timer: threading.Timer | None = None


def _interrupt(number: int, frame: Any) -> None:
    if _Requests.overdue:  # The timer has called this function, and not a second interrupt.
        _Requests.overdue = False
        if _Requests.pending:
            _deliver()
        return
    first = not _Requests.came
    _Requests.came = True
    if first and _Requests.graces:
        _Requests.pending = True
        _Requests.timer = threading.Timer(GRACE_SECONDS, _end_grace, (number,))
        _Requests.timer.daemon = True
        _Requests.timer.start()
    elif not _Requests.deferred:
        _deliver()


def _end_grace(number: int) -> None:
    _Requests.overdue = True
    _thread.interrupt_main(signal.Signals(number))


def _deliver() -> NoReturn:
    forget_interrupt()
    raise KeyboardInterrupt


def forget_interrupt() -> None:
    """Forget that a block with grace is to raise an interrupt.

    `raise_if_interrupted` still raises it.
    """
    _Requests.pending = False
    if _Requests.timer is not None:
        _Requests.timer.cancel()
        _Requests.timer = None


class Grace:
    """Tells a block with grace whether it was interrupted, and raises the interrupt."""

    def __init__(self, given: bool) -> None:
        self._given = given

    @property
    def requested(self) -> bool:
        """Whether an interrupt came, so that the block should end soon and call `deliver`."""
        return self._given and _Requests.pending

    def deliver(self) -> NoReturn:
        """Raise the interrupt that came."""
        _deliver()


@contextmanager
def grace() -> Iterator[Grace]:
    """A block that an interrupt does not end at once, so that it can save results first.

    The block asks `requested` often; if it is true, the block saves what there is and calls
    `deliver`. After `GRACE_SECONDS`, or at a second interrupt outside an `Uninterrupted` block,
    `KeyboardInterrupt` is raised wherever the program is. A block outside the main thread is never
    asked to end. Unless `treat_termination_as_interrupt` was called before, Ctrl-C ends a block at
    once.
    """
    given = threading.current_thread() is threading.main_thread()
    _Requests.graces += given
    try:
        yield Grace(given)
    finally:
        _Requests.graces -= given


class Uninterrupted:
    """A block that interrupts do not end halfway, unless they are overdue, as `grace` describes.

    Call `raise_if_interrupted` after it. It has no effect unless `treat_termination_as_interrupt`
    was called before.
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
    forget_interrupt()
    for number in INTERRUPTS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)


def raise_if_interrupted() -> None:
    """Raise `KeyboardInterrupt` if an interrupt came, unless a block with grace is to raise it."""
    if _Requests.came and not (_Requests.pending and _Requests.graces):
        _deliver()


@contextmanager
def deferred_interrupts(*, inherited: bool = False) -> Iterator[None]:
    """Defer interrupts, and raise the first of them at the end of the block.

    An exception of the block takes its place. If `inherited`, processes that start in the block
    ignore interrupts. Outside the main thread, the block has no effect.
    """
    pending: list[int] = []
    with _noted_interrupts(pending, inherited=inherited):
        yield
    if pending:
        signal.raise_signal(pending[0])


@contextmanager
def discarded_interrupts() -> Iterator[None]:
    """Ignore interrupts in the block; outside the main thread, the block has no effect."""
    with _noted_interrupts([], inherited=False):
        yield


@contextmanager
def _noted_interrupts(pending: list[int], *, inherited: bool) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, _Handler] = {}
    for number in INTERRUPTS:
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
            signal.signal(number, lambda received, frame: pending.append(received))
    # With a signal mask of this thread, one of NumPy's threads would receive the signal.
    try:
        with children_ignore_interrupts() if inherited else nullcontext():
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
