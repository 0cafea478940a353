"""Record barriers: state transitions of buffers, and waits for what dispatches write."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

from dmlconf.backends.directml.api.d3d12 import (
    D3D12_RESOURCE_BARRIER,
    D3D12_RESOURCE_STATES,
    D3D12_RESOURCE_TRANSITION_BARRIER,
)
from dmlconf.backends.directml.api.vtable import ComObject

__all__ = ["change_states", "wait_for_writes"]

_TRANSITION: Final = 0
_UAV: Final = 2
"""Values of `D3D12_RESOURCE_BARRIER_TYPE`."""

_ALL_SUBRESOURCES: Final = 0xFFFF_FFFF


def change_states(
    commands: ComObject,
    buffers: Sequence[int],
    before: D3D12_RESOURCE_STATES,
    after: D3D12_RESOURCE_STATES,
) -> None:
    """Record a state transition of the buffers at these addresses."""
    if not buffers:
        return
    barriers = (D3D12_RESOURCE_BARRIER * len(buffers))()
    for barrier, buffer in zip(barriers, buffers, strict=True):
        barrier.Type = _TRANSITION
        barrier.Transition = D3D12_RESOURCE_TRANSITION_BARRIER(
            buffer, _ALL_SUBRESOURCES, before, after
        )
    commands.call("ResourceBarrier", len(buffers), barriers)


def wait_for_writes(commands: ComObject) -> None:
    """Record a barrier: later commands wait for all writes of earlier dispatches."""
    barrier = D3D12_RESOURCE_BARRIER(_UAV)
    commands.call("ResourceBarrier", 1, ctypes.byref(barrier))
