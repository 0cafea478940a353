"""Reports name the file of a case by a path that can be opened, and its line.

The tested code is in `dmlconf/reports/runs/location.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.reports.runs.location import file_and_line
from dmlconf.resources import cases_directory


def test_files_in_the_working_directory_have_relative_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert file_and_line(f"{tmp_path / 'mine' / 'tile.yaml'}:12") == ("mine/tile.yaml", 12)
    assert file_and_line("mine/tile.yaml:3") == ("mine/tile.yaml", 3)


@pytest.mark.parametrize("location", ["", "mine/tile.yaml", "C:/mine/tile.yaml"])
def test_location_without_a_line_is_unchanged(location: str) -> None:
    assert file_and_line(location) == (location, None)


def test_bundled_files_begin_with_cases_and_others_keep_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    location = f"{cases_directory() / 'tile' / 'documented.yaml'}:7"
    assert file_and_line(location) == ("cases/tile/documented.yaml", 7)
    outside = tmp_path.parent / "other.yaml"
    assert file_and_line(f"{outside}:1") == (outside.as_posix(), 1)
