"""An archive gives back the values that it was made of, and none that is damaged.

The tested code is in `dmlconf/documents/archive.py` and `dmlconf/documents/store.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.documents.archive import Archive, archive_content
from dmlconf.documents.store import LARGEST_ENTRY, Store

VALUES = {"b": {"sizes": [1, 2.5, None, float("inf")]}, "a": ["text" * 100]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "checked.archive"
    path.write_bytes(archive_content(VALUES))
    return path


def test_an_archive_gives_back_its_values(path: Path) -> None:
    archive = Archive(path)
    assert {key: archive.get(key) for key in VALUES} == VALUES
    assert archive.get("c") is None


def test_the_same_values_in_another_order_give_the_same_bytes() -> None:
    assert archive_content(VALUES) == archive_content(dict(sorted(VALUES.items())))


def test_new_values_go_to_the_store_and_replace_none(path: Path, tmp_path: Path) -> None:
    archive = Archive(path, Store(tmp_path / "cache"))
    archive.put("a", "another")
    archive.put("c", "mine")
    assert archive.get("a") == VALUES["a"]
    assert archive.get("c") == Store(tmp_path / "cache").get("c") == "mine"


def test_without_a_store_nothing_is_written(path: Path) -> None:
    archive = Archive(path)
    archive.put("c", "mine")
    archive.prune()
    assert archive.get("c") is None
    assert list(path.parent.iterdir()) == [path]


def test_a_changed_byte_never_gives_another_value(path: Path) -> None:
    content = path.read_bytes()
    for offset in range(len(content)):
        path.write_bytes(content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :])
        for key, value in VALUES.items():
            assert Archive(path).get(key) in (None, value)


def test_a_file_that_is_cut_off_never_gives_another_value(path: Path) -> None:
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert Archive(path).get("b") in (None, VALUES["b"])


def test_cut_off_number_is_not_taken_for_a_smaller_one(path: Path) -> None:
    """The beginning of a number is valid JSON, too."""
    number = 1234567890123456789
    content = archive_content({"number": number})
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert Archive(path).get("number") in (None, number)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "[]",
        "{}",
        '{"form": 1, "entries": 1}',
        '{"form": 1, "entries": {"a": [-1000, 1]}}',
        '{"form": 1, "entries": {"a": [0, 1e999]}}',
        '{"form": 1, "entries": {"a": 1}}',
        '{"form": 1, "entries": {"a": ["0", null]}}',
    ],
)
def test_file_with_another_header_has_no_values(path: Path, header: str) -> None:
    path.write_text(header + "\n", "utf-8")
    assert Archive(path).get("a") is None


def test_an_archive_of_a_newer_form_has_no_values(path: Path) -> None:
    content = path.read_bytes()
    assert content.startswith(b'{"form":1,')
    path.write_bytes(content.replace(b'{"form":1,', b'{"form":2,', 1))
    assert Archive(path).get("a") is None


def test_a_missing_file_has_no_values(tmp_path: Path) -> None:
    assert Archive(tmp_path / "none").get("a") is None


def test_a_value_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "checked.archive"
    # With its quotation marks, the text is too large.
    path.write_bytes(archive_content({"large": "x" * LARGEST_ENTRY, "small": 1}))
    assert (Archive(path).get("large"), Archive(path).get("small")) == (None, 1)
