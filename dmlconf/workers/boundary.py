"""Check what a backend returns, and rebuild it from plain values, which a worker can pickle.

Long texts are cut. A value with too many items or elements is malformed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any, Final, TypeVar

import numpy as np

from dmlconf.backends.protocol import (
    BackendError,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Declined,
    Environment,
    Fault,
    FaultKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.model import Case
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.sample import Sample

__all__ = ["checked_capabilities", "checked_environment", "checked_outcome"]

_LONGEST_TEXT: Final = 10_000
"""The most characters of a text; the rest is cut."""
_MOST_ITEMS: Final = 1_000
"""The most items of a tuple or mapping."""
_MOST_ELEMENTS: Final = 1_000_000
"""The most elements of an output, unless the case has a larger one."""
_LEAST_SAMPLE: Final = 2
"""The fewest elements of a sample: the first and the last."""
_LARGEST_DETAILS: Final = 100_000
"""The most characters of an environment's details as JSON."""


_Value = TypeVar("_Value", Environment, Capabilities)
_Member = TypeVar("_Member", FaultKind, BreakdownKind, DataType)


class _MalformedError(Exception):
    """A value violates the protocol."""


def checked_outcome(outcome: object, case: Case) -> Outcome:
    """Return an outcome rebuilt from plain values, or a breakdown if it is malformed."""
    try:
        for kind, rebuild in _OUTCOMES.items():
            if isinstance(outcome, kind):
                return rebuild(outcome, _elements(case))
        names = ", ".join(kind.__name__ for kind in _OUTCOMES)
        message = f"the backend yielded {_named(outcome)}, not one of {names}"
    except _MalformedError as error:
        message = f"the backend returned a malformed {_type_name(outcome)}: {error}"
    except Exception as error:  # Attributes of a plugin's own classes may raise anything.
        message = f"the backend returned an outcome that raises {_named(error)} when it is read"
    return Breakdown(BreakdownKind.ERROR, message)


def checked_environment(environment: object) -> Environment:
    """Return the environment rebuilt from plain values; `BackendError` if it is malformed."""
    return _required("environment()", environment, Environment, _environment)


def checked_capabilities(capabilities: object) -> Capabilities:
    """Return the capabilities rebuilt from plain values; `BackendError` if they are malformed."""
    return _required("capabilities()", capabilities, Capabilities, _capabilities)


def _required(
    method: str, value: object, kind: type[_Value], rebuild: Callable[[Any], _Value]
) -> _Value:
    try:
        if not isinstance(value, kind):
            raise _MalformedError(f"it returned {_named(value)}, not {kind.__name__}")
        return rebuild(value)
    except _MalformedError as error:
        raise BackendError(f"the backend's {method} violates the protocol: {error}") from None
    except Exception as error:
        message = f"the backend's {method} returned a value that raises {_named(error)} when read"
        raise BackendError(message) from error


def _elements(case: Case) -> Mapping[str, int]:
    return {name: prod(tensor.Sizes) for name, tensor in case.outputs().items()}


def _outputs(outcome: Any, elements: Mapping[str, int]) -> Outputs:
    most = max(elements.values(), default=0)
    longest = max(most, _MOST_ELEMENTS)
    arrays = {
        _text("arrays: a name", name): _array(f"arrays[{name!r}]", array, longest)
        for name, array in _pairs("arrays", outcome.arrays)
    }
    faults = tuple(_fault(fault, elements) for fault in _items("faults", outcome.faults))
    dispatches = _items("dispatch_seconds", outcome.dispatch_seconds)
    return Outputs(
        arrays=arrays,
        seconds=_seconds("seconds", outcome.seconds),
        faults=faults,
        dispatch_seconds=tuple(_seconds("dispatch_seconds", value) for value in dispatches),
        samples=_samples(outcome.samples, most),
        warnings=tuple(_text("warnings", text) for text in _items("warnings", outcome.warnings)),
    )


def _samples(value: object, most: int) -> dict[str, Sample]:
    samples = {}
    for name, sample in _pairs("samples", value):
        if not isinstance(sample, Sample) or not isinstance(sample.dtype, np.dtype):
            raise _MalformedError(f"samples holds {_named(sample)}, not a Sample")
        shape = tuple(map(int, sample.shape))
        indices = _indices("a sample's indices", sample.indices, most, prod(shape))
        values = _array("a sample's values", sample.values, most)
        if indices.size < _LEAST_SAMPLE or values.shape != indices.shape:
            raise _MalformedError(f"a sample has {indices.size:,} indices, {values.size:,} values")
        samples[_text("samples: a name", name)] = Sample(
            dtype=sample.dtype,
            shape=shape,
            digest=_text("a sample's digest", sample.digest),
            indices=indices,
            values=values,
        )
    return samples


def _fault(fault: Any, elements: Mapping[str, int]) -> Fault:
    if not isinstance(fault, Fault):
        raise _MalformedError(f"faults holds {_named(fault)}, not a Fault")
    output = _text("a fault's output", fault.output)
    if output and output not in elements:
        raise _MalformedError(f"a fault's output is {output[:40]!r}, not the name of an output")
    indices = fault.elements
    if indices is not None:
        if not output:
            raise _MalformedError("a fault has elements, but no output")
        count = elements[output]
        indices = _indices("a fault's elements", indices, count, count)
    return Fault(
        kind=_member("a fault's kind", fault.kind, FaultKind),
        message=_text("a fault's message", fault.message),
        output=output,
        elements=indices,
    )


def _rejection(outcome: Any, _: Mapping[str, int]) -> Rejection:
    constraints = _items("constraints", outcome.constraints)
    return Rejection(
        stage=_text("stage", outcome.stage),
        hresult=_text("hresult", outcome.hresult),
        constraints=tuple(_text("constraints", name) for name in constraints),
        seconds=_seconds("seconds", outcome.seconds),
        node=_text("node", outcome.node),
        message=_text("message", outcome.message),
        warnings=tuple(_text("warnings", text) for text in _items("warnings", outcome.warnings)),
    )


def _breakdown(outcome: Any, _: Mapping[str, int]) -> Breakdown:
    return Breakdown(
        kind=_member("kind", outcome.kind, BreakdownKind),
        message=_text("message", outcome.message),
        diagnostics=_text("diagnostics", outcome.diagnostics),
        seconds=_seconds("seconds", outcome.seconds),
    )


def _declined(outcome: Any, _: Mapping[str, int]) -> Declined:
    return Declined(_text("reason", outcome.reason), _seconds("seconds", outcome.seconds))


_OUTCOMES: Final[Mapping[type, Callable[[Any, Mapping[str, int]], Outcome]]] = {
    Outputs: _outputs,
    Rejection: _rejection,
    Breakdown: _breakdown,
    Declined: _declined,
}


def _environment(environment: Environment) -> Environment:
    details = json.dumps(dict(_mapping("details", environment.details)), default=str)
    if len(details) > _LARGEST_DETAILS:
        raise _MalformedError(f"details has {len(details):,} characters as JSON")
    return Environment(
        backend=_text("backend", environment.backend),
        version=_text("version", environment.version),
        adapter=_optional_text("adapter", environment.adapter),
        driver=_optional_text("driver", environment.driver),
        details=_finite(json.loads(details)),
    )


def _capabilities(capabilities: Capabilities) -> Capabilities:
    level = capabilities.feature_level
    if not (isinstance(level, tuple) and len(level) == 2 and all(type(n) is int for n in level)):
        raise _MalformedError(f"feature_level is {_named(level)}, not a FeatureLevel")
    half, graphs = capabilities.half_precision, capabilities.compiles_graphs
    for name, value in (("half_precision", half), ("compiles_graphs", graphs)):
        if not isinstance(value, bool):
            raise _MalformedError(f"{name} is {_named(value)}, not a bool")
    types = _items("data_types", capabilities.data_types)
    memory = capabilities.memory
    if memory is not None and (type(memory) is not int or memory < 0):
        raise _MalformedError(f"memory is {_named(memory)}, not a number of bytes or None")
    circumstances = _items("circumstances", capabilities.circumstances)
    return Capabilities(
        feature_level=FeatureLevel(*level),
        data_types=frozenset(_member("data_types", value, DataType) for value in types),
        memory=memory,
        half_precision=half,
        circumstances=frozenset(_text("circumstances", name) for name in circumstances),
        compiles_graphs=graphs,
    )


def _array(what: str, value: object, most: int) -> Array:
    """Return the array packed, in row-major order and native byte order."""
    if not isinstance(value, np.ndarray):
        raise _MalformedError(f"{what} is {_named(value)}, not a NumPy array")
    if value.size > most:
        raise _MalformedError(f"{what} has {value.size:,} elements, not {most:,} or fewer")
    if value.dtype.kind not in "biufc":
        raise _MalformedError(f"{what} has elements of {value.dtype}, not of a numeric type")
    return np.asarray(value, dtype=value.dtype.newbyteorder("="), order="C")


def _indices(what: str, value: object, most: int, count: int) -> Array:
    indices = _array(what, value, most)
    if indices.dtype.kind not in "iu" or indices.ndim != 1:
        raise _MalformedError(f"{what} are not a vector of indices")
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < count:
        raise _MalformedError(f"{what}: an index is outside the output's {count:,} elements")
    return indices


def _mapping(what: str, value: object) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise _MalformedError(f"{what} is {_named(value)}, not a mapping")
    return value


def _pairs(what: str, value: object) -> list[tuple[Any, Any]]:
    mapping = _mapping(what, value)
    return [(name, mapping[name]) for name in _items(what, iter(mapping))]


def _items(what: str, value: object) -> list[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _MalformedError(f"{what} is {_named(value)}, not a tuple")
    items: list[Any] = []
    for item in value:
        if len(items) == _MOST_ITEMS:
            raise _MalformedError(f"{what} has more than {_MOST_ITEMS:,} items")
        items.append(item)
    return items


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise _MalformedError(f"{what} is {_named(value)}, not text")
    # UTF-8 cannot encode a lone surrogate.
    return str(value)[:_LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")


def _optional_text(what: str, value: object) -> str | None:
    return None if value is None else _text(what, value)


def _seconds(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise _MalformedError(f"{what} is {_named(value)}, not a number of seconds")
    seconds = float(value)
    if not math.isfinite(seconds) or seconds < 0:
        raise _MalformedError(f"{what} is {seconds}, not a number of seconds")
    return seconds


def _member(what: str, value: Any, kind: type[_Member]) -> _Member:
    try:
        return kind(value)
    except ValueError:
        raise _MalformedError(f"{what} is {_named(value)}, not a {kind.__name__}") from None


def _finite(value: Any) -> Any:
    """Return a JSON value with text for infinities and NaN, which JSON lacks."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def _named(value: object) -> str:
    """Return a plain value's first characters, or else the type, for messages."""
    if value is None or type(value) in (bool, int, float):
        return repr(value)[:40]
    if type(value) is str:
        return repr(value[:40])
    return f"a {_type_name(value)}"


def _type_name(value: object) -> str:
    return type(value).__name__
