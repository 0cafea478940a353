"""A history stays consistent if writers compete, die or fail; older databases are migrated.

The tested code is in `dmlconf/history/adding.py`, `dmlconf/history/inserting.py`,
`dmlconf/history/database.py`, `dmlconf/history/maintenance.py`, `dmlconf/history/tables.py`,
`dmlconf/history/migrations/` and `dmlconf/cli/runs/history.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from alembic.command import upgrade
from alembic.config import Config
from sqlalchemy import Engine, create_engine, inspect, select, text

import dmlconf.history.migrations
from dmlconf.history.adding import add
from dmlconf.history.database import opened
from dmlconf.history.errors import HistoryError
from dmlconf.history.tables import METADATA, run
from tests.cli.process import DMLCONF, dmlconf_here, environment, write
from tests.history.runs import night, verdict
from tests.history.test_answers import fill, history_of, log_file, rows

CASES = [f"tile/matrix/{number}" for number in range(1_500)]
"""Enough cases that a process can be killed while it adds a run."""


def write_logs(folder: Path, nights: int) -> list[Path]:
    """Write logs of nights in which all cases pass and fail by turns; return their paths."""
    return [
        log_file(folder, night(n, [verdict(c, fails=n % 2 == 1) for c in CASES]), f"{n}.jsonl")
        for n in range(nights)
    ]


def start_adding(folder: Path, database: str, *files: Path) -> subprocess.Popen[bytes]:
    """Start `dmlconf history add`, and return its process without waiting."""
    command = [*DMLCONF, "history", "add", "-q", "--database", database, *map(str, files)]
    return subprocess.Popen(command, cwd=folder, env=environment(folder))


@pytest.mark.breakdown
def test_two_concurrent_writers_lose_and_duplicate_no_run(database: str, tmp_path: Path) -> None:
    files = write_logs(tmp_path, 6)
    writers = [start_adding(tmp_path, database, *files[at:], *files[:at]) for at in (0, 3)]
    assert [writer.wait() for writer in writers] == [0, 0]
    whole = str(tmp_path / "whole.sqlite")
    fill(whole, [night(n, [verdict(c, fails=n % 2 == 1) for c in CASES]) for n in range(6)])
    assert history_of(database, CASES[7]) == history_of(whole, CASES[7])
    assert len(rows(database)) == len(rows(whole)) == 6 * len(CASES)


@pytest.mark.breakdown
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells which files a process has open")
def test_two_histories_are_merged_into_each_other_at_once(tmp_path: Path) -> None:
    """Both merges begin while another writer has both histories, and go on at the same time."""
    files = [str(tmp_path / name) for name in ("one.sqlite", "two.sqlite")]
    for at, file in enumerate(files):
        nights = range(at, 10, 2)
        fill(file, [night(n, [verdict(c, fails=n % 4 == at) for c in CASES]) for n in nights])
    with ExitStack() as stack:
        for file in files:
            stack.enter_context(stack.enter_context(opened(file)).writing())
        merges = [
            subprocess.Popen(
                [*DMLCONF, "history", "merge", source, "--database", target],
                cwd=tmp_path,
                env=environment(tmp_path),
            )
            for source, target in (files, reversed(files))
        ]
        for merge in merges:
            while not has_open(merge.pid, files):
                assert merge.poll() is None
                time.sleep(0.01)
    assert [merge.wait() for merge in merges] == [0, 0]
    assert [stored_runs(file) for file in files] == [10, 10]
    assert history_of(files[0], CASES[7]) == history_of(files[1], CASES[7])


def has_open(process: int, files: list[str]) -> bool:
    """Return whether a process has all of some files open."""
    found = set()
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(link.readlink()))
    return found >= set(files)


def stored_runs(database: str) -> int:
    with opened(database) as history, history.reading() as connection:
        return len(connection.execute(select(run.c.id)).all())


@pytest.mark.breakdown
def test_killing_a_writer_loses_and_duplicates_no_run(database: str, tmp_path: Path) -> None:
    files = write_logs(tmp_path, 8)
    with opened(database, create=True):
        pass
    for attempt in range(1, 5):
        writer = start_adding(tmp_path, database, *files)
        while writer.poll() is None and stored_runs(database) < attempt:
            time.sleep(0.01)
        writer.kill()  # While it adds another run.
        assert writer.wait() == -signal.SIGKILL
        assert len(rows(database)) == stored_runs(database) * len(CASES)
    assert start_adding(tmp_path, database, *files).wait() == 0
    assert len(rows(database)) == len(files) * len(CASES)


def test_adding_300_cases_at_once_equals_adding_one(database: str, tmp_path: Path) -> None:
    # 100 rows or more go to PostgreSQL by COPY, for which these characters are escaped.
    names = [f"tile/matrix/tab\tline\\n, 'quoted' {number}" for number in range(300)]
    runs = [night(n, [verdict(name, fails=n == 1) for name in names]) for n in range(2)]
    fill(database, runs)
    few = str(tmp_path / "few.sqlite")
    fill(few, [night(n, [verdict(names[7], fails=n == 1)]) for n in range(2)])
    assert len(rows(database)) == 600
    assert history_of(database, names[7]) == history_of(few, names[7])


@pytest.mark.parametrize(
    "databases", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
@pytest.mark.parametrize("count", [1, 300], ids=["by INSERT", "by COPY"])
def test_a_name_that_postgresql_cannot_store_is_refused(database: str, count: int) -> None:
    names = [f"tile/matrix/\0{number}" for number in range(count)]
    with pytest.raises(HistoryError, match="NUL"):
        fill(database, [night(0, [verdict(name) for name in names])])
    fill(database, [night(0, [verdict("tile/matrix/a")])])
    assert len(rows(database)) == 1


def test_an_interrupted_addition_adds_no_rows(tmp_path: Path) -> None:
    database = str(tmp_path / "history.sqlite")
    fill(database, [night(0, [verdict("tile/matrix/a")])])

    def break_off() -> None:
        with opened(database) as history, history.writing() as connection:
            add(connection, night(1, [verdict("tile/matrix/a", fails=True)]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert len(rows(database)) == 1


@pytest.mark.parametrize(
    "databases", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
def test_a_reader_does_not_see_runs_that_are_added_meanwhile(database: str) -> None:
    fill(database, [night(0, [verdict("tile/matrix/a")])])
    with opened(database) as history, history.reading() as connection:
        assert len(connection.execute(select(run.c.id)).all()) == 1
        fill(database, [night(1, [verdict("tile/matrix/a")])])
        assert len(connection.execute(select(run.c.id)).all()) == 1


def test_database_file_names_may_have_special_characters(tmp_path: Path) -> None:
    name = "50% of what?#.sqlite"
    fill(str(tmp_path / name), [night(0, [verdict("tile/matrix/a")])])
    assert [file.name for file in tmp_path.iterdir()] == [name]


def index_names(engine: Engine) -> set[str | None]:
    return {index["name"] for index in inspect(engine).get_indexes("run")}


def test_a_database_of_an_older_version_is_migrated(database: str, tmp_path: Path) -> None:
    address = database if "://" in database else f"sqlite:///{database}"
    engine = create_engine(address)
    config = Config()
    folder = str(Path(dmlconf.history.migrations.__file__).parent)
    config.set_main_option("script_location", folder)
    config.set_main_option("path_separator", "os")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        upgrade(config, "1")
        connection.execute(text(f"INSERT INTO suite (digest) VALUES ('{'a' * 64}')"))
    assert "run_of_environment" not in index_names(engine)
    fill(database, [night(0, [verdict("tile/matrix/a")])])
    assert "run_of_environment" in index_names(engine)
    engine.dispose()
    fill(database, [night(1, [verdict("tile/matrix/a", fails=True)])])
    assert len(history_of(database, "tile/matrix/a")) == 2


def test_migrations_make_the_tables_that_the_code_uses(database: str) -> None:
    with opened(database, create=True) as history:
        inspector = inspect(history.engine)
        for table in METADATA.sorted_tables:
            columns = {each["name"]: each["nullable"] for each in inspector.get_columns(table.name)}
            assert columns == {column.name: bool(column.nullable) for column in table.columns}
            indexes = {each["name"] for each in inspector.get_indexes(table.name)}
            assert {index.name for index in table.indexes} <= indexes
            key = inspector.get_pk_constraint(table.name)["constrained_columns"]
            assert key == [column.name for column in table.primary_key]
        names = set(inspector.get_table_names())
    assert names == {table.name for table in METADATA.sorted_tables} | {"alembic_version"}


def test_option_history_adds_the_run_to_the_database(tmp_path: Path) -> None:
    write(tmp_path)
    variables = {"DMLCONF_HISTORY": str(tmp_path / "here" / "history.sqlite")}
    run_with_history = ("run", "tile.yaml", "--history", "-q", "-b")
    assert dmlconf_here(tmp_path, *run_with_history, "numpy", **variables).returncode == 0
    assert dmlconf_here(tmp_path, *run_with_history, "faulty:zeros", **variables).returncode == 1
    done = dmlconf_here(tmp_path, "history", "case", "tile/tile/stated", **variables)
    assert "failed in 0 of 1 runs" in done.stdout
    assert "failed in 1 of 1 runs" in done.stdout


def test_option_history_is_refused_if_the_database_cannot_be_created(tmp_path: Path) -> None:
    write(tmp_path)
    below_a_file = {"DMLCONF_HISTORY": str(tmp_path / "tile.yaml" / "x")}
    refused = dmlconf_here(tmp_path, "run", "tile.yaml", "--history", "-q", **below_a_file)
    assert refused.returncode == 2
    assert str(tmp_path / "tile.yaml" / "x") in refused.stderr


@pytest.mark.slow
def test_a_run_without_a_history_imports_no_sqlalchemy(tmp_path: Path) -> None:
    write(tmp_path)
    code = (
        "import sys; from dmlconf.cli.entry_point import main\n"
        "try: main(['run', 'tile.yaml', '-q'])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'sqlalchemy', 'alembic'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, **environment(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
