"""Find a TCP port for a server that must be told one."""

from __future__ import annotations

import socket
from random import SystemRandom

__all__ = ["free_port"]


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nobody listens.

    It is below those that systems give to connections and to servers that take any port, since such
    a port could be taken before the server listens on it.
    """
    while True:
        port = SystemRandom().randrange(20_000, 30_000)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
