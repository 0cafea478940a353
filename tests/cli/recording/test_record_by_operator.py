"""`dmlconf record -o FOLDER` writes one recording for each operator, unless it would not change.

The tested code is in `dmlconf/cli/commands/writing/record.py`, `dmlconf/expectations/recorder.py`,
`dmlconf/expectations/renewal.py`, `dmlconf/backends/recording/store.py` and
`dmlconf/engine/against.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dmlconf.backends.recording.file import read_recording
from dmlconf.backends.recording.model import Entry
from dmlconf.cli.commands.writing import record as command_module
from dmlconf.expectations import recorder
from dmlconf.run_log.log import read_log
from tests.cli.process import RIGHT, dmlconf, dmlconf_here

TILE = """
operator: TILE
cases:
  - name: a
    desc: &tile
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
  - {name: b, desc: *tile}
"""

JOIN = """
operator: JOIN
cases:
  - name: a
    desc:
      InputTensors:
        - {Sizes: [1], DataType: INT32, values: [1]}
        - {Sizes: [1], DataType: INT32, values: [2]}
      OutputTensor: {Sizes: [2], DataType: INT32}
      Axis: 0
"""

OTHER = TILE.replace(
    "{name: b, desc: *tile}",
    "{name: c, desc: {InputTensor: {Sizes: [1], DataType: INT32, values: [5]}, "
    "OutputTensor: {Sizes: [2], DataType: INT32}, Repeats: [2]}}",
)
"""TILE with a case `c` instead of `b`."""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for operator, text in (("tile", TILE), ("join", JOIN)):
        folder = tmp_path / "suite" / operator
        folder.mkdir(parents=True)
        (folder / "x.yaml").write_text(text, encoding="utf-8")
    return tmp_path / "suite"


def record(suite: Path, *arguments: str | Path, backend: str = RIGHT) -> str:
    done = dmlconf_here(
        suite.parent, "record", *arguments, "-b", backend, "-o", "suite", "--name", "r"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def recorded_cases(suite: Path, operator: str) -> list[str]:
    return list(read_recording(suite / operator / "r.dmlrec").entries)


def recordings(suite: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.parent.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in suite.glob("*/r.dmlrec")
    }


def test_a_recording_is_written_beside_the_cases_of_each_operator(suite: Path) -> None:
    actual = record(suite, "suite")
    named = Path("suite", "r.dmlrec")
    assert actual == f"{named}: recorded 3 of 3 cases in 2 files, 2 of them changed\n"
    assert recorded_cases(suite, "tile") == ["tile/x/a", "tile/x/b"]
    assert recorded_cases(suite, "join") == ["join/x/a"]
    assert sorted(path.name for path in (suite / "tile").iterdir()) == ["r.dmlrec", "x.yaml"]


@pytest.mark.parametrize(
    ("where", "path", "named"),
    [
        (".", "suite/tile", "suite/r.dmlrec"),
        (".", "./suite/tile/x.yaml", "suite/r.dmlrec"),
        ("suite", "tile", "r.dmlrec"),
        ("suite/tile", ".", "../r.dmlrec"),
        ("suite/tile", "x.yaml", "../r.dmlrec"),
        ("suite/join", "../tile", "../r.dmlrec"),
    ],
)
def test_recordings_go_beside_the_cases_by_default(
    suite: Path, where: str, path: str, named: str
) -> None:
    done = dmlconf_here(suite.parent / where, "record", path, "-b", RIGHT, "--name", "r")
    assert done.returncode == 0, done.stderr
    expected = f"{Path(named)}: recorded 2 of 2 cases in 1 file, 1 of them changed\n"
    assert done.stdout == expected
    assert recorded_cases(suite, "tile") == ["tile/x/a", "tile/x/b"]


def test_an_absolute_path_is_reported_as_an_absolute_path(suite: Path) -> None:
    done = dmlconf_here(suite.parent, "record", suite / "tile", "-b", RIGHT, "--name", "r")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{suite / 'r.dmlrec'}: recorded")


def test_recordings_are_named_after_backend_and_version(
    suite: Path,
) -> None:
    done = dmlconf_here(suite.parent, "record", "suite", "-b", RIGHT, "-o", "suite")
    assert done.returncode == 0
    [path] = (suite / "tile").glob("*.dmlrec")
    environment = read_recording(path).environment
    assert path.stem == f"faulty-{environment['version']}"


def test_run_uses_recordings_of_several_operators_as_one(suite: Path) -> None:
    record(suite, "suite")
    done = dmlconf_here(suite.parent, "run", "suite", "--report", "json")
    report = json.loads(done.stdout)
    own = f"recording:{Path('suite', 'r.dmlrec')}"
    assert report["run"]["against"] == own
    assert {verdict["expectation"] for verdict in report["verdicts"]} == {"recorded"}
    for use in ("recording:suite", own):
        again = dmlconf_here(suite.parent, "run", "suite", "--against", use, "--report", "json")
        assert json.loads(again.stdout)["summary"] == report["summary"]
        replay = dmlconf_here(suite.parent, "run", "suite", "-b", use, "--log", "log.jsonl")
        assert replay.returncode == 0
        assert {v.status for v in read_log(suite.parent / "log.jsonl").verdicts} == {"passed"}


def test_recording_again_without_changes_writes_no_file(suite: Path) -> None:
    record(suite, "suite")
    before = recordings(suite)
    actual = record(suite, "suite", "-j", "2")
    assert actual.endswith("in 2 files, 0 of them changed\n")
    assert recordings(suite) == before


def test_changed_cases_change_only_the_recording_of_their_operator(suite: Path) -> None:
    record(suite, "suite")
    before = recordings(suite)
    (suite / "tile" / "x.yaml").write_text(OTHER, encoding="utf-8")
    actual = record(suite, "suite")
    assert actual.endswith("in 2 files, 1 of them changed\n")
    assert recordings(suite)["join"] == before["join"]
    assert recorded_cases(suite, "tile") == ["tile/x/a", "tile/x/c"]


@pytest.mark.parametrize("chosen", [["suite/tile"], ["suite", "--operator", "TILE"]])
def test_only_the_chosen_operator_is_recorded(suite: Path, chosen: list[str]) -> None:
    actual = record(suite, *chosen)
    assert "recorded 2 of 2 cases in 1 file, 1 of them changed" in actual
    assert recordings(suite).keys() == {"tile"}


def test_cases_that_are_not_selected_stay_recorded(suite: Path) -> None:
    record(suite, "suite")
    before = recordings(suite)
    (suite / "tile" / "x.yaml").write_text(OTHER.replace("name: c", "name: b"), encoding="utf-8")
    old = read_recording(suite / "tile" / "r.dmlrec").entries
    record(suite, "suite", "--case", "tile/x/b")
    new = read_recording(suite / "tile" / "r.dmlrec").entries
    assert list(new) == ["tile/x/a", "tile/x/b"]
    assert new["tile/x/a"].digest == old["tile/x/a"].digest
    assert new["tile/x/b"].digest != old["tile/x/b"].digest
    assert recordings(suite)["join"] == before["join"]


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
def test_cases_that_another_process_records_meanwhile_stay_recorded(
    suite: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    to_suite = ("-b", RIGHT, "-o", "suite", "--name", "r")
    if known:
        record(suite, "suite")
        (suite / "tile" / "x.yaml").write_text(OTHER.replace("name: c", "name: b"), "utf-8")

    def other_first(*arguments: Any) -> Any:
        other = dmlconf(suite.parent, "record", "suite", "--case", "tile/x/b", *to_suite)
        assert other.returncode == 0, other.stderr
        recorded.append(read_recording(suite / "tile" / "r.dmlrec").entries["tile/x/b"])
        return recorder.record(*arguments)

    recorded: list[Entry] = []
    monkeypatch.setattr(command_module, "record", other_first)
    record(suite, "suite", "--case", "tile/x/a")
    entries = read_recording(suite / "tile" / "r.dmlrec").entries
    assert list(entries) == ["tile/x/a", "tile/x/b"]
    assert entries["tile/x/b"].digest == recorded[0].digest


def test_recording_one_file_keeps_recorded_cases_of_others(suite: Path) -> None:
    (suite / "tile" / "y.yaml").write_text(TILE, encoding="utf-8")
    other_file = suite.parent / "mine.yaml"
    other_file.write_text(TILE, encoding="utf-8")
    record(suite, "suite/tile")
    record(suite, "suite/tile/y.yaml")
    record(suite, other_file)
    names = [f"tile/{stem}/{name}" for stem in ("mine", "x", "y") for name in "ab"]
    assert recorded_cases(suite, "tile") == names


def test_cases_that_were_removed_are_removed_from_the_recording(suite: Path) -> None:
    (suite / "tile" / "y.yaml").write_text(TILE, encoding="utf-8")
    record(suite, "suite")
    (suite / "tile" / "y.yaml").unlink()
    record(suite, "suite", "--case", "tile/x/a")
    assert recorded_cases(suite, "tile") == ["tile/x/a", "tile/x/b"]


def test_recording_an_operator_includes_its_shared_cases(suite: Path) -> None:
    shared = suite / "shared" / "tiles" / "x.yaml"
    shared.parent.mkdir(parents=True)
    text = TILE.replace("operator: TILE", "operators: [TILE]")
    shared.write_text(text.replace("name: a", "name: c").replace("name: b", "name: d"), "utf-8")
    record(suite, "suite")
    own = suite / "tile" / "x.yaml"
    own.write_text(own.read_text(encoding="utf-8").replace("name: b", "name: e"), encoding="utf-8")
    done = dmlconf_here(suite, "record", "tile", "-b", RIGHT, "--name", "r")
    assert done.returncode == 0, done.stderr
    assert recorded_cases(suite, "tile") == ["tile/x/a", "tile/x/c", "tile/x/d", "tile/x/e"]


@pytest.mark.parametrize("own_files", [True, False], ids=["own-files", "shared-files-only"])
def test_recording_other_cases_keeps_those_of_shared_files(suite: Path, own_files: bool) -> None:
    for name in ("y", "z"):
        shared = suite / "shared" / name / f"{name}.yaml"
        shared.parent.mkdir(parents=True)
        shared.write_text(TILE.replace("operator: TILE", "operators: [TILE]"), "utf-8")
    if not own_files:
        (suite / "tile" / "x.yaml").unlink()
    record(suite, "suite")
    before = recorded_cases(suite, "tile")
    assert {"tile/y/a", "tile/z/a"} < set(before)
    if own_files:
        record(suite, "suite/tile/x.yaml")
    record(suite, "suite", "--case", "tile/z/a")
    assert recorded_cases(suite, "tile") == before


def test_another_device_must_record_all_cases_of_an_operator(
    suite: Path,
) -> None:
    record(suite, "suite")
    before = recordings(suite)
    other = ["-b", "faulty:zeros,on=nothing", "-o", "suite", "--name", "r"]
    done = dmlconf_here(suite.parent, "record", "suite", "--case", "tile/x/a", *other)
    assert done.returncode == 4
    assert "record all cases of TILE, or choose another --name" in done.stderr
    assert recordings(suite) == before
    assert dmlconf_here(suite.parent, "record", "suite/tile", *other).returncode == 0
    assert read_recording(suite / "tile" / "r.dmlrec").environment["adapter"] == "zeros"


@pytest.mark.slow
def test_an_operator_whose_cases_all_crash_keeps_its_recording(suite: Path) -> None:
    record(suite, "suite")
    before = recordings(suite)
    done = dmlconf_here(
        suite.parent,
        "record",
        "suite",
        "-b",
        "faulty:crash,on=tile",
        "-o",
        "suite",
        "--name",
        "r",
    )
    assert done.returncode == 1
    assert "not recorded: 2 cases broken: crash" in done.stderr
    assert recordings(suite)["tile"] == before["tile"]


def test_a_damaged_recording_is_replaced(suite: Path) -> None:
    record(suite, "suite")
    before = recordings(suite)["tile"][0]
    (suite / "tile" / "r.dmlrec").write_bytes(b"damaged")
    assert record(suite, "suite").endswith("in 2 files, 1 of them changed\n")
    assert recordings(suite)["tile"][0] == before


@pytest.mark.slow
def test_stale_recording_is_reported_with_a_command_to_renew_it(suite: Path) -> None:
    record(suite, "suite")
    (suite / "tile" / "x.yaml").write_text(TILE.replace("[1, 2]", "[1, 3]"), encoding="utf-8")
    done = dmlconf_here(suite.parent, "run", "suite")
    start = f"Record again: dmlconf record suite -b {RIGHT} --operator TILE -o suite --name r"
    assert start in done.stderr
    record(suite, "suite", "--operator", "TILE")
    assert "Record again" not in dmlconf_here(suite.parent, "run", "suite").stderr
