"""A captured dispatch knows its operator by an address, which DirectML may use again.

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


def test_an_operator_at_the_address_of_a_released_initialiser_is_captured_as_an_operator(
    tmp_path: Path,
) -> None:
    journal = JournalWriter(tmp_path / "journal.jsonl")
    hooks = Dispatches(Patches(), Guard(journal), journal, StatisticsStore(), most=1)
    address, table = 4096, 8192  # Any addresses: nothing is read there.
    hooks._initializes(address, 0, 0)
    assert hooks._wanted(address, table) == []  # It initialises no operator.
    compiled = Compiled(number=1, flags=0, inputs=(), outputs=())
    hooks.compiled(address, compiled)
    [dispatch] = hooks._wanted(address, table)
    assert (dispatch.what, dispatch.initializes) == (compiled, False)
    journal.close()
