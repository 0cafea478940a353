"""Find and compare the subjects of results: the software and the device that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from dmlconf.backends.protocol import Environment

__all__ = [
    "REFERENCE",
    "Subject",
    "device_details",
    "is_independent",
    "same_source",
    "subject_of",
    "tested_environment",
]

REFERENCE: Final = "numpy"
"""The backend that runs the reference."""

_OF_ONE_RUN: Final = frozenset({"luid", "directml_file", "directml_origin"})
"""Details that may differ between runs of the same software on the same device."""

Subject = tuple[Any, ...]
"""Backend, version, adapter, driver, and details that are digests, such as `directml_sha256`."""


def tested_environment(environment: Environment | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an environment, or the recorded one for the backend `recording`, as a mapping."""
    record: Mapping[str, Any]
    record = asdict(environment) if isinstance(environment, Environment) else environment
    if record["backend"] == "recording":
        record = record["details"].get("recorded", record)
    return record


def subject_of(environment: Environment | Mapping[str, Any]) -> Subject:
    """Return the subject of an environment, or the recorded one for the backend `recording`."""
    record = tested_environment(environment)
    digests = {key: value for key, value in record["details"].items() if key.endswith("sha256")}
    return *(record[key] for key in ("backend", "version", "adapter", "driver")), digests


def device_details(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an environment's details without those that may differ from run to run."""
    return {key: value for key, value in details.items() if key not in _OF_ONE_RUN}


def is_independent(recorded: Mapping[str, Any], subject: Subject) -> bool:
    """Return whether results recorded in an environment may be used to judge a subject.

    They may not if they come from the same subject, or if both come from the reference.
    """
    both_reference = str(recorded["backend"]) == REFERENCE == str(subject[0])
    return not both_reference and subject_of(recorded) != subject


def same_source(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two environments have the same subject and the same `device_details`."""
    if subject_of(one) != subject_of(other):
        return False
    keys = (one["details"].keys() | other["details"].keys()) - _OF_ONE_RUN
    return all(one["details"].get(key) == other["details"].get(key) for key in keys)
