"""A program that forks can be captured in each of its processes.

The tested code is in `dmlconf/capture/journal.py` and `dmlconf/capture/thread_lock.py`.
"""

from __future__ import annotations

import os
import signal
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from dmlconf.capture.journal import JournalWriter

if not hasattr(os, "fork"):
    pytest.skip("Windows has no fork", allow_module_level=True)

from fcntl import ioctl
from termios import FIONREAD

LINE = {"event": "skipped", "what": "operator", "reason": "x" * 200_000}
"""A line that does not fit into a pipe."""


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_can_write_that_is_forked_while_another_thread_writes(tmp_path: Path) -> None:
    """The thread waits for a pipe to be read, and so has the lock when the process forks."""
    path = tmp_path / "journal.jsonl"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(pipe, True)
    writer = JournalWriter(path)
    thread = Thread(target=writer.write, args=(LINE,))
    thread.start()
    while not waiting_bytes(pipe):
        assert thread.is_alive()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            writer.write({"event": "created", "operator": "TILE"})
        finally:
            os._exit(0)
    # The child may write before the thread has written all: the pipe then has its line between two
    # parts of the thread's, so all must be read, not a line.
    with os.fdopen(pipe, "rb") as stream, ThreadPoolExecutor(1) as readers:
        content = readers.submit(stream.read)
        thread.join()
        writer.close()
        assert os.waitpid(child, 0)[1] == 0
        assert content.result().count(b'"created"') == 1


def waiting_bytes(pipe: int) -> int:
    """Return how many bytes can be read from a pipe."""
    content = array("i", [0])
    ioctl(pipe, FIONREAD, content)
    return content[0]
