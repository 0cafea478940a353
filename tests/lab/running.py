"""Run commands in the Wine lab."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["SCRIPT", "command", "lab"]

SCRIPT: Final = Path(__file__).parents[2] / "lab" / "lab.py"

_SECONDS: Final = 600


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(SCRIPT), *arguments]


def lab(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `lab/lab.py` in a folder, with these variables besides those of this process."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=_SECONDS,
        env={**os.environ, **(environment or {})},
    )
