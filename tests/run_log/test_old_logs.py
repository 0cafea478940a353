"""Logs of older versions are read and rendered; those of a newer form are refused.

dmlconf 0.1.0 wrote the logs in `of_0_1_0`: `waived.jsonl` in a run with waivers, `stopped.jsonl` in
a run that ended at its first failure.

The tested code is in `dmlconf/run_log/lines.py`, `dmlconf/run_log/log.py`,
`dmlconf/reports/formats.py` and `dmlconf/history/adding.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from dmlconf.documents.schema import bundled_schema, validator
from dmlconf.reports.formats import COMPARISON_FORMATS, RUN_FORMATS, SCOREBOARD_FORMATS
from dmlconf.run_log.log import FORMAT, InvalidLogError, read_log
from tests.cli.process import dmlconf_here

FOLDER: Final = Path(__file__).with_name("of_0_1_0")
WAIVED, STOPPED = FOLDER / "waived.jsonl", FOLDER / "stopped.jsonl"
STATUSES: Final = {
    WAIVED: {
        "tile/tile/too-large": "unsupported",
        "element_wise_divide/a_divide/by-zero": "unchecked",
        "tile/tile/right": "passed",
        "tile/tile/known-zeros": "waived",
        "tile/tile/mended": "stale",
        "tile/tile/zeros": "failed",
        "join/z_join/never-reached": "passed",
    },
    STOPPED: {
        "tile/tile/too-large": "unsupported",
        "element_wise_divide/a_divide/by-zero": "unchecked",
        "tile/tile/right": "passed",
        "tile/tile/known-zeros": "passed",
        "tile/tile/mended": "broken",
        "tile/tile/zeros": "not run",
        "join/z_join/never-reached": "not run",
    },
}


@pytest.mark.parametrize("path", STATUSES, ids=lambda path: path.stem)
def test_a_log_of_0_1_0_is_read(path: Path) -> None:
    log = read_log(path)
    assert log.header.dmlconf == "0.1.0"
    assert {each.case: str(each.status) for each in log.verdicts} == STATUSES[path]
    assert log.footer is not None


@pytest.mark.parametrize("path", STATUSES, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", RUN_FORMATS)
def test_every_report_shows_a_log_of_0_1_0(name: str, path: Path) -> None:
    text = RUN_FORMATS[name].text(read_log(path))
    assert "tile/tile/mended" in text
    assert ("stale" if path == WAIVED else "broken") in text
    if name == "json":
        validator(bundled_schema("report")).validate(json.loads(text))


@pytest.mark.slow
def test_logs_of_0_1_0_are_compared_and_scored(tmp_path: Path) -> None:
    base, new = str(STOPPED), str(WAIVED)
    done = dmlconf_here(
        tmp_path, "compare", base, new, *reports(COMPARISON_FORMATS, tmp_path / "changes")
    )
    assert done.returncode == 1, done.stderr
    assert "tile/tile/mended" in done.stdout
    done = dmlconf_here(
        tmp_path, "report", base, new, *reports(SCOREBOARD_FORMATS, tmp_path / "scores")
    )
    assert done.returncode == 0, done.stderr
    assert "device-removed" in done.stdout  # The adapter of a log.


def reports(formats: Iterable[str], path: Path) -> list[str]:
    return [word for name in formats for word in ("--report", f"{name}:{path}.{name}")]


@pytest.mark.slow
def test_a_history_takes_logs_of_0_1_0(tmp_path: Path) -> None:
    history = ("--database", str(tmp_path / "history.sqlite"))
    done = dmlconf_here(tmp_path, "history", "add", *history, *map(str, STATUSES))
    assert done.returncode == 0, done.stderr
    done = dmlconf_here(tmp_path, "history", "case", *history, "tile/tile/mended")
    assert {"stale", "broken"} <= set(done.stdout.split()), done.stdout


def test_a_log_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    lines = WAIVED.read_text("utf-8").splitlines(keepends=True)
    header = {**json.loads(lines[0]), "format": FORMAT + 1}
    path = tmp_path / "newer.jsonl"
    path.write_text("".join([json.dumps(header) + "\n", *lines[1:]]), encoding="utf-8")
    with pytest.raises(InvalidLogError) as refused:
        read_log(path)
    form = f"a run log of format {FORMAT + 1}; this dmlconf reads format {FORMAT}"
    assert str(refused.value) == f"{path}:1: {form}"
    done = dmlconf_here(tmp_path, "report", str(path))
    assert (done.returncode, form in done.stderr) == (3, True)
