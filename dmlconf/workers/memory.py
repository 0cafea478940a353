"""Decide from a case's desc whether the case fits into memory."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from typing import Final, TypeVar

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.workers.control_groups import memory_limit

__all__ = [
    "LIMIT_VARIABLE",
    "MUCH",
    "judged_bytes",
    "killed_for_memory",
    "machine_memory",
    "may_take_much",
    "parts_that_fit",
    "shortage",
    "sizes_of",
    "tensor_bytes",
]

_Item = TypeVar("_Item")

_COPIES: Final = 4
"""Running a case is taken to need at most this many times the bytes of its inputs and outputs."""

LIMIT_VARIABLE: Final = "DMLCONF_MEMORY_MIB"
"""The environment variable with the memory that may be used, in MiB."""

_ELEMENT: Final = 64
"""Bytes for each element, as measured in a process that runs and judges a case."""

MUCH: Final = 250 << 20
_SHARE: Final = 8
"""A case takes much memory above `MUCH` bytes, or above an eighth of `machine_memory()`."""

_SMALL: Final = 1 << 20
"""Tensors of fewer bytes are taken to fit into any memory."""


def tensor_bytes(case: Case) -> int:
    """Return the bytes of all inputs and outputs of a case; intermediates of a graph do not count.

    If the elements of a tensor would fill more than its buffer, as with strides of 0, they count.
    """
    return sizes_of(case)[0]


def sizes_of(case: Case) -> tuple[int, int]:
    """Return `tensor_bytes`, and how many elements these tensors have."""
    sizes: tuple[int, int] = case.once("sizes", lambda: _sizes(case))
    return sizes


def _sizes(case: Case) -> tuple[int, int]:
    tensors = [tensor for _, _, tensor in tensors_of(case.entry, case.desc)]
    return sum(map(_bytes, tensors)), sum(tensor.ElementCount for tensor in tensors)


@lru_cache(maxsize=4096)
def _bytes(tensor: TensorDesc) -> int:
    elements = tensor.ElementCount * tensor.DataType.bits // 8
    return max(tensor.TotalTensorSizeInBytes, elements)


def shortage(case: Case, device: int | None = None, machine: int | None = None) -> str | None:
    """Return why a case does not fit into memory; None if it does.

    Args:
        device: how many bytes the device can address; None if unknown.
        machine: how many bytes of memory this machine has; None for `machine_memory()`.
    """
    needed = tensor_bytes(case)
    if needed < _SMALL:
        return None
    if device is not None and needed > device:
        return f"its tensors have {_spoken(needed)}, and the device {_spoken(device)}"
    available = machine_memory() if machine is None else machine
    if _COPIES * needed > available:
        least = _spoken(_COPIES * needed)
        return f"needs up to {least} of memory, and this machine has {_spoken(available)}"
    return None


def parts_that_fit(
    items: Iterable[_Item], size_of: Callable[[_Item], int], most_items: int, most_bytes: int
) -> Iterator[list[_Item]]:
    """Yield lists of consecutive items.

    Args:
        size_of: returns how many bytes an item takes.
        most_items: the most items of a list; 1 or more.
        most_bytes: the most bytes of a list; a single item may take more.
    """
    part: list[_Item] = []
    held = 0
    for item in items:
        size = size_of(item)
        if part and (len(part) == most_items or held + size > most_bytes):
            yield part
            part, held = [], 0
        part.append(item)
        held += size
    if part:
        yield part


def killed_for_memory(ending: str) -> str:
    """Return a remark if a process may have been killed because memory ran out; else "".

    Args:
        ending: what `how_it_ended` returned.
    """
    if not ending.endswith("SIGKILL"):
        return ""
    limit = _spoken(machine_memory())
    return f"; the system does so when memory runs out, and here processes may use {limit}"


def may_take_much(case: Case) -> bool:
    """Return whether a case may take so much memory that its process is killed."""
    if isinstance(case.expectation, ExpectedRejection):
        return False  # A backend that rejects it creates no tensors.
    return judged_bytes(case) > min(MUCH, machine_memory() // _SHARE)


def judged_bytes(case: Case) -> int:
    """Return about how many bytes running and judging a case takes.

    An element takes the same in every data type, since computations are in FLOAT64.
    """
    size, elements = sizes_of(case)
    return max(_ELEMENT * elements, _COPIES * size)


def _spoken(count: int) -> str:
    for power, unit in ((40, "TiB"), (30, "GiB")):
        if count >> power:
            return f"{count / (1 << power):,.1f} {unit}"
    return f"{count / (1 << 20):,.1f} MiB"


@cache
def machine_memory() -> int:
    """Return how many bytes of memory this process may use.

    That is the least of the machine's memory, the limit of the process's control groups, and
    `LIMIT_VARIABLE`; `sys.maxsize` if none is known.
    """
    memory = _windows_memory() if sys.platform == "win32" else _posix_memory()
    limit = memory_limit()
    memory = memory if limit is None else min(memory, limit)
    with suppress(KeyError, ValueError):
        memory = min(memory, int(os.environ[LIMIT_VARIABLE]) << 20)
    return memory


def _posix_memory() -> int:
    with suppress(OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return sys.maxsize


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of sysinfoapi.h."""

    _fields_ = (
        ("dwLength", ctypes.c_uint32),
        ("dwMemoryLoad", ctypes.c_uint32),
        ("ullTotalPhys", ctypes.c_uint64),
        ("ullAvailPhys", ctypes.c_uint64),
        ("ullTotalPageFile", ctypes.c_uint64),
        ("ullAvailPageFile", ctypes.c_uint64),
        ("ullTotalVirtual", ctypes.c_uint64),
        ("ullAvailVirtual", ctypes.c_uint64),
        ("ullAvailExtendedVirtual", ctypes.c_uint64),
    )


def _windows_memory() -> int:
    status = _MemoryStatus(dwLength=ctypes.sizeof(_MemoryStatus))
    kernel = ctypes.CDLL("kernel32.dll")
    if not kernel.GlobalMemoryStatusEx(ctypes.byref(status)):
        return sys.maxsize
    return int(status.ullTotalPhys)
