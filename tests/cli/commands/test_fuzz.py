"""`dmlconf fuzz` runs generated cases, and saves those that fail.

The tested code is in `dmlconf/cli/commands/running/fuzz.py`, `dmlconf/cli/common/logs.py`,
`dmlconf/cli/runs/fuzz_reduction.py`, `dmlconf/fuzzing/plan.py` and `dmlconf/fuzzing/saving.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlconf.cli.commands.running import fuzz
from dmlconf.run_log.log import LogWriter, RunLog, read_log
from tests.cli.process import dmlconf_here

NEGATED = "faulty:negated,where=Axis > 1"

FUZZ = ("fuzz", "-b", NEGATED, "-o", "GATHER", "--seed", "1")
"""The beginning of a command; its seed fixes the cases."""


@pytest.mark.fuzz
def test_a_backend_without_defects_passes(tmp_path: Path) -> None:
    run = dmlconf_here(tmp_path, "fuzz", "-b", "faulty:level=6_4", "-o", "TILE", "--cases", "20")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "PASSED: 20 passed of 20 cases" in run.stdout
    assert not list(tmp_path.rglob("*.failures"))


@pytest.mark.fuzz
def test_defect_is_named_and_its_failures_are_saved(tmp_path: Path) -> None:
    run = dmlconf_here(tmp_path, *FUZZ, "--cases", "60")
    assert run.returncode == 1
    assert "where Axis > 1" in run.stdout
    [folder] = (tmp_path / "logs").glob("run-*.failures")
    assert f"Failing cases will be in {folder}\n" in run.stderr
    file = folder / "gather" / "fuzz-1.yaml"
    assert file.is_file()
    assert f"at {file}:1\n" in run.stdout
    again = dmlconf_here(tmp_path, "run", "-b", NEGATED, folder)
    assert again.returncode == 1
    assert " passed" not in again.stdout.splitlines()[-1]


@pytest.mark.fuzz
def test_one_case_of_a_group_of_failures_is_reduced(tmp_path: Path) -> None:
    run = dmlconf_here(tmp_path, *FUZZ, "--cases", "20", "--save", "saved")
    assert "was reduced in" in run.stderr
    (reduced,) = (tmp_path / "saved" / "reduced").glob("*.yaml")
    again = dmlconf_here(tmp_path, "run", "-b", NEGATED, reduced, "--log", "again.jsonl")
    assert again.returncode == 1
    (verdict,) = verdicts(tmp_path / "again.jsonl")
    facts = verdict["facts"]
    assert isinstance(facts, dict)
    # `Axis > 1` needs three dimensions.
    assert facts["OutputTensor"] == "FLOAT32 1x1x1"


@pytest.mark.fuzz
def test_invalid_cases_fail_on_a_backend_that_accepts_every_desc(tmp_path: Path) -> None:
    invalid = ("-o", "TILE", "--invalid", "--cases", "5")
    run = dmlconf_here(tmp_path, "fuzz", "-b", "faulty:zeros", *invalid, "--reduce", "0")
    assert run.returncode == 1
    assert "5 failed" in run.stdout.splitlines()[-1]
    right = dmlconf_here(tmp_path, "fuzz", "-b", "faulty:level=6_4", *invalid)
    assert right.returncode == 0


@pytest.mark.fuzz
def test_generated_graphs_that_fail_are_saved_and_fail_again(tmp_path: Path) -> None:
    graphs = ("--graphs", "--nodes", "3", "--cases", "8", "--seed", "1")
    operators = ("-o", "ACTIVATION_RELU", "-o", "ELEMENT_WISE_ADD")
    right = ("fuzz", "-b", "faulty:level=6_4", *graphs, *operators)
    assert dmlconf_here(tmp_path, *right).returncode == 0
    wrong = ("fuzz", "-b", "faulty:negated", *graphs, *operators)
    run = dmlconf_here(tmp_path, *wrong, "--save", "saved", "--reduce", "0")
    assert run.returncode == 1
    again = dmlconf_here(tmp_path, "run", "-b", "faulty:negated", "saved")
    assert again.returncode == 1


@pytest.mark.fuzz
def test_option_number_repeats_a_case_of_a_run(tmp_path: Path) -> None:
    dmlconf_here(tmp_path, *FUZZ, "--cases", "12", "--log", "all.jsonl")
    dmlconf_here(tmp_path, *FUZZ, "--number", "11", "--log", "single.jsonl")
    (single,) = verdicts(tmp_path / "single.jsonl")
    of_all = verdicts(tmp_path / "all.jsonl")[11]
    assert single["case"] == of_all["case"] == "gather/fuzz-1/11"
    assert single["facts"] == of_all["facts"]
    assert single["figures"] == of_all["figures"]


def test_a_case_whose_number_is_given_twice_runs_once(tmp_path: Path) -> None:
    run = dmlconf_here(tmp_path, *FUZZ, "--number", "11", "--number", "11", "--log", "run.jsonl")
    assert run.returncode in (0, 1), run.stderr
    assert [verdict["case"] for verdict in verdicts(tmp_path / "run.jsonl")] == ["gather/fuzz-1/11"]


@pytest.mark.fuzz
def test_a_run_limited_by_time_ends_with_a_consistent_log(tmp_path: Path) -> None:
    run = dmlconf_here(tmp_path, *FUZZ, "--time", "0.1", "--log", "run.jsonl")
    assert run.returncode == 1
    header = json.loads((tmp_path / "run.jsonl").read_text("utf-8").splitlines()[0])
    assert header["selected"] == len(verdicts(tmp_path / "run.jsonl")) > 0
    assert dmlconf_here(tmp_path, "report", "run.jsonl").returncode == 0


@pytest.mark.fuzz
def test_a_run_that_ends_before_all_rounds_has_a_consistent_log(tmp_path: Path) -> None:
    early = ("--cases", "5000", "--max-failures", "1", "--reduce", "0", "--log", "run.jsonl")
    run = dmlconf_here(tmp_path, *FUZZ, *early)
    assert run.returncode == 1, run.stderr
    header = json.loads((tmp_path / "run.jsonl").read_text("utf-8").splitlines()[0])
    assert header["selected"] == len(verdicts(tmp_path / "run.jsonl")) < 5000
    assert dmlconf_here(tmp_path, "report", "run.jsonl").returncode == 0


@pytest.mark.fuzz
def test_run_limited_by_time_that_dies_while_it_counts_cases_loses_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = 0

    def die(log: RunLog, writer: LogWriter) -> None:
        nonlocal logged
        logged = len(log.verdicts)
        writer.header(log.header)
        raise KeyboardInterrupt

    monkeypatch.setattr(fuzz, "rewrite", die)
    dmlconf_here(tmp_path, *FUZZ, "--time", "0.1", "--log", "run.jsonl")
    assert len(read_log(tmp_path / "run.jsonl").verdicts) == logged > 0
    assert {file.name for file in tmp_path.glob("*.jsonl")} == {"run.jsonl"}


@pytest.mark.fuzz
def test_max_failures_2_ends_a_run_after_two_failures(tmp_path: Path) -> None:
    dmlconf_here(tmp_path, *FUZZ, "--cases", "60", "--max-failures", "2", "--log", "run.jsonl")
    statuses = [verdict["status"] for verdict in verdicts(tmp_path / "run.jsonl")]
    assert statuses.count("failed") == 2
    assert "not run" in statuses


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "GATHR"), "did you mean GATHER?"),
        (("--cases", "5", "--time", "1"), "--cases, --time and --number exclude each other"),
        (("--cases", "0"), "'0' is not a whole number of at least 1"),
        (("-o", "GRAPHS"), "use --graphs to generate graphs"),
        (("--graphs", "--invalid"), "--graphs and --invalid exclude each other"),
        (("--nodes", "8"), "--nodes is for graphs; add --graphs"),
        (("--no-rewrites",), "--no-rewrites is for graphs; add --graphs"),
    ],
)
def test_wrong_options_of_fuzz_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    run = dmlconf_here(tmp_path, "fuzz", "-b", "numpy", *arguments)
    assert run.returncode == 2
    assert message in run.stderr


def test_the_reference_compared_with_itself_proves_nothing(tmp_path: Path) -> None:
    run = dmlconf_here(tmp_path, "fuzz", "-b", "numpy", "-o", "TILE", "--cases", "3")
    assert run.returncode == 7
    assert "3 unchecked of 3 cases" in run.stdout
    assert "no case passed, so this run proves nothing" in run.stderr


def verdicts(log: Path) -> list[dict[str, object]]:
    lines = map(json.loads, log.read_text("utf-8").splitlines())
    records = [line for line in lines if line["record"] == "verdict"]
    return sorted(records, key=lambda record: int(record["place"]))
