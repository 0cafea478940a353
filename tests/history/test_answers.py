"""A history (a database of runs) says when verdicts changed and why, even if runs were removed.

The tested code is in `dmlconf/history/adding.py`, `dmlconf/history/stored_verdicts.py`,
`dmlconf/history/timeline.py`, `dmlconf/history/questions.py`, `dmlconf/history/causes.py`,
`dmlconf/history/maintenance.py`, `dmlconf/history/overview.py`, `dmlconf/history/database.py`,
`dmlconf/reports/history/answers.py`, `dmlconf/reports/history/site.py`,
`dmlconf/history/case_sets.py`, `dmlconf/run_log/lines.py` and
`dmlconf/cli/commands/results/history.py`.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from sqlalchemy import select

from dmlconf.cases.handles import longest_handle
from dmlconf.history.adding import add
from dmlconf.history.database import opened
from dmlconf.history.maintenance import copy_runs, prune
from dmlconf.history.overview import overview_of
from dmlconf.history.questions import (
    Choice,
    driver_states,
    flaky,
    named_cases,
    regressions,
    stories,
)
from dmlconf.history.tables import case as case_table
from dmlconf.history.tables import change, outcome
from dmlconf.history.timeline import Timeline
from dmlconf.reports.history.answers import story_lines
from dmlconf.reports.history.site import Site
from dmlconf.run_log.log import RunLog
from tests.cli.process import dmlconf_here
from tests.history.runs import night, verdict
from tests.reports import logs


def fill(database: str, logs: Iterable[RunLog]) -> list[int]:
    """Add the runs of logs to a history; return how many verdicts were stored for each run."""
    with opened(database, create=True) as history:
        stored = []
        for log in logs:
            with history.writing() as connection:
                stored.append(add(connection, log).changes)
    return stored


def history_of(database: str, case: str) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return adapter, date, new verdict and causes of each change of a case."""
    with opened(database) as history, history.reading() as connection:
        timeline = Timeline(connection)
        chosen, _ = named_cases(timeline, [case])
        return [
            (story.line.adapter, each.first.started[:10], each.after.text, each.causes)
            for story in stories(timeline, chosen)
            for each in story.transitions
        ]


def rows(database: str) -> list[tuple[int, ...]]:
    """Return the run, case, outcome and outputs of each stored verdict, all as numbers."""
    with opened(database) as history, history.reading() as connection:
        columns = change.c.run_id, change.c.case_id, change.c.outcome_id, change.c.outputs
        return sorted(tuple(row) for row in connection.execute(select(*columns)))


A, B = "tile/matrix/a", "gemm/documented/b"
FAILED = "failed (wrong values)"
WITH_PASSWORD = "postgresql://127.0.0.1:1/x?password=secret"
BEFORE_YEAR_1_IN_UTC = "0001-01-01T00:00+05:00"


def test_only_differences_from_the_run_before_are_stored(database: str) -> None:
    same = [verdict(A), verdict(B)]
    nights = [night(0, same), night(1, same), night(2, [verdict(A), verdict(B, bits="01")])]
    # The run with driver 2.0 is the first of its environment.
    assert fill(database, [*nights, night(3, same, driver="2.0")]) == [2, 0, 1, 2]
    assert fill(database, nights) == [0, 0, 0]
    assert len(rows(database)) == 5


def test_a_new_message_alone_is_no_change(database: str) -> None:
    first, second = (verdict(A, fails=True, message=f"took {n} s") for n in (31, 32))
    assert fill(database, [night(0, [first]), night(1, [second])]) == [1, 0]
    with opened(database) as history, history.reading() as connection:
        assert connection.execute(select(outcome.c.message)).scalars().all() == ["took 31 s"]


def test_each_change_of_status_names_its_causes(database: str) -> None:
    bad = [verdict(A, fails=True), verdict(B)]
    good = [verdict(A), verdict(B)]
    other_facts = [verdict(A, facts={"InputTensor": "FLOAT16 2x3"}), verdict(B)]
    fill(
        database,
        [
            night(0, good),
            night(1, bad, driver="2.0"),
            night(2, good, driver="2.0", version="1.15.5"),
            night(3, bad, driver="2.0", version="1.15.5", suite="b"),
            night(4, good, driver="2.0", version="1.15.5", suite="b", dmlconf="0.3.0"),
            night(5, bad, driver="2.0", version="1.15.5", suite="b", dmlconf="0.3.0"),
            night(6, other_facts, driver="2.0", version="1.15.5", suite="c", dmlconf="0.3.0"),
            night(
                7, bad, driver="2.0", version="1.15.5", suite="c", dmlconf="0.3.0", platform="Linux"
            ),
        ],
    )
    causes = [
        (),
        ("driver 1.0 to 2.0",),
        ("DirectML 1.15.4 to 1.15.5",),
        ("suite",),
        ("dmlconf 0.2.0 to 0.3.0",),
        (),
        ("case",),
        ("case", "machine"),
    ]
    transitions = history_of(database, A)
    assert [each[3] for each in transitions] == causes
    assert [each[2] for each in transitions] == ["passed", FAILED] * 4
    assert [each[1] for each in transitions] == [f"2026-01-0{day}" for day in range(1, 9)]
    assert len(history_of(database, B)) == 1


def test_runs_without_a_case_do_not_change_its_history(database: str) -> None:
    fill(
        database,
        [
            night(0, [verdict(A), verdict(B)]),
            night(1, [verdict(B)], selected=2),
            night(2, [verdict(B)], shard={"number": 2, "count": 2, "planned": 2}),
            night(3, [verdict(A, fails=True), verdict(B)]),
            night(4, [verdict(B)], selected=2, driver="2.0"),
            night(5, [verdict(A, fails=True), verdict(B)], driver="2.0"),
        ],
    )
    assert [each[1:3] for each in history_of(database, A)] == [
        ("2026-01-01", "passed"),
        ("2026-01-04", FAILED),
    ]
    with opened(database) as history, history.reading() as connection:
        timeline = Timeline(connection)
        [(failure, still)], left_out = regressions(timeline, Choice(), "2026-01-02")
        assert (failure.case, still, left_out) == (A, True, 0)
        assert failure.last is not None
        assert failure.last.started[:10] == "2026-01-01"
        assert not flaky(timeline, Choice())
        [story] = stories(timeline, named_cases(timeline, [A])[0])
        assert (story.runs, story.failed) == (3, 2)


def test_a_flaky_case_regresses_if_the_driver_changed(database: str) -> None:
    nights = [night(n, [verdict(A, fails=n % 2 == 1)]) for n in range(5)]
    fill(database, [*nights, night(5, [verdict(A, fails=True)], driver="2.0")])
    with opened(database) as history, history.reading() as connection:
        timeline = Timeline(connection)
        late, left_out_late = regressions(timeline, Choice(), "2026-01-06")
        assert [each.causes for each, _ in late] == [("driver 1.0 to 2.0",)]
        assert left_out_late == 0
        early, left_out_early = regressions(timeline, Choice(), "2026-01-01")
        # Nothing but the status changed in nights 1 and 3, so these failures are left out as flaky.
        assert (early, left_out_early) == (late, 1)


def test_each_adapter_has_its_own_history(database: str) -> None:
    fill(
        database,
        [
            night(0, [verdict(A)], adapter="GPU"),
            night(1, [verdict(A, fails=True)], adapter="NPU"),
            night(2, [verdict(A)], adapter="GPU"),
        ],
    )
    assert [each[:3] for each in history_of(database, A)] == [
        ("GPU", "2026-01-01", "passed"),
        ("NPU", "2026-01-02", FAILED),
    ]


def test_runs_may_be_added_in_any_order(databases: Iterator[str]) -> None:
    source = random.Random(7)
    cases = [f"tile/matrix/{n}" for n in range(6)]
    nights = [
        night(
            number,
            [
                verdict(case, fails=source.random() < 0.4, bits=source.choice("ab"))
                for case in cases
                if source.random() < 0.8
            ],
            driver=source.choice(["1.0", "2.0"]),
            selected=6,
        )
        for number in range(14)
    ]
    in_order = next(databases)
    fill(in_order, nights)
    expected = [history_of(in_order, case) for case in cases]
    stored = len(rows(in_order))
    for shuffled in islice(databases, 3):
        fill(shuffled, source.sample(nights, len(nights)))
        assert [history_of(shuffled, case) for case in cases] == expected
        assert len(rows(shuffled)) == stored


def test_pruning_keeps_the_answers_of_later_runs(database: str) -> None:
    verdicts = [[verdict(A, fails=n % 3 == 0), verdict(B)] for n in range(9)]
    fill(database, [night(n, each) for n, each in enumerate(verdicts)])
    before = history_of(database, A)
    with opened(database) as history:
        with history.writing() as connection:
            assert prune(connection, before="2026-01-05") == 4
        history.compact()
    after = history_of(database, A)
    assert after[0][1:3] == ("2026-01-05", "passed")
    assert after[1:] == [each for each in before if each[1] > "2026-01-05"]
    with opened(database) as history:
        with history.writing() as connection:
            assert prune(connection, keep=1) == 4
        with history.writing() as connection:
            assert prune(connection, before="2027-01-01") == 0
    assert [each[1:3] for each in history_of(database, B)] == [("2026-01-09", "passed")]


def test_pruning_removes_cases_and_outcomes_that_no_run_has(database: str) -> None:
    fill(database, [night(0, [verdict(A, fails=True)]), night(1, [verdict(B)])])
    with opened(database) as history:
        with history.writing() as connection:
            assert prune(connection, keep=1) == 1
        with history.reading() as connection:
            assert connection.execute(select(case_table.c.identifier)).scalars().all() == [B]
            assert connection.execute(select(outcome.c.status)).scalars().all() == ["passed"]


def test_a_merged_history_equals_a_history_filled_at_once(database: str, tmp_path: Path) -> None:
    nights = [
        night(n, [verdict(A, fails=n % 4 == 2), verdict(B)], driver=f"{n // 3}") for n in range(9)
    ]
    second = str(tmp_path / "other.sqlite")
    fill(database, nights[::2])
    fill(second, nights[1::2])
    with opened(second) as source, opened(database) as target:
        assert copy_runs(source, target) == 4
        assert copy_runs(source, target) == 0
    whole = str(tmp_path / "whole.sqlite")
    fill(whole, nights)
    for case in (A, B):
        assert history_of(database, case) == history_of(whole, case)
    assert len(rows(database)) == len(rows(whole))


def test_a_complete_run_replaces_an_incomplete_one_in_any_order(
    database: str, tmp_path: Path
) -> None:
    begun = night(0, [verdict(A)], selected=2)
    ended = night(0, [verdict(A), verdict(B)], selected=2)
    fill(database, [begun, ended, ended, begun])
    with opened(database) as history, history.reading() as connection:
        [run] = Timeline(connection).runs
    assert (run.cases, run.complete) == (2, True)
    second = str(tmp_path / "other.sqlite")
    fill(second, [begun])
    with opened(second) as source, opened(database) as target:
        assert (copy_runs(source, target), copy_runs(target, source)) == (0, 1)
    with opened(second) as history, history.reading() as connection:
        assert [each.complete for each in Timeline(connection).runs] == [True]


def test_a_log_without_footer_is_completed_by_the_whole_log(
    database: str,
) -> None:
    ended = night(0, [verdict(A)])
    fill(database, [replace(ended, footer=None), ended, replace(ended, footer=None)])
    with opened(database) as history, history.reading() as connection:
        assert [each.complete for each in Timeline(connection).runs] == [True]


def test_start_times_are_ordered_by_time_and_not_as_text(database: str) -> None:
    earlier, later = night(0, [verdict(A)]), night(1, [verdict(A, fails=True)])
    header = replace(earlier.header, started="20260102T010000Z")
    fill(database, [later, replace(earlier, header=header)])
    assert [each[2] for each in history_of(database, A)] == ["passed", FAILED]


def test_cases_are_found_by_identifier_pattern_and_handle(
    database: str,
) -> None:
    fill(database, [night(0, [verdict(A), verdict(B)])])
    with opened(database) as history, history.reading() as connection:
        timeline = Timeline(connection)
        for name in (A, "matrix/a", "a", "tile/*", longest_handle(A)[:5]):
            chosen, unknown = named_cases(timeline, [name, "absent"])
            assert (list(chosen.values()), unknown) == ([(A, "TILE")], ["absent"])


@pytest.mark.parametrize("nights", [40, pytest.param(1_000, marks=pytest.mark.whole)])
def test_exactly_the_planted_regressions_and_flaky_cases_are_found(
    database: str, nights: int
) -> None:
    source = random.Random(40)
    cases = [f"{op}/matrix/{n}" for op in ("tile", "gemm", "top_k") for n in range(40)]
    nights_per_driver = nights // 8
    drivers = [f"{at // nights_per_driver}.0" for at in range(nights)]
    regressed = {case: nights_per_driver * source.randrange(1, 5) for case in cases[:10]}
    fixed = {case: nights_per_driver * source.randrange(5, 8) for case in cases[5:15]}
    flaky_cases = cases[100:]
    failing_nights = {
        case: {at for at in range(nights) if source.random() < 0.4} for case in flaky_cases
    }

    def fails(case: str, at: int) -> bool:
        began = regressed.get(case, 0 if case in fixed else nights)
        return at in failing_nights.get(case, ()) or began <= at < fixed.get(case, nights)

    fill(
        database,
        (
            night(at, [verdict(case, fails=fails(case, at)) for case in cases], driver=drivers[at])
            for at in range(nights)
        ),
    )
    with opened(database) as history, history.reading() as connection:
        timeline = Timeline(connection)
        runs = [run.started for run in timeline.runs]
        failures, left_out = regressions(timeline, Choice(), "2026-01-01")
        certain = {each.case: (each.first.started, still) for each, still in failures}
        doubtful = {each.story.transitions[0].case: each for each in flaky(timeline, Choice())}
        of_tile, of_gemm = (
            regressions(timeline, Choice(operators=frozenset([name])), "2026-01-01")[0]
            for name in ("TILE", "GEMM")
        )
    expected = {case: (runs[at], case not in fixed) for case, at in regressed.items()}
    assert {case: each for case, each in certain.items() if case not in flaky_cases} == expected
    assert all(each.causes for each, _ in failures)
    assert set(doubtful) == set(flaky_cases)
    within_a_driver = [at for at in range(1, nights) if drivers[at] == drivers[at - 1]]
    assert left_out == sum(
        any(at in own and at - 1 not in own for at in within_a_driver)
        for own in failing_nights.values()
    )
    for case, each in doubtful.items():
        assert (each.story.failed, each.story.runs) == (len(failing_nights[case]), nights)
    assert {each.case for each, _ in of_tile} == set(regressed), "which are cases of TILE"
    assert of_gemm == []
    for case, at in fixed.items():
        assert (runs[at][:10], "passed") in {each[1:3] for each in history_of(database, case)}


def test_driver_states_count_failing_cases_by_driver_and_operator(
    database: str,
) -> None:
    fill(
        database,
        [
            night(0, [verdict(A), verdict(B)]),
            night(1, [verdict(A, fails=True), verdict(B)], driver="2.0"),
            # An incomplete run, which does not count.
            night(2, [verdict(B, fails=True)], driver="2.0", selected=2),
        ],
    )
    with opened(database) as history, history.reading() as connection:
        states = driver_states(Timeline(connection))
    assert {
        (each.environment.driver, each.operator, each.failing, each.cases) for each in states
    } == {
        ("1.0", "TILE", 0, 1),
        ("1.0", "GEMM", 0, 1),
        ("2.0", "TILE", 1, 1),
        ("2.0", "GEMM", 0, 1),
    }


def test_pages_are_the_same_from_any_database(database: str, tmp_path: Path) -> None:
    nights = [
        night(n, [verdict(A, fails=n % 2 == 1), verdict(B, fails=n == 5)], driver=f"{n // 3}")
        for n in range(6)
    ]
    sites = []
    for each in (database, str(tmp_path / "plain.sqlite")):
        fill(each, nights)
        with opened(each) as history, history.reading() as connection:
            sites.append(Site(overview_of(Timeline(connection))))
    first, second = ({path: site.content(path) for path in site.paths()} for site in sites)
    assert first == second
    assert "1 case began to fail" in str(first["index.html"])


def log_file(folder: Path, log: RunLog, name: str) -> Path:
    return logs.write(folder / name, log)


def test_messages_of_failures_stand_below_the_verdicts(database: str) -> None:
    fill(
        database,
        [
            night(0, [verdict(A, fails=True, message="1 is not 2")]),
            night(1, [verdict(A)]),
            night(2, [verdict(A, fails=True, message="3 is not 4")]),
        ],
    )
    with opened(database) as history, history.reading() as connection:
        timeline = Timeline(connection)
        [story] = stories(timeline, named_cases(timeline, [A])[0])
        assert list(story_lines(story)) == [
            "directml on GPU: failed in 2 of 3 runs",
            f"  2026-01-01 02:00:00  #1      {FAILED} since then",
            "                               1 is not 2",
            f"  2026-01-02 02:00:00  #2      {FAILED} until #1, then passed; "
            "changed with it: nothing that is recorded",
            f"  2026-01-03 02:00:00  #3      passed until #2, then {FAILED}; "
            "changed with it: nothing that is recorded",
            "                               3 is not 4",
        ]


def test_the_commands_of_history_print_text_and_json(tmp_path: Path) -> None:
    logs = [
        log_file(tmp_path, night(0, [verdict(A), verdict(B)]), "0.jsonl"),
        log_file(tmp_path, night(1, [verdict(A, fails=True), verdict(B)], driver="2.0"), "1.jsonl"),
    ]

    def history(*arguments: str | Path) -> str:
        database = ("--database", tmp_path / "h.sqlite")
        done = dmlconf_here(tmp_path, "history", *arguments, *database)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert "run #2, 2 verdicts, 2 new or changed" in history("add", *logs)
    assert "run #2 is there already" in history("add", logs[1])
    assert [each["failing"] for each in json.loads(history("runs", "--json"))] == [0, 1]
    assert "changed with it: driver 1.0 to 2.0" in history("case", A)
    [story] = json.loads(history("case", A, "--json"))[0]["lines"]
    assert [each["after"]["status"] for each in story["changes"]] == ["passed", "failed"]
    assert f"{A}: {FAILED}" in history("regressions", "--since", "2026-01-01")
    data = json.loads(history("regressions", "--since", "#2", "--json"))
    assert [(each["case"], each["still_fails"]) for each in data["regressions"]] == [(A, True)]
    assert "no case began to fail" in history("regressions", "--since", "2026-02-01")
    assert "no case began to fail" in history("regressions", "--since", "#1", "-o", "GEMM")
    assert "no case began to fail" in history("regressions", "--since", "#1", "--tag", "documented")
    assert "no case is flaky" in history("flaky", "-k", "tile")
    message = "Warning: --tag: no case has the tag docmented; did you mean documented?\n"
    assert history("flaky", "--tag", "docmented") == f"no case is flaky\n{message}"
    assert json.loads(history("flaky", "--json")) == []
    assert f"{A}: {FAILED}, before passed" in history("new")
    assert [each["case"] for each in json.loads(history("new", "--json"))["regressions"]] == [A]
    assert f"| {A} |" in history("new", "--markdown")
    assert "TILE" in history("drivers")
    assert "GEMM" not in history("drivers")
    assert {each["operator"] for each in json.loads(history("drivers", "--json"))} == {
        "TILE",
        "GEMM",
    }
    assert history("drivers", "-o", "GRU") == "no run has a case of GRU\n"
    assert "removed 0 runs" in history("prune", "--keep", "1")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["runs", "--database", "absent.sqlite"], 2, "there is no history absent.sqlite"),
        (["runs", "--database", "mysql://x/y"], 2, "neither a file nor an address"),
        (["runs", "--database", "n" * 300], 2, "File name too long"),
        (["runs", "--database", WITH_PASSWORD], 2, r"//127.0.0.1:1/x: |needs the package"),
        (["runs", "--database", "text"], 2, "file is not a database"),
        (["runs", "--database", "foreign.sqlite"], 2, "a database of something else"),
        (["runs", "--database", "newer.sqlite"], 2, "made by a newer dmlconf"),
        (
            ["add", "--database", "h.sqlite", "text"],
            3,
            "text:1: not a dmlconf run log: not JSON",
        ),
        (["regressions", "--since", "May", "--database", "h.sqlite"], 2, "is not a date such as"),
        (["regressions", "--since", "#x", "--database", "h.sqlite"], 2, "or a run such as '#12'"),
        (["regressions", "--since", "#9", "--database", "h.sqlite"], 2, "there is no run #9"),
        (["regressions", "--since", "²", "--database", "h.sqlite"], 2, "--since.* is not a date"),
        (
            ["regressions", "--since", BEFORE_YEAR_1_IN_UTC, "--database", "h.sqlite"],
            2,
            "is not a date such as",
        ),
        (["merge", "h.sqlite", "--database", "./h.sqlite"], 2, "cannot be merged with itself"),
        (["flaky", "--database", "damaged.sqlite"], 2, "the history is damaged"),
        (["add", "undated.jsonl", "--database", "h.sqlite"], 2, "not a date of ISO 8601"),
        (["case", "tile/x", "--database", "h.sqlite"], 5, "the history has no case tile/x"),
        (["case", A[:-1], "--database", "h.sqlite"], 5, rf"did you mean {A}\?"),
        (["case", "", "--database", "h.sqlite"], 2, "CASE...': it is empty"),
        (["runs", "--database", ""], 2, "'--database': it is empty"),
        (["flaky", "--where", "", "--database", "h.sqlite"], 2, "'--where': it is empty"),
        (["site", "-o", "text", "--database", "h.sqlite"], 2, "-o text is a file; name a folder"),
        (["flaky", "-k", "a and", "--database", "h.sqlite"], 2, "-k"),
        (["prune", "--database", "h.sqlite"], 2, "--before DATE or --keep N"),
        (
            ["prune", "--keep", "1", "--before", "2026-01-01", "--database", "h.sqlite"],
            2,
            "--before and --keep exclude each other",
        ),
    ],
)
def test_commands_refuse_unusable_databases_dates_and_names(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    (tmp_path / "text").write_text("some text\n" * 100)
    for name, table in (("foreign", "songs"), ("newer", "alembic_version")):
        with sqlite3.connect(tmp_path / f"{name}.sqlite") as connection:
            connection.execute(f"CREATE TABLE {table} (version_num TEXT)")
            connection.execute(f"INSERT INTO {table} VALUES ('999')")
        connection.close()
    fill(str(tmp_path / "h.sqlite"), [night(0, [verdict(A)])])
    fill(str(tmp_path / "damaged.sqlite"), [night(0, [verdict(A, fails=True)])])
    with sqlite3.connect(tmp_path / "damaged.sqlite") as connection:
        connection.execute("UPDATE case_set SET members = ?", (zlib.compress(b"\0" * 3),))
    connection.close()
    undated = night(0, [verdict(A)])
    header = replace(undated.header, started="Today+00:00")
    log_file(tmp_path, replace(undated, header=header), "undated.jsonl")
    done = dmlconf_here(tmp_path, "history", *arguments)
    assert done.returncode == code
    assert re.search(message, done.stderr), done.stderr
    assert "secret" not in done.stderr
