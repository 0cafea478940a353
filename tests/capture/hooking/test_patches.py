"""An entry counts as replaced only if the system has let it be written.

The tested code is in `dmlconf/capture/hooking/patches.py`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import pytest

from dmlconf.capture.hooking import patches
from dmlconf.capture.hooking.patches import Patches
from dmlconf.capture.hooking.systems.common import Export, address_of

KIND = ctypes.CFUNCTYPE(ctypes.c_int)


class Exporting:
    """A system with one library in memory, whose table of exports has one entry."""

    def __init__(self, function: Any) -> None:
        self.table = (ctypes.c_uint64 * 1)(address_of(function))
        self.failure: str | None = None
        """When `overwrite` fails: `before` or `after` it has written; None for never."""

    def export(self, module: int, name: str) -> Export:
        return Export(module, name, ctypes.addressof(self.table), self.table[0])

    def redirection(self, exported: Export, target: int) -> tuple[int, bytes]:
        return exported.entry, struct.pack("<Q", target)

    def imports(self, name: str, function: int, target: int) -> tuple[()]:
        return ()

    def readable(self, address: int) -> bool:
        return True

    def overwrite(self, address: int, content: bytes) -> None:
        if self.failure == "before":
            raise OSError("not permitted")
        ctypes.memmove(address, content, len(content))
        if self.failure == "after":
            raise OSError("not permitted")

    def called(self) -> int:
        """Return what the exported function returns, called by the address in the table."""
        return int(KIND(self.table[0])())


def one_more(original: Callable[..., int]) -> Callable[..., int]:
    """Return a function whose result is greater by 1."""
    return lambda: original() + 1


@pytest.mark.parametrize(("failure", "result"), [("before", 1), ("after", 2)])
def test_an_export_that_could_not_be_replaced_is_replaced_later(
    monkeypatch: pytest.MonkeyPatch, failure: str, result: int
) -> None:
    function = KIND(lambda: 1)
    system, replaced = Exporting(function), Patches()
    monkeypatch.setattr(patches, "system", system)
    system.failure = failure
    with pytest.raises(OSError, match="not permitted"):
        replaced.replace_export(0, "function", KIND, one_more)
    assert system.called() == result
    system.failure = None
    for _ in range(2):
        replaced.replace_export(0, "function", KIND, one_more)
        assert system.called() == 2
    replaced.remove()
    assert system.called() == 1
