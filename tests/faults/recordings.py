"""Write recordings of DirectML with given outcomes, for tests that have no device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dmlconf import __version__
from dmlconf.backends.protocol import Capabilities, Outcome, Outputs, Rejection
from dmlconf.backends.recording.file import recording_bytes
from dmlconf.backends.recording.model import Recording, entry_of
from dmlconf.cases.model import Case
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.tensors.datatypes import DataType

__all__ = ["directml_recording"]


def directml_recording(
    path: Path, outcomes: Mapping[str, tuple[Case, Outcome]], version: str = "1.15.4"
) -> str:
    """Write a recording of DirectML, and return the name of the backend that replays it."""
    environment = {
        "backend": "directml",
        "version": version,
        "adapter": "an adapter",
        "driver": "1.0",
        "details": {"compile": "operator", "directml_sha256": "0" * 64},
        "platform": "Windows",
        "python": "3.11.9",
        "numpy": "2.1.0",
    }
    capabilities = Capabilities(FeatureLevel(6, 4), frozenset(DataType))
    entries = {}
    for identifier, (case, outcome) in outcomes.items():
        assert isinstance(outcome, Outputs | Rejection)
        entries[identifier] = entry_of(case, outcome)
    recording = Recording(__version__, "directml", environment, capabilities, entries)
    path.write_bytes(recording_bytes(recording))
    return f"recording:{path}"
