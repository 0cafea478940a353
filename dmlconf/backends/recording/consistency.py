"""Find contradictions within a recording, for example after somebody edited its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from dmlconf.backends.protocol import Capabilities, Outputs
from dmlconf.backends.recording.entries import TYPE_OF_DTYPE, Kind, LazyEntries
from dmlconf.backends.recording.model import Entry, Recording
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.sample import Sample

__all__ = ["contradiction"]

_DIRECTML_DETAIL = "directml_sha256"
"""A detail that the backend `directml` always reports."""


def contradiction(recording: Recording) -> str | None:
    """Return a contradiction in a recording, or None."""
    return next(_contradictions(recording), None)


def _contradictions(recording: Recording) -> Iterator[str]:
    environment = recording.environment
    backend = environment.get("backend")
    named = recording.backend.partition(":")[0]
    if backend != named:
        yield f"it names the backend {named}, but its environment is from {backend}"
    if backend == "directml":
        yield from _directml(recording, environment.get("details", {}))
    yield from _beyond_capabilities(recording)


def _directml(recording: Recording, details: Any) -> Iterator[str]:
    if _DIRECTML_DETAIL not in details:
        yield f"it claims to be from directml, but its environment lacks {_DIRECTML_DETAIL}"
        return
    with suppress(ValueError):
        level = FeatureLevel.parse(str(details.get("feature_level")))
        if level != recording.capabilities.feature_level:
            said = recording.capabilities.feature_level
            yield f"its device has feature level {level}, but its capabilities say {said}"


def _beyond_capabilities(recording: Recording) -> Iterator[str]:
    for (folder, data_type), identifier in _kinds(recording.entries).items():
        if data_type is None:
            yield from _beyond_level(folder, identifier, recording.capabilities)
        else:
            yield from _beyond_types(data_type, identifier, recording.capabilities)


def _beyond_level(folder: str, identifier: str, capabilities: Capabilities) -> Iterator[str]:
    try:
        since = catalogue.entry_of(folder.upper()).since
    except LookupError:
        return
    if since > capabilities.feature_level:
        yield (
            f"it has outputs of {identifier}, which needs feature level {since}, but its "
            f"capabilities say {capabilities.feature_level}"
        )


def _beyond_types(data_type: str, identifier: str, capabilities: Capabilities) -> Iterator[str]:
    types = _of_same_dtype(DataType(data_type))
    if types.isdisjoint(capabilities.data_types):
        kinds = " or ".join(sorted(types, key=lambda each: each != data_type))
        yield f"it has an output of {identifier} in {kinds}, which its capabilities do not list"


def _kinds(entries: Mapping[str, Entry]) -> Mapping[Kind, str]:
    """Return the kinds of outputs, each with the identifier of the first case of that kind."""
    if isinstance(entries, LazyEntries):
        return entries.kinds
    kinds: dict[Kind, str] = {}
    for identifier, entry in entries.items():
        if isinstance(entry.outcome, Outputs):
            outputs: list[Array | Sample] = [
                *entry.outcome.arrays.values(),
                *entry.outcome.samples.values(),
            ]
            for each in (None, *(str(TYPE_OF_DTYPE[output.dtype]) for output in outputs)):
                kinds.setdefault((identifier.partition("/")[0], each), identifier)
    return kinds


@cache
def _of_same_dtype(data_type: DataType) -> frozenset[DataType]:
    return frozenset(each for each in DataType if each.dtype == data_type.dtype)
