"""Files that are damaged, contradict themselves or are no recordings are refused, with the reason.

The tested code is in `dmlconf/backends/recording/file.py`, `dmlconf/backends/recording/entries.py`,
`dmlconf/backends/recording/consistency.py`, `dmlconf/backends/recording/store.py`,
`schemas/recording.schema.json`, `dmlconf/documents/zip_members.py`, `dmlconf/documents/trees.py`
and `dmlconf/documents/files.py`.
"""

from __future__ import annotations

import json
import os
import random
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from dmlconf.backends import registry
from dmlconf.backends.protocol import (
    BackendError,
    Capabilities,
    Outputs,
    Rejection,
)
from dmlconf.backends.recording import file
from dmlconf.backends.recording.file import read_head, read_recording, recording_bytes
from dmlconf.backends.recording.model import Recording
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.documents.schema import bundled_schema
from dmlconf.tensors.datatypes import DataType
from tests.backends.recordings import (
    DIGESTS_OF_FORMAT_1,
    ENVIRONMENT,
    recording,
    recording_file,
    unpack,
    write_archive,
    write_changed,
)
from tests.cases.suites import replace_once


def refusal(path: Path) -> str:
    with pytest.raises(BackendError) as caught:
        read_recording(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message


def test_a_missing_file_a_folder_and_no_path_are_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nothing.dmlrec")
    assert "is a folder, not a regular file" in refusal(tmp_path)
    with pytest.raises(BackendError, match="name the recording to replay"):
        registry.create(registry.parse("recording"))


@pytest.mark.parametrize("content", [b"", b"PK", b"not a recording", b"\x80\x04K\x01."])
def test_a_recording_that_is_no_zip_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.dmlrec"
    path.write_bytes(content)
    message = refusal(path)
    assert "not a recording" in message
    assert "BadZipFile" not in message
    assert "name a file that `dmlconf record` wrote" in message


def test_a_name_that_is_too_long_is_refused() -> None:
    name = "a" * 5000
    with pytest.raises(BackendError, match=f"{name}: cannot be read: "):
        registry.create(registry.parse(f"recording:{name}"))


def test_archive_with_other_members_is_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "x.dmlrec", {"word/document.xml": b"<a/>"})
    assert "does not consist of recording.json, outputs.bin" in refusal(path)
    members = unpack(recording_bytes(recording({})))
    write_archive(path, {**members, "more.py": b"print()"})
    assert "does not consist of" in refusal(path)


def test_later_format_is_refused_for_its_number_alone(tmp_path: Path) -> None:
    content = recording_bytes(recording({}))
    path = write_changed(tmp_path / "x.dmlrec", content, format=3, cases=None, new="")
    assert "a recording of format 3; this dmlconf reads formats 1 and 2" in refusal(path)


@pytest.mark.parametrize("manifest", [b"[]", b"1", b"{}", b'{"format": true}', b'{"format": "1"}'])
def test_a_manifest_without_a_format_number_is_refused(tmp_path: Path, manifest: bytes) -> None:
    path = write_archive(tmp_path / "x.dmlrec", {"recording.json": manifest, "outputs.bin": b""})
    assert "without a format number" in refusal(path)


MANIFEST_WITH_5000_DIGITS = b'{"format": ' + b"9" * 5000 + b"}"


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b"\xff", "not UTF-8: byte 0xff"),
        (b'{"a": 1, "a": 2}', "an object has a duplicate key"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b"[" * 100_000, "nested deeper than 100 levels"),
        (MANIFEST_WITH_5000_DIGITS, "a number of more than 400 characters"),
    ],
    ids=["empty", "open", "not-utf-8", "duplicate-key", "nan", "deep", "long-number"],
)
def test_manifest_that_is_not_strict_json_is_refused(
    tmp_path: Path, manifest: bytes, message: str
) -> None:
    path = write_archive(tmp_path / "x.dmlrec", {"recording.json": manifest, "outputs.bin": b""})
    text = refusal(path)
    assert message in text.partition("the manifest: ")[2]
    assert len(text) < 1000


def test_a_member_beyond_the_limit_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zeros = np.zeros(100_000)
    actual = recording({"a": Outputs({"X": zeros})})
    path = recording_file(tmp_path, actual)
    assert path.stat().st_size < 10_000
    assert zeros.nbytes > 500_000
    monkeypatch.setattr(file, "LARGEST_RECORDING_MEMBER", 500_000)
    assert "larger than the limit of 500,000 bytes" in refusal(path)
    with pytest.raises(BackendError, match="too large"):
        recording_bytes(actual)


DIGEST = "0" * 64

OUTPUT = {"type": "FLOAT32", "sizes": [2], "at": 0}
"""A manifest's description of an output."""

SAMPLE = OUTPUT | {"sample": 2, "sha256": DIGEST}


@pytest.mark.parametrize(
    "values",
    [
        {"backend": 1},
        {"suite_digest": "a" * 64},
        {"environment": {}},
        {"environment": None},
        {"capabilities": {"feature_level": "6", "data_types": []}},
        {"capabilities": {"feature_level": "6_4", "data_types": ["BFLOAT16"]}},
        {"cases": []},
        {"cases": {"a": None}},
        {"cases": {"a": []}},
        {"cases": {"a": {}}},
        {"cases": {"a": {"digest": DIGEST}}},
        {"cases": {"a": {"digest": "0" * 63, "outputs": {}}}},
        {"cases": {"a": {"digest": "G" * 64, "outputs": {}}}},
        {"cases": {"a": {"digest": 1, "outputs": {}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": []}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {}, "stage": "", "hresult": ""}}},
        {"cases": {"a": {"digest": DIGEST, "stage": "CreateOperator"}}},
        {"cases": {"a": {"digest": DIGEST, "stage": 1, "hresult": "E_FAIL"}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": None}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": {}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"more": 1}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"type": "object"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"type": "INT4"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"type": []}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sizes": [-1]}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sizes": [1.5]}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sizes": 2}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"at": -1}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"at": "0"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sample": 2}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sha256": DIGEST}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sample": 1}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sample": "2"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sha256": "0"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sha256": 1}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sizes": 2}}}}},
    ],
    ids=str,
)
def test_manifest_that_violates_the_schema_is_refused(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    content = recording_bytes(recording({"a": Outputs({"X": np.zeros(2, np.float32)})}))
    path = write_changed(tmp_path / "x.dmlrec", content)
    assert read_recording(path).entries.keys() == {"a"}
    manifest = json.loads(unpack(content)["recording.json"]) | values
    assert not jsonschema.Draft202012Validator(bundled_schema("recording")).is_valid(manifest)
    refusal(write_changed(path, content, **values))


@pytest.mark.parametrize(
    "output",  # In place of values of OUTPUT; outputs.bin has 8 bytes.
    [{"at": 1}, {"at": 1 << 40}, {"sizes": [3]}, {"sizes": [1 << 40, 1 << 40]}],
)
def test_output_beyond_the_end_of_outputs_bin_is_refused(
    tmp_path: Path, output: dict[str, Any]
) -> None:
    content = recording_bytes(recording({"a": Outputs({"X": np.zeros(2, np.float32)})}))
    cases = {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | output}}}
    path = write_changed(tmp_path / "x.dmlrec", content, cases=cases)
    assert "the case a: X lies beyond the end of outputs.bin" in refusal(path)


@pytest.mark.parametrize(
    "output",
    [
        {"sample": 3},
        {"sizes": [1]},
        {"sizes": [1 << 40, 1 << 40]},
        {"sample": 1 << 40},
        {"at": 1},
    ],
)
def test_invalid_samples_are_refused(tmp_path: Path, output: dict[str, Any]) -> None:
    content = recording_bytes(recording({"a": Outputs({"X": np.zeros(2, np.float32)})}))
    path = write_changed(tmp_path / "x.dmlrec", content)
    sound = {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE}}}
    assert read_recording(write_changed(path, content, cases=sound)).entries.keys() == {"a"}
    faulty = {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | output}}}
    assert "the case a: " in refusal(write_changed(path, content, cases=faulty))


@pytest.mark.parametrize(
    "sizes",
    [[1] * 99, [1 << 47, 0, 1 << 47], [1 << 62]],
    ids=["too many dimensions", "no elements of sizes too large", "2^64 bytes"],
)
def test_sizes_that_no_array_has_are_refused(tmp_path: Path, sizes: list[int]) -> None:
    content = recording_bytes(recording({"a": Outputs({"X": np.zeros(2, np.float32)})}))
    cases = {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sizes": sizes}}}}
    assert "the case a: " in refusal(write_changed(tmp_path / "x.dmlrec", content, cases=cases))


def test_a_case_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    members = unpack(recording_bytes(recording({"a": Rejection("CreateOperator", "E_FAIL")})))
    text = members["recording.json"].decode()
    (line,) = (line for line in text.splitlines() if line.startswith('"a"'))
    twice = replace_once(text, line, f"{line},\n{line}").encode()
    path = write_archive(tmp_path / "x.dmlrec", {**members, "recording.json": twice})
    assert "the manifest: an object has a duplicate key" in refusal(path)


def test_a_message_has_no_escape_sequences_for_terminals(tmp_path: Path) -> None:
    content = recording_bytes(recording({}))
    path = write_changed(tmp_path / "x.dmlrec", content, cases={"\x1b[31m": None})
    message = refusal(path)
    assert "\x1b" not in message
    assert "[31m" in message


@pytest.mark.slow
def test_a_recording_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.dmlrec"
    content = recording_bytes(recording({"a": Outputs({"X": np.arange(99)})}))
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert "damaged" in refusal(path), length


@pytest.mark.slow
def test_flipped_bit_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.dmlrec"
    content = recording_bytes(recording({"a": Outputs({"X": np.arange(9)})}))
    path.write_bytes(content)
    sound = unpack(content)
    generator = random.Random(0)
    refused = 0
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        try:
            read_recording(path)
        except BackendError:
            refused += 1
        else:
            # The flipped bit is in a field of the zip format that Python ignores.
            assert unpack(bytes(damaged)) == sound
    assert refused > len(content) / 2, "most bytes matter"


def recording_with(**changes: Any) -> Recording:
    """Return a sound recording of one case, with these fields replaced."""
    right = recording({"tile/mixed/unstated": Outputs({"OutputTensor": np.zeros(4, np.float32)})})
    return replace(right, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"backend": "numpy"},
            "it names the backend numpy, but its environment is from directml",
        ),
        (
            {"environment": {**ENVIRONMENT, "details": {}}},
            "claims to be from directml, but its environment lacks directml_sha256",
        ),
        (
            {"capabilities": Capabilities(FeatureLevel(2, 1), frozenset(DataType))},
            "its device has feature level 6_4, but its capabilities say 2_1",
        ),
        (
            {"capabilities": Capabilities(FeatureLevel(6, 4), frozenset({DataType.INT32}))},
            "an output of tile/mixed/unstated in FLOAT32, which its capabilities do not list",
        ),
        (
            {
                "capabilities": Capabilities(FeatureLevel(6, 4), frozenset({DataType.INT32})),
                "entries": recording(
                    {"tile/mixed/unstated": Outputs({"OutputTensor": np.zeros(4, np.int8)})}
                ).entries,
            },
            "an output of tile/mixed/unstated in INT8 or INT4, which its capabilities do not list",
        ),
    ],
)
def test_a_recording_that_contradicts_itself_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "x.dmlrec"
    path.write_bytes(recording_bytes(recording_with(**changes)))
    with pytest.raises(BackendError, match=f"x.dmlrec: contradicts itself: .*{message}"):
        read_recording(path)


def test_head_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    path = recording_file(tmp_path, recording_with(backend="numpy"))
    with pytest.raises(BackendError, match="contradicts itself: it names the backend numpy"):
        read_head(path)


def test_outputs_above_the_devices_feature_level_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.dmlrec"
    newest = recording_with()
    entries = {"fold/matrix/x": next(iter(newest.entries.values()))}
    path.write_bytes(recording_bytes(replace(newest, entries=entries)))
    assert read_recording(path).entries.keys() == entries.keys()
    details = {**ENVIRONMENT["details"], "feature_level": "2_1"}
    older = recording_with(
        environment={**ENVIRONMENT, "details": details},
        capabilities=Capabilities(FeatureLevel(2, 1), frozenset(DataType)),
    )
    path.write_bytes(recording_bytes(replace(older, entries=entries)))
    with pytest.raises(BackendError, match="fold/matrix/x, which needs feature level 6_4"):
        read_recording(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_named_pipe_is_refused_without_waiting(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "x.dmlrec")
    for read in (read_recording, read_head):
        with pytest.raises(BackendError, match="is a named pipe, not a regular file"):
            read(tmp_path / "x.dmlrec")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_unsupported_methods_of_compression_are_refused(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.dmlrec"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in unpack(recording_bytes(recording_with())).items():
            archive.writestr(name, content)
    with pytest.raises(BackendError, match="uses an unsupported compression method"):
        read_recording(path)


def test_manifest_nested_deep_after_its_format_is_refused(tmp_path: Path) -> None:
    members = unpack(recording_bytes(recording_with()))
    deep = b'{"format": 2, "dmlconf": ' + b"[" * 99_999
    path = write_archive(tmp_path / "x.dmlrec", {**members, "recording.json": deep})
    with pytest.raises(BackendError, match="the manifest: nested deeper than 100 levels"):
        read_recording(path)


def test_format_1_requires_digests_that_format_2_forbids(
    tmp_path: Path,
) -> None:
    content = recording_bytes(recording({"a": Rejection("CreateOperator", "E_INVALIDARG")}))
    path = tmp_path / "x.dmlrec"
    assert "'suite_digest'" in refusal(write_changed(path, content, format=1))
    assert "does not allow" in refusal(write_changed(path, content, **DIGESTS_OF_FORMAT_1))
