"""Wait for the work of a queue, with a time limit."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep
from typing import Final

from dmlconf.backends.directml.api.d3d12 import ID3D12_FENCE
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.vtable import ComObject

__all__ = ["WAIT_SECONDS", "Fence", "FenceTimeoutError", "WaitLimit"]

WAIT_SECONDS: Final = 60.0
"""How long a wait may take by default."""

_FIRST_POLL_SECONDS: Final = 0.00005
_LONGEST_POLL_SECONDS: Final = 0.002
_WAIT_TIMEOUT: Final = 0x887A_0027


class FenceTimeoutError(HResultError):
    """A device did not finish its work in time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__("GetCompletedValue", _WAIT_TIMEOUT)

    def __str__(self) -> str:
        return f"the device did not finish its work within {self.seconds:g} seconds"


@dataclass(slots=True)
class WaitLimit:
    """How long waits for a device may take.

    Attributes:
        exceeded: whether a wait took longer; then nothing that the device uses may be released.
    """

    seconds: float = WAIT_SECONDS
    exceeded: bool = False


class Fence:
    """Counts the submissions of one queue.

    The fence is polled, since SetEventOnCompletion without an event has no time limit, and events
    differ between Windows and WSL.
    """

    def __init__(self, d3d: ComObject, queue: ComObject, limit: WaitLimit) -> None:
        """Create the fence; `HResultError` if that fails.

        `d3d` is the ID3D12Device. All queues of the device share `limit`.
        """
        self._fence = d3d.create("CreateFence", ID3D12_FENCE, 0, 0)
        self._queue = queue
        self._limit = limit
        self._submissions = 0

    def release(self) -> None:
        """Release the ID3D12Fence."""
        self._fence.release()

    def signal(self) -> None:
        """Let the queue signal the fence after its work so far."""
        self._submissions += 1
        self._queue.call("Signal", self._fence, self._submissions)

    def delay(self, other: ComObject) -> None:
        """Let another queue wait for this queue's work so far."""
        other.call("Wait", self._fence, self._submissions)

    def wait(self) -> None:
        """Wait until the queue's work is done or the device is removed.

        Raises:
            FenceTimeoutError: the work takes longer than the limit. Afterwards the limit for all
                queues of the device is 0 s.
        """
        end = monotonic() + (0.0 if self._limit.exceeded else self._limit.seconds)
        pause = _FIRST_POLL_SECONDS
        while self._fence.call("GetCompletedValue") < self._submissions:
            if monotonic() >= end:
                self._limit.exceeded = True
                raise FenceTimeoutError(self._limit.seconds)
            sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL_SECONDS)
