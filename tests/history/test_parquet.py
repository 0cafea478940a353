"""A history is written as Parquet files and read back unchanged; wrong files are refused.

The tested code is in `dmlconf/history/parquet.py`, `dmlconf/history/maintenance.py` and
`dmlconf/cli/commands/results/history.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dmlconf.history.tables import METADATA
from tests.cli.process import dmlconf_here
from tests.history.runs import night, verdict
from tests.history.test_answers import fill, history_of, rows

A, B = "tile/matrix/a", "gemm/documented/b"


def test_a_history_exported_to_parquet_is_imported_unchanged(database: str, tmp_path: Path) -> None:
    nights = [
        night(n, [verdict(A, fails=n % 4 == 2, message="ä\n\x1b"), verdict(B)], driver=f"{n // 3}")
        for n in range(9)
    ]
    fill(database, nights)
    tables, copy = tmp_path / "tables", str(tmp_path / "copy.sqlite")
    done = dmlconf_here(tmp_path, "history", "export", tables, "--database", database)
    # What differs from the night before is stored, and everything in nights 0, 3 and 6, since their
    # driver is new: A in nights 0, 2, 3, 6 and 7, and B in nights 0, 3 and 6.
    assert (done.returncode, done.stdout) == (0, f"{tables}: 9 tables, 9 runs, 8 verdicts\n")
    for expected in ("added 9 runs\n", "added 0 runs\n"):
        done = dmlconf_here(tmp_path, "history", "import", tables, "--database", copy)
        assert (done.returncode, done.stdout) == (0, expected)
    assert rows(copy) == rows(database)
    assert [history_of(copy, case) for case in (A, B)] == [
        history_of(database, case) for case in (A, B)
    ]
    again = tmp_path / "again"
    dmlconf_here(tmp_path, "history", "export", again, "--database", copy)
    for table in METADATA.sorted_tables:
        one, other = (pq.read_table(each / f"{table.name}.parquet") for each in (tables, again))
        keys = [(key.name, "ascending") for key in table.primary_key]
        assert one.sort_by(keys).equals(other.sort_by(keys)), table.name


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run", None, r"run.parquet is missing; `history export` writes it"),
        ("run", b"text", r"run.parquet cannot be read: "),
        ("suite", pa.table({"id": [1]}), r"suite.parquet is not a table of a history"),
        (
            "suite",
            pa.table({"id": [1]}, metadata={"dmlconf-history": "later"}),
            r"suite.parquet was written by another version of dmlconf",
        ),
        ("suite", {"id": [1]}, r"suite.parquet has other columns than the table has"),
        (
            "suite",
            {"id": [1], "digest": ["x"], "newer": [1]},
            r"suite.parquet has other columns than the table has",
        ),
    ],
)
def test_the_error_for_a_file_that_is_no_table_of_a_history_names_the_file(
    tmp_path: Path, name: str, content: object, message: str
) -> None:
    """The file is replaced by `content`: by nothing, by bytes, or by a table.

    An exported file has metadata, which say the version of the history's tables. If `content` is a
    dictionary, the table gets these metadata. A table of Arrow keeps its own, if it has any.
    """
    database, tables = str(tmp_path / "h.sqlite"), tmp_path / "tables"
    fill(database, [night(0, [verdict(A)])])
    dmlconf_here(tmp_path, "history", "export", tables, "--database", database)
    file = tables / f"{name}.parquet"
    metadata = pq.read_schema(file).metadata
    file.unlink()
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif isinstance(content, dict):
        pq.write_table(pa.table(content).replace_schema_metadata(metadata), file)
    elif content is not None:
        pq.write_table(content, file)
    copy = str(tmp_path / "copy.sqlite")
    done = dmlconf_here(tmp_path, "history", "import", tables, "--database", copy)
    assert done.returncode == 2
    assert re.search(message, done.stderr), done.stderr
    assert rows(copy) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("change", "run #1 lacks verdicts"), ("suite", "run.parquet names a row that suite.parquet")],
)
def test_tables_that_lack_rows_which_others_need_are_refused(
    tmp_path: Path, name: str, message: str
) -> None:
    database, tables = str(tmp_path / "h.sqlite"), tmp_path / "tables"
    fill(database, [night(0, [verdict(A)])])
    dmlconf_here(tmp_path, "history", "export", tables, "--database", database)
    file = tables / f"{name}.parquet"
    table = pq.read_table(file)
    pq.write_table(table.slice(0, 0), file)
    done = dmlconf_here(tmp_path, "history", "import", tables, "--database", tmp_path / "c.sqlite")
    assert done.returncode == 2
    assert message in done.stderr


def test_an_export_that_cannot_write_a_file_leaves_no_temporary_file(tmp_path: Path) -> None:
    database, tables = str(tmp_path / "h.sqlite"), tmp_path / "tables"
    fill(database, [night(1, [verdict(A)])])
    for table in METADATA.sorted_tables:
        (tables / f"{table.name}.parquet").mkdir(parents=True)
    done = dmlconf_here(tmp_path, "history", "export", tables, "--database", database)
    assert done.returncode == 2
    assert f"{tables}: " in done.stderr
    assert not list(tables.glob(".*"))
