"""docs/layers.md, made from a run log, has a row for each operator and names failures.

The tested code is in `lab/winelab/layers_page.py` and `lab/winelab/cli.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.reports import logs as reports

if sys.platform == "win32":
    pytest.skip("the Wine lab is for Linux", allow_module_level=True)

from dmlconf.verdicts.verdict import Verdict
from winelab import cli
from winelab.errors import LabError
from winelab.layers_page import page

PASSED = reports.PASSED.of_case(tags=("model",)).ran(seconds=2.0, dispatch_seconds=(0.25, 0.5))


def test_the_page_has_a_row_for_each_operator_and_names_failures(tmp_path: Path) -> None:
    failed = reports.FAILED.of_case(tags=("model",)).ran(seconds=1.0)
    lines = page(_log(tmp_path, PASSED, failed)).splitlines()
    # Cases, passed, unsupported, others, seconds, their mean, dispatches of the slowest case.
    row = f"| GATHER | 2 | 1 | - | 1 | {2 + 1.0} s | {(2 + 1) / 2:.2f} s | {0.25 + 0.5} s |"
    assert row in lines
    assert "failed: wrong values:" in lines
    assert any(line.startswith(f"- `{failed.case}`: ") for line in lines)


def test_wrong_unfinished_and_missing_logs_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LabError, match="without the tag model, such as"):
        page(_log(tmp_path, PASSED.of_case(tags=())))
    unfinished = _log(tmp_path, PASSED)
    unfinished.write_text("".join(unfinished.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(LabError, match="did not finish; continue it with: run --resume"):
        page(unfinished)
    assert cli.main(["layers", str(tmp_path / "none.jsonl")]) == cli.CANNOT_BE_USED
    assert "none.jsonl" in capsys.readouterr().err


def _log(folder: Path, *verdicts: Verdict) -> Path:
    path = folder / "layers.jsonl"
    reports.write(path, reports.run_log(*verdicts))
    return path
