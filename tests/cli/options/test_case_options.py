"""Options of `run`, `list` and `show` that choose, repeat, time, show or save cases.

The tested code is in `dmlconf/cli/options/case_lists.py`, `dmlconf/cli/options/selection.py`,
`dmlconf/cli/options/unknown_names.py`, `dmlconf/cli/options/reporting.py`,
`dmlconf/cli/common/command.py`, `dmlconf/cli/runs/run_target.py`,
`dmlconf/cli/pages/show_outcome.py`,
`dmlconf/cases/identifiers.py`, `dmlconf/cases/selecting/where.py`,
`dmlconf/diagnosis/dump.py` and `dmlconf/engine/repetition.py`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.process import dmlconf, dmlconf_here, write

CASES = """
operator: TILE
cases:
  - name: right
    desc: &tile
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
  - name: wrong
    desc: *tile
    expect: {OutputTensor: [1, 2, 3, 4]}
  - name: half
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT16, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT16}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
"""


def identifiers(text: str) -> list[str]:
    return text.split()


def test_option_failed_selects_the_failures_of_the_latest_run(tmp_path: Path) -> None:
    write(tmp_path, CASES)
    dmlconf_here(tmp_path, "run", "tile.yaml")
    assert identifiers(dmlconf_here(tmp_path, "list", "--failed").stdout) == ["tile/tile/wrong"]
    again = dmlconf_here(tmp_path, "run", "--failed")
    assert again.returncode == 1
    assert "FAILED: 1 of 1 case fails the run" in again.stdout
    write(tmp_path, CASES.replace("[1, 2, 3, 4]", "[1, 2, 1, 2]"))
    assert dmlconf_here(tmp_path, "run", "--failed").returncode == 0
    nothing = dmlconf_here(tmp_path, "run", "--failed")
    assert nothing.returncode == 5
    assert "no case failed in the run of " in nothing.stderr


@pytest.mark.slow
def test_option_failed_takes_failures_and_backend_of_a_log(tmp_path: Path) -> None:
    path = write(tmp_path, CASES)
    backend = "faulty:zeros,on=half"
    dmlconf_here(tmp_path, "run", path, "-b", backend, "--log", "zeros.jsonl")
    dmlconf_here(tmp_path, "run", path)
    for more, failing in (
        ([], ["tile/tile/wrong", "tile/tile/half"]),
        (["--where", "DataType == FLOAT16"], ["tile/tile/half"]),
    ):
        again = dmlconf_here(tmp_path, "run", "--failed", "zeros.jsonl", *more, "--report", "json")
        report = json.loads(again.stdout)
        assert report["run"]["backend"] == backend
        assert [verdict["case"] for verdict in report["verdicts"]] == failing


def test_option_failed_refuses_a_case_file_as_its_log(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "run", "--failed", write(tmp_path, CASES))
    assert done.returncode == 2
    assert "write --failed=latest" in done.stderr


def test_option_cases_selects_the_cases_that_a_file_lists(tmp_path: Path) -> None:
    path = write(tmp_path, CASES)
    (tmp_path / "some.txt").write_text("# mine\ntile/tile/wrong\n\nhalf\nnone\n", "utf-8")
    listed = dmlconf_here(tmp_path, "list", path, "--cases", "some.txt")
    assert identifiers(listed.stdout) == ["tile/tile/wrong", "tile/tile/half"]
    assert "Warning: --cases: there is no case none" in listed.stderr
    both = dmlconf_here(tmp_path, "list", path, "--cases", "some.txt", "--case", "*/*/*r*")
    assert identifiers(both.stdout) == ["tile/tile/wrong"]
    (tmp_path / "old.txt").write_text("a\nb\nc\nd\n", "utf-8")
    old = dmlconf_here(tmp_path, "list", path, "--cases", "old.txt", "-o", "TILE")
    assert old.returncode == 5
    assert "selected: there is no case a, b, c and 1 more, as --cases old.txt names" in old.stderr
    missing = dmlconf_here(tmp_path, "list", path, "--cases", "none.txt")
    assert missing.returncode == 2
    assert "none.txt: No such file" in missing.stderr


@pytest.mark.parametrize(
    ("options", "warnings"),
    [
        (
            ["--without-tag", "modell", "--without-tag", "tale"],
            [
                "--without-tag: no case has the tag modell; did you mean model?",
                "--without-tag: no case has the tag tale; did you mean tile?",
            ],
        ),
        (["--tag", "tile", "--tag", "fast"], ["--tag: no case has the tag fast"]),
        (
            ["-o", "Tile", "-o", "GRU", "-o", "Conv"],
            ["--operator: there is no case of GRU", "--operator: there is no case of Conv"],
        ),
        (["-o", "TILE", "--without-tag", "relu"], []),
        (["-o", "TILE", "-k", "not relu2"], []),
        (
            ["-k", "half or not grpahs"],
            ["-k: no case has grpahs in its identifier; did you mean graphs?"],
        ),
        (
            ["--case", "half", "--case", "rihgt"],
            ["--case: there is no case rihgt"],
        ),
        (
            ["--case", "half", "--case", "tile/tile/rihgt"],
            ["--case: there is no case tile/tile/rihgt; did you mean tile/tile/right?"],
        ),
        # A suite may lack what these leave out.
        (["--without-tag", "slow", "--without-tag", "model", "-k", "not graphs and not gemm"], []),
    ],
)
def test_a_name_that_no_case_has_gets_a_warning(
    tmp_path: Path, options: list[str], warnings: list[str]
) -> None:
    write(tmp_path, CASES)
    relu = """
operator: ACTIVATION_RELU
cases:
  - name: relu2
    desc:
      InputTensor: {Sizes: [1], DataType: FLOAT32, values: [1]}
      OutputTensor: {Sizes: [1], DataType: FLOAT32}
"""
    write(tmp_path, relu, "relu.yaml")
    done = dmlconf_here(tmp_path, "list", tmp_path, *options)
    assert done.returncode == 0
    shown = [line for line in done.stderr.splitlines() if line.startswith("Warning: ")]
    assert shown == [f"Warning: {each}" for each in warnings]


def test_a_case_is_found_by_a_unique_last_part(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, CASES)
    assert identifiers(dmlconf_here(tmp_path, "list", path, "--case", "half").stdout) == [
        "tile/tile/half"
    ]
    assert "tile/tile/half" in dmlconf_here(tmp_path, "show", "half", path).stdout
    write(tmp_path, CASES, "other.yaml")
    done = dmlconf_here(tmp_path, "list", tmp_path, "--case", "half")
    assert done.returncode == 2
    assert "several cases are called half: tile/other/half, tile/tile/half" in done.stderr


@pytest.mark.slow
def test_bundled_cases_are_found_by_pattern_or_condition(tmp_path: Path) -> None:
    some = dmlconf_here(tmp_path, "list", "--case", "tile/documented/*")
    assert identifiers(some.stdout) == ["tile/documented/example-1-three-by-three"]
    where = ["-o", "TILE", "--where", "Repeats[0] > 1 and DataType == FLOAT16", "--quick"]
    found = identifiers(dmlconf_here(tmp_path, "list", *where).stdout)
    assert found
    assert not [name for name in found if not re.match("tile/.*FLOAT16", name)]
    wrong = dmlconf_here(tmp_path, "list", "-o", "TILE", "--where", "Repeat == (1,)")
    assert wrong.returncode == 2
    assert "no case has Repeat; did you mean Repeats?" in wrong.stderr


def test_a_repeated_run_gives_each_case_one_verdict(tmp_path: Path) -> None:
    path = write(tmp_path, CASES)
    done = dmlconf_here(
        tmp_path, "run", path, "--repeat", "3", "--shuffle", "5", "--report", "json"
    )
    report = json.loads(done.stdout)
    assert [verdict["case"] for verdict in report["verdicts"]] == [
        "tile/tile/right",
        "tile/tile/wrong",
        "tile/tile/half",
    ]
    assert (report["run"]["options"]["repeat"], report["run"]["options"]["shuffle"]) == (3, 5)
    [wrong] = [verdict for verdict in report["verdicts"] if verdict["status"] == "failed"]
    assert wrong["reason"]["message"].endswith("(in repetition 1 of 3)")
    assert "Repetition 3 of 3" in done.stderr


def test_option_durations_lists_the_slowest_cases(
    tmp_path: Path,
) -> None:
    run = ("run", write(tmp_path, CASES))
    assert dmlconf_here(tmp_path, *run, "--log", "run.jsonl").returncode == 1
    log = tmp_path / "run.jsonl"
    records = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for record, seconds in zip(records[1:4], (1.0, 2.0, 3.0), strict=True):
        record["seconds"] = seconds
    log.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    done = dmlconf_here(tmp_path, *run, "--resume", "run.jsonl", "--durations", "2")
    listed = re.findall(r"^ +([0-9.]+) s  (tile/tile/\w+)", done.stdout, re.MULTILINE)
    assert listed == [("3.000", "tile/tile/half"), ("2.000", "tile/tile/wrong")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--lf"], "use --failed"),
        (["run", "--collect-only"], "`dmlconf list` lists the cases"),
        (["run", "--junitxml=x.xml"], "use --report junit:FILE"),
        (["run", "-n", "4"], "use -j or --jobs"),
        (["devices", "--lf"], "No such option"),  # `devices` runs no cases.
    ],
)
def test_an_option_of_pytest_gets_a_suggestion(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = dmlconf_here(tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert ("--failed" in done.stderr) == ("--failed" in message)


def test_option_cases_reads_standard_input_for_a_dash(tmp_path: Path) -> None:
    write(tmp_path, CASES)
    done = dmlconf(tmp_path, "list", "tile.yaml", "--cases", "-", stdin="tile/tile/half\n")
    assert identifiers(done.stdout) == ["tile/tile/half"]


def test_option_dump_writes_failing_cases_as_case_files(tmp_path: Path) -> None:
    path = write(tmp_path, CASES)
    done = dmlconf_here(tmp_path, "run", path, "--dump", "new/dump")
    assert done.returncode == 1
    assert "1 failing case in new/dump" in done.stderr
    folder = tmp_path / "new" / "dump"
    assert sorted(each.name for each in folder.iterdir()) == [
        "tile-tile-wrong",
        "tile-tile-wrong.yaml",
    ]
    again = dmlconf_here(tmp_path, "run", folder)
    assert "FAILED tile/tile-tile-wrong: expectation contradicts the reference" in again.stdout


def test_option_dump_refuses_a_path_below_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, CASES)
    refused = dmlconf_here(tmp_path, "run", path, "--dump", "tile.yaml/x")
    assert refused.returncode == 2
    assert "--dump tile.yaml/x cannot be written" in refused.stderr


def test_show_prints_expected_and_actual_outputs_on_request(tmp_path: Path) -> None:
    path = write(tmp_path, CASES.replace("    expect: {OutputTensor: [1, 2, 3, 4]}\n", ""))
    without_option = dmlconf_here(tmp_path, "show", "wrong", path)
    assert "1  2  1  2" not in without_option.stdout
    expected = dmlconf_here(tmp_path, "show", "wrong", path, "--against", "auto")
    assert "OutputTensor\n  1  2  1  2\nsource        reference: NumPy" in expected.stdout
    actual = dmlconf_here(tmp_path, "show", "wrong", path, "-b", "faulty:zeros").stdout
    assert "Actual, by faulty:zeros\nOutputTensor\n  0  0  0  0\nfailed: 4 of 4" in actual
    bundled = dmlconf_here(tmp_path, "show", "tile/invalid/repeat-of-0", "--against", "auto")
    assert "rejected with E_INVALIDARG" in bundled.stdout


def test_show_refuses_an_unknown_backend_before_it_prints(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "show", "wrong", write(tmp_path, CASES), "-b", "nosuch")
    assert (done.returncode, done.stdout) == (4, "")
    assert "there is no backend 'nosuch'" in done.stderr
