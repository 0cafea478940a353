"""`dmlconf record` writes recordings, which runs replay and compare with.

The tested code is in `dmlconf/cli/commands/writing/record.py`, `dmlconf/expectations/recorder.py`,
`dmlconf/backends/recording/backend.py`, `dmlconf/backends/recording/file.py`,
`dmlconf/backends/recording/model.py`, `dmlconf/backends/errors.py` and
`dmlconf/engine/against.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlconf.backends.recording.file import read_recording
from dmlconf.resources import cases_directory
from dmlconf.run_log.log import read_log
from tests.cli.process import RIGHT, dmlconf_here, write

MIXED = """
operator: TILE
cases:
  - matrix: {DataType: {data_types: InputTensor}}
    desc:
      InputTensor: {Sizes: [3], DataType: =DataType, fill: sequence}
      OutputTensor: {Sizes: [6], DataType: =DataType}
      Repeats: [2]
  - name: invalid
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32}
      OutputTensor: {Sizes: [5], DataType: FLOAT32}
      Repeats: [2]
    expect: {rejected: E_INVALIDARG, constraint: output-sizes}
  - name: special
    desc:
      InputTensor: {Sizes: [5], DataType: FLOAT16, values: [.nan, -0.0, .inf, -.inf, 5.9e-8]}
      OutputTensor: {Sizes: [10], DataType: FLOAT16}
      Repeats: [2]
"""
"""Cases of all data types, an invalid case, and one with special numbers."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    directory = tmp_path_factory.mktemp("recorded")
    return record(directory, write(directory, MIXED)).read_bytes()


def record(directory: Path, *arguments: str | Path) -> Path:
    path = directory / "x.dmlrec"
    done = dmlconf_here(directory, "record", *arguments, "-b", RIGHT, "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def write_recording(directory: Path, recording: bytes) -> Path:
    path = directory / "x.dmlrec"
    path.write_bytes(recording)
    return path


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.slow
def test_a_recording_is_replayed_with_passing_verdicts(tmp_path: Path) -> None:
    suite = write(tmp_path, MIXED)
    path = record(tmp_path, suite)
    done = dmlconf_here(tmp_path, "run", suite, "-b", f"recording:{path}", "--log", "log.jsonl")
    assert done.returncode == 0, done.stdout + done.stderr
    log = read_log(tmp_path / "log.jsonl")
    assert {verdict.status for verdict in log.verdicts} == {"passed"}
    assert log.header.environment["version"].startswith("faulty ")
    assert log.header.environment["adapter"] == "slow"
    parallel = dmlconf_here(tmp_path, "run", suite, "-b", f"recording:{path}", "-j", "2", "-q")
    assert parallel.returncode == 0


def test_record_prints_how_many_cases_it_recorded(tmp_path: Path) -> None:
    suite = write(tmp_path, MIXED)
    done = dmlconf_here(tmp_path, "record", suite, "-b", RIGHT, "-o", "x.dmlrec")
    count = len(read_recording(tmp_path / "x.dmlrec").entries)
    assert done.stdout == f"x.dmlrec: recorded {count} of {count} cases\n"
    assert done.stderr == ""
    assert names_in(tmp_path) == ["tile.yaml", "x.dmlrec"]
    level = "faulty:level=3_1"  # Two cases need a higher level.
    done = dmlconf_here(tmp_path, "record", suite, "-b", level, "-o", "y.dmlrec")
    assert done.stdout == "y.dmlrec: recorded 10 of 12 cases\n"


def test_recording_again_with_more_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    suite = write(tmp_path, MIXED)
    path = record(tmp_path, suite)
    first = path.read_bytes()
    path.unlink()
    assert record(tmp_path, suite, "-j", "3").read_bytes() == first


def test_unchecked_cases_are_checked_against_a_recording(tmp_path: Path, recording: bytes) -> None:
    suite = write(tmp_path, MIXED)
    before = dmlconf_here(tmp_path, "run", suite, "--report", "json")
    path = write_recording(tmp_path, recording)
    after = dmlconf_here(
        tmp_path, "run", suite, "--against", f"recording:{path}", "--report", "json"
    )
    assert json.loads(before.stdout)["summary"]["unchecked"] > 0
    report = json.loads(after.stdout)
    assert report["summary"]["unchecked"] == 0
    provenances = {v["case"]: v["expectation"] for v in report["verdicts"]}
    assert provenances.pop("tile/tile/invalid") == "documented"
    assert set(provenances.values()) == {"recorded"}
    assert after.returncode == 0


def test_a_run_with_wrong_results_fails_and_names_the_recording(
    tmp_path: Path, recording: bytes
) -> None:
    suite = write(tmp_path, MIXED)
    path = write_recording(tmp_path, recording)
    done = dmlconf_here(
        tmp_path, "run", suite, "-b", "faulty:zeros", "--against", f"recording:{path}"
    )
    assert done.returncode == 1
    assert f"--against recording:{path}" in done.stdout


def recorded_suite(directory: Path, recording: bytes) -> Path:
    folder = directory / "suite"
    (folder / "recordings").mkdir(parents=True)
    write(folder, MIXED)
    (folder / "recordings" / "a.dmlrec").write_bytes(recording)
    return folder


def test_a_suites_own_recording_is_used_by_default(tmp_path: Path, recording: bytes) -> None:
    recorded_suite(tmp_path, recording)
    done = dmlconf_here(tmp_path, "run", "suite", "--report", "json")
    report = json.loads(done.stdout)
    own = str(Path("suite", "recordings", "a.dmlrec"))
    assert report["summary"]["unchecked"] == 0
    assert report["run"]["against"] == f"recording:{own}"
    # Cases without a recording are compared with the reference, unless it is tested itself.
    other = dmlconf_here(tmp_path, "run", "suite", "-b", "faulty:zeros", "--report", "json")
    assert json.loads(other.stdout)["run"]["against"] == f"recording:{own}, else numpy"
    assert other.returncode == 1
    # Commands that repeat failures need no --against.
    assert " --against " not in other.stderr
    numpy = dmlconf_here(tmp_path, "run", "suite", "--against", "numpy", "--report", "json")
    assert json.loads(numpy.stdout)["summary"]["unchecked"] > 0


def test_stale_recorded_case_is_not_used_and_gives_a_warning(
    tmp_path: Path, recording: bytes
) -> None:
    folder = recorded_suite(tmp_path, recording)
    write(folder, MIXED.replace(".inf, -.inf", "1, 2"))
    done = dmlconf_here(tmp_path, "run", "suite", "--log", "log.jsonl")
    assert done.returncode == 0
    own = Path("suite", "recordings", "a.dmlrec")
    assert f"Warning: {own} has another desc or other inputs for 1 case " in done.stderr
    assert "\n  tile/tile/special\n" in done.stderr
    assert f"Record again: dmlconf record suite -b {RIGHT} -o {own}\n" in done.stderr
    verdicts = {v.case: v for v in read_log(tmp_path / "log.jsonl").verdicts}
    assert verdicts["tile/tile/special"].status == "unchecked"
    assert verdicts["tile/tile[DataType=INT8]"].status == "passed"


def test_stale_and_missing_cases_are_named_in_a_replay(tmp_path: Path, recording: bytes) -> None:
    path = write_recording(tmp_path, recording)
    other = MIXED.replace(".inf, -.inf", "1, 2").replace("name: invalid", "name: unknown")
    suite = write(tmp_path, other)
    done = dmlconf_here(tmp_path, "run", suite, "-b", f"recording:{path}")
    assert done.returncode == 1
    assert "BROKEN tile/tile/special: backend error" in done.stdout
    assert "the recording has a different desc or different inputs" in done.stdout
    assert "BROKEN tile/tile/unknown: backend error" in done.stdout
    assert "the recording has no such case" in done.stdout


def test_stale_recording_to_compare_with_gives_exit_code_4(
    tmp_path: Path, recording: bytes
) -> None:
    path = write_recording(tmp_path, recording)
    stale = len(read_recording(path).entries) - 1  # All but the invalid case.
    other = MIXED.replace("fill: sequence", "fill: {constant: {value: 2}}")
    suite = write(tmp_path, other.replace(".inf, -.inf", "1, 2"))
    done = dmlconf_here(
        tmp_path, "run", suite, "--against", f"recording:{path}", "--log", "log.jsonl"
    )
    assert done.returncode == 4
    assert (
        f"is stale: it has a different desc or different inputs for {stale} of the " in done.stderr
    )
    named = [line for line in done.stderr.splitlines() if line.startswith("  tile/")]
    assert len(named) == 10
    assert f"\n  and {stale - len(named)} more\n" in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "log.jsonl").exists()


@pytest.mark.slow
def test_recording_of_another_suite_gives_exit_code_4(tmp_path: Path, recording: bytes) -> None:
    path = write_recording(tmp_path, recording)
    done = dmlconf_here(tmp_path, "run", "--against", f"recording:{path}", "--operator", "GATHER")
    assert done.returncode == 4
    assert "was made for another suite" in done.stderr


@pytest.mark.parametrize("use", ["-b", "--against"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"", "not a recording"),
        (b"%PDF-1.7 whatever", "not a recording"),
        (b"half", "not a recording"),
    ],
)
def test_file_that_is_no_recording_gives_exit_code_4(
    tmp_path: Path, recording: bytes, use: str, content: bytes | None, message: str
) -> None:
    suite = write(tmp_path, MIXED)
    path = tmp_path / "x.dmlrec"
    if content == b"half":  # Stands for half of a recording.
        path.write_bytes(recording[: len(recording) // 2])
    elif content is not None:
        path.write_bytes(content)
    done = dmlconf_here(tmp_path, "run", suite, use, "recording:x.dmlrec")
    assert done.returncode == 4
    assert done.stderr.startswith("Error: x.dmlrec: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_recording_of_the_reference_checks_no_case(
    tmp_path: Path,
) -> None:
    suite = write(tmp_path, MIXED)
    done = dmlconf_here(tmp_path, "record", suite, "-b", "numpy", "-o", "x.dmlrec")
    assert done.returncode == 0
    assert "Warning: numpy is the reference" in done.stderr
    run = dmlconf_here(
        tmp_path, "run", suite, "--against", "recording:x.dmlrec", "--report", "json"
    )
    assert "proves nothing" in run.stderr
    statuses = {each["case"]: each["status"] for each in json.loads(run.stdout)["verdicts"]}
    assert statuses.pop("tile/tile/invalid") == "passed"  # The case states its rejection.
    assert set(statuses.values()) == {"unchecked"}


@pytest.mark.slow
def test_cases_that_break_are_reported_and_not_recorded(tmp_path: Path) -> None:
    suite = write(tmp_path, MIXED)
    backend = "faulty:crash,on=INT8"  # Also crashes on UINT8.
    done = dmlconf_here(tmp_path, "record", suite, "-b", backend, "-o", "x.dmlrec")
    assert done.returncode == 1
    assert "not recorded: 2 cases broken: crash" in done.stderr
    assert "BROKEN tile/tile[DataType=INT8]: crash: its process died" in done.stderr
    entries = read_recording(tmp_path / "x.dmlrec").entries
    assert "tile/tile[DataType=INT8]" not in entries
    assert "tile/tile[DataType=INT16]" in entries


@pytest.mark.parametrize("fault", ["no-output", "wrong-type", "wrong-sizes"])
def test_no_file_is_written_if_nothing_can_be_recorded(tmp_path: Path, fault: str) -> None:
    suite = write(tmp_path)
    old = tmp_path / "x.dmlrec"
    old.write_bytes(b"old")
    done = dmlconf_here(tmp_path, "record", suite, "-b", f"faulty:{fault}", "-o", old)
    assert done.returncode == 1
    assert "1 case broken: other outputs than the desc has" in done.stderr
    assert "nothing could be recorded" in done.stderr
    assert old.read_bytes() == b"old"
    assert names_in(tmp_path) == ["tile.yaml", "x.dmlrec"]


def test_unsupported_cases_are_not_recorded(tmp_path: Path) -> None:
    done = dmlconf_here(
        tmp_path,
        "record",
        "-b",
        "faulty:first-level",
        "-o",
        "x.dmlrec",
        "--operator",
        "TILE",
        "-k",
        "tile/matrix/every-axis and FLOAT16",
    )
    assert done.returncode == 0, done.stderr
    assert "unsupported: feature level" in done.stderr
    entries = read_recording(tmp_path / "x.dmlrec").entries
    assert list(entries) == ["tile/matrix/every-axis-at-once[DataType=FLOAT16,DimensionCount=4]"]


def test_failures_excused_by_a_substrate_are_not_recorded(tmp_path: Path) -> None:
    suite = write(tmp_path)
    limits = tmp_path / "limits.yaml"
    limits.write_text(
        "substrate: A test.\n"
        "limits:\n"
        "  - {name: no-tile, reason: It cannot., stage: CreateOperator, hresult: E_INVALIDARG,\n"
        "     operators: [TILE], data_types: any}\n",
        encoding="utf-8",
    )
    done = dmlconf_here(
        tmp_path,
        "record",
        suite,
        "-b",
        "faulty:rejects",
        "-o",
        "x.dmlrec",
        "--substrate",
        limits,
    )
    assert "1 case unsupported: limit of the substrate" in done.stderr
    assert not (tmp_path / "x.dmlrec").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-b", "numpy"], 2, "say where to write"),
        (["-b", "recording:y.dmlrec", "-o", "x.dmlrec"], 2, "copy the file"),
        # The file is tried before a case runs and hangs.
        (["-b", "faulty:hang", "-o", f"{__file__}/x.dmlrec"], 2, "Not a directory"),
        (["-b", "numpy", "-o", "TILE"], 2, "to select an operator, use --operator"),
        (["-b", "numpy", "-o", "x.dmlrec", "--name", "y"], 2, "add -o FOLDER"),
        (["-b", "numpy", "-o", ".", "--name", "a/b"], 2, "is not a file name"),
        (["-b", "numpy", "-o", "x.dmlrec", "-j", "0"], 2, "auto"),
        (["-b", "numpi", "-o", "x.dmlrec"], 4, "did you mean numpy?"),
        (
            ["-b", "numpy", "-o", "x.dmlrec", "--operator", "TILE", "-k", "nothing"],
            5,
            "no case was selected",
        ),
        (["-b", "numpy", "-o", "x.dmlrec", "nothing.yaml"], 3, "no such file or folder"),
    ],
)
def test_wrong_arguments_of_record_are_refused(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    done = dmlconf_here(tmp_path, "record", *arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert names_in(tmp_path) == []


@pytest.mark.slow
def test_recorded_case_takes_less_than_100_bytes_on_average(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.dmlrec"
    paths = [cases_directory() / name for name in ("gather", "join", "tile")]
    # Files `sizes.yaml` have large outputs, and `combinations.yaml` long identifiers.
    chosen = "not sizes and not combinations"
    done = dmlconf_here(tmp_path, "record", *paths, "-b", "numpy", "-o", path, "-k", chosen)
    assert done.returncode == 0
    entries = len(read_recording(path).entries)
    assert entries > 1000
    assert path.stat().st_size < 100 * entries
