"""Run a Python script on Microsoft's DirectML in the Wine lab, and return what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

SECONDS: Final = 120
"""The time limit of a script, which ends a Wine that hangs."""

_LAB: Final = Path(__file__).parents[3] / "lab" / "lab.py"


def printed_in_lab(folder: Path, script: str, cases: str, name: str) -> Any:
    """Run a script in `folder`, beside a case file with this name; return the JSON it prints."""
    (folder / name).write_text(cases, encoding="utf-8")
    (folder / "script.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(_LAB), "python", "--", "script.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
