"""The functions of `.ci/common` work, and the nightly script runs every group of tests.

The tested code is in `.ci/common` and `.ci/nightly`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

from tests.ci.action import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the scripts are run by bash")


def bash(script: str, turn: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a script that can call the functions of `.ci/common`, with DMLCONF_CI_TURN set."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"source .ci/common\n{script}"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "DMLCONF_CI_TURN": str(turn)},
    )


def test_consecutive_turns_take_every_share() -> None:
    shares = [bash("share 3", turn).stdout.strip() for turn in range(1_021, 1_024)]
    assert sorted(shares) == ["1/3", "2/3", "3/3"]


def test_more_shares_than_tests_are_refused() -> None:
    command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", __file__, "--share"]
    done = subprocess.run([*command, "1/999"], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "some parts are empty" in done.stderr


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ("numbers.py:7: RuntimeWarning: invalid value encountered in cast", False),
        ("<string>:1: DeprecationWarning: gone in 3.16", False),
        ("WARNING: Location '/wheels' is ignored", True),
        ("Warning: 3 cases check nothing", True),
    ],
)
def test_a_step_fails_if_a_warning_reaches_standard_error(line: str, passes: bool) -> None:
    quoted = line.replace("'", "'\\''")
    done = bash(f"watch_standard_error\nstep one\necho '{quoted}' >&2\nstep two")
    assert (done.returncode == 0) == passes, done.stdout
    assert ("== two" in done.stdout) == passes
    assert passes or line in done.stdout
    assert line in done.stderr


def test_a_failing_background_command_fails_its_step() -> None:
    done = bash("step one\nbeside sh -c 'echo said; exit 3'\necho first\nfinish\necho never")
    assert done.returncode == 3
    assert done.stdout.split()[-2:] == ["first", "said"]


def test_background_commands_give_the_first_failing_exit_code() -> None:
    commands = "".join(f"beside sh -c 'echo {n}; exit {n}'\n" for n in (0, 4, 3))
    done = bash(f"step one\n{commands}step two\necho here\nfinish\necho never")
    assert done.returncode == 4
    assert done.stdout.split()[-4:] == ["here", "0", "4", "3"]


def test_warnings_of_background_commands_fail_the_step_that_waits_for_them() -> None:
    warns = "beside sh -c 'echo \"x.py:7: RuntimeWarning: invalid value\" >&2'"
    script = f"watch_standard_error\nstep one\n{warns}\nstep two\nfinish\nstep three"
    done = bash(script)
    assert done.returncode == 1
    assert "== two" in done.stdout
    assert "== three" not in done.stdout
    assert "x.py:7: RuntimeWarning" in done.stderr


@pytest.mark.slow
def test_the_summary_prints_the_processor_time_of_steps() -> None:
    script = "import time\nwhile time.process_time() < 0.5: pass"
    busy = shlex.join([sys.executable, "-c", script])
    done = bash(f"step busy\n{busy}\nstep idle\nstep end\nsummary")
    lines = re.findall(r"^ +\d+ s +([\d.]+) s  (busy|idle)$", done.stdout, re.M)
    seconds = {name: float(text) for text, name in lines}
    assert seconds["busy"] >= 0.5 > seconds["idle"]


def groups() -> set[str]:
    """Return the markers of the tests that `pytest` leaves out unless they are asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    markers = project["tool"]["pytest"]["ini_options"]["markers"]
    return {marker.partition(":")[0] for marker in markers}


def test_files_of_an_expression_of_markers_name_one() -> None:
    files = bash("files_with '(lab or native) and not saboteurs'").stdout.split()
    assert {"tests/lab/test_in_lab.py", "tests/backends/directml/api/test_headers.py"} <= {*files}
    for file in files:
        text = (ROOT / file).read_text("utf-8")
        assert re.search(r"mark\.(lab|native|saboteurs)\b", text), file


def test_only_files_of_tests_name_markers() -> None:
    """`marked` of `.ci/common` reads no file that gets its marker from another one."""
    naming = re.compile(rf"mark\.({'|'.join(groups() - {'postgres'})})\b")
    others = [path for path in (ROOT / "tests").rglob("*.py") if path.name[:5] != "test_"]
    assert [path for path in others if naming.search(path.read_text("utf-8"))] == []


def test_the_nightly_command_runs_every_group_of_tests() -> None:
    nightly = (ROOT / ".ci" / "nightly").read_text("utf-8")
    chosen = re.findall(r'-m "([a-z or]+)"', nightly)
    assert {name for text in chosen for name in text.split(" or ")} == groups()
