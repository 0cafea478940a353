"""The first commands that a newcomer types, right or wrong, get answers that help.

The tested code is in `dmlconf/cli/output/hints.py`, `dmlconf/cli/common/started.py`,
`dmlconf/cli/common/command.py`, `dmlconf/cli/options/named_operators.py`,
`dmlconf/cli/commands/writing/new.py`, `dmlconf/cli/commands/writing/validate.py`,
`dmlconf/cli/commands/running/doctor.py`, `dmlconf/cli/commands/running/operators.py`,
`dmlconf/cli/commands/results/report.py`, `dmlconf/cli/runs/run_target.py`,
`dmlconf/cases/loading/discovery.py`, `dmlconf/documents/schema.py`,
`dmlconf/reports/comparisons/scoreboard.py` and `dmlconf/run_log/lines.py`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from dmlconf.resources import cases_directory
from tests.cli.process import TILE, dmlconf_here, write

UNSTATED = TILE.replace("    expect: {OutputTensor: [1, 2, 1, 2]}\n", "")


def test_new_case_names_its_file_and_the_next_step(
    tmp_path: Path,
) -> None:
    done = dmlconf_here(tmp_path, "new", "case", "TILE", "--output", "my tile.yaml")
    assert done.stdout.splitlines() == [
        "wrote my tile.yaml: one case of TILE, with comments on each field",
        "Next: write the outputs below `expect:`, then type:",
        "  dmlconf run 'my tile.yaml'",
    ]
    assert dmlconf_here(tmp_path, "validate", "my tile.yaml").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sign", "x.dmlcert"), "Missing option '--key'. The private key to sign with."),
        (("fuzz", "-o", "TILE"), "'--backend'. The backend to test, such as directml."),
    ],
)
def test_a_missing_option_is_explained(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = dmlconf_here(tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_failing_run_says_how_to_start_the_single_file(tmp_path: Path) -> None:
    file = "/the folder/dmlconf.pyz"
    wrong = write(tmp_path, TILE.replace("1, 2, 1, 2]}", "1, 2, 1, 3]}")).name
    done = dmlconf_here(tmp_path, "run", wrong, DMLCONF_SINGLE_FILE=file)
    assert done.returncode == 1
    (line,) = (each for each in done.stderr.splitlines() if "type for dmlconf" in each)
    typed = line.removeprefix("In these commands, type for dmlconf: ")
    assert typed != line
    assert file in typed
    assert "type for dmlconf" not in dmlconf_here(tmp_path, "run", wrong).stderr
    if sys.platform != "win32":
        folder, name = Path(sys.executable).parent, Path(sys.executable).name
        for path, begin in ((str(folder), name), ("/", sys.executable)):
            found = dmlconf_here(tmp_path, "run", wrong, DMLCONF_SINGLE_FILE=file, PATH=path)
            assert f"type for dmlconf: {begin} '{file}'\n" in found.stderr
    quiet = dmlconf_here(tmp_path, "run", wrong, "-q", DMLCONF_SINGLE_FILE=file)
    assert "type for dmlconf" not in quiet.stderr


@pytest.mark.parametrize(
    ("name", "has_hint"),
    [("LSTMCell", True), ("lstm", False), ("DML_LSTM_OPERATOR_DESC", False)],
)
def test_a_webnn_name_is_found_with_a_hint(tmp_path: Path, name: str, has_hint: bool) -> None:
    done = dmlconf_here(tmp_path, "list", "-o", name, "--quick")
    assert done.returncode == 0
    assert ("LSTM" in done.stdout.upper(), f"{name}: LSTM" in done.stderr) == (True, has_hint)


def test_a_scoreboard_shortens_different_names_of_logs(
    tmp_path: Path,
) -> None:
    path = write(tmp_path)
    logs = [str(tmp_path / "a folder" / f"{name}.jsonl") for name in ("one", "two")]
    for log in logs:
        assert dmlconf_here(tmp_path, "run", path, "--log", log).returncode == 0
    done = dmlconf_here(tmp_path, "report", *logs)
    assert done.stdout.splitlines()[0].split() == ["Operator", "one", "two"]
    same = dmlconf_here(tmp_path, "report", logs[0], logs[0], "--report", "json").stdout
    assert [run["name"] for run in json.loads(same)["runs"]] == [logs[0], logs[0]]
    slowest = dmlconf_here(tmp_path, "report", *logs, "--durations", "3")
    assert slowest.returncode == 2
    assert "--durations shows a single run, and a scoreboard has several" in slowest.stderr


def test_doctor_counts_cached_and_unpacked_files(tmp_path: Path) -> None:
    unpacked = tmp_path / "cache" / "unpacked" / "a"
    unpacked.mkdir(parents=True)
    (unpacked / "large.bin").write_bytes(bytes(2_000_000))
    (tmp_path / "cache" / "one.json").write_bytes(bytes(300_000))
    (tmp_path / "cache" / "figures").mkdir()
    (tmp_path / "cache" / "figures" / "two.json").write_bytes(bytes(100_000))
    done = dmlconf_here(tmp_path, "doctor", DMLCONF_CACHE=str(tmp_path / "cache"))
    assert f"2 files in {tmp_path / 'cache'}, 0.4 MB; 2.0 MB in {unpacked.parent}" in done.stdout


def test_doctor_reports_a_cache_that_is_a_file(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.touch()
    done = dmlconf_here(tmp_path, "doctor", "--json", DMLCONF_CACHE=str(cache))
    (finding,) = (each for each in json.loads(done.stdout) if each["subject"] == "cache")
    assert finding["state"] == "absent"
    assert finding["told"].startswith(f"{cache} is not a folder that you own")
    assert finding["told"].endswith(": nothing is kept for later commands")
    assert finding["advice"] == "set DMLCONF_CACHE=FOLDER"


def test_doctor_skips_a_log_that_was_removed(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "run-1.jsonl").write_bytes(bytes(1_500_000))
    # Like a log that another run removed, a broken link has no size.
    try:
        (logs / "run-2.jsonl").symlink_to(tmp_path / "removed")
    except OSError:
        pytest.skip("this user may not make links")
    done = dmlconf_here(tmp_path, "doctor", "--json")
    (finding,) = (each for each in json.loads(done.stdout) if each["subject"] == "run logs")
    assert finding["told"] == f"1 in {logs}, 1.5 MB"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["history", "ad"], 2, "dmlconf history has no command 'ad': did you mean add?"),
        (["new", "xyz"], 2, "dmlconf new has no command 'xyz': use one of case"),
        (["list", "tile/*"], 3, "hint: --case 'tile/*' chooses cases by identifier"),
        (["report", "text"], 3, "text:1: not a dmlconf run log: not JSON"),
        (
            ["report", "binary"],
            3,
            "binary:1: not a dmlconf run log: not JSON: not UTF-8: byte 0xd0",
        ),
        (["report", "empty"], 3, "empty:1: not a dmlconf run log: the file is empty"),
        (["run", "gemm"], 3, "hint: -o GEMM chooses the cases of an operator"),
        (["run", "cut.dmlrec"], 3, "cut.dmlrec: is a recording, not a YAML file"),
        (["run", "--dump", "text"], 2, "'--dump': text is a file; name a folder"),
        (["run", "--waivers", "folder"], 2, "'--waivers': folder is a folder; name a file"),
        (["run", "--waivers", "none.yaml"], 2, "'--waivers': there is no file none.yaml"),
        (["history", "import", "none"], 2, "'FOLDER': there is no folder none"),
        (["new", "case", "GEMM", "--name", "a b"], 2, "'a b' is not the name of a case"),
        (["new", "case", "GEMM", "--name", ""], 2, "'' is not the name of a case"),
        (["compare", "folder", "text"], 3, "folder is a folder; name its run log, folder/a.jsonl"),
        (
            ["show", "text", str(cases_directory() / "tile")],  # The whole suite takes long.
            5,
            "text is a file, not a case; `dmlconf list text` lists its cases",
        ),
        (["fuzz", "--cases", "abc"], 2, "'abc' is not a whole number of at least 1"),
        (["fuzz", "--cases", "1.5"], 2, "'1.5' is not a whole number of at least 1"),
        (["run", "--timeout", "abc"], 2, "'abc' is not a number above 0"),
    ],
)
def test_mistyped_arguments_get_a_helpful_error(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    (tmp_path / "text").write_text("text\n", "utf-8")
    (tmp_path / "binary").write_bytes(b"\x7fELF\xd0a\n")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.jsonl").write_text('{"record":"header"', "utf-8")
    (tmp_path / "cut.dmlrec").write_bytes(b"PK\3\4" + b"\xff" * 26 + b"recording.json")
    done = dmlconf_here(tmp_path, *arguments)
    assert done.returncode == code
    assert message in done.stderr


def test_an_unchecked_case_gets_a_hint(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path, UNSTATED).name)
    assert "Hint: tile.yaml:4: tile/tile/stated has no `expect:`" in done.stderr
    quiet = dmlconf_here(tmp_path, "run", "tile.yaml", "-q")
    assert "Hint" not in quiet.stderr
    assert "Hint" not in dmlconf_here(tmp_path, "run", write(tmp_path)).stderr


def test_cases_of_a_recorded_folder_get_no_hint(tmp_path: Path) -> None:
    folder = tmp_path / "tile"
    folder.mkdir()
    write(folder, UNSTATED)
    shutil.copy(cases_directory() / "tile" / "directml-1.15.4.dmlrec", folder)
    done = dmlconf_here(tmp_path, "run", "tile")
    assert "1 unchecked" in done.stdout
    assert "Hint" not in done.stderr


def test_shared_cases_of_a_recorded_operator_get_no_hint(tmp_path: Path) -> None:
    shared = tmp_path / "shared" / "tiles"
    shared.mkdir(parents=True)
    write(shared, UNSTATED.replace("operator: TILE", "operators: [TILE]"))
    assert "Hint" in dmlconf_here(tmp_path, "run", "shared").stderr
    (tmp_path / "tile").mkdir()
    shutil.copy(cases_directory() / "tile" / "directml-1.15.4.dmlrec", tmp_path / "tile")
    done = dmlconf_here(tmp_path, "run", "shared")
    assert "1 unchecked" in done.stdout
    assert "Hint" not in done.stderr
    alone = tmp_path / "elsewhere"
    alone.mkdir()
    write(alone, UNSTATED.replace("operator: TILE", "operators: [TILE]"))
    assert "Hint" in dmlconf_here(tmp_path, "run", "elsewhere").stderr


def test_a_folder_copied_without_its_recording_gets_a_hint(tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "tile"
    folder.mkdir(parents=True)
    shutil.copy(cases_directory() / "tile" / "matrix.yaml", folder)
    run = ["run", "mine", "--quick", "--color", "never"]
    done = dmlconf_here(tmp_path, *run)
    assert done.returncode == 7
    hints = [line for line in done.stderr.splitlines() if line.startswith("Hint")]
    assert len(hints) == 1
    assert f"{folder} was copied without its recording" in hints[0]
    option = hints[0].partition("or add ")[2]
    assert dmlconf_here(tmp_path, *run, *shlex.split(option)).returncode == 0


def test_run_refuses_what_validate_refuses_in_the_same_words(tmp_path: Path) -> None:
    wrong = write(tmp_path, TILE.replace("Repeats: [2]", "Repeats: [3]")).name
    run, validate = (dmlconf_here(tmp_path, name, wrong) for name in ("run", "validate"))
    assert run.returncode == validate.returncode == 3
    assert "tile/tile/stated breaks output-sizes, but expects no rejection" in run.stderr
    assert run.stderr == validate.stderr


def test_a_fill_with_parentheses_gets_a_hint(tmp_path: Path) -> None:
    wrong = TILE.replace("values: [1, 2]", "fill: uniform(-1, 1)")
    done = dmlconf_here(tmp_path, "run", write(tmp_path, wrong).name)
    assert done.returncode == 3
    assert "hint: a fill has no parentheses: write `fill: {uniform: {low: -1," in done.stderr


def test_validate_shows_problems_as_json(tmp_path: Path) -> None:
    wrong = write(tmp_path, TILE.replace("Repeats: [2]", "Repets: [3]")).name
    done = dmlconf_here(tmp_path, "validate", wrong, "--json")
    assert done.returncode == 3
    problems = json.loads(done.stdout)["problems"]
    locations = {(problem["path"], problem["line"], problem["hint"]) for problem in problems}
    assert ("tile.yaml", 9, "did you mean `Repeats`?") in locations
    fine = dmlconf_here(tmp_path, "validate", write(tmp_path).name, "--json")
    assert (fine.returncode, json.loads(fine.stdout)) == (0, {"problems": [], "warnings": []})


def test_doctor_says_what_works_and_what_is_broken(tmp_path: Path) -> None:
    findings = json.loads(dmlconf_here(tmp_path, "doctor", "--json").stdout)
    by_subject = {finding["subject"]: finding for finding in findings}
    assert by_subject["Python"]["state"] == by_subject["NumPy"]["state"] == "ok"
    assert by_subject["suite"]["told"].endswith(str(cases_directory()))
    assert by_subject["DirectML"]["state"] in ("ok", "absent")
    assert by_subject["run logs"]["told"].startswith(f"0 in {tmp_path / 'logs'}")
    (tmp_path / "dmlconf.toml").write_text("jbos = 2\n", "utf-8")
    broken = dmlconf_here(tmp_path, "doctor")
    assert broken.returncode == 1
    assert re.search(r"^broken +configuration +\S+dmlconf.toml:1: run has no", broken.stdout, re.M)


def test_operators_are_listed_and_shown_as_json(tmp_path: Path) -> None:
    listed = json.loads(dmlconf_here(tmp_path, "operators", "--json").stdout)
    by_name = {entry["operator"]: entry for entry in listed}
    assert by_name["SCATTER_ELEMENTS"]["aliases"] == ["SCATTER"]
    tile = json.loads(dmlconf_here(tmp_path, "operators", "tile", "--json").stdout)
    assert [field["name"] for field in tile["fields"]][:2] == ["InputTensor", "OutputTensor"]
    assert tile["since"] == by_name["TILE"]["since"]
