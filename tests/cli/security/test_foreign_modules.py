"""The script `dmlconf` and its processes execute no module of the working folder.

Such a module may have the name of one that dmlconf imports, as `click.py` has.
`python -m dmlconf` does execute it.

The tested code is in `dmlconf/cli/entry_point.py`; `dmlconf/workers/spawning.py` starts the
processes.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.process import environment, write

ROOT = Path(__file__).resolve().parents[3]

NAMES = (
    "click",
    "dmlconf",
    "json",
    "multiprocessing",
    "numpy",
    "pickle",
    "random",
    "struct",
    "yaml",
)
"""dmlconf, and modules that it imports."""


@pytest.fixture
def working_folder(tmp_path: Path) -> Path:
    """Return a folder whose modules leave a trace if they are executed."""
    for name in NAMES:
        trace = f"open({str(tmp_path / 'executed')!r}, 'a').write({name!r} + '\\n')\n"
        (tmp_path / f"{name}.py").write_text(trace + "raise SystemExit(99)\n", encoding="utf-8")
    return tmp_path


def run_installed(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run dmlconf as its script does: the working folder is not on the path."""
    script = folder / "bin" / "dmlconf"
    script.parent.mkdir(exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    module, _, function = project["project"]["scripts"]["dmlconf"].partition(":")
    script.write_text(
        f"from {module} import {function}\n\nif __name__ == '__main__':\n    {function}()\n"
    )
    return subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def executed(folder: Path) -> str:
    trace = folder / "executed"
    return trace.read_text("utf-8") if trace.exists() else ""


@pytest.mark.slow
def test_workers_execute_no_module_of_the_working_folder(working_folder: Path) -> None:
    write(working_folder)
    done = run_installed(working_folder, "run", "tile.yaml", "-b", "faulty:zeros", "-j", "2")
    assert executed(working_folder) == ""
    assert done.returncode == 1, done.stderr


@pytest.mark.slow
def test_comparing_recordings_executes_no_module_of_the_working_folder(
    working_folder: Path,
) -> None:
    write(working_folder)
    record = run_installed(working_folder, "record", "tile.yaml", "-b", "numpy", "-o", "one.dmlrec")
    assert record.returncode == 0, record.stderr
    done = run_installed(
        working_folder, "compare", "one.dmlrec", "one.dmlrec", "--suite", "tile.yaml"
    )
    assert executed(working_folder) == ""
    assert done.returncode == 0, done.stderr
    assert "judging the outcomes" in done.stderr


@pytest.mark.slow
def test_strength_executes_no_module_of_the_working_folder(
    working_folder: Path,
) -> None:
    write(working_folder)
    done = run_installed(
        working_folder, "strength", "tile.yaml", "-j", "2", "--figure", "perturbations"
    )
    assert executed(working_folder) == ""
    assert done.returncode == 0, done.stderr
