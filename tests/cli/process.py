"""Run the command line as a person does: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DMLCONF = [sys.executable, "-m", "dmlconf"]

TILE = """
operator: TILE
cases:
  - name: stated
    note: Two by two.
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
"""


def environment(directory: Path, **more: str) -> dict[str, str]:
    """Return the environment of the test's processes: no terminal, logs in the directory."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "TERM")}
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    logs = str(directory / "logs")
    return {**kept, "DMLCONF_LOG_DIRECTORY": logs, "COLUMNS": "100", "PYTHONPATH": path, **more}


def dmlconf(
    directory: Path, *arguments: str | Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run dmlconf in the directory until it ends."""
    return subprocess.run(
        [*DMLCONF, *map(str, arguments)],
        cwd=directory,
        env=environment(directory, **more),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def write(directory: Path, text: str = TILE, name: str = "tile.yaml") -> Path:
    """Write a case file, and return its path."""
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path
