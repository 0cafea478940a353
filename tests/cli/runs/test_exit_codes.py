"""Exit codes 0 to 6 and 70 occur for the reasons that the table in `docs/verdicts.md` gives.

For exit code 7 see `tests/cli/runs/test_ci.py`, and for 8
`tests/cli/files/test_unwritable_outputs.py`.

The tested code is in `dmlconf/cli/common/exit_codes.py`, `dmlconf/cli/options/run_exit_code.py`,
`dmlconf/cli/options/selection.py`, `dmlconf/cli/options/nothing_selected.py`,
`dmlconf/cli/entry_point.py`, `dmlconf/reports/runs/summary.py` and
`dmlconf/cases/loading/discovery.py`.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from importlib import import_module
from itertools import combinations
from pathlib import Path
from pkgutil import walk_packages

import pytest

import dmlconf as dmlconf_package
from dmlconf.cli.common.exit_codes import ExitCode, exit_code_of
from dmlconf.cli.options.run_exit_code import Demands, log_exit_code
from dmlconf.documents.problems import ExpectedError
from dmlconf.reports.runs.summary import closing_sentence
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import Status
from tests.cli.process import beginning, dmlconf, dmlconf_here, text_of, write
from tests.reports import logs


@pytest.mark.slow
def test_exit_code_is_0_if_no_verdict_fails(tmp_path: Path) -> None:
    done = dmlconf(tmp_path, "run", write(tmp_path))
    assert done.returncode == 0
    assert "PASSED: 1 passed of 1 case" in done.stdout


HEADINGS = {
    "PASSED": ExitCode.SUCCESS,
    "NOTHING FAILED": ExitCode.SUCCESS,
    "FAILED": ExitCode.FAILED,
    "INCOMPLETE": ExitCode.INCOMPLETE,
    "NOTHING PASSED": ExitCode.NOTHING_CHECKED,
}


def test_the_closing_sentence_agrees_with_the_exit_code() -> None:
    verdicts = {each.status: each for each in logs.EVERY_STATUS}
    seen = set()
    for count in (1, 2, 3):
        for statuses in combinations(Status, count):
            log = logs.run_log(*(verdicts[status] for status in statuses))
            heading = closing_sentence(log).partition(":")[0]
            assert log_exit_code(log, Demands())[0] is HEADINGS[heading], statuses
            seen.add(heading)
    assert seen == set(HEADINGS)


@pytest.mark.slow
def test_exit_code_is_0_for_bundled_documented_cases(tmp_path: Path) -> None:
    names = ("ARGMAX", "ARGMIN", "DIAGONAL_MATRIX1", "GATHER", "JOIN", "ONE_HOT", "PADDING1")
    operators = [word for name in names for word in ("-o", name)]
    done = dmlconf_here(tmp_path, "run", "--tag", "documented", *operators)
    assert done.returncode == 0, done.stdout + done.stderr
    # Recordings lack outputs that need shader model 6.
    closing = re.search(r"PASSED: (\d+) passed(?:, (\d+) unchecked)? of (\d+) cases", done.stdout)
    assert closing is not None
    passed, unchecked, cases = closing.groups(default="0")
    assert int(passed) + int(unchecked) == int(cases) > 20
    assert int(unchecked) < 0.05 * int(cases)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("zeros", "wrong values"),
        ("wrong-type", "wrong data type"),
        ("wrong-sizes", "wrong sizes"),
        ("no-output", "missing output"),
        ("rejects", "rejected what is supported"),
        ("crash", "crash"),
        ("out-of-memory", "out of memory"),
        ("device-removed", "device removed"),
        ("error", "backend error"),
    ],
)
def test_exit_code_is_1_if_a_verdict_fails(tmp_path: Path, fault: str, message: str) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path), "-b", f"faulty:{fault}")
    assert done.returncode == 1
    assert f"tile/tile/stated: {message}" in done.stdout
    assert "FAILED: 1 of 1 case fails the run" in done.stdout


@pytest.mark.slow
def test_exit_code_is_1_if_a_backend_hangs(tmp_path: Path) -> None:
    done = dmlconf(tmp_path, "run", write(tmp_path), "-b", "faulty:hang", "--timeout", "0.5")
    assert done.returncode == 1
    assert "BROKEN tile/tile/stated: hang" in done.stdout


@pytest.mark.slow
def test_exit_code_is_1_if_option_x_stops_the_run(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "run", "-o", "TILE", "-b", "faulty:zeros", "-x")
    assert done.returncode == 1
    assert "(1 failed)" in done.stdout
    assert "not run" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rum"], "Did you mean run?"),
        (["run", "--no-such-option"], "--no-such-option"),
        (["run", "-o", "GATHR"], "did you mean GATHER?"),
        (["run", "-k", "a b"], "unexpected"),
        (["run", "-k", "(a"], "not closed"),
        (["run", "--feature-level", "9"], "feature level such as 4_1"),
        (["run", "--feature-level", ""], "feature level such as 4_1"),
        (["run", "--feature-level", "9_9"], "there is no feature level 9_9; the levels are 1_0, "),
        (["run", "--feature-level", "0_0"], "there is no feature level 0_0; the levels are 1_0, "),
        (["list", "--feature-level", "5_3"], "5_1, 5_2, 6_0, 6_1, 6_2, 6_3, 6_4"),
        (["run", "-j", "none"], "auto"),
        (["run", "--timeout", "0"], "--timeout"),
        (["run", "--timeout", "nan"], "'nan' is not a number above 0"),
        (["coverage", "--fail-under", "nan"], "'nan' is not a number from 0 to 100"),
        (["strength", "--fail-under", "nan"], "'nan' is not a number from 0 to 100"),
        (["compare", "a.jsonl", "b.jsonl", "--drift", "nan"], "'nan' is not a number above 0"),
        (["run", "--report", "jsn"], "did you mean json?"),
        (["run", "--report", "json:"], "names no file"),
        (["run", "--report", "json", "--report", "junit"], "only one report"),
        (["operators", "TYLE"], "did you mean TILE?"),
        (["report"], "there is no earlier run"),
    ],
)
def test_exit_code_is_2_for_wrong_usage(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = dmlconf_here(tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run", "list", "validate"])
def test_exit_code_is_3_for_an_invalid_file(tmp_path: Path, command: str) -> None:
    path = write(tmp_path, "operator: TILE\ncases: [{name: a, dsc: {}}]\n")
    done = dmlconf_here(tmp_path, command, path)
    assert done.returncode == 3
    assert f"{path}:2:19: unknown field `dsc`" in done.stderr
    assert "did you mean `desc`?" in done.stderr
    assert "Traceback" not in done.stderr


def test_exit_code_is_3_for_missing_cases(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = dmlconf_here(tmp_path, "run", "empty", "nothing.yaml")
    assert done.returncode == 3
    assert "the folder holds no case file" in done.stderr
    assert "there is no such file or folder" in done.stderr


@pytest.mark.slow
def test_exit_code_is_3_for_an_invalid_log(tmp_path: Path) -> None:
    done = dmlconf(tmp_path, "report", write(tmp_path))
    assert done.returncode == 3
    assert "not a dmlconf run log: it is a case file" in done.stderr


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("nmpy", "did you mean numpy?"),
        ("faulty:zeroes", "did you mean zeros?"),
        ("faulty", "name one fault"),
        ("numpy:fast", "takes no argument"),
    ],
)
def test_exit_code_is_4_for_an_unusable_backend(tmp_path: Path, backend: str, message: str) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path), "-b", backend)
    assert done.returncode == 4
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", "nothing-is-called-so"], "no case was selected"),
        (["-k", "no-such"], "no case was selected: the only case does not fit -k no-such"),
        (["-o", "GEMM", "-o", "GRU"], "no case was selected: there is no case of GEMM, GRU"),
        (
            ["--tag", "tile", "--without-tag", "tile"],
            "the only case with --tag tile does not fit --without-tag tile",
        ),
        (
            ["-o", "TILE", "-k", "tile", "--where", "Repeats[0] == 30"],
            "with --operator TILE and -k tile does not fit --where 'Repeats[0] == 30'",
        ),
        (["--tag", "documentd"], "no case has the tag documentd; the only tag is tile"),
        (["--tag", "tlie"], "no case has the tag tlie; did you mean tile?"),
        (["--case", "zzzzz"], "there is no case zzzzz; `dmlconf list` lists all"),
        (["--case", "x" * 3000], f"there is no case {'x' * 3000}; `dmlconf list` lists all"),
        (["--case", "tile/tile/statd"], "did you mean tile/tile/stated?"),
        (
            ["--case", "tile/tile/stated", "-k", "no-such"],
            "the only case with --case tile/tile/stated does not fit -k no-such",
        ),
        (
            ["--feature-level", "1_0"],
            "the only case does not fit --feature-level 1_0; the lowest that fits is 3_1",
        ),
        (["--profile", "5_0"], "no case was selected: none of the cases belongs to --profile 5_0"),
    ],
)
def test_exit_code_is_5_if_no_case_is_selected(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    path = write(tmp_path, name="tile.yaml")
    done = dmlconf_here(tmp_path, "run", path, *arguments)
    assert done.returncode == 5
    assert message in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (2, ["run", "-j", "none"]),
        (4, ["run", "tile.yaml", "-b", "nmpy"]),
        (5, ["run", "tile.yaml", "-k", "nothing-is-called-so"]),
    ],
)
def test_the_process_ends_with_the_exit_code(
    tmp_path: Path, code: int, arguments: list[str]
) -> None:
    write(tmp_path)
    assert dmlconf(tmp_path, *arguments).returncode == code


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_exit_code_is_6_if_the_run_is_interrupted(tmp_path: Path) -> None:
    path = write(tmp_path)
    log = tmp_path / "run.jsonl"
    process = beginning(tmp_path, "run", path, "-b", "faulty:hang", "--log", log)
    while not text_of(log):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 6, out + err
    assert "INCOMPLETE: 1 of 1 case was not run" in out
    assert [verdict.status for verdict in read_log(log).verdicts] == [Status.NOT_RUN]


@pytest.mark.slow
def test_exit_code_is_70_for_a_bug(tmp_path: Path) -> None:
    """A package rich that fails stands for a bug in dmlconf."""
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text("raise RuntimeError('foul')\n", "utf-8")
    done = dmlconf(tmp_path, "run", write(tmp_path), PYTHONPATH=str(tmp_path))
    assert done.returncode == 70
    assert "Traceback" in done.stderr
    assert "RuntimeError: foul" in done.stderr
    assert "This is a bug in dmlconf itself" in done.stderr


def subclasses(error_class: type[ExpectedError]) -> list[type[ExpectedError]]:
    return [each for kind in error_class.__subclasses__() for each in (kind, *subclasses(kind))]


def test_every_expected_error_has_an_exit_code() -> None:
    for module in walk_packages(dmlconf_package.__path__, "dmlconf."):
        if module.name.endswith("__main__"):
            continue
        try:
            import_module(module.name)
        except ModuleNotFoundError as error:  # A module may need an extra that is not installed.
            if not str(error.name).startswith("onnx"):
                raise
    known = subclasses(ExpectedError)
    assert len(known) > 10
    for kind in known:
        assert exit_code_of(kind.__new__(kind)) not in (ExitCode.SUCCESS, ExitCode.INTERNAL)


IDENTITY = """operator: ELEMENT_WISE_IDENTITY
cases:
  - name: stated
    desc:
      InputTensor: {Sizes: [1], DataType: FLOAT32, values: [1]}
      OutputTensor: {Sizes: [1], DataType: FLOAT32}
"""


def test_exit_code_is_5_if_options_exclude_the_named_case(
    tmp_path: Path,
) -> None:
    """Both operators have a case `stated`."""
    write(tmp_path, name="tile.yaml")
    write(tmp_path, IDENTITY, "identity.yaml")
    options = ("-o", "TILE", "--case", "stated", "-k", "no-such")
    done = dmlconf_here(tmp_path, "run", tmp_path, *options)
    assert done.returncode == 5
    message = "the only case with --operator TILE and --case stated does not fit -k no-such"
    assert message in done.stderr
