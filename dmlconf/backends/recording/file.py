"""The file format of recordings: a zip archive of a JSON manifest and the outputs' elements.

Equal recordings give the same bytes with the same version of zlib.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.errors import RecordingError
from dmlconf.backends.protocol import BackendError, Capabilities, Rejection
from dmlconf.backends.recording.consistency import contradiction
from dmlconf.backends.recording.entries import (
    OUTPUTS,
    TYPE_OF_DTYPE,
    DamagedEntryError,
    LazyEntries,
)
from dmlconf.backends.recording.model import Entry, Recording
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.documents.files import UnreadableFileError
from dmlconf.documents.schema import Checker, bundled_schema, validator
from dmlconf.documents.trees import TreeError, parsed_json
from dmlconf.documents.zip_members import DamagedArchiveError, opened_archive
from dmlconf.limits import LARGEST_RECORDING_MEMBER
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.sample import Sample, little_endian

__all__ = [
    "FORMAT",
    "SUFFIX",
    "manifest_of",
    "read_head",
    "read_recording",
    "recording_bytes",
]

FORMAT: Final = 2
"""Version of the format that is written; it increases when an old reader could be misled."""

_READABLE: Final = (1, FORMAT)

SUFFIX: Final = ".dmlrec"

_HEAD_BYTES: Final = 1 << 16
"""How many bytes of a manifest are read for the part before the cases, usually below 1 KiB."""

_MANIFEST: Final = "recording.json"
_TIMESTAMP: Final = (1980, 1, 1, 0, 0, 0)
"""The date of both members, the earliest in a zip archive."""


class _Blob:
    """The kept elements of the outputs; equal bytes of several outputs are stored once."""

    def __init__(self) -> None:
        self._offsets: dict[bytes, int] = {}
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, content: bytes) -> int:
        """Return the offset of the content; add the content if it is new."""
        if content not in self._offsets:
            self._offsets[content] = self._length
            self._parts.append(content)
            self._length += len(content)
        return self._offsets[content]

    def content(self) -> bytes:
        return b"".join(self._parts)


def manifest_of(recording: Recording) -> tuple[dict[str, Any], bytes]:
    """Return the manifest and the kept elements of all outputs, into which its offsets point."""
    blob = _Blob()
    capabilities = recording.capabilities
    manifest = {
        "format": FORMAT,
        "dmlconf": recording.dmlconf,
        "backend": recording.backend,
        "environment": dict(recording.environment),
        "capabilities": {
            "feature_level": str(capabilities.feature_level),
            "data_types": sorted(map(str, capabilities.data_types)),
        },
        "cases": {name: _entry(entry, blob) for name, entry in sorted(recording.entries.items())},
    }
    return manifest, blob.content()


def _entry(entry: Entry, blob: _Blob) -> dict[str, Any]:
    outcome = entry.outcome
    if isinstance(outcome, Rejection):
        return {"digest": entry.digest, "stage": outcome.stage, "hresult": outcome.hresult}
    known: dict[str, Array | Sample] = {**outcome.samples, **outcome.arrays}
    # The order determines the offsets in the blob.
    outputs = {name: _output(known[name], blob) for name in sorted(known)}
    return {"digest": entry.digest, "outputs": outputs}


def _output(output: Array | Sample, blob: _Blob) -> dict[str, Any]:
    values = output.values if isinstance(output, Sample) else output
    manifest = {
        "type": str(TYPE_OF_DTYPE[output.dtype]),
        "sizes": list(output.shape),
        "at": blob.add(little_endian(values)),
    }
    if isinstance(output, Sample):
        manifest |= {"sample": len(values), "sha256": output.digest}
    return manifest


def recording_bytes(recording: Recording) -> bytes:
    """Return the content of a recording's file.

    Raises:
        BackendError: it is larger than a recording may be.
    """
    manifest, outputs = manifest_of(recording)
    text = "".join(_lines(manifest)).encode()
    # Validate the text as a reader will parse it.
    validator(bundled_schema("recording")).validate(json.loads(text))
    for content in (text, outputs):
        if len(content) > LARGEST_RECORDING_MEMBER:
            raise BackendError(
                f"a recording of {len(content):,} bytes is too large; record fewer cases"
            )
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in ((_MANIFEST, text), (OUTPUTS, outputs)):
            member = zipfile.ZipInfo(name, _TIMESTAMP)
            member.create_system = 3  # The default differs between Windows and Unix.
            member.external_attr = 0o644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content, compresslevel=9)
    return stream.getvalue()


def _lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the manifest's text with one line for each key and each case, for readable diffs."""
    yield "{\n"
    for key, value in manifest.items():
        if key != "cases":
            yield f"{json.dumps(key)}: {_json(value)},\n"
    yield '"cases": {\n'
    yield ",\n".join(f"{json.dumps(k)}: {_json(v)}" for k, v in manifest["cases"].items())
    yield "\n}}\n"


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"), sort_keys=True, default=str)


class _DamagedError(Exception):
    """What is wrong with a file."""


def read_recording(path: Path) -> Recording:
    """Read a recording.

    Raises:
        BackendError: the file cannot be read, is no recording in a known format, or contradicts
            itself.
    """
    try:
        text, outputs = _members(path)
        recording = _recording(_manifest(text), outputs)
        reason = contradiction(recording)
        if reason is None:
            return recording
        reason = f"contradicts itself: {reason}; record it again"
    except UnreadableFileError as error:
        reason = str(error)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    except (_DamagedError, DamagedEntryError) as error:
        reason = str(error)
    except DamagedArchiveError as error:
        reason = f"not a recording, or a damaged one: {error}; {_ADVICE}"
    except _DAMAGES as error:
        reason = f"not a recording, or a damaged one: {type(error).__name__}: {error}; {_ADVICE}"
    raise RecordingError(path, reason)


def read_head(path: Path) -> Recording:
    """Return a recording without its entries, usually from the beginning of its manifest alone.

    Raises:
        BackendError: as for `read_recording`, but errors in the entries may go unnoticed.
    """
    try:
        with opened_archive(path, LARGEST_RECORDING_MEMBER) as members:
            head = members.beginning(_MANIFEST, _HEAD_BYTES).partition(b',\n"cases"')[0]
        recording = _recording(_manifest(head + b',\n"cases": {}}'), b"")
        if contradiction(recording) is None:
            return recording
    except (OSError, UnreadableFileError, DamagedArchiveError, _DamagedError, *_DAMAGES):
        pass
    # The file has another layout, is damaged or contradicts itself; reading all of it shows which.
    return replace(read_recording(path), entries={})


_ADVICE: Final = "name a file that `dmlconf record` wrote, or record this one again"

_DAMAGES: Final = (
    AttributeError,
    LookupError,
    MemoryError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Exceptions that reading a damaged or foreign manifest may cause."""


def _members(path: Path) -> tuple[bytes, bytes]:
    with opened_archive(path, LARGEST_RECORDING_MEMBER) as members:
        members.require((_MANIFEST, OUTPUTS))
        return members.read(_MANIFEST), members.read(OUTPUTS)


def _manifest(text: bytes) -> Mapping[str, Any]:
    try:
        manifest: Any = parsed_json(text, unique=True)
    except TreeError as error:
        raise _DamagedError(f"the manifest: {error}") from error
    form = manifest.get("format") if isinstance(manifest, dict) else None
    if type(form) is not int or form not in _READABLE:
        description = f"of format {form}" if type(form) is int else "without a format number"
        known = " and ".join(map(str, _READABLE))
        raise _DamagedError(f"a recording {description}; this dmlconf reads formats {known}")
    # `LazyEntries` checks the cases, since the schema takes too long for thousands.
    for violation in _checker().iter_errors({**manifest, "cases": {}}):
        raise _DamagedError(f"{violation.json_path}: {violation.message}")
    checked: Mapping[str, Any] = manifest
    return checked


@cache
def _checker() -> Checker:
    return Checker(bundled_schema("recording"))


def _recording(manifest: Mapping[str, Any], outputs: bytes) -> Recording:
    capabilities = manifest["capabilities"]
    cases = manifest["cases"]
    if not isinstance(cases, dict):
        raise _DamagedError("$.cases is not an object")
    return Recording(
        dmlconf=manifest["dmlconf"],
        backend=manifest["backend"],
        environment=manifest["environment"],
        capabilities=Capabilities(
            FeatureLevel.parse(capabilities["feature_level"]),
            frozenset(map(DataType, capabilities["data_types"])),
        ),
        entries=LazyEntries(cases, outputs),
    )
