"""The cache of JSON files returns what was stored, and ignores damaged or unsafe files.

The tested code is in `dmlconf/documents/store.py`.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dmlconf.documents.store import LARGEST_ENTRY, Store

needs_file_modes = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has access lists")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache" / "dmlconf")


def stored_file(store: Store, key: str = "a") -> Path:
    return store.folder / f"{key}.json"


def test_get_returns_the_stored_value(store: Store) -> None:
    value = {"sizes": [1, 2.5, -0.0, float("inf"), None, True, "text", 1 << 70]}
    store.put("a", value)
    assert repr(store.get("a")) == repr(value)
    assert store.get("b") is None


@needs_file_modes
def test_folder_made_under_a_loose_umask_is_usable(
    store: Store,
) -> None:
    umask = os.umask(0o002)
    try:
        Store(store.folder / "figures").put("a", [1])
    finally:
        os.umask(umask)
    store.put("b", [2])
    assert store.get("b") == [2]


def test_get_returns_the_latest_value_of_a_key(store: Store) -> None:
    store.put("a", [1])
    store.put("a", [2])
    assert store.get("a") == [2]
    assert [path.name for path in store.folder.iterdir()] == ["a.json"]


# A stored file is a digest of 64 characters, a line feed, and JSON.
@pytest.mark.parametrize("offset", [0, 64, 65, 70, -1])
def test_file_with_a_changed_byte_is_ignored(store: Store, offset: int) -> None:
    store.put("a", {"key": "value", "other": [1, 2, 3]})
    content = bytearray(stored_file(store).read_bytes())
    content[offset] ^= 1
    stored_file(store).write_bytes(content)
    assert store.get("a") is None
    store.put("a", [3])
    assert store.get("a") == [3]


@pytest.mark.parametrize("length", [0, 10, 64, 65, 80])
def test_truncated_file_is_ignored(store: Store, length: int) -> None:
    store.put("a", {"key": "value", "other": [1, 2, 3]})
    stored_file(store).write_bytes(stored_file(store).read_bytes()[:length])
    assert store.get("a") is None


def test_too_deeply_nested_file_is_ignored(store: Store) -> None:
    store.put("a", 1)
    content = b"[" * 1_000_000
    stored_file(store).write_bytes(sha256(content).hexdigest().encode() + b"\n" + content)
    assert store.get("a") is None


def test_too_large_value_is_not_stored(store: Store) -> None:
    assert store.put("a", "x") is True
    assert store.put("a", "x" * LARGEST_ENTRY) is False
    assert store.get("a") == "x"


@pytest.mark.parametrize(("size", "known"), [(LARGEST_ENTRY, True), (LARGEST_ENTRY + 1, False)])
def test_too_large_file_is_ignored(store: Store, size: int, known: bool) -> None:
    store.put("a", 1)
    text = "x" * (size - 2)  # JSON adds two quotation marks.
    content = json.dumps(text).encode()
    stored_file(store).write_bytes(sha256(content).hexdigest().encode() + b"\n" + content)
    assert store.get("a") == (text if known else None)


@needs_file_modes
def test_only_the_user_can_read_the_stored_files(store: Store) -> None:
    store.put("a", 1)
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert stored_file(store).stat().st_mode & 0o777 == 0o600


@needs_file_modes
@pytest.mark.parametrize("mode", [0o720, 0o702], ids=["its group", "everyone"])
def test_folder_writable_by_others_is_not_used(store: Store, mode: int) -> None:
    store.put("a", 1)
    store.folder.chmod(mode)
    other = Store(store.folder)
    assert other.get("a") is None
    other.put("b", 2)
    assert not stored_file(store, "b").exists()


@needs_file_modes
@pytest.mark.parametrize("mode", [0o620, 0o602], ids=["its group", "everyone"])
def test_file_writable_by_others_is_not_used(store: Store, mode: int) -> None:
    store.put("a", 1)
    stored_file(store).chmod(mode)
    assert store.get("a") is None


@needs_file_modes
def test_folder_or_file_of_another_user_is_not_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", 1)
    another = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: another)
    assert store.get("a") is None, "the folder was found usable before, the file is not"
    other = Store(store.folder)
    assert other.get("a") is None
    other.put("b", 2)
    assert not stored_file(store, "b").exists()


def test_link_instead_of_the_folder_is_not_used(store: Store, tmp_path: Path) -> None:
    store.put("a", 1)
    link = tmp_path / "link"
    link.symlink_to(store.folder, target_is_directory=True)
    assert Store(link).get("a") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_named_pipe_is_not_waited_for(store: Store) -> None:
    store.put("a", 1)
    os.mkfifo(stored_file(store, "b"))
    assert store.get("b") is None


def test_folder_that_cannot_be_created_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    store = Store(file / "cache")
    store.put("a", 1)
    store.prune()
    assert store.get("a") is None


def test_pruning_removes_the_oldest_files_until_the_rest_fit(store: Store) -> None:
    for age, key in enumerate("abcd"):
        store.put(key, "x" * 1000)
        os.utime(stored_file(store, key), (age, age))
    size = stored_file(store).stat().st_size
    store.prune(2 * size)
    assert sorted(path.name for path in store.folder.iterdir()) == ["c.json", "d.json"]
    Store(store.folder, most_bytes=size).prune()
    assert [path.name for path in store.folder.iterdir()] == ["d.json"]


def test_pruning_continues_where_another_process_moves_a_file_away(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", "x" * 1000)
    unfinished = store.folder / "unfinished"
    unfinished.touch()
    stat = Path.stat

    def stat_and_move(path: Path, **how: Any) -> os.stat_result:
        status = stat(path, **how)
        if path == unfinished:
            path.unlink()
        return status

    monkeypatch.setattr(Path, "stat", stat_and_move)
    store.prune(0)
    assert not [*store.folder.iterdir()]


def test_stored_file_has_readable_json(store: Store) -> None:
    store.put("a", {"operator": "GATHER"})
    assert json.loads(stored_file(store).read_text().partition("\n")[2]) == {"operator": "GATHER"}
