"""A temporary PostgreSQL server, for tests and benchmarks of histories."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.ports import free_port

__all__ = ["NOT_DURABLE", "Server", "running_server"]

NOT_DURABLE: Final = ("-c", "fsync=off")
"""Settings of a server whose data are not needed after its end."""

_MISSING: Final = "PostgreSQL is missing: apt install postgresql"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, and the path of its program `createdb`."""

    port: str
    process: subprocess.Popen[bytes]
    createdb: str

    def database(self, name: str) -> str:
        """Create an empty database, and return its address."""
        subprocess.run(self._creating(name), check=True)
        return f"postgresql+psycopg://tester@127.0.0.1:{self.port}/{name}"

    def answers(self) -> bool:
        made = subprocess.run(self._creating("ready"), capture_output=True, check=False)
        return made.returncode == 0

    def _creating(self, name: str) -> list[str]:
        return [self.createdb, "-h", "127.0.0.1", "-p", self.port, "-U", "tester", name]


@contextmanager
def running_server(settings: Sequence[str] = ()) -> Iterator[Server]:
    """Start a server; at the end of the `with` block, stop it and remove its data."""
    initdb, postgres, createdb = map(_program, ("initdb", "postgres", "createdb"))
    user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses root.
    folder = Path(tempfile.mkdtemp(prefix="dmlconf-postgres-", dir="/tmp"))
    try:
        if user:
            shutil.chown(folder, user)
        data = str(folder / "data")
        options = ["-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync", "--locale", "C"]
        subprocess.run(
            [initdb, "-D", data, *options], user=user, check=True, capture_output=True, cwd=folder
        )
        port = str(free_port())
        listens = ["-h", "127.0.0.1", "-p", port, "-k", str(folder)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [postgres, "-D", data, *settings, *listens],
                user=user,
                stdout=log,
                stderr=log,
                cwd=folder,
            )
        server = Server(port, process, createdb)
        try:
            while not server.answers():
                assert process.poll() is None, "PostgreSQL ended"
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # At SIGTERM a server waits for clients.
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    if path is None:
        raise FileNotFoundError(_MISSING)
    return path
