"""`dmlconf diagnose` names causes of failures, writes a folder for each, and reports errors.

The tested code is in `dmlconf/cli/commands/results/diagnose.py`, `dmlconf/diagnosis/diagnose.py`,
`dmlconf/diagnosis/common_conditions.py`, `dmlconf/reports/diagnoses/folder.py`,
`dmlconf/reports/diagnoses/report.py`, `dmlconf/cli/options/selection.py` and
`dmlconf/cli/common/logs.py`.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.cli.process import beginning, dmlconf, dmlconf_here, write

NEGATED = "faulty:negated,where=max(Strides) > 1,only=metacommands"
"""A backend that negates outputs of cases with a stride above 1, unless metacommands are off."""


def test_diagnosing_a_case_without_a_backend_is_refused(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "diagnose", "gemm/matrix")
    assert done.returncode == 2
    assert "there is no file" in done.stderr
    assert "if it is a case, name the backend that fails it with -b" in done.stderr


def test_diagnosing_without_an_earlier_run_is_refused(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "diagnose")
    assert done.returncode == 2
    assert "there is no earlier run: name a LOG or a CASE" in done.stderr


def test_an_invalid_log_is_reported(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.jsonl").write_text("text\n", encoding="utf-8")
    for name, reason in (
        ("absent.jsonl", "cannot be read"),
        ("folder", "is a folder"),
        ("text.jsonl", "not JSON"),
    ):
        done = dmlconf_here(tmp_path, "diagnose", name)
        assert (done.returncode, reason in done.stderr) == (3, True), done.stderr


def test_an_unknown_case_is_reported(tmp_path: Path) -> None:
    name = "tile/no-such-case"
    done = dmlconf_here(tmp_path, "diagnose", name, write(tmp_path), "-b", "faulty:negated")
    assert done.returncode == 5
    assert "there is no case tile/no-such-case" in done.stderr


def test_diagnosing_a_run_without_failures_gives_exit_code_5(tmp_path: Path) -> None:
    dmlconf_here(tmp_path, "run", "--case", "tile/documented/*", "--log", "run.jsonl", "-q")
    done = dmlconf_here(tmp_path, "diagnose", "run.jsonl")
    assert done.returncode == 5
    assert "nothing failed" in done.stderr
    assert "ends early" not in done.stderr


def test_a_log_that_ends_early_before_a_failure_is_not_taken_for_a_whole_run(
    tmp_path: Path,
) -> None:
    dmlconf_here(tmp_path, "run", write(tmp_path), "--log", "run.jsonl", "-q")
    header = (tmp_path / "run.jsonl").read_text("utf-8").partition("\n")[0]
    (tmp_path / "cut.jsonl").write_text(f"{header}\n", "utf-8")
    done = dmlconf_here(tmp_path, "diagnose", "cut.jsonl")
    assert done.returncode == 5
    assert "The log ends early: run --resume runs the cases that it lacks" in done.stderr


@pytest.mark.diagnosis
def test_failures_of_many_operators_are_one_group(
    tmp_path: Path,
) -> None:
    options = "--quick", "--without-tag", "model", "--log", "run.jsonl"
    run = dmlconf(tmp_path, "run", *options, "-b", "faulty:zeros,where=NAN in Data")
    assert run.returncode == 1
    first = "\n".join(run.stdout.splitlines()[:10])
    # Not "all and only": some cases with a NaN pass.
    assert "all where NAN in Data" in " ".join(first.split()), first
    done = dmlconf(tmp_path, "diagnose", "run.jsonl", "-o", "folder")
    assert done.returncode == 0, done.stderr
    assert "NaN in an input is to blame" in done.stdout
    [folder] = (tmp_path / "folder").iterdir()
    listed = (folder / "failures.txt").read_text().split("\n")
    assert f"the {len(listed) - 1:,} cases that fail alike" in (folder / "report.md").read_text()


@pytest.mark.diagnosis
def test_the_folder_has_a_case_that_fails_again(tmp_path: Path) -> None:
    run = dmlconf(tmp_path, "run", "-o", "FOLD", "-b", NEGATED, "--log", "run.jsonl")
    assert run.returncode == 1
    done = dmlconf(tmp_path, "diagnose", "run.jsonl", "-o", "folder", "--also", "numpy")
    assert done.returncode == 0, done.stderr
    assert "all and only where max(Strides) > 1" in done.stdout
    assert "The driver's metacommand (metacommands=on) is to blame" in done.stdout
    folder = tmp_path / "folder" / "01-fold"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {"report.md", "case.yaml", "case.cpp", "dxdispatch/model.json"} <= files
    assert "| numpy | passed |" in (folder / "report.md").read_text()
    assert dmlconf(folder, "run", "case.yaml", "-b", NEGATED).returncode == 1
    assert dmlconf(folder, "run", "case.yaml", "-b", f"{NEGATED},metacommands=off").returncode == 0


@pytest.mark.diagnosis
def test_an_interrupted_diagnosis_keeps_case_and_report(tmp_path: Path) -> None:
    case_name = "fold/matrix/three-dimensions[DataType=UINT8,Stride=2x1x1,Dilation=1x2x3]"
    process = beginning(tmp_path, "diagnose", case_name, "-b", "faulty:crash", "-o", "folder")
    case = tmp_path / "folder" / "01-fold" / "case.yaml"
    deadline = time.monotonic() + 100
    while not case.is_file() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 6, errors
    assert "Interrupted" in errors
    assert case.is_file()
    assert case.with_name("report.md").is_file()
