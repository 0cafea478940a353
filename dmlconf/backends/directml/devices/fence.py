"""The fence of a queue, and a wait for it that ends at a time limit at the latest."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep
from typing import Final

from dmlconf.backends.directml.api.d3d12 import ID3D12_FENCE
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.vtable import ComObject

__all__ = ["WAIT_SECONDS", "Fence", "FenceTimeoutError", "WaitLimit"]

WAIT_SECONDS: Final = 60.0
"""How long a wait may take, unless `WaitLimit.seconds` is set."""

_FIRST_POLL_SECONDS: Final = 0.00005
_LONGEST_POLL_SECONDS: Final = 0.002
_WAIT_TIMEOUT: Final = 0x887A_0027
"""DXGI_ERROR_WAIT_TIMEOUT."""


class FenceTimeoutError(HResultError):
    """A device did not finish its work in time.

    Attributes:
        seconds: how long the wait was permitted to take.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__("GetCompletedValue", _WAIT_TIMEOUT)

    def __str__(self) -> str:
        return f"the device did not finish its work within {self.seconds:g} seconds"


@dataclass(slots=True)
class WaitLimit:
    """How long waits for a device may take.

    Attributes:
        seconds: the longest wait for a queue.
        exceeded: whether a wait took longer; then nothing that the device uses may be released.
    """

    seconds: float = WAIT_SECONDS
    exceeded: bool = False


class Fence:
    """Counts the submissions of one queue.

    Its value is polled. SetEventOnCompletion would take a Windows event on Windows and a file
    descriptor in WSL; without either, it blocks for as long as the device takes.
    """

    def __init__(self, d3d: ComObject, queue: ComObject, limit: WaitLimit) -> None:
        """Create the fence, with no submissions.

        Args:
            d3d: the ID3D12Device.
            queue: the ID3D12CommandQueue.
            limit: the limit of all queues of the device.

        Raises:
            HResultError: the fence cannot be created.
        """
        self._fence = d3d.create("CreateFence", ID3D12_FENCE, 0, 0)
        self._queue = queue
        self._limit = limit
        self._submissions = 0

    def release(self) -> None:
        """Release the ID3D12Fence."""
        self._fence.release()

    def signal(self) -> None:
        """Let the queue signal the fence when all its work so far is done.

        Raises:
            HResultError: the device was removed.
        """
        self._submissions += 1
        self._queue.call("Signal", self._fence, self._submissions)

    def delay(self, other: ComObject) -> None:
        """Let another queue wait for this queue's work so far.

        Args:
            other: the ID3D12CommandQueue that is to wait; this process does not wait.
        """
        other.call("Wait", self._fence, self._submissions)

    def wait(self) -> None:
        """Wait until all the queue's work is done; device removal ends every wait.

        Raises:
            FenceTimeoutError: it takes longer than the limit.
        """
        # Do not wait again for a queue that was given up.
        end = monotonic() + (0.0 if self._limit.exceeded else self._limit.seconds)
        pause = _FIRST_POLL_SECONDS
        while self._fence.call("GetCompletedValue") < self._submissions:
            if monotonic() >= end:
                self._limit.exceeded = True
                raise FenceTimeoutError(self._limit.seconds)
            sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL_SECONDS)
