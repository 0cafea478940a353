"""Messages of debug layers about a case, from the info queue of Direct3D 12 and DirectML.

Source: the pages of ID3D12InfoQueue and IDMLDebugDevice::SetMuteDebugOutput.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.sdklayers import (
    D3D12_MESSAGE,
    D3D12_MESSAGE_SEVERITY,
    ID3D12_INFO_QUEUE,
)
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Declined,
    Fault,
    FaultKind,
    Outcome,
    Outputs,
    Rejection,
)

__all__ = ["InfoQueue", "Message", "with_messages"]

MOST_TEXTS: Final = 20
"""How many distinct errors of a case are kept, and how many distinct warnings."""

_Severity = D3D12_MESSAGE_SEVERITY


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a debug layer; `number` is its D3D12_MESSAGE_ID."""

    severity: D3D12_MESSAGE_SEVERITY
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.severity.name} #{self.number}: {self.text}"


class InfoQueue:
    """The messages that a device's debug layers have stored."""

    def __init__(self, queue: ComObject) -> None:
        """Take over a reference to an ID3D12InfoQueue."""
        self._queue = queue

    @classmethod
    def of(cls, device: ComObject) -> InfoQueue | None:
        """Return the info queue of an ID3D12Device; None if no debug layer is active."""
        try:
            return cls(device.create("QueryInterface", ID3D12_INFO_QUEUE))
        except HResultError:
            return None

    def release(self) -> None:
        """Release the reference."""
        self._queue.release()

    def take(self) -> list[Message]:
        """Return the stored corruptions, errors and warnings, and clear all messages."""
        count = self._queue.call("GetNumStoredMessages")
        messages = [self._message(index) for index in range(count)]
        self._queue.call("ClearStoredMessages")
        return [message for message in messages if message.severity <= _Severity.WARNING]

    def _message(self, index: int) -> Message:
        size = ctypes.c_size_t()
        self._queue.call("GetMessage", index, None, ctypes.byref(size))
        memory = ctypes.create_string_buffer(max(size.value, ctypes.sizeof(D3D12_MESSAGE)))
        self._queue.call("GetMessage", index, memory, ctypes.byref(size))
        message = D3D12_MESSAGE.from_buffer(memory)
        text = b""
        if message.pDescription:
            text = ctypes.string_at(message.pDescription, message.DescriptionByteLength)
        return Message(
            _Severity(min(message.Severity, _Severity.MESSAGE)),
            message.ID,
            text.rstrip(b"\0").decode("utf-8", "replace").strip(),
        )


def with_messages(outcome: Outcome, messages: Iterable[Message]) -> Outcome:
    """Return a case's outcome with the debug layers' messages.

    - `Outputs`: errors and corruptions become faults, before the other faults.
    - `Rejection`: the errors replace its message. A corruption makes it a breakdown.
    - `Breakdown`: the errors, corruptions and warnings follow its diagnostics.
    - `Declined`: it stays as it is.

    Warnings become the warnings of outputs and rejections. At most `MOST_TEXTS` distinct errors and
    as many distinct warnings are kept, with the number of the others.
    """
    ordered = sorted(messages, key=lambda message: message.severity)
    errors = [message for message in ordered if message.severity < _Severity.WARNING]
    warnings = tuple(_texts(message for message in ordered if message not in errors))
    if isinstance(outcome, Outputs):
        faults = tuple(Fault(FaultKind.MESSAGE, text) for text in _texts(errors))
        return replace(outcome, faults=(*faults, *outcome.faults), warnings=warnings)
    if isinstance(outcome, Rejection):
        if any(message.severity is _Severity.CORRUPTION for message in errors):
            text = "; ".join(_texts(errors))
            return Breakdown(BreakdownKind.ERROR, text, seconds=outcome.seconds)
        return replace(outcome, message="; ".join(_texts(errors)), warnings=warnings)
    if isinstance(outcome, Declined):
        return outcome
    lines = [outcome.diagnostics, *_texts(errors), *warnings]
    return replace(outcome, diagnostics="\n".join(filter(None, lines)))


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    """Yield up to `MOST_TEXTS` distinct messages and how often each came, and count the others."""
    counts = Counter(map(str, messages))
    for text, count in list(counts.items())[:MOST_TEXTS]:
        yield f"{text} ({count:,} times)" if count > 1 else text
    if len(counts) > MOST_TEXTS:
        yield f"and {len(counts) - MOST_TEXTS:,} other messages"
