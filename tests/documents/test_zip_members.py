"""Members of zip archives are read within limits; damage raises only DamagedArchiveError.

The tested code is in `dmlconf/documents/zip_members.py`.
"""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from dmlconf.documents.zip_members import DamagedArchiveError, opened_archive

SUPPORTED_METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]
UNSUPPORTED_METHODS = [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


def archive(path: Path, method: int, **members: bytes) -> bytes:
    """Write an archive of these members, and return its bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    path.write_bytes(stream.getvalue())
    return stream.getvalue()


def read(path: Path, largest: int = 1 << 20) -> bytes:
    """Return the member `a`; more than `largest` bytes are refused."""
    with opened_archive(path, largest) as members:
        return members.read("a")


@pytest.mark.parametrize("method", SUPPORTED_METHODS)
def test_member_and_its_beginning_are_read(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.zip"
    archive(path, method, a=b"abc" * 1000, b=b"")
    assert read(path) == b"abc" * 1000
    with opened_archive(path, 3000) as members:
        members.require(("b", "a"))
        assert members.beginning("a", 5) == b"abcab"


@pytest.mark.parametrize("required", [("a",), ("a", "b", "c"), ("a", "c")])
def test_archive_with_other_members_than_required_is_refused(
    tmp_path: Path, required: tuple[str, ...]
) -> None:
    path = tmp_path / "x.zip"
    archive(path, zipfile.ZIP_STORED, a=b"abc", b=b"")
    with (
        opened_archive(path, 3000) as members,
        pytest.raises(DamagedArchiveError, match=f"does not consist of {', '.join(required)}"),
    ):
        members.require(required)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"hello, this is text", "not a zip archive, since it begins with b'hello, this is t'"),
        (b"PK\x03\x04 and no more", "a zip archive without its end"),
    ],
)
def test_a_file_that_is_no_archive_is_described(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    with pytest.raises(DamagedArchiveError, match=message):
        read(path)


def test_names_of_other_members_are_shown_without_escape_sequences(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    archive(path, zipfile.ZIP_STORED, **dict.fromkeys(("a\x1b[31m", *"bcdef"), b""))
    with (
        opened_archive(path, 3000) as members,
        pytest.raises(DamagedArchiveError) as caught,
    ):
        members.require(("b",))
    assert str(caught.value).endswith(r"of b, but of a\x1b[31m, b, c, d, ...")


@pytest.mark.parametrize("method", UNSUPPORTED_METHODS)
def test_unsupported_compression_is_refused(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.zip"
    archive(path, method, a=b"abc" * 1000)
    with pytest.raises(DamagedArchiveError, match="a uses an unsupported compression method"):
        read(path)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*SUPPORTED_METHODS, *UNSUPPORTED_METHODS])
def test_damaged_byte_raises_only_damaged_archive_error(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.zip"
    content = archive(path, method, a=bytes(range(256)) * 3)
    refused = 0
    for offset in range(len(content)):
        changed = bytearray(content)
        changed[offset] ^= 0xFF
        path.write_bytes(changed)
        try:
            read(path)
        except DamagedArchiveError:
            refused += 1
    assert refused > len(content) / 2


@pytest.mark.slow
def test_false_size_of_a_member_does_not_fill_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    size = 64 << 20
    content = archive(path, zipfile.ZIP_DEFLATED, a=b"0" * size)
    right = size.to_bytes(4, "little")
    assert right in content
    path.write_bytes(content.replace(right, (1000).to_bytes(4, "little")))
    tracemalloc.start()
    with pytest.raises(DamagedArchiveError):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < size / 4
    tracemalloc.stop()


def test_member_beyond_the_limit_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.zip"
    archive(path, zipfile.ZIP_DEFLATED, a=b"0" * 1001)
    assert len(read(path, 1001)) == 1001
    with pytest.raises(DamagedArchiveError, match="a is larger than the limit of 1,000 bytes"):
        read(path, 1000)
    with (
        opened_archive(path, 1000) as members,
        pytest.raises(DamagedArchiveError, match="a is larger than the limit of 1,000 bytes"),
    ):
        members.beginning("a", 5)
