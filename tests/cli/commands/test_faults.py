"""`dmlconf faults` lists and explains the known faults of DirectML.

The tested code is in `dmlconf/cli/commands/running/faults.py`, `dmlconf/reports/faults.py` and
`dmlconf/excuses/known_fault_file.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.process import dmlconf_here


def test_faults_of_an_operator_and_version_are_listed(tmp_path: Path) -> None:
    report = "json:faults.json"
    done = dmlconf_here(
        tmp_path, "faults", "-o", "one_hot", "--directml", "1.9.0", "--report", report
    )
    assert done.returncode == 0
    faults = json.loads((tmp_path / "faults.json").read_text("utf-8"))["faults"]
    names = {fault["name"] for fault in faults}
    assert "unsigned-64-bit-index-taken-as-negative" in names
    assert all("ONE_HOT" in fault["operators"] for fault in faults)
    newer = dmlconf_here(tmp_path, "faults", "-o", "ONE_HOT", "--directml", "1.15.4")
    assert "unsigned-64-bit-index-taken-as-negative" not in newer.stdout
    assert "on-value-behind-the-last-dimension" in newer.stdout


def test_faults_of_graphs_are_listed_for_the_operators_of_their_nodes(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "faults", "-o", "SLICE1", "--report", "json:faults.json")
    assert done.returncode == 0
    faults = json.loads((tmp_path / "faults.json").read_text("utf-8"))["faults"]
    names = {fault["name"] for fault in faults}
    assert "slice-of-whole-rows-between-nodes" in names
    assert "slice-of-a-window-that-is-the-whole-input" in names
    assert "slice-of-adjacent-elements-between-nodes" not in names


def test_a_named_fault_is_explained(
    tmp_path: Path,
) -> None:
    done = dmlconf_here(tmp_path, "faults", "int64-low-words-compared-as-signed")
    assert done.returncode == 0
    for part in ("1.8.0 to 1.15.4", "2147483648", "instead", "dmlconf show", "lavapipe"):
        assert part in done.stdout


def test_an_unknown_fault_or_version_is_refused(tmp_path: Path) -> None:
    unknown = dmlconf_here(tmp_path, "faults", "no-such-fault")
    assert unknown.returncode == 2
    assert "there is no known fault no-such-fault" in unknown.stderr
    similar = dmlconf_here(tmp_path, "faults", "int64-low-words-compared-as-signd")
    assert "did you mean int64-low-words-compared-as-signed?" in similar.stderr
    wrong = dmlconf_here(tmp_path, "faults", "--directml", "newest")
    assert wrong.returncode == 2
    assert "'newest' is not a version, such as 1.15.4" in wrong.stderr
