"""Evaluate a case with the reference: find an operator's function, pass the desc's fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.loader import operator
from dmlconf.catalogue.model import Entry, FieldKind, Operator, Specialisation
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["MissingFunction", "arguments", "evaluate", "operator_function", "reference_function"]


class MissingFunction(LookupError):
    """An operator has no reference function, or no function for what its rule permits."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"the reference has no function of {name}")


def evaluate(case: Case, inputs: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """Return the array of each output by name, shaped like its Sizes.

    Args:
        case: an operator or a graph; it breaks no constraint.
        inputs: arrays by input tensor, or by graph input, instead of the case's own.

    Raises:
        MissingFunction: the reference has no function of an operator.
    """
    if case.nodes:
        # Imported here, since few cases are graphs.
        from dmlconf.reference.graph_evaluation import evaluate_nodes, graph_outputs

        return graph_outputs(case.graph, evaluate_nodes(case, evaluate, inputs).outputs)
    if inputs is None:
        inputs = case.inputs()
    with np.errstate(all="ignore"):  # Infinity and NaN are results, and no reason for a warning.
        outputs = reference_function(case.operator_name)(**arguments(case.entry, case, inputs))
    arrays = list(outputs) if isinstance(outputs, tuple) else [outputs]
    return {
        name: array.reshape(tensor.Sizes)
        for (name, tensor), array in zip(case.outputs().items(), arrays, strict=True)
    }


def arguments(entry: Entry, case: Case, inputs: Mapping[str, Array]) -> dict[str, Any]:
    """Return a case's fields except counts, by name: inputs as arrays, None for absent fields."""
    taken: dict[str, Any] = {}
    counts = entry.count_fields
    for field in entry.fields:
        value = case.desc[field.name]
        if field.kind is not FieldKind.INPUT or value is None:
            if field.name not in counts:
                taken[field.name] = value
        elif field.is_array:
            taken[field.name] = [inputs[str(TensorRef(field.name, i))] for i in range(len(value))]
        else:
            taken[field.name] = _with_bits(inputs[field.name], value.DataType)
    return taken


def _with_bits(array: Array, data_type: DataType) -> Array:
    """Return the array; a 4-bit type, which NumPy lacks, gets a dtype with the metadata `bits`."""
    if data_type.bits >= 8:
        return array
    return array.view(np.dtype(array.dtype, metadata={"bits": data_type.bits}))


def reference_function(name: str) -> Callable[..., Any]:
    """Return the reference's function of an operator, as `operator_function` does."""
    return operator_function("dmlconf.reference", name)


@cache
def operator_function(package: str, name: str, ending: str = "") -> Callable[..., Any]:
    """Return a package's function of an operator's fields.

    The `family` of the operator's catalogue entry names the module. The function's name is the
    operator's in lower case, followed by `ending`, such as `_error_scale`.

    If the entry `specialises` another operator, the result calls the function of that operator. It
    passes the fields that both have, and those that the entry fixes or computes.

    Raises:
        MissingFunction: the package has no such function.
        UnknownOperatorError: the catalogue has no such operator.
    """
    entry = operator(name)
    if entry.specialises is not None:
        general = operator_function(package, entry.specialises.operator, ending)
        return _special_case(entry, entry.specialises, general)
    try:
        module = import_module(f"{package}.{entry.family}")
        function: Callable[..., Any] = getattr(module, name.lower() + ending)
    except (ImportError, AttributeError) as error:
        raise MissingFunction(name) from error
    return function


def _special_case(
    entry: Operator, of: Specialisation, general: Callable[..., Any]
) -> Callable[..., Any]:
    counts = entry.count_fields
    names = [field.name for field in entry.fields if field.name not in counts]
    shared = {field.name for field in operator(of.operator).fields}

    def function(*values: Any, **fields: Any) -> Any:
        fields.update(zip(names, values, strict=False))
        passed = {name: value for name, value in fields.items() if name in shared}
        if of.computed:
            known = entry.names({name: _described(value) for name, value in fields.items()})
            passed.update((name, part.evaluate(known)) for name, part in of.computed.items())
        return general(**passed, **of.constants)

    return function


def _described(value: Any) -> Any:
    """Return a field's value as expressions see it: an array as its data type and sizes."""
    if isinstance(value, np.ndarray):
        return TensorDesc(DataType(value.dtype.name.upper()), value.shape)
    return value
