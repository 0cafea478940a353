"""Find recordings that contradict themselves, for example because they were relabelled or edited.

This finds mistakes, not forgeries: changing everything that belongs together goes unnoticed.
Certificates are there for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.backends.recording.model import Recording
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.tensors.datatypes import DataType

__all__ = ["contradiction"]

_DIRECTML_DETAIL = "directml_sha256"
"""A detail that the backend `directml` always reports."""


def contradiction(recording: Recording) -> str | None:
    """Return a contradiction in a recording; None if none is found."""
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
    capabilities = recording.capabilities
    for identifier, entry in recording.entries.items():
        if not isinstance(entry.outcome, Outputs):
            continue
        with suppress(LookupError):
            since = catalogue.entry_of(identifier.partition("/")[0].upper()).since
            if since > capabilities.feature_level:
                yield (
                    f"it has outputs of {identifier}, which needs feature level {since}, but its "
                    f"capabilities say {capabilities.feature_level}"
                )
        outcome = entry.outcome
        stored = [array.dtype for array in outcome.arrays.values()]
        for dtype in stored + [sample.dtype for sample in outcome.samples.values()]:
            types = _stored_as(dtype)
            if types.isdisjoint(capabilities.data_types):
                yield (
                    f"it has an output of {identifier} in {min(types)}, which its capabilities do "
                    "not list"
                )


@cache
def _stored_as(dtype: np.dtype[Any]) -> frozenset[DataType]:
    """Return the data types whose elements are stored as this dtype."""
    return frozenset(data_type for data_type in DataType if data_type.dtype == dtype)
