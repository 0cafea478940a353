"""Databases for tests of histories, on SQLite and on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

from tests.history.postgres import NOT_DURABLE, Server, running_server

BACKENDS = [
    pytest.param("sqlite"),
    pytest.param("postgresql", marks=pytest.mark.postgres),
]

# The extra `dev` installs Parquet, and the extra `test` does not.
collect_ignore_glob = [] if find_spec("pyarrow") else ["test_parquet.py"]

_numbers = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running_server(NOT_DURABLE) as server:
        yield server


@pytest.fixture(params=BACKENDS)
def databases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The addresses of any number of new databases."""
    names = (f"history{number}" for number in _numbers)
    if request.param == "sqlite":
        return (str(tmp_path / f"{name}.sqlite") for name in names)
    server: Server = request.getfixturevalue("server")
    return map(server.database, names)


@pytest.fixture
def database(databases: Iterator[str]) -> str:
    return next(databases)
