"""Databases for the tests of histories: a file of SQLite, and a PostgreSQL of the tests' own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

BACKENDS = [
    pytest.param("sqlite"),
    pytest.param("postgresql", marks=pytest.mark.postgres),
]

# The extra `test` has no Parquet; `dev` brings it.
collect_ignore_glob = [] if find_spec("pyarrow") else ["test_parquet.py"]

_numbers = count()


def program(name: str) -> str | None:
    """Return the path of a program of PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a PostgreSQL that runs as a user of its own, without a database's name."""
    initdb, postgres, createdb = map(program, ("initdb", "postgres", "createdb"))
    if not (initdb and postgres and createdb):
        pytest.fail("PostgreSQL is missing: apt install postgresql")
    user = "postgres" if os.geteuid() == 0 else None  # It refuses root.
    folder = Path(tempfile.mkdtemp(prefix="dmlconf-postgres-", dir="/tmp"))
    try:
        if user:
            shutil.chown(folder, user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        data = str(folder / "data")
        options = ["-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync", "--locale", "C"]
        subprocess.run(
            [initdb, "-D", data, *options], user=user, check=True, capture_output=True, cwd=folder
        )
        settings = ["-c", "fsync=off", "-h", "127.0.0.1", "-p", port, "-k", str(folder)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [postgres, "-D", data, *settings], user=user, stdout=log, stderr=log, cwd=folder
            )
        try:
            wait_for(port, createdb, process)
            yield f"postgresql+psycopg://tester@127.0.0.1:{port}/"
        finally:
            process.send_signal(signal.SIGINT)  # At SIGTERM it waits until all clients leave.
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(port: str, createdb: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers."""
    command = [createdb, "-h", "127.0.0.1", "-p", port, "-U", "tester", "ready"]
    while subprocess.run(command, capture_output=True, check=False).returncode:
        assert process.poll() is None, "PostgreSQL ended"


@pytest.fixture(params=BACKENDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The name of an empty database, as `--database` takes it."""
    if request.param == "sqlite":
        return str(tmp_path / "history.sqlite")
    address: str = request.getfixturevalue("server")
    name = f"history{next(_numbers)}"
    port = address.rpartition(":")[2].rstrip("/")
    createdb = program("createdb")
    assert createdb
    subprocess.run([createdb, "-h", "127.0.0.1", "-p", port, "-U", "tester", name], check=True)
    return address + name
