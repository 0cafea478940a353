"""Export a history to Parquet files, one for each table, and import such files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, Boolean, Float, Integer, LargeBinary, Table, insert, select

from dmlconf.documents.problems import printable
from dmlconf.documents.whole_files import whole_file
from dmlconf.extras import install_command
from dmlconf.history.database import NEWEST, Database, opened
from dmlconf.history.errors import HistoryError
from dmlconf.history.maintenance import copy_runs
from dmlconf.history.tables import METADATA

if TYPE_CHECKING:
    import pyarrow

__all__ = ["export_tables", "import_tables"]

_ROWS: Final = 50_000
"""The most rows that are read and written at a time."""

_MARK: Final = b"dmlconf-history"
"""The key in each file's metadata whose value is the revision of the tables."""

_TYPES: Final = {
    BigInteger: "int64",
    Integer: "int64",
    Boolean: "bool",
    Float: "float64",
    LargeBinary: "binary",
}
"""The types of columns in Parquet files, by their type in the database; all others are text."""


def export_tables(history: Database, folder: Path) -> Mapping[str, int]:
    """Write each table to `folder/TABLE.parquet`, and return how many rows each has.

    Raises:
        HistoryError: pyarrow is missing, the history cannot be read, or a file cannot be written.
    """
    pq = _pyarrow_parquet()
    import pyarrow as pa

    counts = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with history.reading() as connection:
            for table in METADATA.sorted_tables:
                schema = _schema(table)
                file = folder / f"{table.name}.parquet"
                count = 0
                with (
                    whole_file(file) as stream,
                    pq.ParquetWriter(stream, schema, compression="zstd") as writer,
                ):
                    rows = connection.execute(select(table)).mappings()
                    while part := [dict(row) for row in rows.fetchmany(_ROWS)]:
                        writer.write_table(pa.Table.from_pylist(part, schema=schema))
                        count += len(part)
                counts[table.name] = count
    except OSError as error:
        raise HistoryError(printable(f"{folder}: {error.strerror or error}")) from error
    return counts


def import_tables(folder: Path, target: Database) -> int:
    """Add the runs of exported tables that the target lacks or has in part; return their number.

    Raises:
        HistoryError: pyarrow is missing, the files are not those of a history, or the target does
            not accept the runs.
    """
    _pyarrow_parquet()
    with (
        tempfile.TemporaryDirectory(prefix="dmlconf-history-") as temporary,
        opened(str(Path(temporary) / "history.sqlite"), create=True) as source,
    ):
        try:
            with source.writing() as connection:
                for table in METADATA.sorted_tables:
                    for rows in _rows(folder / f"{table.name}.parquet", table):
                        connection.execute(insert(table), rows)
                wrong = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
                if wrong is not None:
                    message = f"{wrong[0]}.parquet names a row that {wrong[2]}.parquet lacks"
                    raise HistoryError(printable(message))
            return copy_runs(source, target)
        except HistoryError as error:
            reason = str(error).removeprefix(source.name).lstrip(": ")
            raise HistoryError(printable(f"{folder}: {reason}")) from error


def _rows(file: Path, table: Table) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a file in parts.

    Raises:
        HistoryError: the file is missing, damaged, or not of this table and revision.
    """
    pq = _pyarrow_parquet()
    import pyarrow as pa

    try:
        with pq.ParquetFile(file) as source:
            revision = (source.schema_arrow.metadata or {}).get(_MARK, b"").decode(errors="replace")
            if revision != NEWEST:
                problem = (
                    "was written by another version of dmlconf"
                    if revision
                    else "is not a table of a history"
                )
                raise HistoryError(printable(f"{file.name} {problem}"))
            if not source.schema_arrow.equals(_schema(table)):
                raise HistoryError(f"{file.name} has other columns than the table has")
            for part in source.iter_batches(_ROWS):
                yield part.to_pylist()
    except FileNotFoundError as error:
        raise HistoryError(f"{file.name} is missing; `history export` writes it") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise HistoryError(printable(f"{file.name} cannot be read: {reason}")) from error


def _schema(table: Table) -> pyarrow.Schema:
    import pyarrow as pa

    fields = [
        pa.field(
            column.name,
            pa.type_for_alias(_TYPES.get(type(column.type), "string")),
            nullable=bool(column.nullable),
        )
        for column in table.columns
    ]
    return pa.schema(fields, metadata={_MARK: NEWEST.encode()})


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        message = f"Parquet needs the package {error.name}: {install_command('parquet')}"
        raise HistoryError(message) from error
    return pyarrow.parquet
