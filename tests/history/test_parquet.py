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
from tests.cli.process import dmlconf, dmlconf_here
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
    # The history stores both verdicts of nights 0, 3 and 6, whose driver is new, and those on A of
    # nights 2 and 7, whose status is new.
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


@pytest.mark.slow
def test_two_processes_export_to_the_same_folder_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "h.sqlite")
    fill(database, [night(n, [verdict(A), verdict(B)]) for n in range(2)])
    export = ("history", "export", tmp_path / "tables", "--database", database)
    replace = Path.replace

    def other_first(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        assert dmlconf(tmp_path, *export).returncode == 0
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", other_first)
    done = dmlconf_here(tmp_path, *export)
    assert done.returncode == 0, done.stderr
    assert {*(tmp_path / "tables").iterdir()} == {
        tmp_path / "tables" / f"{table.name}.parquet" for table in METADATA.sorted_tables
    }


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
def test_import_refuses_a_wrong_file_and_names_it(
    tmp_path: Path, name: str, content: object, message: str
) -> None:
    """A dictionary stands for the columns of a table with the metadata of the exported file."""
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
def test_import_refuses_tables_that_lack_needed_rows(
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


def test_a_failed_export_leaves_no_temporary_file(tmp_path: Path) -> None:
    database, tables = str(tmp_path / "h.sqlite"), tmp_path / "tables"
    fill(database, [night(1, [verdict(A)])])
    for table in METADATA.sorted_tables:
        (tables / f"{table.name}.parquet").mkdir(parents=True)
    done = dmlconf_here(tmp_path, "history", "export", tables, "--database", database)
    assert done.returncode == 2
    assert f"{tables}: " in done.stderr
    assert not list(tables.glob(".*"))
