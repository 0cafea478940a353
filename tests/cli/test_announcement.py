"""Before its first case, a large run says what it tests.

With `-o OPERATOR`, a run of any size says how many graphs it also takes.

The tested code is in `dmlconf/cli/runs/announcement.py`, `dmlconf/cli/output/progress.py` and
`dmlconf/reports/runs/heading.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dmlconf.cli.output.progress import spoken
from dmlconf.cli.runs.announcement import announcement
from tests.cli.process import dmlconf_here
from tests.graphs.suites import TWO_NODES, graph_file
from tests.reports.logs import run_log

HEADER = run_log().header
RECORDED = "recording:/suite/directml-1.15.4.dmlrec, else numpy"


def test_the_announcement_names_the_backend_the_expectations_and_the_duration() -> None:
    header = replace(HEADER, backend="numpy", against=RECORDED)
    assert announcement(header, 52_800, 2) == (
        "Testing the NumPy reference, against recordings of DirectML 1.15.4: 52,800 cases, "
        "about 66 s"
    )  # At 400 cases a second in each of 2 processes.


def test_a_run_of_at_most_20000_cases_is_expected_to_take_longer_for_each_case() -> None:
    header = replace(HEADER, backend="numpy", against=RECORDED)
    durations = [
        str(announcement(header, cases, 1)).rpartition("about ")[2]
        for cases in (8000, 20_000, 20_001)
    ]
    # 8,000 cases at 160 a second, 20,000 at 160 (125 s), and 20,001 at 400.
    assert durations == ["50 s", "2 min", "50 s"]


def test_the_announcement_of_a_run_on_a_device_names_it_and_guesses_no_duration() -> None:
    environment = {"version": "1.15.4", "adapter": "My GPU"}
    header = replace(HEADER, backend="directml", environment=environment, against="numpy")
    assert announcement(header, 5000, 1) == (
        "Testing directml 1.15.4 on My GPU, against the cases, else numpy: 5,000 cases"
    )


def test_a_run_of_fewer_than_1000_or_of_an_unknown_number_of_cases_is_not_announced() -> None:
    assert announcement(HEADER, 999, 1) is None
    assert announcement(HEADER, 1000, 1) is not None
    assert announcement(HEADER, None, 1) is None


def test_durations_below_90_seconds_are_written_in_seconds_and_others_in_minutes() -> None:
    assert [spoken(seconds) for seconds in (0.2, 89, 90, 3600)] == [
        "1 s",
        "89 s",
        "2 min",
        "60 min",
    ]


def test_a_run_of_one_operator_says_that_it_also_takes_graphs_unless_it_is_quiet(
    tmp_path: Path,
) -> None:
    file = graph_file(tmp_path, TWO_NODES, TWO_NODES)
    run: list[str | Path] = ["run", file, "-o", "ACTIVATION_RELU"]
    done = dmlconf_here(tmp_path, *run, "-b", "faulty:zeros")
    note = (
        "-o ACTIVATION_RELU also takes 2 graphs with such a node; without graphs: -k 'not graphs'"
    )
    assert note in done.stderr.splitlines()
    # The file has only graphs.
    assert "Error: no case was selected" in dmlconf_here(tmp_path, *run, "-k", "not graphs").stderr
    assert "also takes" not in dmlconf_here(tmp_path, *run, "-q").stderr


@pytest.mark.parametrize("name", ["GRAPHS", "graph"])
def test_a_run_of_graphs_does_not_say_that_it_also_takes_graphs(tmp_path: Path, name: str) -> None:
    file = graph_file(tmp_path, TWO_NODES, TWO_NODES)
    run = ("run", file, "-o", "ACTIVATION_RELU", "-o", name, "-b", "faulty:zeros")
    done = dmlconf_here(tmp_path, *run)
    assert "of 2 cases" in done.stdout
    assert "also takes" not in done.stderr
