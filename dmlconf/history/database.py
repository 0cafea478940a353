"""Open the database of a history: SQLite in a file, or PostgreSQL at an address.

A database of an older version is migrated when it is opened. Only one writer changes it at a time:
SQLite locks the file, and writers to PostgreSQL take an advisory lock.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dmlconf.documents.files import make_folders
from dmlconf.documents.problems import printable
from dmlconf.extras import install_command
from dmlconf.history.errors import HistoryError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

__all__ = ["NEWEST", "Database", "default_database", "opened", "parts_of"]

NEWEST: Final = "2"
"""The revision of the tables that this version reads and writes."""

_NO_ADDRESS: Final = (
    "--database is neither a file nor an address such as postgresql+psycopg://host/name"
)

_PATIENCE: Final = 120
"""Seconds for which a connection to SQLite waits for the lock of another one."""

_MOST_PARAMETERS: Final = 500
"""The most ids in a part that `parts_of` yields; older SQLite permits 999 values in a statement."""

_LOCK: Final = 0x646D6C636F6E66
"""The advisory lock of writers to PostgreSQL: `dmlconf` in ASCII."""


def default_database() -> Path:
    """Return the database in the user's data folder.

    Raises:
        HistoryError: this account has no such folder.
    """
    from platformdirs import user_data_path

    try:
        folder = user_data_path("dmlconf", appauthor=False)
    except RuntimeError:
        folder = Path()
    if not folder.is_absolute():
        raise HistoryError("this account has no data folder; name a file with --database FILE")
    return folder / "history.sqlite"


def parts_of(ids: Iterable[int]) -> Iterator[Sequence[int]]:
    """Yield ids in rising order, in parts that are small enough for one condition of SQL."""
    listed = sorted(ids)
    for begin in range(0, len(listed), _MOST_PARAMETERS):
        yield listed[begin : begin + _MOST_PARAMETERS]


@dataclass(frozen=True, slots=True)
class Database:
    """An open history.

    Attributes:
        name: the file, or the address without options, with `***` in place of a password.
    """

    engine: Engine
    name: str

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the database, even if others write to it.

        Raises:
            HistoryError: the database cannot be read.
        """
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self.engine.connect() as connection:
                if connection.dialect.name == "postgresql":
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    yield connection
        except SQLAlchemyError as error:
            raise _failed(self.name, error) from error

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection for one change, which is made as a whole or not at all.

        Raises:
            HistoryError: the database does not accept the change.
        """
        from sqlalchemy import text
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self.engine.connect() as connection:
                writer = connection.execution_options(dmlconf_writes=True)
                with writer.begin():
                    if writer.dialect.name == "postgresql":
                        writer.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                    yield writer
        except UnicodeEncodeError as error:  # A text has half a surrogate pair, as JSON may.
            raise HistoryError(printable(f"{self.name}: {error}")) from error
        except SQLAlchemyError as error:
            raise _failed(self.name, error) from error

    def compact(self) -> None:
        """Shrink a file of SQLite after rows were removed; PostgreSQL frees space by itself.

        Raises:
            HistoryError: the file cannot be rewritten.
        """
        if self.engine.dialect.name != "sqlite":
            return
        import sqlite3

        with self.engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            try:
                raw.execute("VACUUM")
            except sqlite3.Error as error:
                raise _failed(self.name, error) from error


@contextmanager
def opened(database: str | None, *, create: bool = False) -> Iterator[Database]:
    """Open a history, and bring its tables to the newest revision.

    Args:
        database: a file, an address such as `postgresql+psycopg://host/name`, or None for the file
            that `default_database` names.
        create: whether to create the file if there is none; a PostgreSQL database must exist.

    Raises:
        HistoryError: the database cannot be opened, is no history, or a newer version made it; or
            this account has no data folder.
    """
    named = str(default_database()) if database is None else database
    address = _address(named)
    if address is None:
        _prepare_file(named, create=create)
        engine, name = _file_engine(Path(named)), named
    else:
        # Messages must not repeat a password in the address.
        engine = _server_engine(address)
        name = address.set(query={}).render_as_string(hide_password=True)
    history = Database(engine, name)
    try:
        _migrate(history)
        yield history
    finally:
        engine.dispose()


def _address(named: str) -> URL | None:
    from sqlalchemy import make_url
    from sqlalchemy.exc import SQLAlchemyError

    if "://" not in named:
        return None
    try:
        url = make_url(named)
    except (SQLAlchemyError, ValueError) as error:
        raise HistoryError(_NO_ADDRESS) from error
    if url.drivername not in ("postgresql", "postgresql+psycopg"):
        raise HistoryError(_NO_ADDRESS)
    return url.set(drivername="postgresql+psycopg")


def _server_engine(address: URL) -> Engine:
    from sqlalchemy import create_engine

    try:
        return create_engine(address, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        message = f"PostgreSQL needs the package {error.name}: {install_command('history')}"
        raise HistoryError(message) from error


def _prepare_file(named: str, *, create: bool) -> None:
    file = Path(named)
    try:
        if create:
            make_folders(file.parent)
        try:
            # From Python 3.14 on, exists() and is_dir() do not tell why a lookup failed.
            is_directory = stat.S_ISDIR(file.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            is_directory = False
            if not create:
                raise HistoryError(
                    printable(f"there is no history {named}; `dmlconf history add LOG` begins one")
                ) from None
        if is_directory:
            raise HistoryError(printable(f"{named or '.'} is a folder; name a file"))
    except OSError as error:
        raise HistoryError(printable(f"{named}: {error.strerror}")) from error


def _file_engine(file: Path) -> Engine:
    from sqlalchemy import URL, create_engine

    url = URL.create("sqlite", database=str(file.absolute()))
    engine = create_engine(url, connect_args={"timeout": _PATIENCE})
    _lock_files(engine)
    return engine


def _lock_files(engine: Engine) -> None:
    """Begin the transactions of SQLite explicitly, those of writers with a lock.

    The module `sqlite3` would begin a transaction only before its first change, when another writer
    might have changed what this one has read.
    """
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def manual(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("dmlconf_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _migrate(history: Database) -> None:
    with history.reading() as connection:
        revision = _revision(history, connection)
    if revision == NEWEST:
        return
    from alembic.command import upgrade
    from alembic.config import Config

    with history.writing() as connection:
        if _revision(history, connection) == NEWEST:
            return  # Another process has just done it.
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        upgrade(config, NEWEST)


def _revision(history: Database, connection: Connection) -> str | None:
    from sqlalchemy import inspect, text

    names = set(inspect(connection).get_table_names())
    if "alembic_version" not in names:
        if names:
            raise HistoryError(printable(f"{history.name} is a database of something else"))
        return None
    revision = str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar())
    if not revision.isdigit() or int(revision) > int(NEWEST) or not names & {"run"}:
        raise HistoryError(
            printable(f"{history.name} was made by a newer dmlconf, or by something else")
        )
    return revision


def _failed(name: str, error: Exception) -> HistoryError:
    reason = str(getattr(error, "orig", None) or error).strip().splitlines()
    return HistoryError(printable(f"{name}: {reason[0] if reason else type(error).__name__}"))
