"""Insert rows into a table. For many rows, PostgreSQL's COPY takes half the time of INSERT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Table, insert
from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["insert_rows"]

_MANY: Final = 100
"""The least number of rows for which COPY is used."""


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, which all have the same columns.

    Raises:
        SQLAlchemyError: the database does not accept the rows.
    """
    if connection.dialect.name != "postgresql" or len(rows) < _MANY:
        if rows:
            connection.execute(insert(table), list(rows))
        return
    names = list(rows[0])
    quoted = connection.dialect.identifier_preparer.quote
    columns = ", ".join(map(quoted, names))
    statement = f"COPY {quoted(table.name)} ({columns}) FROM STDIN"
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row([row[name] for name in names])
    except connection.dialect.loaded_dbapi.Error as error:
        raise DBAPIError(statement, None, error) from error
