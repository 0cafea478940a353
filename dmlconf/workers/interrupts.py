"""Defer interrupts: Ctrl-C and other requests to end."""

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
"""How long a `grace` block may run after an interrupt."""


class _Requests:
    """The state of interrupts.

    Attributes:
        came: whether an interrupt came; a `KeyboardInterrupt` raised in a destructor is lost.
        deferred: whether the program is in an `Uninterrupted` block.
        graces: how many `grace` blocks the main thread is in.
        pending: whether a `grace` block has yet to raise an interrupt.
        overdue: whether `GRACE_SECONDS` have passed since that interrupt, until it is handled.
        timer: sets `overdue` and calls `_interrupt` again; None if no interrupt is pending.
    """

    came = False
    deferred = False
    graces = 0
    pending = False
    overdue = False
    timer: threading.Timer | None = None


def _interrupt(number: int, frame: Any) -> None:
    if _Requests.overdue:  # The timer has called this function.
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
    """Let `grace` blocks not raise the interrupt that came; `raise_if_interrupted` still does."""
    _Requests.pending = False
    if _Requests.timer is not None:
        _Requests.timer.cancel()
        _Requests.timer = None


class Grace:
    """Tells a `grace` block whether it was interrupted, and raises the interrupt."""

    def __init__(self, in_main_thread: bool) -> None:
        self._in_main_thread = in_main_thread

    @property
    def requested(self) -> bool:
        """Whether an interrupt came, so that the block should soon call `deliver`."""
        return self._in_main_thread and _Requests.pending

    def deliver(self) -> NoReturn:
        """Raise the interrupt that came."""
        _deliver()


@contextmanager
def grace() -> Iterator[Grace]:
    """Give a block time to save results after an interrupt.

    When `requested` is true, the block should save its results and call `deliver`. If it does
    not, `KeyboardInterrupt` is raised after `GRACE_SECONDS`, or at a second interrupt outside an
    `Uninterrupted` block.

    Without `treat_termination_as_interrupt` before, Ctrl-C ends the block at once. Outside the main
    thread, `requested` is always false.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    _Requests.graces += in_main_thread
    try:
        yield Grace(in_main_thread)
    finally:
        _Requests.graces -= in_main_thread


class Uninterrupted:
    """A block that interrupts do not end, except after `GRACE_SECONDS` in a `grace` block.

    Call `raise_if_interrupted` after the block. Without `treat_termination_as_interrupt` before,
    the block has no effect.
    """

    def __enter__(self) -> None:
        _Requests.deferred = True

    def __exit__(self, *_: object) -> None:
        _Requests.deferred = False


def treat_termination_as_interrupt() -> None:
    """Make SIGTERM, SIGHUP and Ctrl-Break do what Ctrl-C does.

    Signals that the process ignores, as after nohup, stay ignored.
    """
    _Requests.came = False
    forget_interrupt()
    for number in INTERRUPTS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)


def raise_if_interrupted() -> None:
    """Raise `KeyboardInterrupt` if an interrupt came, unless a `grace` block is to raise it."""
    if _Requests.came and not (_Requests.pending and _Requests.graces):
        _deliver()


@contextmanager
def deferred_interrupts(*, inherited: bool = False) -> Iterator[None]:
    """Defer interrupts, and raise the first of them at the end of the block.

    If the block raises an exception, the interrupts are lost. The end of `GRACE_SECONDS` is
    deferred, too. Outside the main thread, the block has no effect.

    Args:
        inherited: whether processes that start in the block ignore interrupts.
    """
    pending: list[int] = []
    with _noted_interrupts(pending, inherited=inherited):
        yield
    if pending:
        signal.raise_signal(pending[0])


@contextmanager
def discarded_interrupts() -> Iterator[None]:
    """Ignore interrupts in the block, and defer one that ends `GRACE_SECONDS` until the block ends.

    Outside the main thread, the block has no effect.
    """
    with _noted_interrupts([], inherited=False):
        yield


@contextmanager
def _noted_interrupts(pending: list[int], *, inherited: bool) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, _Handler] = {}
    from_timer: list[int] = []

    def note(number: int, frame: Any) -> None:
        if _Requests.overdue:
            _Requests.overdue = False
            from_timer.append(number)
        else:
            pending.append(number)

    for number in INTERRUPTS:
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
            signal.signal(number, note)
    # A signal mask of this thread would not do: one of NumPy's threads would get the signal.
    try:
        with children_ignore_interrupts() if inherited else nullcontext():
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if from_timer and _Requests.pending:
        _Requests.overdue = True
        signal.raise_signal(from_timer[0])
