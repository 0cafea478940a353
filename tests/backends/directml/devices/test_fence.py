"""Waiting for a device ends, even if the device hangs or is removed.

The tested code is in `dmlconf/backends/directml/devices/fence.py` and
`dmlconf/backends/directml/dispatch/outcomes.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from time import monotonic

import pytest

from dmlconf.backends.directml.api.d3d12 import ID3D12_COMMAND_QUEUE, ID3D12_DEVICE, ID3D12_FENCE
from dmlconf.backends.directml.devices.fence import Fence, FenceTimeoutError, WaitLimit
from dmlconf.backends.directml.dispatch.outcomes import failure
from dmlconf.backends.protocol import Breakdown, BreakdownKind
from tests.backends.directml.com import FakeCom

REMOVED = 2**64 - 1
"""The completed value of a fence whose device was removed."""


class FakeDevice:
    """An ID3D12Device and its queue; `completed` gives each completed value of its fence."""

    def __init__(self, completed: Callable[[], int]) -> None:
        self.signals: list[int] = []
        fence = FakeCom(ID3D12_FENCE, GetCompletedValue=completed)
        self.queue = FakeCom(ID3D12_COMMAND_QUEUE, Signal=self._signal)

        def create(value: int, flags: int, iid: object, into: ctypes.c_void_p) -> int:
            ctypes.cast(into, ctypes.POINTER(ctypes.c_void_p))[0] = fence.address
            return 0

        self._kept = fence
        self.d3d = FakeCom(ID3D12_DEVICE, CreateFence=create)

    def _signal(self, fence: int, value: int) -> int:
        self.signals.append(value)
        return 0


def test_a_wait_ends_once_the_last_submission_is_done() -> None:
    values = iter([0, 1, 1, 2])
    device = FakeDevice(lambda: next(values))
    fence = Fence(device.d3d, device.queue, WaitLimit())
    fence.signal()
    fence.signal()
    fence.wait()
    assert device.signals == [1, 2]
    assert list(values) == []


def test_wait_for_endless_work_ends_as_a_hang() -> None:
    device = FakeDevice(lambda: 0)
    limit = WaitLimit(0.05)
    fence = Fence(device.d3d, device.queue, limit)
    fence.signal()
    began = monotonic()
    with pytest.raises(FenceTimeoutError) as caught:
        fence.wait()
    assert 0.05 <= monotonic() - began < 5
    assert limit.exceeded
    outcome = failure(caught.value, 0.05)
    message = "the device did not finish its work within 0.05 seconds"
    assert outcome == Breakdown(BreakdownKind.HANG, message, "", 0.05)


def test_after_a_hang_a_further_wait_fails_at_once() -> None:
    polls: list[None] = []

    def completed() -> int:
        polls.append(None)
        return 0

    device = FakeDevice(completed)
    fence = Fence(device.d3d, device.queue, WaitLimit(0.05, exceeded=True))
    fence.signal()
    with pytest.raises(FenceTimeoutError):
        fence.wait()
    assert len(polls) == 1


def test_wait_for_a_removed_device_stays_within_its_limit() -> None:
    device = FakeDevice(lambda: REMOVED)
    limit = WaitLimit(0.05)
    fence = Fence(device.d3d, device.queue, limit)
    fence.signal()
    fence.wait()
    assert not limit.exceeded
