"""The content of checked case files is cached, unless `--no-cache` or DMLCONF_CACHE=off is given.

The tested code is in `dmlconf/cli/common/cache.py`, `dmlconf/cli/entry_point.py`,
`dmlconf/documents/store.py` and `dmlconf/resources.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.documents.reader import Document, read_document
from dmlconf.resources import checked_archive
from tests.cli.process import dmlconf_here, write


def test_a_cached_file_is_not_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    def reading(path: Path) -> Document:
        checked.append(path.name)
        return read_document(path)

    monkeypatch.setattr("dmlconf.cases.loading.loader.read_document", reading)
    write(tmp_path)
    cache = tmp_path / "cache"
    for _ in range(2):
        listed = dmlconf_here(tmp_path, "list", "tile.yaml", DMLCONF_CACHE=str(cache))
        assert (listed.returncode, listed.stdout) == (0, "tile/tile/stated\n")
        assert [path.suffix for path in cache.iterdir()] == [".json"]
    assert checked == ["tile.yaml"]


def test_an_option_and_a_variable_turn_caching_off(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    cache = tmp_path / "cache"
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(cache), "LOCALAPPDATA": str(cache)}
    off = dmlconf_here(tmp_path, "--no-cache", "list", "tile.yaml", DMLCONF_CACHE="", **home)
    also_off = dmlconf_here(tmp_path, "list", "tile.yaml", DMLCONF_CACHE="off", **home)
    assert off.stdout == also_off.stdout == "tile/tile/stated\n"
    assert not cache.exists()
    dmlconf_here(tmp_path, "list", "tile.yaml", DMLCONF_CACHE="", **home)
    assert [path.name for path in cache.iterdir()] == ["dmlconf"]


def test_a_cached_file_that_becomes_invalid_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    settings = {"DMLCONF_CACHE": str(tmp_path / "cache")}
    assert dmlconf_here(tmp_path, "list", "tile.yaml", **settings).returncode == 0
    path.write_text(path.read_text("utf-8").replace("Repeats: [2]", "Repeat: [2]"), "utf-8")
    refused = dmlconf_here(tmp_path, "list", "tile.yaml", **settings)
    assert refused.returncode == 3
    assert "tile.yaml:9" in refused.stderr


def test_a_cache_folder_that_cannot_be_created_is_ignored(tmp_path: Path) -> None:
    write(tmp_path)
    listed = dmlconf_here(tmp_path, "list", "tile.yaml", DMLCONF_CACHE=str(tmp_path / "tile.yaml"))
    assert (listed.returncode, listed.stdout) == (0, "tile/tile/stated\n")


def test_a_checkout_has_no_archive_of_checked_files() -> None:
    assert checked_archive() is None
