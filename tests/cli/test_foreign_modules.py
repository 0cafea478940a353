"""Modules in the working folder are never executed, though they have names that dmlconf imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import environment, write

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


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """Return a folder whose modules leave a trace if they are executed."""
    for name in NAMES:
        trace = f"open({str(tmp_path / 'executed')!r}, 'a').write({name!r} + '\\n')\n"
        (tmp_path / f"{name}.py").write_text(trace + "raise SystemExit(99)\n", encoding="utf-8")
    return tmp_path


def installed(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run dmlconf as its script does: the working folder is not on the path."""
    script = folder / "bin" / "dmlconf"
    script.parent.mkdir(exist_ok=True)
    script.write_text("from dmlconf.cli import main\n\nif __name__ == '__main__':\n    main()\n")
    return subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def executed(folder: Path) -> str:
    """Return the names of the folder's modules that were executed."""
    trace = folder / "executed"
    return trace.read_text("utf-8") if trace.exists() else ""


def test_workers_execute_none(strange: Path) -> None:
    write(strange)
    done = installed(strange, "run", "tile.yaml", "-b", "faulty:zeros", "-j", "2")
    assert executed(strange) == ""
    assert done.returncode == 1, done.stderr


def test_a_child_that_judges_a_recording_executes_none(strange: Path) -> None:
    write(strange)
    record = installed(strange, "record", "tile.yaml", "-b", "numpy", "-o", "one.dmlrec")
    assert record.returncode == 0, record.stderr
    done = installed(strange, "compare", "one.dmlrec", "one.dmlrec", "--suite", "tile.yaml")
    assert executed(strange) == ""
    assert "judging the outcomes" in done.stderr
