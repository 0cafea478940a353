"""Make small recordings for tests, and files that are almost valid recordings."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.protocol import Capabilities, Outputs, Rejection
from dmlconf.backends.recording.file import recording_bytes
from dmlconf.backends.recording.model import Entry, Recording
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.tensors.datatypes import DataType

ENVIRONMENT: Final[dict[str, Any]] = {
    "backend": "directml",
    "version": "1.15.4",
    "adapter": "An adapter",
    "driver": "31.0.1",
    "details": {"metacommands": False, "directml_sha256": "1" * 64, "feature_level": "6_4"},
    "platform": "Windows 11 AMD64",
    "python": "3.12.0",
    "numpy": "2.0.0",
}
"""The environment of an invented device."""


def recording(
    entries: Mapping[str, Outputs | Rejection],
    digests: Mapping[str, str] | None = None,
    **environment: Any,
) -> Recording:
    """Return a recording of outcomes by identifier; digests are zeros by default.

    `environment` replaces values of `ENVIRONMENT`.
    """
    described = {**ENVIRONMENT, **environment}
    return Recording(
        dmlconf="0.1.0",
        backend=described["backend"],
        environment=described,
        capabilities=Capabilities(FeatureLevel(6, 4), frozenset(DataType)),
        entries={
            name: Entry((digests or {}).get(name, "0" * 64), outcome)
            for name, outcome in entries.items()
        },
    )


def unpack(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_archive(path: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def write_changed(path: Path, content: bytes, **values: Any) -> Path:
    """Write the recording in `content` with other values in its manifest; return its path."""
    members = unpack(content)
    manifest = json.loads(members["recording.json"]) | values
    return write_archive(path, {**members, "recording.json": json.dumps(manifest).encode()})


def recording_file(directory: Path, source: Recording) -> Path:
    path = directory / "x.dmlrec"
    path.write_bytes(recording_bytes(source))
    return path


DIGESTS_OF_FORMAT_1: Final = {"suite_digest": "a" * 64, "catalogue_digest": "b" * 64}
"""Fields of a manifest that only recordings of format 1 have."""
