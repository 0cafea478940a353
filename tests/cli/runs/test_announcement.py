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


def test_the_announcement_names_backend_expectations_and_duration() -> None:
    header = replace(HEADER, backend="numpy", against=RECORDED)
    assert announcement(header, 52_800, 2) == (
        "Testing the NumPy reference, against recordings of DirectML 1.15.4: 52,800 cases, "
        "about 66 s"
    )


def test_small_runs_take_longer_for_each_case() -> None:
    header = replace(HEADER, backend="numpy", against=RECORDED)
    durations = [
        str(announcement(header, cases, 1)).rpartition("about ")[2]
        for cases in (8000, 20_000, 20_001)
    ]
    # The first two at 160 cases a second, the last at 400.
    assert durations == ["50 s", "2 min", "50 s"]


def test_a_run_on_a_device_announces_no_duration() -> None:
    environment = {"version": "1.15.4", "adapter": "My GPU"}
    header = replace(HEADER, backend="directml", environment=environment, against="numpy")
    assert announcement(header, 5000, 1) == (
        "Testing directml 1.15.4 on My GPU, against the cases, else numpy: 5,000 cases"
    )


def test_small_and_uncounted_runs_are_not_announced() -> None:
    assert announcement(HEADER, 999, 1) is None
    assert announcement(HEADER, 1000, 1) is not None
    assert announcement(HEADER, None, 1) is None


def test_durations_are_in_seconds_or_minutes() -> None:
    assert [spoken(seconds) for seconds in (0.2, 89, 90, 3600)] == [
        "1 s",
        "89 s",
        "2 min",
        "60 min",
    ]


def test_a_run_of_one_operator_mentions_its_graphs(
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
def test_a_run_of_graphs_does_not_mention_them(tmp_path: Path, name: str) -> None:
    file = graph_file(tmp_path, TWO_NODES, TWO_NODES)
    run = ("run", file, "-o", "ACTIVATION_RELU", "-o", name, "-b", "faulty:zeros")
    done = dmlconf_here(tmp_path, *run)
    assert "of 2 cases" in done.stdout
    assert "also takes" not in done.stderr
