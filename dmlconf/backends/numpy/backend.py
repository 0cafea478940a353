"""The backend `numpy`: checks a desc against the catalogue, then computes with the reference."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from dmlconf.backends.protocol import (
    BackendError,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Environment,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.model import Case
from dmlconf.catalogue.constraints import violations
from dmlconf.catalogue.loader import operator
from dmlconf.catalogue.model import FeatureLevel, FieldKind, Operator
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "NumpyBackend",
    "arguments",
    "compute",
    "computed",
    "create",
    "reference_function",
    "run_case",
]

HIGHEST_LEVEL = FeatureLevel(6, 4)


class NumpyBackend:
    """The reference as a backend."""

    def environment(self) -> Environment:
        """Return NumPy's version and the processor."""
        return Environment("numpy", np.__version__, adapter=platform.machine() or None)

    def capabilities(self) -> Capabilities:
        """Return every feature level and data type of the catalogue."""
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType))

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield one outcome for each case: a rejection, or what the reference computes."""
        return map(run_case, cases)

    def close(self) -> None:
        """Give nothing back: the reference holds nothing."""


def create(argument: str) -> NumpyBackend:
    """Make the backend from what stands behind `numpy:` on the command line, which is nothing.

    Raises:
        BackendError: there is an argument.
    """
    if argument:
        raise BackendError(f"the backend numpy takes no argument, not {argument!r}")
    return NumpyBackend()


def run_case(case: Case) -> Outcome:
    """Return what the reference makes of a case."""
    began = perf_counter()
    broken = violations(case.operator, case.desc)
    if broken:
        return Rejection("CreateOperator", "E_INVALIDARG", broken, perf_counter() - began)
    try:
        outputs = compute(case)
    except MemoryError as error:
        message = f"the reference needs more memory than there is: {error}"
        return Breakdown(BreakdownKind.OUT_OF_MEMORY, message, "", perf_counter() - began)
    return Outputs(outputs, perf_counter() - began)


def compute(case: Case) -> dict[str, Array]:
    """Return the outputs' arrays by tensor, for a case that breaks no constraint."""
    return computed(case, case.inputs())


def computed(case: Case, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs' arrays by tensor, for other inputs than the case has."""
    found = reference_function(case.operator_name)(**arguments(case.operator, case, inputs))
    arrays = list(found) if isinstance(found, tuple) else [found]
    return {
        name: array.reshape(tensor.Sizes)
        for (name, tensor), array in zip(case.outputs().items(), arrays, strict=True)
    }


def arguments(entry: Operator, case: Case, inputs: Mapping[str, Array]) -> dict[str, Any]:
    """Return what the functions of an operator take: the desc's fields, with arrays as inputs."""
    taken: dict[str, Any] = {}
    counts = entry.count_fields
    for field in entry.fields:
        value = case.desc[field.name]
        if field.kind is not FieldKind.INPUT or value is None:
            if field.name not in counts:
                taken[field.name] = value
        elif field.is_array:
            taken[field.name] = [inputs[f"{field.name}[{i}]"] for i in range(len(value))]
        else:
            taken[field.name] = _telling_bits(inputs[field.name], value.DataType)
    return taken


def _telling_bits(array: Array, data_type: DataType) -> Array:
    """Return an array whose dtype's metadata has the `bits` that NumPy has no type for."""
    if data_type.bits >= 8:
        return array
    return array.view(np.dtype(array.dtype, metadata={"bits": data_type.bits}))


@cache
def reference_function(name: str, part: str = "") -> Callable[..., Any]:
    """Return the reference's function of an operator.

    Args:
        name: the operator's.
        part: nothing for the outputs, or what is told of them, such as `magnitude`.

    Raises:
        BackendError: the reference has none.
    """
    entry = operator(name)
    try:
        module = import_module(f"dmlconf.backends.numpy.{entry.family}")
        function: Callable[..., Any] = getattr(module, "_".join(filter(None, (name.lower(), part))))
    except (ImportError, AttributeError) as error:
        told = f"the {part} of {name}" if part else name
        raise BackendError(f"the reference has no function of {told}") from error
    return function
