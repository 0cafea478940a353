"""A certificate is a ZIP archive of one strict form.

Other archives are refused; in a damaged certificate, the damaged members are named.

The tested code is in `dmlconf/certification/archive.py`.
"""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from dmlconf.certification.archive import archive_bytes, read_archive
from dmlconf.certification.errors import RefusedError

DIRECTORY_HEADER = b"PK\1\2"
"""The signature of a header in the directory of a ZIP archive."""

MEMBERS = {"attestation.json": b"{}", "run.jsonl": b"line\n" * 100, "outputs.bin": bytes(1000)}


def read(folder: Path, content: bytes) -> dict[str, bytes]:
    """Read an archive that must have the member attestation.json."""
    path = folder / "it.dmlcert"
    path.write_bytes(content)
    return dict(read_archive(path, ("attestation.json",)).members)


def test_an_archive_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read(tmp_path, archive_bytes(MEMBERS)) == MEMBERS


def test_zipfile_reads_an_archive_that_dmlconf_wrote() -> None:
    with zipfile.ZipFile(io.BytesIO(archive_bytes(MEMBERS))) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == MEMBERS


def test_members_in_another_order_give_the_same_bytes() -> None:
    assert archive_bytes(MEMBERS) == archive_bytes(dict(reversed(MEMBERS.items())))


def test_an_archive_that_zipfile_wrote_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in MEMBERS.items():
            archive.writestr(name, content)
    with pytest.raises(RefusedError, match="written by another program"):
        read(tmp_path, stream.getvalue())


def archive_in_order(names: tuple[str, ...]) -> bytes:
    """Return an archive with its members in this order."""
    contents, directory = b"", b""
    for name in names:
        alone = archive_bytes({name: MEMBERS[name]})
        start, end = alone.index(DIRECTORY_HEADER), alone.index(b"PK\5\6")
        header = bytearray(alone[start:end])
        header[42:46] = len(contents).to_bytes(4, "little")  # The offset of the member.
        contents += alone[:start]
        directory += header
    count = len(names).to_bytes(2, "little")
    sizes = len(directory).to_bytes(4, "little") + len(contents).to_bytes(4, "little")
    return contents + directory + b"PK\5\6" + bytes(4) + count * 2 + sizes + bytes(2)


@pytest.mark.parametrize(
    "names",
    [("run.jsonl", "attestation.json"), ("attestation.json", "run.jsonl", "run.jsonl")],
    ids=["misplaced", "duplicate"],
)
def test_a_misplaced_or_duplicate_member_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert archive_in_order(tuple(MEMBERS)) == archive_bytes(MEMBERS)
    with pytest.raises(RefusedError, match="is unknown, duplicate or misplaced"):
        read(tmp_path, archive_in_order(names))


def test_an_unknown_member_is_refused(tmp_path: Path) -> None:
    content = archive_bytes(MEMBERS).replace(b"run.jsonl", b"ran.jsonl")
    with pytest.raises(RefusedError, match=r"'ran\.jsonl' is unknown, duplicate or misplaced"):
        read(tmp_path, content)


LOCAL_HEADER = {
    "signature": 0,
    "version needed": 4,
    "flags": 6,
    "method": 8,
    "time": 10,
    "checksum": 14,
    "compressed size": 18,
    "size": 22,
    "length of the name": 26,
    "length of the extra field": 28,
    "name": 30,
}
"""The offset of each field of a local header, by the ZIP specification."""


@pytest.mark.parametrize("field", LOCAL_HEADER)
def test_a_local_header_unlike_the_directory_is_refused(tmp_path: Path, field: str) -> None:
    content = bytearray(archive_bytes(MEMBERS))
    content[LOCAL_HEADER[field]] ^= 1
    with pytest.raises(RefusedError, match=r"the header of attestation\.json differs"):
        read(tmp_path, bytes(content))


def test_a_changed_byte_of_the_directory_is_noticed(
    tmp_path: Path,
) -> None:
    content = archive_bytes(MEMBERS)
    start = content.index(DIRECTORY_HEADER)
    for offset in range(start, len(content)):
        changed = bytearray(content)
        changed[offset] ^= 0x10
        path = tmp_path / "it.dmlcert"
        path.write_bytes(bytes(changed))
        try:
            archive = read_archive(path, ("attestation.json",))
        except RefusedError:
            continue
        assert archive.damaged, f"byte {offset}"


def test_added_or_missing_bytes_are_refused(tmp_path: Path) -> None:
    content = archive_bytes(MEMBERS)
    for changed in (b"x" + content, content + b"x", content[:-1]):
        with pytest.raises(RefusedError, match="not a certificate"):
            read(tmp_path, changed)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty"),
        (b'{"record":"header"}\n', "a run log"),
        (b"operator: TILE\ncases: []\n", "a case file"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_its_kind(
    tmp_path: Path, content: bytes, kind: str
) -> None:
    with pytest.raises(RefusedError, match=f"not a certificate: it is {kind}"):
        read(tmp_path, content)


def test_a_member_with_a_wrong_checksum_is_named(tmp_path: Path) -> None:
    right, other = (
        archive_bytes({**MEMBERS, "outputs.bin": bytes(100) + last + bytes(900)})
        for last in (b"\1", b"\2")
    )
    path = tmp_path / "it.dmlcert"
    # The content of the second archive, between the header and the directory of the first.
    start, end = right.index(b"outputs.bin") + len("outputs.bin"), right.index(DIRECTORY_HEADER)
    assert len(right) == len(other)
    path.write_bytes(right[:start] + other[start:end] + right[end:])
    assert read_archive(path, ()).damaged == ("outputs.bin",)


def test_no_more_bytes_are_decompressed_than_the_directory_says(tmp_path: Path) -> None:
    whole, stated = 50_000_000, 5_000
    large = archive_bytes({"attestation.json": b"", "outputs.bin": bytes(whole)})
    content = bytearray(large)
    local, central = (
        large.index(b"outputs.bin") - LOCAL_HEADER["name"],
        large.rindex(DIRECTORY_HEADER),
    )
    size_in_directory_header = 24
    for at in (local + LOCAL_HEADER["size"], central + size_in_directory_header):
        content[at : at + 4] = stated.to_bytes(4, "little")
    tracemalloc.start()
    with pytest.raises(RefusedError, match="the size"):
        read(tmp_path, bytes(content))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < whole / 10


def test_the_error_names_the_member_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"lacks attestation\.json"):
        read(tmp_path, archive_bytes({"outputs.bin": b""}))
