"""A process that dies or stops in the middle of a message keeps nobody waiting.

The tested code is in `dmlconf/workers/messages.py`, `dmlconf/workers/process.py`,
`dmlconf/workers/pool.py` and `dmlconf/workers/mapping.py`.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import time
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import pytest

from dmlconf.backends.errors import ProcessError
from dmlconf.backends.protocol import BreakdownKind
from dmlconf.workers.mapping import in_processes
from dmlconf.workers.messages import receive
from tests.backends.installing import plugin
from tests.workers.pools import breakdowns, run

pytestmark = [
    pytest.mark.breakdown,
    pytest.mark.skipif(sys.platform == "win32", reason="a message arrives there as a whole"),
]

BACKEND = '''
"""A backend whose process leaves off in the middle of a message at case 40, as the option says."""

from dmlconf.backends.numpy.backend import create as reference, run_case
from tests.workers.test_messages import leave_off


class LeavesOff:
    def __init__(self, fault):
        self.fault = fault
        self.environment = reference("").environment
        self.capabilities = reference("").capabilities

    def run(self, cases):
        for case in cases:
            if "=40]" in case.identifier:
                leave_off(self.fault)
            yield run_case(case)

    def close(self):
        pass


create = LeavesOff
'''


def leave_off(fault: str) -> None:
    """Begin to send a message of 1 MiB to the main process, and die or stop."""
    if "forks" in fault and os.fork() == 0:
        time.sleep(300)  # This child has the pipe, until its process group is ended.
        Path(os.environ["CHILD_ENDED"]).touch()
        os._exit(0)
    connections = [each for each in gc.get_objects() if isinstance(each, Connection)]
    [connection] = [each for each in connections if each.writable and not each.closed]
    os.write(connection.fileno(), (1 << 20).to_bytes(4, "big") + bytes(1000))
    os.kill(os.getpid(), signal.SIGSTOP if "stops" in fault else signal.SIGKILL)


@pytest.mark.parametrize("fault", ["dies", "forks and dies"])
def test_a_process_that_dies_in_the_middle_of_a_message_breaks_only_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    plugin(tmp_path, monkeypatch, "leaving", BACKEND)
    monkeypatch.setenv("CHILD_ENDED", str(tmp_path / "ended"))
    broken = breakdowns(run(tmp_path, f"leaving:{fault}", 70, timeout=900))
    assert not (tmp_path / "ended").exists()
    assert list(broken) == [40]
    assert broken[40].kind is BreakdownKind.CRASH
    assert "SIGKILL" in broken[40].message


def test_a_process_that_stops_in_the_middle_of_a_message_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path, monkeypatch, "leaving", BACKEND)
    broken = breakdowns(run(tmp_path, "leaving:stops", 70, timeout=10))
    assert list(broken) == [40]
    assert broken[40].kind is BreakdownKind.HANG


def test_what_a_process_sends_before_it_is_found_dead_is_received() -> None:
    """It is dead when it is asked after, and has just sent the rest of its message."""
    receiver, sender = Pipe(duplex=False)
    content = pickle.dumps("sent")
    message = len(content).to_bytes(4, "big") + content
    os.write(sender.fileno(), message[:6])

    def dead() -> bool:
        os.write(sender.fileno(), message[6:])
        return True

    with receiver, sender:
        assert receive(receiver, dead) == "sent"


def nothing() -> None:
    """Prepare a process for `in_processes`."""


def fork_and_die(mark: str) -> None:
    """Die without a result, while a child has the pipe."""
    child = os.fork()
    if child == 0:
        time.sleep(300)
        Path(mark).unlink()
        os._exit(0)
    Path(mark).write_text(str(child), encoding="utf-8")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_mapped_function_whose_process_dies_while_a_child_has_the_pipe_is_reported(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "child"
    with (
        pytest.raises(ProcessError, match="a process died of SIGKILL"),
        in_processes(2, nothing, ()) as mapped,
    ):
        list(mapped(fork_and_die, [str(mark)]))
    child = int(mark.read_text("utf-8"))  # If the child had ended, it would have removed the file.
    os.kill(child, signal.SIGKILL)


def test_a_mapped_function_whose_process_dies_in_the_middle_of_a_message_is_reported() -> None:
    with (
        pytest.raises(ProcessError, match="a process died of SIGKILL"),
        in_processes(2, nothing, ()) as mapped,
    ):
        list(mapped(leave_off, ["dies"]))
