"""Receive messages from a process that may die or stop in the middle of one."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

__all__ = ["receive"]

_POLL_SECONDS: Final = 0.25
"""How often to ask whether to give up while nothing arrives."""

_MOST_AT_ONCE: Final = 1 << 20
"""How many bytes to read at most before asking again."""

_LONG: Final = -1
"""The length, in four bytes, of a message whose length follows in eight."""


def receive(connection: Connection, given_up: Callable[[], bool]) -> Any:
    """Return the next message of a pipe, of which the first bytes are there.

    Args:
        given_up: returns whether no more will come, although another process, such as a child of
            the sender, keeps the pipe open; asked while nothing arrives.

    Raises:
        EOFError: the message ends early, or `given_up` returned True.
        OSError: the pipe cannot be read.
        Exception: the message cannot be unpickled.
    """
    if sys.platform == "win32":
        return connection.recv()  # What is in a pipe there is a whole message.

    def read(size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            while not connection.poll(_POLL_SECONDS):
                # It may have sent the rest and died since it was looked for.
                if given_up() and not connection.poll():
                    raise EOFError("the message ends early")
            part = os.read(connection.fileno(), min(size - len(content), _MOST_AT_ONCE))
            if not part:
                raise EOFError("the message ends early")
            content += part
        return bytes(content)

    # This is what `Connection.send` writes.
    length = int.from_bytes(read(4), "big", signed=True)
    if length == _LONG:
        length = int.from_bytes(read(8), "big")
    return pickle.loads(read(length))
