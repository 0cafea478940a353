"""An operator is captured even at the address of a released initialiser.

The tested code is in `dmlconf/capture/hooking/dispatches.py`.
"""

from __future__ import annotations

from pathlib import Path

from dmlconf.capture.hooking.arrays import StatisticsStore
from dmlconf.capture.hooking.dispatches import Dispatches
from dmlconf.capture.hooking.guard import Guard
from dmlconf.capture.hooking.patches import Patches
from dmlconf.capture.hooking.slots import Compiled
from dmlconf.capture.journal import JournalWriter


def test_operator_at_an_initialisers_old_address_is_captured(
    tmp_path: Path,
) -> None:
    journal = JournalWriter(tmp_path / "journal.jsonl")
    hooks = Dispatches(Patches(), Guard(journal), journal, StatisticsStore(), most=1)
    address, table = 4096, 8192  # Nothing is read at these addresses.
    hooks._initializes(address, 0, 0)
    assert hooks._wanted(address, table) == []  # The initialiser has no operators.
    compiled = Compiled(number=1, flags=0, inputs=(), outputs=())
    hooks.compiled(address, compiled)
    [dispatch] = hooks._wanted(address, table)
    assert (dispatch.what, dispatch.initializes) == (compiled, False)
    journal.close()
